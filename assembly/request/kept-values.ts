// Kept values of a request body: names, limits, keys and tokens of the prompt.
//
// Owns: in this thread's part of REGION_SCANS the kept bytes of keys, model, salt, limits and numbers. No lock: all of
// it belongs to one thread.
import { takeNotice } from './billing-notice';
import { contentBytes, contentToken } from './content';
import { streamAbsorb } from './hash';
import {
  SCAN_LIMIT_FIRST,
  SCAN_LIMIT_SECOND,
  SCAN_MAX_KEY,
  SCAN_MAX_LIMIT,
  SCAN_MAX_MODEL,
  SCAN_MAX_SALT,
  SCAN_MODEL,
  SCAN_SALT,
} from './layout';
import { isDigit } from './lexemes';
import { typeTake } from './media';
import { SHAPE_BAD } from './prompt-shapes';
import { RequestScan } from './scan-state';
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
} from './value-sinks';

/** Takes decoded bytes of the string under way (prompt strings in bulk go to contentString instead). */
export function takeString(scan: RequestScan, sink: u32, from: usize, length: u32): void {
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
      scan.keyLength = keep(scan.keyText, scan.keyLength, SCAN_MAX_KEY, from, length);
      break;
    case SINK_MODEL:
      scan.modelLength = keep(changetype<usize>(scan) + SCAN_MODEL, scan.modelLength, SCAN_MAX_MODEL, from, length);
      break;
    case SINK_SALT:
      streamAbsorb(scan.aside, from, length);
      scan.saltLength = keep(changetype<usize>(scan) + SCAN_SALT, scan.saltLength, SCAN_MAX_SALT, from, length);
      break;
    default:
      break;
  }
}

/** Appends what fits of `length` bytes. @returns the length without the bound. */
function keep(to: usize, kept: u32, bytesMax: u32, from: usize, length: u32): u32 {
  const room = kept < bytesMax ? bytesMax - kept : 0;
  const taken = length < room ? length : room;
  to += kept;
  for (let i: u32 = 0; i < taken; i++) store<u8>(to + i, load<u8>(from + i));
  return kept + length;
}

/** Takes bytes of the number under way. */
export function takeNumber(scan: RequestScan, sink: u32, from: usize, length: u32): void {
  switch (sink) {
    case SINK_TOKEN:
      takeToken(scan, from, length);
      break;
    case SINK_LIMIT_FIRST:
      scan.limitFirstLength = keep(
        changetype<usize>(scan) + SCAN_LIMIT_FIRST,
        scan.limitFirstLength,
        SCAN_MAX_LIMIT,
        from,
        length,
      );
      break;
    case SINK_LIMIT_SECOND:
      scan.limitSecondLength = keep(
        changetype<usize>(scan) + SCAN_LIMIT_SECOND,
        scan.limitSecondLength,
        SCAN_MAX_LIMIT,
        from,
        length,
      );
      break;
    default:
      break;
  }
}

function takeToken(scan: RequestScan, from: usize, length: u32): void {
  let token = scan.number;
  for (let i: u32 = 0; i < length; i++) {
    const byte = <u32>load<u8>(from + i);
    if (!isDigit(byte) || token > u32.MAX_VALUE) {
      scan.numberBad = 1;
      return;
    }
    token = token * 10 + (byte & 15);
  }
  scan.number = token;
}

/** Ends the number under way: a token id becomes prompt content. */
export function numberEnd(scan: RequestScan, sink: u32): void {
  if (sink != SINK_TOKEN) return;
  const token = scan.number;
  if (scan.numberBad != 0 || token > u32.MAX_VALUE) scan.shape = SHAPE_BAD;
  else contentToken(scan, <u32>token);
}
