// Meaning of the members of an answer by their key, depth and surroundings: usage objects, token counts, model names.
// A new form of usage changes this file; json.ts only knows what JSON is.
//
// Owns: usageDepth, detailsDepth, scope and finished of a response scan (layout.ts); its own thread only, no lock.
import {
  KEY_CACHE_READ,
  KEY_CACHED,
  KEY_COMPLETION,
  KEY_DETAILS,
  KEY_FINISH,
  KEY_MESSAGE,
  KEY_META,
  KEY_MODEL,
  KEY_OTHER,
  KEY_RESPONSE,
  KEY_TYPE,
  KEY_USAGE,
} from './keys';
import {
  FORM_MESSAGES,
  FORM_RESPONSES,
  FORM_SGLANG,
  MODE_EVENTS,
  SCOPE_MESSAGE,
  SCOPE_NONE,
  SCOPE_RESPONSE,
} from './layout';
import { ResponseScan } from './scan-state';
import { usageClose, usageOpen } from './usage';

// Uses of a string.
export const STRING_PLAIN: u32 = 0;
export const STRING_KEY: u32 = 1;
export const STRING_NAME: u32 = 2; // a model name that may have to be changed
export const STRING_COUNT: u32 = 3; // a token count written as a string
export const STRING_TYPE: u32 = 4; // the document's type

/** Takes the opening of the object of a member of interest. */
export function memberOpen(at: ResponseScan, key: u32, depth: u32): void {
  const usage = at.usageDepth;
  if (usage != 0) {
    if (depth != usage + 1) return;
    if (key == KEY_DETAILS) at.detailsDepth = depth;
    else if (key == KEY_FINISH) at.finished = 1;
  } else if (key == KEY_USAGE) {
    if (tellsUsage(at, depth)) usageOpen(at, depth);
  } else if (depth == 2) {
    if (key == KEY_RESPONSE) at.scope = SCOPE_RESPONSE;
    else if (key == KEY_MESSAGE) at.scope = SCOPE_MESSAGE;
    else if (key == KEY_META && at.form == FORM_SGLANG) usageOpen(at, depth);
  }
}

/** Whether a usage object that opens here is the answer's. */
function tellsUsage(at: ResponseScan, depth: u32): bool {
  const form = at.form;
  if (form == FORM_SGLANG) return false;
  if (depth == 2) return form != FORM_RESPONSES || at.mode != MODE_EVENTS;
  const scope = at.scope;
  return depth == 3 && (scope == SCOPE_RESPONSE || (scope == SCOPE_MESSAGE && form == FORM_MESSAGES));
}

/** Takes the end of a container. */
export function memberClose(at: ResponseScan, depth: u32): void {
  if (depth == at.usageDepth) usageClose(at);
  if (depth == at.detailsDepth) at.detailsDepth = 0;
  if (depth == 2) at.scope = SCOPE_NONE;
}

/** Use of the string value of a member. @returns STRING_* */
export function memberString(at: ResponseScan, key: u32, depth: u32): u32 {
  if (key == KEY_MODEL) {
    const place = depth == 1 || (depth == 2 && at.scope != SCOPE_NONE);
    return place && at.nameBytes != 0 ? STRING_NAME : STRING_PLAIN;
  }
  if (key == KEY_TYPE) return depth == 1 ? STRING_TYPE : STRING_PLAIN;
  if (key == KEY_FINISH && depth == at.usageDepth) at.finished = 1;
  return isCount(at, key, depth) ? STRING_COUNT : STRING_PLAIN;
}

/** Whether the member is one of the token counts, in its place. */
export function isCount(at: ResponseScan, key: u32, depth: u32): bool {
  if (key == KEY_OTHER || key > KEY_CACHE_READ) return false;
  const usage = at.usageDepth;
  const form = at.form;
  if (key == KEY_CACHE_READ) return form == FORM_MESSAGES && depth == usage;
  if (key == KEY_CACHED) return depth == (form == FORM_SGLANG ? usage : at.detailsDepth);
  // The message that starts an Anthropic stream counts an output that has barely begun.
  if (key == KEY_COMPLETION && at.scope == SCOPE_MESSAGE) return false;
  return depth == usage;
}

/** Number of a token count in usage.ts. */
export function countField(key: u32): u32 {
  return key == KEY_CACHE_READ ? KEY_CACHED - 1 : key - 1;
}
