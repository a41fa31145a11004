// Messages, their parts, the system text in front of them, and the media that they carry.
//
// Owns: in this thread's part of REGION_SCANS the list of media. No lock: all of it belongs to one thread.
import { ROLE_AUDIO, ROLE_CONTENT, ROLE_IMAGE, ROLE_NONE, ROLE_TEXT, ROLE_TYPE, ROLE_VIDEO } from './keys';
import { PROMPT_MESSAGES } from './kinds';
import {
  SCAN_KEY,
  SCAN_KEY_LENGTH,
  SCAN_KIND,
  SCAN_MAX_MEDIA,
  SCAN_MEDIA,
  SCAN_MEDIA_COUNT,
  SCAN_MEDIA_KINDS,
  SCAN_MEDIUM,
  SCAN_PROMPT_SEGMENT,
  SCAN_RAW,
  SCAN_SEGMENT,
  SCAN_SHAPE,
  SCAN_SINK,
  SCAN_TYPE_NEXT,
} from './layout';
import { LETTER_N, OPEN_ARRAY, QUOTE } from './lexemes';
import { typeBegin } from './media';
import { beginRaw, RAW_ASIDE, RAW_BOTH, RAW_PROMPT } from './raw';
import { FAULT_SYSTEM, fault, SHAPE_BAD } from './shapes';
import { SINK_NONE, SINK_NOTICE, SINK_PROMPT, SINK_TYPE } from './sinks';

/** Tokens that an image stands for: 640 × 360 pixels / 1,024, the incumbent's default. */
export const SCAN_IMAGE_TOKENS: u32 = 225;

// Media by what they are.
export const MEDIUM_IMAGE: u32 = 1;
export const MEDIUM_VIDEO: u32 = 2;
export const MEDIUM_AUDIO: u32 = 3;

/** Remember a medium of the prompt; one that came before is not counted again, and those beyond the bound are left out. */
export function noteMedium(scan: usize, hash: u64): void {
  const count = load<u32>(scan, SCAN_MEDIA_COUNT);
  for (let i: u32 = 0; i < count; i++) {
    if (load<u64>(scan + SCAN_MEDIA + ((<usize>i) << 3)) == hash) return;
  }
  if (count == SCAN_MAX_MEDIA) return;
  store<u64>(scan + SCAN_MEDIA + ((<usize>count) << 3), hash);
  store<u8>(scan + SCAN_MEDIA_KINDS + <usize>count, <u8>load<u32>(scan, SCAN_MEDIUM));
  store<u32>(scan, count + 1, SCAN_MEDIA_COUNT);
}

/** `system` begins: Anthropic's is text or a list of parts; `instructions` and what others have count as their JSON. */
export function systemBegin(scan: usize, byte: u32, at: usize): bool {
  if (load<u32>(scan, SCAN_KIND) != PROMPT_MESSAGES) {
    if (byte != LETTER_N) beginRaw(scan, RAW_PROMPT, at);
    return false;
  }
  fault(scan, FAULT_SYSTEM, byte != QUOTE && byte != OPEN_ARRAY && byte != LETTER_N);
  if (byte == QUOTE) store<u32>(scan, SINK_NOTICE, SCAN_SINK);
  return byte == OPEN_ARRAY;
}

/** A value of a part of the system text begins. */
export function systemValueBegin(scan: usize, role: u32, byte: u32, at: usize): void {
  if (role == ROLE_TEXT && byte == QUOTE) store<u32>(scan, SINK_NOTICE, SCAN_SINK);
  else partValueBegin(scan, role, byte, at);
}

export function messageValueBegin(scan: usize, role: u32, byte: u32): bool {
  if (role == ROLE_NONE || byte == LETTER_N) return false;
  if (byte == QUOTE) store<u32>(scan, SINK_PROMPT, SCAN_SINK);
  else if (role == ROLE_CONTENT && byte == OPEN_ARRAY) return true;
  else store<u32>(scan, SHAPE_BAD, SCAN_SHAPE);
  return false;
}

export function partValueBegin(scan: usize, role: u32, byte: u32, at: usize): void {
  if (role == ROLE_NONE || byte == LETTER_N) return;
  if (role == ROLE_TYPE) {
    if (byte == QUOTE) beginType(scan);
    return;
  }
  if (role == ROLE_TEXT && byte == QUOTE) store<u32>(scan, SINK_PROMPT, SCAN_SINK);
  else if (role == ROLE_IMAGE) beginMedium(scan, MEDIUM_IMAGE, RAW_ASIDE, at);
  else if (role == ROLE_VIDEO) beginMedium(scan, MEDIUM_VIDEO, RAW_BOTH, at);
  else if (role == ROLE_AUDIO) beginMedium(scan, MEDIUM_AUDIO, RAW_BOTH, at);
  else beginRaw(scan, RAW_PROMPT, at);
}

function beginMedium(scan: usize, medium: u32, raw: u32, at: usize): void {
  store<u32>(scan, medium, SCAN_MEDIUM);
  beginRaw(scan, raw, at);
}

function beginType(scan: usize): void {
  store<u32>(scan, SINK_TYPE, SCAN_SINK);
  typeBegin(scan);
}

/** Whether keys inside of the value under way are looked at: it is a part of the prompt that is taken raw. */
export function looksInside(scan: usize): bool {
  return load<u32>(scan, SCAN_RAW) == RAW_PROMPT && load<u32>(scan, SCAN_SEGMENT) == <u32>SCAN_PROMPT_SEGMENT;
}

/** Such a key has ended. */
export function nestedKeyEnd(scan: usize): void {
  const type = load<u32>(scan, SCAN_KEY_LENGTH) == 4 && load<u64>(scan, SCAN_KEY) == 0x65707974;
  store<u32>(scan, type, SCAN_TYPE_NEXT);
}

/** A value inside begins. */
export function nestedValueBegin(scan: usize, byte: u32): void {
  store<u32>(scan, SINK_NONE, SCAN_SINK);
  if (load<u32>(scan, SCAN_TYPE_NEXT) == 0) return;
  store<u32>(scan, 0, SCAN_TYPE_NEXT);
  if (byte == QUOTE) beginType(scan);
}
