// Meaning of the keys of a request body: values that are kept, prompt content, and values that only pass.
//
// Owns: in this thread's part of REGION_SCANS the found fields of a scan. No lock: all of it belongs to one thread.
//
// A container is tracked when its keys or elements matter: the body's object (depth 1), the array in `messages` or in a
// completions `prompt` (2), a message (3), its content parts (4) and a part (5). Tracked containers always form one
// path from the top, so the depth alone says which one is meant.
//
// Prompt content follows llm-d-router's estimate (four bytes are one token):
//   completions    the prompt's text; of several, one behind the other; token ids as little-endian u32
//   chat           of every message, in the order of the bytes: role, text of the content; `image_url` as
//                  SCAN_IMAGE_TOKENS equal tokens, the low half of its hash; other parts as their JSON
//   messages       the same, with `source` for the image; in front the texts of `system`
//   images         the prompt's text
//   generate       the token ids of `token_ids` or, of SGLang, `input_ids`
//   others         the JSON of `input` or `items`
// `tools` and `system` (`instructions` of the responses API) are segments of their own, because they may come behind
// the messages but the engine's template puts them in front. Tool calls of the OpenAI form are left out, as in
// llm-d-router; those of the Anthropic form are parts like any other. A key given twice in one message counts twice:
// only for top-level keys does the last one win.
import { noticeEnd } from './billing-notice';
import {
  ofSglang,
  PROMPT_CHAT,
  PROMPT_COMPLETIONS,
  PROMPT_CONVERSATIONS,
  PROMPT_EMBEDDINGS,
  PROMPT_IMAGES,
  PROMPT_MESSAGES,
  PROMPT_RESPONSES,
  PROMPT_TOKENS,
} from './body-kinds';
import { contentLength, contentReset, contentSwitch, contentTokens } from './content';
import { streamHash, streamReset } from './hash';
import {
  inSystem,
  ROLE_FEATURES,
  ROLE_LIMIT_FIRST,
  ROLE_LIMIT_SECOND,
  ROLE_MODEL,
  ROLE_PROMPT,
  ROLE_SALT,
  ROLE_SAMPLING,
  ROLE_STREAM,
  ROLE_SYSTEM,
  ROLE_TEMPLATE,
  ROLE_TOOLS,
} from './keys';
import { SCAN_PROMPT_SEGMENT, SCAN_SYSTEM_SEGMENT, SCAN_TOOLS_SEGMENT } from './layout';
import { isDigit, LETTER_F, LETTER_N, LETTER_T, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './lexemes';
import { mediaNote, mediaReset } from './media';
import {
  messageValueBegin,
  noteMedium,
  partValueBegin,
  SCAN_IMAGE_TOKENS,
  systemBegin,
  systemValueBegin,
} from './messages';
import {
  FAULT_SALT,
  FAULT_STREAM,
  FAULT_SYSTEM,
  fault,
  SHAPE_BAD,
  SHAPE_EMPTY,
  SHAPE_GOOD,
  SHAPE_MISSING,
  SHAPE_STRINGS,
  SHAPE_TOKENS,
} from './prompt-shapes';
import { beginRaw, RAW_ASIDE, RAW_NONE, RAW_PROMPT, takeRaw } from './raw-values';
import { RequestScan } from './scan-state';
import {
  SINK_LIMIT_FIRST,
  SINK_LIMIT_SECOND,
  SINK_MODEL,
  SINK_NONE,
  SINK_PROMPT,
  SINK_SALT,
  SINK_TOKEN,
} from './value-sinks';

/**
 * Takes the begin of a value in the tracked container at `depth`: `byte` at address `at`, `position` bytes into the
 * body.
 * @returns true when the value, if it is a container, is tracked too.
 */
export function valueBegin(scan: RequestScan, depth: u32, byte: u32, at: usize, position: u32): bool {
  scan.sink = SINK_NONE;
  switch (depth) {
    case 0: {
      const object = byte == OPEN_OBJECT;
      scan.isObject = u32(object);
      return object;
    }
    case 1:
      scan.valueStart = position;
      return fieldBegin(scan, scan.roleAt(1), byte, at);
    case 2:
      return memberBegin(scan, byte);
    case 3:
      if (inSystem(scan)) {
        systemValueBegin(scan, scan.roleAt(3), byte, at);
        return false;
      }
      return messageValueBegin(scan, scan.roleAt(3), byte);
    case 4:
      if (byte == OPEN_OBJECT) return true;
      if (scan.kind != PROMPT_MESSAGES) beginRaw(scan, RAW_PROMPT, at);
      else if (byte != LETTER_N) scan.shape = SHAPE_BAD;
      return false;
    default:
      partValueBegin(scan, scan.roleAt(5), byte, at);
      return false;
  }
}

/**
 * Takes the end of a value in the tracked container at `depth`, before address `at`, `position` bytes into the body.
 */
export function valueEnd(scan: RequestScan, depth: u32, at: usize, position: u32): void {
  const raw = scan.raw;
  if (raw != RAW_NONE) {
    takeRaw(scan, at);
    scan.raw = RAW_NONE;
  }
  if (scan.notice != 0) noticeEnd(scan);
  if (depth == 1) fieldEnd(scan, scan.roleAt(1), position);
  else if (depth == 5 && raw >= RAW_ASIDE) {
    const hash = streamHash(scan.aside);
    noteMedium(scan, hash);
    if (raw == RAW_ASIDE) contentTokens(scan, <u32>hash, SCAN_IMAGE_TOKENS);
  }
}

/** A top-level value begins: the last one of a name wins, so what an earlier one left is forgotten first. */
function fieldBegin(scan: RequestScan, role: u32, byte: u32, at: usize): bool {
  const string = byte == QUOTE;
  switch (role) {
    case ROLE_MODEL:
      scan.modelKnown = u32(string);
      scan.modelLength = 0;
      if (string) scan.sink = SINK_MODEL;
      return false;
    case ROLE_STREAM:
      scan.stream = u32(byte == LETTER_T);
      fault(scan, FAULT_STREAM, ofSglang(scan) && byte != LETTER_T && byte != LETTER_F && byte != LETTER_N);
      return false;
    case ROLE_LIMIT_FIRST:
      limitBegin(scan, string);
      return false;
    case ROLE_SAMPLING:
      scan.limitFirstLength = 0;
      return byte == OPEN_OBJECT;
    case ROLE_LIMIT_SECOND:
      scan.limitSecondLength = 0;
      scan.sink = string ? SINK_NONE : SINK_LIMIT_SECOND;
      return false;
    case ROLE_PROMPT:
      return promptBegin(scan, byte, at);
    case ROLE_TOOLS:
      scan.toolsEnd = 0;
      contentSwitch(scan, SCAN_TOOLS_SEGMENT);
      contentReset(scan);
      if (byte != LETTER_N) beginRaw(scan, RAW_PROMPT, at);
      return false;
    case ROLE_TEMPLATE:
      scan.templateEnd = 0;
      return false;
    case ROLE_SYSTEM:
      contentSwitch(scan, SCAN_SYSTEM_SEGMENT);
      contentReset(scan);
      return systemBegin(scan, byte, at);
    case ROLE_SALT:
      scan.saltKnown = u32(string);
      scan.saltLength = 0;
      scan.saltHash = 0;
      fault(scan, FAULT_SALT, ofSglang(scan) && !string && byte != LETTER_N);
      if (string) {
        scan.sink = SINK_SALT;
        streamReset(scan.aside);
      }
      return false;
    default:
      return false;
  }
}

function fieldEnd(scan: RequestScan, role: u32, position: u32): void {
  const start = scan.valueStart;
  switch (role) {
    case ROLE_MODEL:
      scan.modelStart = start;
      scan.modelEnd = position;
      break;
    case ROLE_PROMPT:
      if (isBlank(scan, position - start)) scan.shape = SHAPE_EMPTY;
      if (scan.shape <= SHAPE_EMPTY) contentReset(scan);
      else {
        scan.promptStart = start;
        scan.promptEnd = position;
      }
      break;
    case ROLE_TOOLS:
      contentSwitch(scan, SCAN_PROMPT_SEGMENT);
      if (contentLength(scan, SCAN_TOOLS_SEGMENT) == 0) break;
      scan.toolsStart = start;
      scan.toolsEnd = position;
      break;
    case ROLE_TEMPLATE:
      scan.templateStart = start;
      scan.templateEnd = position;
      break;
    case ROLE_SYSTEM:
      contentSwitch(scan, SCAN_PROMPT_SEGMENT);
      break;
    case ROLE_FEATURES:
      // An object with something in it.
      mediaReset(scan);
      if (position - start > 4) mediaNote(scan);
      break;
    case ROLE_SALT:
      if (scan.saltKnown == 0) break;
      scan.saltHash = streamHash(scan.aside);
      break;
    default:
      break;
  }
}

/**
 * True for `""` and `[]`, which are no prompt (as in llm-d-router); the responses API leaves them to the model server.
 */
function isBlank(scan: RequestScan, length: u32): bool {
  if (length != 2 || scan.kind == PROMPT_RESPONSES) return false;
  return scan.shape == SHAPE_GOOD;
}

/** Returns whether the kind's prompt is taken raw and may begin with `byte`, which does not begin a null. */
function rawPromptMayBegin(kind: u32, byte: u32): bool {
  if (kind == PROMPT_CONVERSATIONS) return byte == OPEN_ARRAY;
  if (kind == PROMPT_EMBEDDINGS) return byte == OPEN_ARRAY || byte == QUOTE;
  return kind == PROMPT_RESPONSES;
}

function promptBegin(scan: RequestScan, byte: u32, at: usize): bool {
  const kind = scan.kind;
  contentReset(scan);
  if (kind != PROMPT_TOKENS) mediaReset(scan);
  scan.promptEnd = 0;
  scan.mediaCount = 0;
  const text = kind == PROMPT_COMPLETIONS || kind == PROMPT_IMAGES;
  let shape = SHAPE_BAD;
  let list = false;
  if (text && byte == QUOTE) {
    shape = SHAPE_GOOD;
    scan.sink = SINK_PROMPT;
  } else if (byte == LETTER_N) {
    shape = SHAPE_MISSING;
  } else if (rawPromptMayBegin(kind, byte)) {
    shape = SHAPE_GOOD;
    beginRaw(scan, RAW_PROMPT, at);
  } else if (byte == OPEN_ARRAY && kind != PROMPT_IMAGES) {
    shape = SHAPE_EMPTY;
    list = true;
  }
  scan.shape = shape;
  return list;
}

/** Takes the begin of a member of the sampling parameters, a part of the system text, or an element of the prompt. */
function memberBegin(scan: RequestScan, byte: u32): bool {
  const role = scan.roleAt(1);
  if (role == ROLE_SAMPLING) {
    if (scan.roleAt(2) == ROLE_LIMIT_FIRST) limitBegin(scan, byte == QUOTE);
    return false;
  }
  if (role == ROLE_SYSTEM) {
    if (byte != OPEN_OBJECT && byte != LETTER_N) fault(scan, FAULT_SYSTEM, true);
    return byte == OPEN_OBJECT;
  }
  return elementBegin(scan, byte);
}

function limitBegin(scan: RequestScan, string: bool): void {
  scan.limitFirstLength = 0;
  scan.sink = string ? SINK_NONE : SINK_LIMIT_FIRST;
}

/** Takes the begin of an element of a completions prompt, of token ids or of the messages. */
function elementBegin(scan: RequestScan, byte: u32): bool {
  const shape = scan.shape;
  const kind = scan.kind;
  if (kind == PROMPT_CHAT || kind == PROMPT_MESSAGES) {
    // A null among the messages is left to the model server.
    const good = (byte == OPEN_OBJECT || byte == LETTER_N) && shape != SHAPE_BAD;
    scan.shape = good ? SHAPE_GOOD : SHAPE_BAD;
    return good && byte == OPEN_OBJECT;
  }
  let next = SHAPE_BAD;
  if (byte == QUOTE && kind == PROMPT_COMPLETIONS && (shape == SHAPE_EMPTY || shape == SHAPE_STRINGS)) {
    next = SHAPE_STRINGS;
    scan.sink = SINK_PROMPT;
  } else if (isDigit(byte) && (shape == SHAPE_EMPTY || shape == SHAPE_TOKENS)) {
    next = SHAPE_TOKENS;
    scan.sink = SINK_TOKEN;
    scan.number = 0;
    scan.numberBad = 0;
  }
  scan.shape = next;
  return false;
}

/** Bytes of prompt content, tools and system included. */
export function promptBytes(scan: RequestScan): u32 {
  return (
    contentLength(scan, SCAN_PROMPT_SEGMENT) +
    contentLength(scan, SCAN_TOOLS_SEGMENT) +
    contentLength(scan, SCAN_SYSTEM_SEGMENT)
  );
}
