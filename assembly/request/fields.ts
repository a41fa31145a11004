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
  ROLE_TOOLS,
} from './keys';
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
} from './kinds';
import {
  SCAN_ASIDE_STREAM,
  SCAN_IS_OBJECT,
  SCAN_KIND,
  SCAN_LIMIT_FIRST_LENGTH,
  SCAN_LIMIT_SECOND_LENGTH,
  SCAN_MEDIA_COUNT,
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
  SCAN_SALT_HASH,
  SCAN_SALT_KNOWN,
  SCAN_SALT_LENGTH,
  SCAN_SHAPE,
  SCAN_SINK,
  SCAN_STREAM,
  SCAN_SYSTEM_SEGMENT,
  SCAN_TOOLS_END,
  SCAN_TOOLS_SEGMENT,
  SCAN_TOOLS_START,
  SCAN_VALUE_START,
} from './layout';
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
import { noticeEnd } from './notice';
import { beginRaw, RAW_ASIDE, RAW_NONE, RAW_PROMPT, takeRaw } from './raw';
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
} from './shapes';
import {
  SINK_LIMIT_FIRST,
  SINK_LIMIT_SECOND,
  SINK_MODEL,
  SINK_NONE,
  SINK_PROMPT,
  SINK_SALT,
  SINK_TOKEN,
} from './sinks';

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
      if (load<u32>(scan, SCAN_KIND) != PROMPT_MESSAGES) beginRaw(scan, RAW_PROMPT, at);
      else if (byte != LETTER_N) store<u32>(scan, SHAPE_BAD, SCAN_SHAPE);
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
    if (byte != OPEN_OBJECT && byte != LETTER_N) fault(scan, FAULT_SYSTEM, true);
    return byte == OPEN_OBJECT;
  }
  return elementBegin(scan, byte);
}

function limitBegin(scan: usize, string: bool): void {
  store<u32>(scan, 0, SCAN_LIMIT_FIRST_LENGTH);
  store<u32>(scan, string ? SINK_NONE : SINK_LIMIT_FIRST, SCAN_SINK);
}

/** An element of a completions prompt, of token ids or of the messages begins. */
function elementBegin(scan: usize, byte: u32): bool {
  const shape = load<u32>(scan, SCAN_SHAPE);
  const kind = load<u32>(scan, SCAN_KIND);
  if (kind == PROMPT_CHAT || kind == PROMPT_MESSAGES) {
    // What a null among the messages means is left to the model server.
    const good = (byte == OPEN_OBJECT || byte == LETTER_N) && shape != SHAPE_BAD;
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

/** Bytes of prompt content, tools and system included. */
export function promptBytes(scan: usize): u32 {
  return (
    contentLength(scan, SCAN_PROMPT_SEGMENT) +
    contentLength(scan, SCAN_TOOLS_SEGMENT) +
    contentLength(scan, SCAN_SYSTEM_SEGMENT)
  );
}
