// What the keys of a request body mean: which values are kept, which are prompt content, which only pass.
//
// Owns: in this thread's part of REGION_SCANS the found fields of a scan. No lock: all of it belongs to one thread.
//
// A container is tracked when its keys or elements matter: the body's object (depth 1), the array in `messages` or in a
// completions `prompt` (2), a message (3), its content parts (4) and a part (5). Tracked containers always form one
// path from the top, so the depth alone says which one is meant.
//
// What counts as prompt content follows the incumbent's estimate (four bytes are one token):
//   completions    the prompt's text; of several, one behind the other; token ids as little-endian u32
//   chat           of every message, in the order of the bytes: role, text of the content; `image_url` as
//                  SCAN_IMAGE_TOKENS equal tokens, the low half of its hash; other parts as their JSON
//   messages       the same, with `source` for the image; in front the texts of `system`
//   images         the prompt's text
//   generate       the token ids of `token_ids` or, of SGLang, `input_ids`
//   others         the JSON of `input` or `items`
// `tools` and `system` (`instructions` of the responses API) are segments of their own, because they may come behind the
// messages but the engine's template puts them in front. Tool calls of the OpenAI form are left out, as the incumbent
// does; those of the Anthropic form are parts like any other. A key given twice in one message counts twice: only for
// top-level keys does the last one win.
import {
  contentBytes,
  contentEnd,
  contentFlush,
  contentLength,
  contentMove,
  contentRaw,
  contentReset,
  contentSwitch,
  contentToken,
  contentTokens,
} from './content';
import { streamAbsorb, streamHash, streamReset } from './hash';
import {
  SCAN_ASIDE_STREAM,
  SCAN_FAULT,
  SCAN_IS_OBJECT,
  SCAN_KEY,
  SCAN_KEY_LENGTH,
  SCAN_KIND,
  SCAN_LIMIT_FIRST,
  SCAN_LIMIT_FIRST_LENGTH,
  SCAN_LIMIT_SECOND,
  SCAN_LIMIT_SECOND_LENGTH,
  SCAN_MAX_KEY,
  SCAN_MAX_LIMIT,
  SCAN_MAX_MEDIA,
  SCAN_MAX_MODEL,
  SCAN_MAX_SALT,
  SCAN_MEDIA,
  SCAN_MEDIA_COUNT,
  SCAN_MEDIA_KINDS,
  SCAN_MEDIUM,
  SCAN_MODEL,
  SCAN_MODEL_END,
  SCAN_MODEL_KNOWN,
  SCAN_MODEL_LENGTH,
  SCAN_MODEL_START,
  SCAN_NOTICE,
  SCAN_NUMBER,
  SCAN_NUMBER_BAD,
  SCAN_PROMPT_END,
  SCAN_PROMPT_SEGMENT,
  SCAN_PROMPT_START,
  SCAN_RAW,
  SCAN_ROLES,
  SCAN_SALT,
  SCAN_SALT_HASH,
  SCAN_SALT_KNOWN,
  SCAN_SALT_LENGTH,
  SCAN_SEGMENT,
  SCAN_SHAPE,
  SCAN_SINK,
  SCAN_STREAM,
  SCAN_SYSTEM_SEGMENT,
  SCAN_TOOLS_END,
  SCAN_TOOLS_SEGMENT,
  SCAN_TOOLS_START,
  SCAN_TYPE_NEXT,
  SCAN_VALUE_START,
} from './layout';
import { isDigit, LETTER_F, LETTER_N, LETTER_T, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './lexemes';
import { mediaNote, mediaReset, typeBegin, typeTake } from './media';

export const PROMPT_COMPLETIONS: u32 = 0;
export const PROMPT_CHAT: u32 = 1;
export const PROMPT_RESPONSES: u32 = 2;
export const PROMPT_EMBEDDINGS: u32 = 3;
export const PROMPT_CONVERSATIONS: u32 = 4;
export const PROMPT_IMAGES: u32 = 5;
export const PROMPT_MESSAGES: u32 = 6; // Anthropic
export const PROMPT_TOKENS: u32 = 7; // vLLM's generate
export const PROMPT_SGLANG: u32 = 8; // SGLang's generate

/** Tokens that an image stands for: 640 × 360 pixels / 1,024, the incumbent's default. */
export const SCAN_IMAGE_TOKENS: u32 = 225;

// Where a string or number under way goes.
export const SINK_NONE: u32 = 0;
export const SINK_PROMPT: u32 = 1;
export const SINK_KEY: u32 = 2; // a key of a tracked object
export const SINK_OTHER_KEY: u32 = 3;
const SINK_MODEL: u32 = 4;
const SINK_SALT: u32 = 5;
const SINK_TOKEN: u32 = 6;
const SINK_LIMIT_FIRST: u32 = 7;
const SINK_LIMIT_SECOND: u32 = 8;
const SINK_NOTICE: u32 = 9; // a system text that may turn out to be the billing notice
export const SINK_TYPE: u32 = 20; // what a part of the prompt is
export const SINK_NESTED_KEY: u32 = 21; // a key inside of a value of the prompt that is taken raw

// Where the raw bytes of a value under way go.
const RAW_NONE: u32 = 0;
const RAW_PROMPT: u32 = 1;
const RAW_ASIDE: u32 = 2;
const RAW_BOTH: u32 = 3; // to the prompt, and aside for the hash of a medium

// Roles of values, by key.
const ROLE_NONE: u32 = 0;
const ROLE_MODEL: u32 = 1;
const ROLE_STREAM: u32 = 2;
const ROLE_LIMIT_FIRST: u32 = 3;
const ROLE_LIMIT_SECOND: u32 = 4;
const ROLE_PROMPT: u32 = 5;
const ROLE_TOOLS: u32 = 6;
const ROLE_SYSTEM: u32 = 7;
const ROLE_SALT: u32 = 8;
const ROLE_TEXT: u32 = 9; // decoded text, in messages and parts
const ROLE_CONTENT: u32 = 10;
const ROLE_IMAGE: u32 = 11;
const ROLE_PART: u32 = 12;
const ROLE_SAMPLING: u32 = 13;
const ROLE_VIDEO: u32 = 14;
const ROLE_AUDIO: u32 = 15;

// Media by what they are.
export const MEDIUM_IMAGE: u32 = 1;
export const MEDIUM_VIDEO: u32 = 2;
export const MEDIUM_AUDIO: u32 = 3;
const ROLE_TYPE: u32 = 20;
const ROLE_FEATURES: u32 = 21;

// Shapes of the prompt value.
export const SHAPE_MISSING: u32 = 0; // no such key, or null
export const SHAPE_BAD: u32 = 1;
export const SHAPE_EMPTY: u32 = 2; // an array without elements so far
const SHAPE_GOOD: u32 = 3;
const SHAPE_STRINGS: u32 = 4;
const SHAPE_TOKENS: u32 = 5;

// Other fields whose shape an engine would refuse (bits).
export const FAULT_SYSTEM: u32 = 1; // Anthropic's system is neither text nor a list of parts
export const FAULT_SALT: u32 = 2; // SGLang's extra_key is no string
export const FAULT_STREAM: u32 = 4; // SGLang's stream is neither true nor false

// "x-anthropic-billing-header": a system text that begins so is a notice of the client, other in every request.
const NOTICE_BYTES: u32 = 26;
const NOTICE_0: u64 = 0x6f7268746e612d78;
const NOTICE_8: u64 = 0x6c6c69622d636970;
const NOTICE_16: u64 = 0x646165682d676e69;
const NOTICE_24: u64 = 0x7265;

/** Address of the first raw byte, in this feed, of the value under way that is taken raw. */
let rawFrom: usize = 0;

/** Begin a feed whose bytes start at `at`. */
export function fieldsStart(at: usize): void {
  rawFrom = at;
}

/** End a feed: take the raw bytes of a value that goes on in the next one. */
export function fieldsPause(scan: usize, at: usize): void {
  if (load<u32>(scan, SCAN_RAW) != RAW_NONE) takeRaw(scan, at);
  contentFlush(scan);
}

// ---------------------------------------------------------------------------------------------------- keys

/** A key of the tracked object at `depth` has ended: note the role of its value. */
export function keyEnd(scan: usize, depth: u32): void {
  const length = load<u32>(scan, SCAN_KEY_LENGTH);
  const word = load<u64>(scan, SCAN_KEY);
  let role = ROLE_NONE;
  if (depth == 1) role = bodyRole(scan, length, word);
  else if (depth == 2) role = samplingRole(scan, length, word);
  else if (depth == 3 && !inSystem(scan)) role = messageRole(length, word);
  else role = partRole(scan, length, word);
  store<u8>(scan + depth, role, SCAN_ROLES);
}

// Keys are compared as little-endian words: 0x6c65646f6d is "model".
function bodyRole(scan: usize, length: u32, word: u64): u32 {
  const kind = load<u32>(scan, SCAN_KIND);
  if (length == 5) {
    if (word == 0x6c65646f6d) return ROLE_MODEL;
    if (word == 0x7475706e69) return kind == PROMPT_RESPONSES || kind == PROMPT_EMBEDDINGS ? ROLE_PROMPT : ROLE_NONE; // input
    if (word == 0x736d657469) return kind == PROMPT_CONVERSATIONS ? ROLE_PROMPT : ROLE_NONE; // items
    if (word == 0x736c6f6f74) return ROLE_TOOLS; // tools
  } else if (length == 6) {
    if (word == 0x6d6165727473) return ROLE_STREAM; // stream
    if (word == 0x74706d6f7270) return kind == PROMPT_COMPLETIONS || kind == PROMPT_IMAGES ? ROLE_PROMPT : ROLE_NONE; // prompt
    if (word == 0x6d6574737973) return kind == PROMPT_RESPONSES ? ROLE_NONE : ROLE_SYSTEM; // system
  } else if (length == 8) {
    if (word == 0x7365727574616566) return kind == PROMPT_TOKENS ? ROLE_FEATURES : ROLE_NONE; // features
    if (word == 0x736567617373656d) return kind == PROMPT_CHAT || kind == PROMPT_MESSAGES ? ROLE_PROMPT : ROLE_NONE; // messages
  } else if (length == 9) {
    const last = <u32>load<u64>(scan, SCAN_KEY + 8);
    if (word == 0x64695f6e656b6f74 && last == 0x73) return kind == PROMPT_TOKENS ? ROLE_PROMPT : ROLE_NONE; // token_ids
    if (word == 0x64695f7475706e69 && last == 0x73) return kind == PROMPT_SGLANG ? ROLE_PROMPT : ROLE_NONE; // input_ids
    if (word == 0x656b5f6172747865 && last == 0x79) return kind == PROMPT_SGLANG ? ROLE_SALT : ROLE_NONE; // extra_key
  } else if (length == 10) {
    const rest = load<u64>(scan, SCAN_KEY + 8);
    if (word == 0x656b6f745f78616d && rest == 0x736e) return maxTokensRole(kind); // max_tokens
    if (word == 0x61735f6568636163 && rest == 0x746c) return kind == PROMPT_SGLANG ? ROLE_NONE : ROLE_SALT; // cache_salt
  } else if (length == 12) {
    if (word == 0x7463757274736e69 && load<u64>(scan, SCAN_KEY + 8) == 0x736e6f69) {
      return kind == PROMPT_RESPONSES ? ROLE_SYSTEM : ROLE_NONE; // instructions
    }
  } else if (length == 15) {
    if (word == 0x676e696c706d6173 && load<u64>(scan, SCAN_KEY + 8) == 0x736d617261705f) {
      return kind == PROMPT_TOKENS || kind == PROMPT_SGLANG ? ROLE_SAMPLING : ROLE_NONE; // sampling_params
    }
  } else if (length == 17) {
    if (
      word == 0x7074756f5f78616d &&
      load<u64>(scan, SCAN_KEY + 8) == 0x6e656b6f745f7475 &&
      load<u64>(scan, SCAN_KEY + 16) == 0x73
    ) {
      return kind == PROMPT_RESPONSES ? ROLE_LIMIT_FIRST : ROLE_NONE; // max_output_tokens
    }
  } else if (length == 21) {
    if (
      word == 0x706d6f635f78616d &&
      load<u64>(scan, SCAN_KEY + 8) == 0x745f6e6f6974656c &&
      load<u64>(scan, SCAN_KEY + 16) == 0x736e656b6f
    ) {
      return kind == PROMPT_CHAT ? ROLE_LIMIT_FIRST : ROLE_NONE; // max_completion_tokens
    }
  }
  return ROLE_NONE;
}

function maxTokensRole(kind: u32): u32 {
  if (kind == PROMPT_COMPLETIONS || kind == PROMPT_MESSAGES) return ROLE_LIMIT_FIRST;
  return kind == PROMPT_CHAT ? ROLE_LIMIT_SECOND : ROLE_NONE;
}

function samplingRole(scan: usize, length: u32, word: u64): u32 {
  const rest = load<u64>(scan, SCAN_KEY + 8);
  if (load<u32>(scan, SCAN_KIND) == PROMPT_SGLANG) {
    return length == 14 && word == 0x5f77656e5f78616d && rest == 0x736e656b6f74 ? ROLE_LIMIT_FIRST : ROLE_NONE; // max_new_tokens
  }
  return length == 10 && word == 0x656b6f745f78616d && rest == 0x736e ? ROLE_LIMIT_FIRST : ROLE_NONE; // max_tokens
}

/** The tracked containers lie in `system`. */
function inSystem(scan: usize): bool {
  return <u32>load<u8>(scan, SCAN_ROLES + 1) == ROLE_SYSTEM;
}

function messageRole(length: u32, word: u64): u32 {
  if (length == 4 && word == 0x656c6f72) return ROLE_TEXT; // role
  if (length == 7 && word == 0x746e65746e6f63) return ROLE_CONTENT; // content
  return ROLE_NONE;
}

/** `cache_control` moves from turn to turn and says nothing about the prompt; every other value of a part counts. */
function partRole(scan: usize, length: u32, word: u64): u32 {
  if (length == 4 && word == 0x74786574) return ROLE_TEXT; // text
  if (length == 4 && word == 0x65707974) return inSystem(scan) ? ROLE_NONE : ROLE_TYPE; // type
  const rest = load<u64>(scan, SCAN_KEY + 8);
  if (length == 13 && word == 0x6f635f6568636163 && rest == 0x6c6f72746e) return ROLE_NONE; // cache_control
  if (load<u32>(scan, SCAN_KIND) == PROMPT_MESSAGES) {
    return length == 6 && word == 0x656372756f73 && !inSystem(scan) ? ROLE_IMAGE : ROLE_PART; // source
  }
  if (length == 9 && word == 0x72755f6567616d69 && rest == 0x6c) return ROLE_IMAGE; // image_url
  if (length == 9 && word == 0x72755f6f65646976 && rest == 0x6c) return ROLE_VIDEO; // video_url
  if (length == 9 && word == 0x72755f6f69647561 && rest == 0x6c) return ROLE_AUDIO; // audio_url
  if (length == 11 && word == 0x75615f7475706e69 && rest == 0x6f6964) return ROLE_AUDIO; // input_audio
  return ROLE_PART;
}

// -------------------------------------------------------------------------------------------------- values

/**
 * A value in the tracked container at `depth` begins with `byte` at address `at`, `position` bytes into the body.
 * @returns true when the value, if it is a container, is tracked too.
 */
export function valueBegin(scan: usize, depth: u32, byte: u32, at: usize, position: u32): bool {
  store<u32>(scan, SINK_NONE, SCAN_SINK);
  switch (depth) {
    case 0: {
      const object = byte == OPEN_OBJECT;
      store<u32>(scan, object, SCAN_IS_OBJECT);
      return object;
    }
    case 1:
      store<u32>(scan, position, SCAN_VALUE_START);
      return fieldBegin(scan, load<u8>(scan, SCAN_ROLES + 1), byte, at);
    case 2:
      return memberBegin(scan, byte);
    case 3:
      if (inSystem(scan)) {
        systemValueBegin(scan, load<u8>(scan, SCAN_ROLES + 3), byte, at);
        return false;
      }
      return messageValueBegin(scan, load<u8>(scan, SCAN_ROLES + 3), byte);
    case 4:
      if (byte == OPEN_OBJECT) return true;
      if (load<u32>(scan, SCAN_KIND) == PROMPT_MESSAGES) store<u32>(scan, SHAPE_BAD, SCAN_SHAPE);
      else beginRaw(scan, RAW_PROMPT, at);
      return false;
    default:
      partValueBegin(scan, load<u8>(scan, SCAN_ROLES + 5), byte, at);
      return false;
  }
}

/** The value in the tracked container at `depth` has ended before address `at`, `position` bytes into the body. */
export function valueEnd(scan: usize, depth: u32, at: usize, position: u32): void {
  const raw = load<u32>(scan, SCAN_RAW);
  if (raw != RAW_NONE) {
    takeRaw(scan, at);
    store<u32>(scan, RAW_NONE, SCAN_RAW);
  }
  if (load<u32>(scan, SCAN_NOTICE) != 0) noticeEnd(scan);
  if (depth == 1) fieldEnd(scan, load<u8>(scan, SCAN_ROLES + 1), position);
  else if (depth == 5 && raw >= RAW_ASIDE) {
    const hash = streamHash(scan + SCAN_ASIDE_STREAM);
    noteMedium(scan, hash);
    if (raw == RAW_ASIDE) contentTokens(scan, <u32>hash, SCAN_IMAGE_TOKENS);
  }
}

/** Remember a medium of the prompt; one that came before is not counted again, and those beyond the bound are left out. */
function noteMedium(scan: usize, hash: u64): void {
  const count = load<u32>(scan, SCAN_MEDIA_COUNT);
  for (let i: u32 = 0; i < count; i++) {
    if (load<u64>(scan + SCAN_MEDIA + ((<usize>i) << 3)) == hash) return;
  }
  if (count == SCAN_MAX_MEDIA) return;
  store<u64>(scan + SCAN_MEDIA + ((<usize>count) << 3), hash);
  store<u8>(scan + SCAN_MEDIA_KINDS + <usize>count, <u8>load<u32>(scan, SCAN_MEDIUM));
  store<u32>(scan, count + 1, SCAN_MEDIA_COUNT);
}

/** A top-level value begins: the last one of a name wins, so what an earlier one left is forgotten first. */
function fieldBegin(scan: usize, role: u32, byte: u32, at: usize): bool {
  const string = byte == QUOTE;
  switch (role) {
    case ROLE_MODEL:
      store<u32>(scan, string, SCAN_MODEL_KNOWN);
      store<u32>(scan, 0, SCAN_MODEL_LENGTH);
      if (string) store<u32>(scan, SINK_MODEL, SCAN_SINK);
      return false;
    case ROLE_STREAM:
      store<u32>(scan, byte == LETTER_T, SCAN_STREAM);
      fault(scan, FAULT_STREAM, ofSglang(scan) && byte != LETTER_T && byte != LETTER_F && byte != LETTER_N);
      return false;
    case ROLE_LIMIT_FIRST:
      limitBegin(scan, string);
      return false;
    case ROLE_SAMPLING:
      store<u32>(scan, 0, SCAN_LIMIT_FIRST_LENGTH);
      return byte == OPEN_OBJECT;
    case ROLE_LIMIT_SECOND:
      store<u32>(scan, 0, SCAN_LIMIT_SECOND_LENGTH);
      store<u32>(scan, string ? SINK_NONE : SINK_LIMIT_SECOND, SCAN_SINK);
      return false;
    case ROLE_PROMPT:
      return promptBegin(scan, byte, at);
    case ROLE_TOOLS:
      store<u32>(scan, 0, SCAN_TOOLS_END);
      contentSwitch(scan, SCAN_TOOLS_SEGMENT);
      contentReset(scan);
      if (byte != LETTER_N) beginRaw(scan, RAW_PROMPT, at);
      return false;
    case ROLE_SYSTEM:
      contentSwitch(scan, SCAN_SYSTEM_SEGMENT);
      contentReset(scan);
      return systemBegin(scan, byte, at);
    case ROLE_SALT:
      store<u32>(scan, string, SCAN_SALT_KNOWN);
      store<u32>(scan, 0, SCAN_SALT_LENGTH);
      store<u64>(scan, 0, SCAN_SALT_HASH);
      fault(scan, FAULT_SALT, ofSglang(scan) && !string && byte != LETTER_N);
      if (string) {
        store<u32>(scan, SINK_SALT, SCAN_SINK);
        streamReset(scan + SCAN_ASIDE_STREAM);
      }
      return false;
    default:
      return false;
  }
}

function fieldEnd(scan: usize, role: u32, position: u32): void {
  const start = load<u32>(scan, SCAN_VALUE_START);
  switch (role) {
    case ROLE_MODEL:
      store<u32>(scan, start, SCAN_MODEL_START);
      store<u32>(scan, position, SCAN_MODEL_END);
      break;
    case ROLE_PROMPT:
      if (isBlank(scan, position - start)) store<u32>(scan, SHAPE_EMPTY, SCAN_SHAPE);
      if (load<u32>(scan, SCAN_SHAPE) <= SHAPE_EMPTY) contentReset(scan);
      else {
        store<u32>(scan, start, SCAN_PROMPT_START);
        store<u32>(scan, position, SCAN_PROMPT_END);
      }
      break;
    case ROLE_TOOLS:
      contentSwitch(scan, SCAN_PROMPT_SEGMENT);
      if (contentLength(scan, SCAN_TOOLS_SEGMENT) == 0) break;
      store<u32>(scan, start, SCAN_TOOLS_START);
      store<u32>(scan, position, SCAN_TOOLS_END);
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
      if (load<u32>(scan, SCAN_SALT_KNOWN) == 0) break;
      store<u64>(scan, streamHash(scan + SCAN_ASIDE_STREAM), SCAN_SALT_HASH);
      break;
    default:
      break;
  }
}

/** `""` and `[]` are no prompt, as in the incumbent; only the responses API lets the model server judge them. */
function isBlank(scan: usize, length: u32): bool {
  if (length != 2 || load<u32>(scan, SCAN_KIND) == PROMPT_RESPONSES) return false;
  return load<u32>(scan, SCAN_SHAPE) == SHAPE_GOOD;
}

/** Whether the kind's prompt is taken raw and may begin with `byte`, which does not begin a null. */
function rawPromptMayBegin(kind: u32, byte: u32): bool {
  if (kind == PROMPT_CONVERSATIONS) return byte == OPEN_ARRAY;
  if (kind == PROMPT_EMBEDDINGS) return byte == OPEN_ARRAY || byte == QUOTE;
  return kind == PROMPT_RESPONSES;
}

function promptBegin(scan: usize, byte: u32, at: usize): bool {
  const kind = load<u32>(scan, SCAN_KIND);
  contentReset(scan);
  if (kind != PROMPT_TOKENS) mediaReset(scan);
  store<u32>(scan, 0, SCAN_PROMPT_END);
  store<u32>(scan, 0, SCAN_MEDIA_COUNT);
  const text = kind == PROMPT_COMPLETIONS || kind == PROMPT_IMAGES;
  let shape = SHAPE_BAD;
  let list = false;
  if (text && byte == QUOTE) {
    shape = SHAPE_GOOD;
    store<u32>(scan, SINK_PROMPT, SCAN_SINK);
  } else if (byte == LETTER_N) {
    shape = SHAPE_MISSING;
  } else if (rawPromptMayBegin(kind, byte)) {
    shape = SHAPE_GOOD;
    beginRaw(scan, RAW_PROMPT, at);
  } else if (byte == OPEN_ARRAY && kind != PROMPT_IMAGES) {
    shape = SHAPE_EMPTY;
    list = true;
  }
  store<u32>(scan, shape, SCAN_SHAPE);
  return list;
}

/** A member of the sampling parameters, a part of the system text, or an element of the prompt begins. */
function memberBegin(scan: usize, byte: u32): bool {
  const role = <u32>load<u8>(scan, SCAN_ROLES + 1);
  if (role == ROLE_SAMPLING) {
    if (<u32>load<u8>(scan, SCAN_ROLES + 2) == ROLE_LIMIT_FIRST) limitBegin(scan, byte == QUOTE);
    return false;
  }
  if (role == ROLE_SYSTEM) {
    if (byte != OPEN_OBJECT) fault(scan, FAULT_SYSTEM, true);
    return byte == OPEN_OBJECT;
  }
  return elementBegin(scan, byte);
}

function limitBegin(scan: usize, string: bool): void {
  store<u32>(scan, 0, SCAN_LIMIT_FIRST_LENGTH);
  store<u32>(scan, string ? SINK_NONE : SINK_LIMIT_FIRST, SCAN_SINK);
}

function ofSglang(scan: usize): bool {
  return load<u32>(scan, SCAN_KIND) == PROMPT_SGLANG;
}

/** Note whether a field has a wrong shape; of several with one name the last one counts. */
function fault(scan: usize, bit: u32, wrong: bool): void {
  const others = load<u32>(scan, SCAN_FAULT) & ~bit;
  store<u32>(scan, wrong ? others | bit : others, SCAN_FAULT);
}

/** An element of a completions prompt, of token ids or of the messages begins. */
function elementBegin(scan: usize, byte: u32): bool {
  const shape = load<u32>(scan, SCAN_SHAPE);
  const kind = load<u32>(scan, SCAN_KIND);
  if (kind == PROMPT_CHAT || kind == PROMPT_MESSAGES) {
    // What a null among the messages of a chat means is left to the model server.
    const allowed = byte == OPEN_OBJECT || (byte == LETTER_N && kind == PROMPT_CHAT);
    const good = allowed && shape != SHAPE_BAD;
    store<u32>(scan, good ? SHAPE_GOOD : SHAPE_BAD, SCAN_SHAPE);
    return good && byte == OPEN_OBJECT;
  }
  let next = SHAPE_BAD;
  if (byte == QUOTE && kind == PROMPT_COMPLETIONS && (shape == SHAPE_EMPTY || shape == SHAPE_STRINGS)) {
    next = SHAPE_STRINGS;
    store<u32>(scan, SINK_PROMPT, SCAN_SINK);
  } else if (isDigit(byte) && (shape == SHAPE_EMPTY || shape == SHAPE_TOKENS)) {
    next = SHAPE_TOKENS;
    store<u32>(scan, SINK_TOKEN, SCAN_SINK);
    store<u64>(scan, 0, SCAN_NUMBER);
    store<u32>(scan, 0, SCAN_NUMBER_BAD);
  }
  store<u32>(scan, next, SCAN_SHAPE);
  return false;
}

/** `system` begins: Anthropic's is text or a list of parts; `instructions` and what others have count as their JSON. */
function systemBegin(scan: usize, byte: u32, at: usize): bool {
  if (load<u32>(scan, SCAN_KIND) != PROMPT_MESSAGES) {
    if (byte != LETTER_N) beginRaw(scan, RAW_PROMPT, at);
    return false;
  }
  fault(scan, FAULT_SYSTEM, byte != QUOTE && byte != OPEN_ARRAY && byte != LETTER_N);
  if (byte == QUOTE) store<u32>(scan, SINK_NOTICE, SCAN_SINK);
  return byte == OPEN_ARRAY;
}

/** A value of a part of the system text begins. */
function systemValueBegin(scan: usize, role: u32, byte: u32, at: usize): void {
  if (role == ROLE_TEXT && byte == QUOTE) store<u32>(scan, SINK_NOTICE, SCAN_SINK);
  else partValueBegin(scan, role, byte, at);
}

function messageValueBegin(scan: usize, role: u32, byte: u32): bool {
  if (role == ROLE_NONE || byte == LETTER_N) return false;
  if (byte == QUOTE) store<u32>(scan, SINK_PROMPT, SCAN_SINK);
  else if (role == ROLE_CONTENT && byte == OPEN_ARRAY) return true;
  else store<u32>(scan, SHAPE_BAD, SCAN_SHAPE);
  return false;
}

function partValueBegin(scan: usize, role: u32, byte: u32, at: usize): void {
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

// ------------------------------------------------------------------------ inside of values that are taken raw

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

// ------------------------------------------------------------------------------------------- what they hold

function beginRaw(scan: usize, raw: u32, at: usize): void {
  store<u32>(scan, raw, SCAN_RAW);
  rawFrom = at;
  if (raw >= RAW_ASIDE) streamReset(scan + SCAN_ASIDE_STREAM);
}

function takeRaw(scan: usize, at: usize): void {
  const length = <u32>(at - rawFrom);
  if (length == 0) return;
  const raw = load<u32>(scan, SCAN_RAW);
  if (raw != RAW_ASIDE) contentRaw(scan, rawFrom, length);
  if (raw != RAW_PROMPT) streamAbsorb(scan + SCAN_ASIDE_STREAM, rawFrom, length);
}

/** Take decoded bytes of the string under way (prompt strings in bulk go to contentString instead). */
export function takeString(scan: usize, sink: u32, from: usize, length: u32): void {
  switch (sink) {
    case SINK_PROMPT:
      contentBytes(from, length);
      break;
    case SINK_NOTICE:
      takeNotice(scan, from, length);
      break;
    case SINK_TYPE:
      typeTake(scan, from, length);
      break;
    case SINK_KEY:
    case SINK_NESTED_KEY:
      store<u32>(
        scan,
        keep(scan + SCAN_KEY, load<u32>(scan, SCAN_KEY_LENGTH), SCAN_MAX_KEY, from, length),
        SCAN_KEY_LENGTH,
      );
      break;
    case SINK_MODEL:
      store<u32>(
        scan,
        keep(scan + SCAN_MODEL, load<u32>(scan, SCAN_MODEL_LENGTH), SCAN_MAX_MODEL, from, length),
        SCAN_MODEL_LENGTH,
      );
      break;
    case SINK_SALT:
      streamAbsorb(scan + SCAN_ASIDE_STREAM, from, length);
      store<u32>(
        scan,
        keep(scan + SCAN_SALT, load<u32>(scan, SCAN_SALT_LENGTH), SCAN_MAX_SALT, from, length),
        SCAN_SALT_LENGTH,
      );
      break;
    default:
      break;
  }
}

function noticeByte(index: u32): u32 {
  const word = index < 8 ? NOTICE_0 : index < 16 ? NOTICE_8 : index < 24 ? NOTICE_16 : NOTICE_24;
  return <u32>(word >> ((<u64>(index & 7)) << 3)) & 255;
}

/** Compare the beginning of a system text with that of the notice; content is what turns out to be another text. */
function takeNotice(scan: usize, from: usize, length: u32): void {
  let matched = load<u32>(scan, SCAN_NOTICE);
  let taken: u32 = 0;
  while (taken < length && matched < NOTICE_BYTES && <u32>load<u8>(from + taken) == noticeByte(matched)) {
    matched++;
    taken++;
  }
  store<u32>(scan, matched, SCAN_NOTICE);
  if (matched == NOTICE_BYTES) store<u32>(scan, SINK_NONE, SCAN_SINK);
  else if (taken < length) {
    noticeEnd(scan);
    contentRaw(scan, from + taken, length - taken);
    store<u32>(scan, SINK_PROMPT, SCAN_SINK);
  }
}

/** The text has ended or is another one: what was like the notice is content, unless it was all of the notice. */
function noticeEnd(scan: usize): void {
  const matched = load<u32>(scan, SCAN_NOTICE);
  store<u32>(scan, 0, SCAN_NOTICE);
  if (matched == NOTICE_BYTES) return;
  const to = contentEnd();
  for (let i: u32 = 0; i < matched; i++) store<u8>(to + i, noticeByte(i));
  contentMove(to + matched);
}

/** Append what fits of `length` bytes. @returns the length that the whole would have. */
function keep(to: usize, kept: u32, most: u32, from: usize, length: u32): u32 {
  const room = kept < most ? most - kept : 0;
  const taken = length < room ? length : room;
  to += kept;
  for (let i: u32 = 0; i < taken; i++) store<u8>(to + i, load<u8>(from + i));
  return kept + length;
}

/** Take bytes of the number under way. */
export function takeNumber(scan: usize, sink: u32, from: usize, length: u32): void {
  switch (sink) {
    case SINK_TOKEN:
      takeToken(scan, from, length);
      break;
    case SINK_LIMIT_FIRST:
      store<u32>(
        scan,
        keep(scan + SCAN_LIMIT_FIRST, load<u32>(scan, SCAN_LIMIT_FIRST_LENGTH), SCAN_MAX_LIMIT, from, length),
        SCAN_LIMIT_FIRST_LENGTH,
      );
      break;
    case SINK_LIMIT_SECOND:
      store<u32>(
        scan,
        keep(scan + SCAN_LIMIT_SECOND, load<u32>(scan, SCAN_LIMIT_SECOND_LENGTH), SCAN_MAX_LIMIT, from, length),
        SCAN_LIMIT_SECOND_LENGTH,
      );
      break;
    default:
      break;
  }
}

function takeToken(scan: usize, from: usize, length: u32): void {
  let token = load<u64>(scan, SCAN_NUMBER);
  for (let i: u32 = 0; i < length; i++) {
    const byte = <u32>load<u8>(from + i);
    if (!isDigit(byte) || token > u32.MAX_VALUE) {
      store<u32>(scan, 1, SCAN_NUMBER_BAD);
      return;
    }
    token = token * 10 + (byte & 15);
  }
  store<u64>(scan, token, SCAN_NUMBER);
}

/** The number under way has ended: a token id becomes prompt content. */
export function numberEnd(scan: usize, sink: u32): void {
  if (sink != SINK_TOKEN) return;
  const token = load<u64>(scan, SCAN_NUMBER);
  if (load<u32>(scan, SCAN_NUMBER_BAD) != 0 || token > u32.MAX_VALUE) store<u32>(scan, SHAPE_BAD, SCAN_SHAPE);
  else contentToken(scan, <u32>token);
}

/** Bytes of prompt content, tools and system included. */
export function promptBytes(scan: usize): u32 {
  return (
    contentLength(scan, SCAN_PROMPT_SEGMENT) +
    contentLength(scan, SCAN_TOOLS_SEGMENT) +
    contentLength(scan, SCAN_SYSTEM_SEGMENT)
  );
}
