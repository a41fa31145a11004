// The grammar of JSON as a machine that takes a body in pieces and accepts exactly what JSON.parse accepts.
//
// Owns: in this thread's part of REGION_SCANS where the grammar stands in each scan. No lock: all of it belongs to one
// thread. What keys and values mean is not known here: keys.ts and fields.ts are told of those in tracked containers.
// Nothing is kept in a Wasm global between two feeds, so a scan may rest at any byte: inside an escape, a number, a
// literal, a UTF-8 sequence (those are never taken apart: invalid UTF-8 in strings is accepted, as JSON.parse accepts
// the replacement characters that decoding would have put there).
import { contentStart } from './content';
import { valueBegin, valueEnd } from './fields';
import { numberEnd, takeNumber } from './kept-values';
import { keyEnd } from './keys';
import { SCAN_BITS, SCAN_MAX_DEPTH } from './layout';
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  isDigit,
  LETTER_F,
  LETTER_N,
  LETTER_T,
  MINUS,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
  stringStop,
  ZERO,
} from './lexemes';
import { typeEnd } from './media';
import { looksInside, nestedKeyEnd, nestedValueBegin } from './messages';
import { LEX_INTEGER, LEX_MINUS, LEX_NUMBER_BAD, LEX_NUMBER_OVER, LEX_ZERO, numberStep } from './number-grammar';
import { rawPause, rawStart } from './raw-values';
import { RequestScan } from './scan-state';
import {
  LEX_STRING,
  LEX_STRING_CONTROL,
  LEX_STRING_ESCAPE,
  LEX_STRING_LAST,
  LEX_STRING_OVER,
  LEX_STRING_UNICODE,
  stringFeed,
  stringReached,
} from './string-grammar';
import { SINK_KEY, SINK_NESTED_KEY, SINK_NONE, SINK_OTHER_KEY, SINK_TYPE } from './value-sinks';

export const SCAN_REASON_BYTE: u32 = 1; // a byte that cannot stand here
export const SCAN_REASON_CONTROL: u32 = 2; // a raw control byte in a string
export const SCAN_REASON_ESCAPE: u32 = 3; // an unknown escape
export const SCAN_REASON_UNICODE: u32 = 4; // \u without four hex digits
export const SCAN_REASON_NUMBER: u32 = 5; // a malformed number
export const SCAN_REASON_LITERAL: u32 = 6; // neither true, false nor null
export const SCAN_REASON_TRAILING: u32 = 7; // something behind the document
export const SCAN_REASON_DEPTH: u32 = 8; // nested deeper than SCAN_MAX_DEPTH
export const SCAN_REASON_ENDED: u32 = 9; // the body ends inside the document
export const SCAN_REASON_EMPTY: u32 = 10; // the body is empty or blank
export const SCAN_REASON_LENGTH: u32 = 11; // longer than 4 GiB, or more than INPUT holds in one feed
export const SCAN_REASON_CLOSED: u32 = 12; // no open scan has this number
export const SCAN_REASON_MESSAGE: u32 = 13; // the envelope is no protobuf message
export const SCAN_REASON_BARE: u32 = 14; // the envelope holds no document

// Bytes that may come next. 6 to 10 are inside of a string (string-grammar.ts), 13 to 22 inside of a number
// (number-grammar.ts).
const LEX_VALUE: u32 = 0;
const LEX_FIRST_ELEMENT: u32 = 1; // or the array's end
const LEX_FIRST_KEY: u32 = 2; // or the object's end
const LEX_KEY: u32 = 3;
const LEX_COLON: u32 = 4;
const LEX_AFTER: u32 = 5; // comma or end of the container
const LEX_LITERAL: u32 = 11;
const LEX_REFUSED: u32 = 12;

// The feed under way. Set at its start, stored into the scan state at its end.
let at: usize = 0;
let end: usize = 0;
let start: usize = 0;
let origin: u32 = 0; // offset in the document of the byte at `start`
let depth: u32 = 0;
let tracked: u32 = 0;
let reason: u32 = 0;

/** Scan `length` bytes at `from`. @returns 0, or the reason why the body is refused (SCAN_REASON_*). */
export function grammarFeed(scan: RequestScan, from: usize, length: u32): u32 {
  reason = 0;
  origin = scan.position;
  at = from;
  start = from;
  end = from + length;
  depth = scan.depth;
  tracked = scan.tracked;
  contentStart();
  rawStart(at);
  let lex = scan.lex;
  while (at < end && lex != LEX_REFUSED) lex = step(scan, lex);
  rawPause(scan, at);
  scan.lex = lex;
  scan.depth = depth;
  scan.tracked = tracked;
  scan.position = position();
  scan.reason = reason;
  return reason;
}

/** Checks whether the body may end here. @returns 0, or the reason why not. */
export function grammarEnd(scan: RequestScan): u32 {
  if (scan.depth != 0) return SCAN_REASON_ENDED;
  const lex = scan.lex;
  if (lex == LEX_AFTER || lex >= LEX_ZERO) return 0;
  return lex == LEX_VALUE ? SCAN_REASON_EMPTY : SCAN_REASON_ENDED;
}

// ------------------------------------------------------------------------------------------------------ the steps

function position(): u32 {
  return origin + <u32>(at - start);
}

function refuse(why: u32): u32 {
  reason = why;
  return LEX_REFUSED;
}

/**
 * Goes on from `lex` with the byte at `at`; every step moves `at` or changes `lex`. Steps that usually follow each
 * other call each other directly, up to the end of a value.
 */
function step(scan: RequestScan, lex: u32): u32 {
  switch (lex) {
    case LEX_VALUE:
      return stepValue(scan, false);
    case LEX_FIRST_ELEMENT:
      return stepValue(scan, true);
    case LEX_FIRST_KEY:
      return stepKey(scan, true);
    case LEX_KEY:
      return stepKey(scan, false);
    case LEX_COLON:
      return stepColon(scan);
    case LEX_AFTER:
      return stepAfter(scan);
    case LEX_LITERAL:
      return stepLiteral(scan);
    default:
      return lex <= LEX_STRING_LAST ? stepString(scan, lex) : stepNumber(scan, lex);
  }
}

function stepValue(scan: RequestScan, first: bool): u32 {
  at = skipSpace(at, end);
  if (at == end) return first ? LEX_FIRST_ELEMENT : LEX_VALUE;
  const byte = <u32>load<u8>(at);
  if (first && byte == CLOSE_ARRAY) return closeContainer(scan);
  let child = false;
  if (depth == tracked) child = valueBegin(scan, depth, byte, at, position());
  else nestedValueBegin(scan, byte);
  if (byte == QUOTE) {
    at++;
    return stepString(scan, LEX_STRING);
  }
  if (byte == OPEN_OBJECT) return openContainer(scan, true, child);
  if (byte == OPEN_ARRAY) return openContainer(scan, false, child);
  if (byte == MINUS || isDigit(byte)) return startNumber(scan, byte);
  return startLiteral(scan, byte);
}

/** Address of the word that holds the bit of the bracket at a depth. */
function bracketsOf(scan: RequestScan, depth: u32): usize {
  return changetype<usize>(scan) + SCAN_BITS + <usize>((depth >> 5) << 2);
}

function openContainer(scan: RequestScan, object: bool, child: bool): u32 {
  if (depth == SCAN_MAX_DEPTH) return refuse(SCAN_REASON_DEPTH);
  const word = bracketsOf(scan, depth);
  const bit: u32 = 1 << (depth & 31);
  store<u32>(word, object ? load<u32>(word) | bit : load<u32>(word) & ~bit);
  depth++;
  if (child) tracked = depth;
  at++;
  return object ? LEX_FIRST_KEY : LEX_FIRST_ELEMENT;
}

/** Whether the innermost container is an object. */
function inObject(scan: RequestScan): bool {
  const index = depth - 1;
  return ((load<u32>(bracketsOf(scan, index)) >> (index & 31)) & 1) != 0;
}

function closeContainer(scan: RequestScan): u32 {
  if (depth == tracked) tracked--;
  depth--;
  at++;
  return afterValue(scan);
}

function afterValue(scan: RequestScan): u32 {
  if (depth == tracked) valueEnd(scan, depth, at, position());
  return LEX_AFTER;
}

function stepAfter(scan: RequestScan): u32 {
  at = skipSpace(at, end);
  if (at == end) return LEX_AFTER;
  if (depth == 0) return refuse(SCAN_REASON_TRAILING);
  const byte = <u32>load<u8>(at);
  const object = inObject(scan);
  if (byte == COMMA) {
    at++;
    return object ? stepKey(scan, false) : stepValue(scan, false);
  }
  if (byte != (object ? CLOSE_OBJECT : CLOSE_ARRAY)) return refuse(SCAN_REASON_BYTE);
  return closeContainer(scan);
}

function stepKey(scan: RequestScan, first: bool): u32 {
  at = skipSpace(at, end);
  if (at == end) return first ? LEX_FIRST_KEY : LEX_KEY;
  const byte = <u32>load<u8>(at);
  if (first && byte == CLOSE_OBJECT) return closeContainer(scan);
  if (byte != QUOTE) return refuse(SCAN_REASON_BYTE);
  at++;
  const nested = depth != tracked;
  if (nested && !looksInside(scan)) {
    scan.sink = SINK_OTHER_KEY;
    return LEX_STRING;
  }
  v128.store(scan.keyText, i64x2.splat(0));
  v128.store(scan.keyText, i64x2.splat(0), sizeof<v128>());
  if (shortKey(scan)) {
    if (nested) nestedKeyEnd(scan);
    else keyEnd(scan, depth);
    return stepColon(scan);
  }
  scan.sink = nested ? SINK_NESTED_KEY : SINK_KEY;
  scan.keyLength = 0;
  return LEX_STRING;
}

/** Takes a key of at most 15 bytes without escapes, quote included, in one go; false when it is of another sort. */
function shortKey(scan: RequestScan): bool {
  const stop = stringStop(at);
  if (stop == 0) return false;
  const length = <usize>ctz<i32>(stop);
  if (at + length >= end || <u32>load<u8>(at + length) != QUOTE) return false;
  const word = load<u64>(at);
  if (length < 8) {
    scan.setKeyWord(0, word & (((<u64>1) << ((<u64>length) << 3)) - 1));
  } else {
    scan.setKeyWord(0, word);
    scan.setKeyWord(1, load<u64>(at + sizeof<u64>()) & (((<u64>1) << ((<u64>(length - 8)) << 3)) - 1));
  }
  scan.keyLength = <u32>length;
  at += length + 1;
  return true;
}

function stepColon(scan: RequestScan): u32 {
  at = skipSpace(at, end);
  if (at == end) return LEX_COLON;
  if (<u32>load<u8>(at) != COLON) return refuse(SCAN_REASON_BYTE);
  at++;
  return stepValue(scan, false);
}

// ------------------------------------------------------------------------------------ strings, literals and numbers

/** Continues the string under way, escapes included, and tells whose string has ended. */
function stepString(scan: RequestScan, lex: u32): u32 {
  const next = stringFeed(scan, lex, at, end);
  at = stringReached();
  switch (next) {
    case LEX_STRING_OVER:
      return stringOver(scan);
    case LEX_STRING_CONTROL:
      return refuse(SCAN_REASON_CONTROL);
    case LEX_STRING_ESCAPE:
      return refuse(SCAN_REASON_ESCAPE);
    case LEX_STRING_UNICODE:
      return refuse(SCAN_REASON_UNICODE);
    default:
      return next;
  }
}

function stringOver(scan: RequestScan): u32 {
  switch (scan.sink) {
    case SINK_KEY:
      keyEnd(scan, depth);
      return LEX_COLON;
    case SINK_NESTED_KEY:
      nestedKeyEnd(scan);
      return LEX_COLON;
    case SINK_OTHER_KEY:
      return LEX_COLON;
    case SINK_TYPE:
      typeEnd(scan);
      return afterValue(scan);
    default:
      return afterValue(scan);
  }
}

function startLiteral(scan: RequestScan, byte: u32): u32 {
  let rest: u32 = 0;
  if (byte == LETTER_T)
    rest = 0x657572; // "rue"
  else if (byte == LETTER_F)
    rest = 0x65736c61; // "alse"
  else if (byte == LETTER_N)
    rest = 0x6c6c75; // "ull"
  else return refuse(SCAN_REASON_BYTE);
  scan.literal = rest;
  at++;
  return LEX_LITERAL;
}

function stepLiteral(scan: RequestScan): u32 {
  let rest = scan.literal;
  while (rest != 0 && at < end) {
    if (<u32>load<u8>(at) != (rest & 255)) return refuse(SCAN_REASON_LITERAL);
    rest >>= 8;
    at++;
  }
  scan.literal = rest;
  return rest == 0 ? afterValue(scan) : LEX_LITERAL;
}

function startNumber(scan: RequestScan, byte: u32): u32 {
  takeNumber(scan, scan.sink, at, 1);
  at++;
  if (byte == MINUS) return LEX_MINUS;
  return byte == ZERO ? LEX_ZERO : LEX_INTEGER;
}

function stepNumber(scan: RequestScan, lex: u32): u32 {
  const from = at;
  const sink = scan.sink;
  let next = lex;
  while (at < end) {
    next = numberStep(lex, load<u8>(at));
    if (next >= LEX_NUMBER_OVER) break;
    lex = next;
    at++;
  }
  if (sink != SINK_NONE && at > from) takeNumber(scan, sink, from, <u32>(at - from));
  if (next < LEX_NUMBER_OVER) return lex;
  if (next == LEX_NUMBER_BAD) return refuse(SCAN_REASON_NUMBER);
  if (sink != SINK_NONE) numberEnd(scan, sink);
  return afterValue(scan);
}
