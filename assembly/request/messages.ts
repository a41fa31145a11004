// Messages, their parts, the system text in front of them, and the media that they carry.
//
// Owns: in this thread's part of REGION_SCANS the list of media. No lock: all of it belongs to one thread.
import { PROMPT_MESSAGES } from './body-kinds';
import { ROLE_AUDIO, ROLE_CONTENT, ROLE_IMAGE, ROLE_NONE, ROLE_TEXT, ROLE_TYPE, ROLE_VIDEO } from './keys';
import { SCAN_MAX_MEDIA, SCAN_MEDIA, SCAN_MEDIA_KINDS, SCAN_PROMPT_SEGMENT } from './layout';
import { LETTER_N, OPEN_ARRAY, QUOTE } from './lexemes';
import { mediaOf, typeBegin } from './media';
import { FAULT_SYSTEM, fault, SHAPE_BAD } from './prompt-shapes';
import { beginRaw, RAW_ASIDE, RAW_BOTH, RAW_PROMPT } from './raw-values';
import { RequestScan } from './scan-state';
import { SINK_NONE, SINK_NOTICE, SINK_PROMPT, SINK_TYPE } from './value-sinks';

/** Tokens of an image: 640 × 360 pixels / 1,024, llm-d-router's default. */
export const SCAN_IMAGE_TOKENS: u32 = 225;

// Media by their kind.
export const MEDIUM_IMAGE: u32 = 1;
export const MEDIUM_VIDEO: u32 = 2;
export const MEDIUM_AUDIO: u32 = 3;

/** Remembers a medium of the prompt. Repeated ones are not counted again, and those beyond the bound are left out. */
export function noteMedium(scan: RequestScan, hash: u64): void {
  const count = scan.mediaCount;
  for (let i: u32 = 0; i < count; i++) {
    if (load<u64>(changetype<usize>(scan) + SCAN_MEDIA + ((<usize>i) << 3)) == hash) return;
  }
  if (count == SCAN_MAX_MEDIA) return;
  store<u64>(changetype<usize>(scan) + SCAN_MEDIA + ((<usize>count) << 3), hash);
  store<u8>(changetype<usize>(scan) + SCAN_MEDIA_KINDS + <usize>count, <u8>scan.medium);
  scan.mediaCount = count + 1;
}

/** `system` begins: Anthropic's is text or a list of parts; `instructions` and what others have count as their JSON. */
export function systemBegin(scan: RequestScan, byte: u32, at: usize): bool {
  if (scan.kind != PROMPT_MESSAGES) {
    if (byte != LETTER_N) beginRaw(scan, RAW_PROMPT, at);
    return false;
  }
  fault(scan, FAULT_SYSTEM, byte != QUOTE && byte != OPEN_ARRAY && byte != LETTER_N);
  if (byte == QUOTE) scan.sink = SINK_NOTICE;
  return byte == OPEN_ARRAY;
}

/** Takes the begin of a value of a part of the system text. */
export function systemValueBegin(scan: RequestScan, role: u32, byte: u32, at: usize): void {
  if (role == ROLE_TEXT && byte == QUOTE) scan.sink = SINK_NOTICE;
  else partValueBegin(scan, role, byte, at);
}

export function messageValueBegin(scan: RequestScan, role: u32, byte: u32): bool {
  if (role == ROLE_NONE || byte == LETTER_N) return false;
  if (byte == QUOTE) scan.sink = SINK_PROMPT;
  else if (role == ROLE_CONTENT && byte == OPEN_ARRAY) return true;
  else scan.shape = SHAPE_BAD;
  return false;
}

export function partValueBegin(scan: RequestScan, role: u32, byte: u32, at: usize): void {
  if (role == ROLE_NONE || byte == LETTER_N) return;
  if (role == ROLE_TYPE) {
    if (byte == QUOTE) beginType(scan);
    return;
  }
  if (role == ROLE_TEXT && byte == QUOTE) scan.sink = SINK_PROMPT;
  else if (role == ROLE_IMAGE) beginMedium(scan, MEDIUM_IMAGE, RAW_ASIDE, at);
  else if (role == ROLE_VIDEO) beginMedium(scan, MEDIUM_VIDEO, RAW_BOTH, at);
  else if (role == ROLE_AUDIO) beginMedium(scan, MEDIUM_AUDIO, RAW_BOTH, at);
  else beginRaw(scan, RAW_PROMPT, at);
}

function beginMedium(scan: RequestScan, medium: u32, raw: u32, at: usize): void {
  scan.medium = medium;
  beginRaw(scan, raw, at);
}

function beginType(scan: RequestScan): void {
  scan.sink = SINK_TYPE;
  typeBegin(scan);
}

/** Returns whether keys inside of the value under way are looked at: it is a part of the prompt that is taken raw. */
export function looksInside(scan: RequestScan): bool {
  return scan.raw == RAW_PROMPT && scan.segment == <u32>SCAN_PROMPT_SEGMENT;
}

/** Ends the key of a nested object. */
export function nestedKeyEnd(scan: RequestScan): void {
  const type = scan.keyLength == 4 && scan.keyWord(0) == 0x65707974;
  mediaOf(scan).typeNext = u32(type);
}

/** Takes the begin of a value inside of a message. */
export function nestedValueBegin(scan: RequestScan, byte: u32): void {
  scan.sink = SINK_NONE;
  const media = mediaOf(scan);
  if (media.typeNext == 0) return;
  media.typeNext = 0;
  if (byte == QUOTE) beginType(scan);
}
