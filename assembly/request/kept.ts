// What is kept of the strings and numbers of a request body: a name, a limit, a key, a token of the prompt.
//
// Owns: in this thread's part of REGION_SCANS the kept bytes of keys, model, salt, limits and numbers. No lock: all of it
// belongs to one thread.
import { contentBytes, contentToken } from './content';
import { streamAbsorb } from './hash';
import {
  SCAN_ASIDE_STREAM,
  SCAN_KEY,
  SCAN_KEY_LENGTH,
  SCAN_LIMIT_FIRST,
  SCAN_LIMIT_FIRST_LENGTH,
  SCAN_LIMIT_SECOND,
  SCAN_LIMIT_SECOND_LENGTH,
  SCAN_MAX_KEY,
  SCAN_MAX_LIMIT,
  SCAN_MAX_MODEL,
  SCAN_MAX_SALT,
  SCAN_MODEL,
  SCAN_MODEL_LENGTH,
  SCAN_NUMBER,
  SCAN_NUMBER_BAD,
  SCAN_SALT,
  SCAN_SALT_LENGTH,
  SCAN_SHAPE,
} from './layout';
import { isDigit } from './lexemes';
import { typeTake } from './media';
import { takeNotice } from './notice';
import { SHAPE_BAD } from './shapes';
import {
  SINK_KEY,
  SINK_LIMIT_FIRST,
  SINK_LIMIT_SECOND,
  SINK_MODEL,
  SINK_NESTED_KEY,
  SINK_NOTICE,
  SINK_PROMPT,
  SINK_SALT,
  SINK_TOKEN,
  SINK_TYPE,
} from './sinks';

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
