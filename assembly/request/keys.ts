// The role of each value of a request body, by its key and the kind of the body.
//
// Owns: in this thread's part of REGION_SCANS, RequestScan.roles. No lock: all of it belongs to one thread.
import {
  PROMPT_CHAT,
  PROMPT_COMPLETIONS,
  PROMPT_CONVERSATIONS,
  PROMPT_EMBEDDINGS,
  PROMPT_IMAGES,
  PROMPT_MESSAGES,
  PROMPT_RESPONSES,
  PROMPT_SGLANG,
  PROMPT_TOKENS,
} from './body-kinds';
import { RequestScan } from './scan-state';

// Roles of values, by key.
export const ROLE_NONE: u32 = 0;
export const ROLE_MODEL: u32 = 1;
export const ROLE_STREAM: u32 = 2;
export const ROLE_LIMIT_FIRST: u32 = 3;
export const ROLE_LIMIT_SECOND: u32 = 4;
export const ROLE_PROMPT: u32 = 5;
export const ROLE_TOOLS: u32 = 6;
export const ROLE_SYSTEM: u32 = 7;
export const ROLE_SALT: u32 = 8;
export const ROLE_TEXT: u32 = 9; // decoded text, in messages and parts
export const ROLE_CONTENT: u32 = 10;
export const ROLE_IMAGE: u32 = 11;
const ROLE_PART: u32 = 12;
export const ROLE_SAMPLING: u32 = 13;
export const ROLE_VIDEO: u32 = 14;
export const ROLE_AUDIO: u32 = 15;
export const ROLE_TYPE: u32 = 20;
export const ROLE_FEATURES: u32 = 21;
export const ROLE_TEMPLATE: u32 = 22; // arguments of the chat template

/** Ends a key of the tracked object at `depth`: notes the role of its value. */
export function keyEnd(scan: RequestScan, depth: u32): void {
  const length = scan.keyLength;
  const word = scan.keyWord(0);
  let role = ROLE_NONE;
  if (depth == 1) role = bodyRole(scan, length, word);
  else if (depth == 2) role = samplingRole(scan, length, word);
  else if (depth == 3 && !inSystem(scan)) role = messageRole(length, word);
  else role = partRole(scan, length, word);
  scan.setRoleAt(depth, role);
}

// Keys are compared as little-endian words: 0x6c65646f6d is "model".
function bodyRole(scan: RequestScan, length: u32, word: u64): u32 {
  const kind = scan.kind;
  if (length == 5) {
    if (word == 0x6c65646f6d) return ROLE_MODEL;
    // Input
    if (word == 0x7475706e69) return kind == PROMPT_RESPONSES || kind == PROMPT_EMBEDDINGS ? ROLE_PROMPT : ROLE_NONE;
    if (word == 0x736d657469) return kind == PROMPT_CONVERSATIONS ? ROLE_PROMPT : ROLE_NONE; // items
    if (word == 0x736c6f6f74) return ROLE_TOOLS; // tools
  } else if (length == 6) {
    if (word == 0x6d6165727473) return ROLE_STREAM; // stream
    // Prompt
    if (word == 0x74706d6f7270) return kind == PROMPT_COMPLETIONS || kind == PROMPT_IMAGES ? ROLE_PROMPT : ROLE_NONE;
    if (word == 0x6d6574737973) return kind == PROMPT_RESPONSES ? ROLE_NONE : ROLE_SYSTEM; // system
  } else if (length == 8) {
    if (word == 0x7365727574616566) return kind == PROMPT_TOKENS ? ROLE_FEATURES : ROLE_NONE; // features
    // Messages
    if (word == 0x736567617373656d) return kind == PROMPT_CHAT || kind == PROMPT_MESSAGES ? ROLE_PROMPT : ROLE_NONE;
  } else if (length == 9) {
    const last = <u32>scan.keyWord(1);
    if (word == 0x64695f6e656b6f74 && last == 0x73) return kind == PROMPT_TOKENS ? ROLE_PROMPT : ROLE_NONE; // token_ids
    if (word == 0x64695f7475706e69 && last == 0x73) return kind == PROMPT_SGLANG ? ROLE_PROMPT : ROLE_NONE; // input_ids
    if (word == 0x656b5f6172747865 && last == 0x79) return kind == PROMPT_SGLANG ? ROLE_SALT : ROLE_NONE; // extra_key
  } else if (length == 10) {
    const rest = scan.keyWord(1);
    if (word == 0x656b6f745f78616d && rest == 0x736e) return maxTokensRole(kind); // max_tokens
    // Cache_salt
    if (word == 0x61735f6568636163 && rest == 0x746c) return kind == PROMPT_SGLANG ? ROLE_NONE : ROLE_SALT;
  } else if (length == 12) {
    if (word == 0x7463757274736e69 && scan.keyWord(1) == 0x736e6f69) {
      return kind == PROMPT_RESPONSES ? ROLE_SYSTEM : ROLE_NONE; // instructions
    }
  } else if (length == 15) {
    if (word == 0x676e696c706d6173 && scan.keyWord(1) == 0x736d617261705f) {
      return kind == PROMPT_TOKENS || kind == PROMPT_SGLANG ? ROLE_SAMPLING : ROLE_NONE; // sampling_params
    }
  } else if (length == 17) {
    if (word == 0x7074756f5f78616d && scan.keyWord(1) == 0x6e656b6f745f7475 && scan.keyWord(2) == 0x73) {
      return kind == PROMPT_RESPONSES ? ROLE_LIMIT_FIRST : ROLE_NONE; // max_output_tokens
    }
  } else if (length == 20) {
    if (word == 0x6d65745f74616863 && scan.keyWord(1) == 0x776b5f6574616c70 && scan.keyWord(2) == 0x73677261) {
      return kind == PROMPT_CHAT ? ROLE_TEMPLATE : ROLE_NONE; // chat_template_kwargs
    }
  } else if (length == 21) {
    if (word == 0x706d6f635f78616d && scan.keyWord(1) == 0x745f6e6f6974656c && scan.keyWord(2) == 0x736e656b6f) {
      return kind == PROMPT_CHAT ? ROLE_LIMIT_FIRST : ROLE_NONE; // max_completion_tokens
    }
  }
  return ROLE_NONE;
}

function maxTokensRole(kind: u32): u32 {
  if (kind == PROMPT_COMPLETIONS || kind == PROMPT_MESSAGES) return ROLE_LIMIT_FIRST;
  return kind == PROMPT_CHAT ? ROLE_LIMIT_SECOND : ROLE_NONE;
}

function samplingRole(scan: RequestScan, length: u32, word: u64): u32 {
  const rest = scan.keyWord(1);
  if (scan.kind == PROMPT_SGLANG) {
    // Max_new_tokens
    return length == 14 && word == 0x5f77656e5f78616d && rest == 0x736e656b6f74 ? ROLE_LIMIT_FIRST : ROLE_NONE;
  }
  return length == 10 && word == 0x656b6f745f78616d && rest == 0x736e ? ROLE_LIMIT_FIRST : ROLE_NONE; // max_tokens
}

/** Whether the tracked containers lie in `system`. */
export function inSystem(scan: RequestScan): bool {
  return scan.roleAt(1) == ROLE_SYSTEM;
}

function messageRole(length: u32, word: u64): u32 {
  if (length == 4 && word == 0x656c6f72) return ROLE_TEXT; // role
  if (length == 7 && word == 0x746e65746e6f63) return ROLE_CONTENT; // content
  return ROLE_NONE;
}

/** `cache_control` moves from turn to turn and says nothing about the prompt; every other value of a part counts. */
function partRole(scan: RequestScan, length: u32, word: u64): u32 {
  if (length == 4 && word == 0x74786574) return ROLE_TEXT; // text
  if (length == 4 && word == 0x65707974) return inSystem(scan) ? ROLE_NONE : ROLE_TYPE; // type
  const rest = scan.keyWord(1);
  if (length == 13 && word == 0x6f635f6568636163 && rest == 0x6c6f72746e) return ROLE_NONE; // cache_control
  if (scan.kind == PROMPT_MESSAGES) {
    return length == 6 && word == 0x656372756f73 && !inSystem(scan) ? ROLE_IMAGE : ROLE_PART; // source
  }
  if (length == 9 && word == 0x72755f6567616d69 && rest == 0x6c) return ROLE_IMAGE; // image_url
  if (length == 9 && word == 0x72755f6f65646976 && rest == 0x6c) return ROLE_VIDEO; // video_url
  if (length == 9 && word == 0x72755f6f69647561 && rest == 0x6c) return ROLE_AUDIO; // audio_url
  if (length == 11 && word == 0x75615f7475706e69 && rest == 0x6f6964) return ROLE_AUDIO; // input_audio
  return ROLE_PART;
}
