// The grammar of JSON as a machine that takes a body in pieces and accepts exactly what JSON.parse accepts.
//
// Owns: in this thread's part of REGION_SCANS where the grammar stands in each scan. No lock: all of it belongs to one
// thread. What keys and values mean is not known here: keys.ts and fields.ts are told of those in tracked containers. Nothing is kept
// in a Wasm global between two feeds, so a scan may rest at any byte: inside an escape, a number, a literal, a UTF-8
// sequence (those are never taken apart: invalid UTF-8 in strings is accepted, as JSON.parse accepts the replacement
// characters that decoding would have put there).
import { contentEnd, contentMove, contentStart } from './content';
import { valueBegin, valueEnd } from './fields';
import { numberEnd, takeNumber, takeString } from './kept';
import { keyEnd } from './keys';
import {
  SCAN_BITS,
  SCAN_DECODED,
  SCAN_DEPTH,
  SCAN_DIGITS,
  SCAN_HIGH,
  SCAN_KEY,
  SCAN_KEY_LENGTH,
  SCAN_LEX,
  SCAN_LITERAL,
  SCAN_MAX_DEPTH,
  SCAN_POSITION,
  SCAN_REASON,
  SCAN_SINK,
  SCAN_TRACKED,
  SCAN_UNIT,
} from './layout';
import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  copyString,
  DOT,
  escapeValue,
  hexValue,
  isDigit,
  LETTER_F,
  LETTER_N,
  LETTER_T,
  LETTER_U,
  MINUS,
  OPEN_ARRAY,
  OPEN_OBJECT,
  PLUS,
  QUOTE,
  skipSpace,
  stringEnd,
  stringStop,
  writeCodePoint,
  ZERO,
} from './lexemes';
import { typeEnd } from './media';
import { looksInside, nestedKeyEnd, nestedValueBegin } from './messages';
import { rawPause, rawStart } from './raw';
import { SINK_KEY, SINK_NESTED_KEY, SINK_NONE, SINK_OTHER_KEY, SINK_PROMPT, SINK_TYPE } from './sinks';

export const SCAN_REASON_BYTE: u32 = 1; // a byte that cannot stand here
export const SCAN_REASON_CONTROL: u32 = 2; // a raw control byte in a string
export const SCAN_REASON_ESCAPE: u32 = 3; // an escape that JSON does not have
export const SCAN_REASON_UNICODE: u32 = 4; // \u without four hex digits
export const SCAN_REASON_NUMBER: u32 = 5; // a number that JSON does not have
export const SCAN_REASON_LITERAL: u32 = 6; // neither true, false nor null
export const SCAN_REASON_TRAILING: u32 = 7; // something behind the document
export const SCAN_REASON_DEPTH: u32 = 8; // nested deeper than SCAN_MAX_DEPTH
export const SCAN_REASON_ENDED: u32 = 9; // the body ends inside the document
export const SCAN_REASON_EMPTY: u32 = 10; // the body is empty or blank
export const SCAN_REASON_LENGTH: u32 = 11; // longer than 4 GiB, or more than INPUT holds in one feed
export const SCAN_REASON_CLOSED: u32 = 12; // no open scan has this number
export const SCAN_REASON_MESSAGE: u32 = 13; // the envelope is no protobuf message
export const SCAN_REASON_BARE: u32 = 14; // the envelope holds no document

// What the next byte may be. Numbers stand last, those that may end here from LEX_ZERO on.
const LEX_VALUE: u32 = 0;
const LEX_FIRST_ELEMENT: u32 = 1; // or the array's end
const LEX_FIRST_KEY: u32 = 2; // or the object's end
const LEX_KEY: u32 = 3;
const LEX_COLON: u32 = 4;
const LEX_AFTER: u32 = 5; // comma or end of the container
const LEX_STRING: u32 = 6;
const LEX_ESCAPE: u32 = 7; // behind a backslash
const LEX_UNICODE: u32 = 8; // hex digits
const LEX_HIGH: u32 = 9; // behind a high surrogate
const LEX_HIGH_ESCAPE: u32 = 10; // behind a high surrogate and a backslash
const LEX_LITERAL: u32 = 11;
const LEX_REFUSED: u32 = 12;
const LEX_MINUS: u32 = 13;
const LEX_DOT: u32 = 14;
const LEX_EXPONENT: u32 = 15; // behind e
const LEX_SIGN: u32 = 16; // behind the exponent's sign
const LEX_ZERO: u32 = 17; // behind a leading zero
const LEX_INTEGER: u32 = 18;
const LEX_FRACTION: u32 = 19;
const LEX_POWER: u32 = 20; // digits of the exponent
const LEX_NUMBER_OVER: u32 = 21;
const LEX_NUMBER_BAD: u32 = 22;

const REPLACEMENT: u32 = 0xfffd;

// The feed under way. Set at its start, stored into the scan state at its end.
let at: usize = 0;
let end: usize = 0;
let start: usize = 0;
let origin: u32 = 0; // offset in the document of the byte at `start`
let depth: u32 = 0;
let tracked: u32 = 0;
let reason: u32 = 0;

/** Scan `length` bytes at `from`. @returns 0, or the reason why the body is refused (SCAN_REASON_*). */
export function grammarFeed(scan: usize, from: usize, length: u32): u32 {
  reason = 0;
  origin = load<u32>(scan, SCAN_POSITION);
  at = from;
  start = from;
  end = from + length;
  depth = load<u32>(scan, SCAN_DEPTH);
  tracked = load<u32>(scan, SCAN_TRACKED);
  contentStart();
  rawStart(at);
  let lex = load<u32>(scan, SCAN_LEX);
  while (at < end && lex != LEX_REFUSED) lex = step(scan, lex);
  rawPause(scan, at);
  store<u32>(scan, lex, SCAN_LEX);
  store<u32>(scan, depth, SCAN_DEPTH);
  store<u32>(scan, tracked, SCAN_TRACKED);
  store<u32>(scan, position(), SCAN_POSITION);
  store<u32>(scan, reason, SCAN_REASON);
  return reason;
}

/** May the body end here? @returns 0, or the reason why not. */
export function grammarEnd(scan: usize): u32 {
  if (load<u32>(scan, SCAN_DEPTH) != 0) return SCAN_REASON_ENDED;
  const lex = load<u32>(scan, SCAN_LEX);
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
 * Go on from `lex` with the byte at `at`; every step moves `at` or changes `lex`. Steps that usually follow each other
 * call each other directly, up to the end of a value.
 */
function step(scan: usize, lex: u32): u32 {
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
    case LEX_STRING:
      return stepString(scan);
    case LEX_ESCAPE:
      return stepEscape(scan);
    case LEX_UNICODE:
      return stepUnicode(scan);
    case LEX_HIGH:
      return stepHigh(scan);
    case LEX_HIGH_ESCAPE:
      return stepHighEscape(scan);
    case LEX_LITERAL:
      return stepLiteral(scan);
    default:
      return stepNumber(scan, lex);
  }
}

function stepValue(scan: usize, first: bool): u32 {
  at = skipSpace(at, end);
  if (at == end) return first ? LEX_FIRST_ELEMENT : LEX_VALUE;
  const byte = <u32>load<u8>(at);
  if (first && byte == CLOSE_ARRAY) return closeContainer(scan);
  let child = false;
  if (depth == tracked) child = valueBegin(scan, depth, byte, at, position());
  else nestedValueBegin(scan, byte);
  if (byte == QUOTE) {
    at++;
    return stepString(scan);
  }
  if (byte == OPEN_OBJECT) return openContainer(scan, true, child);
  if (byte == OPEN_ARRAY) return openContainer(scan, false, child);
  if (byte == MINUS || isDigit(byte)) return startNumber(scan, byte);
  return startLiteral(scan, byte);
}

function openContainer(scan: usize, object: bool, child: bool): u32 {
  if (depth == SCAN_MAX_DEPTH) return refuse(SCAN_REASON_DEPTH);
  const word = scan + SCAN_BITS + <usize>((depth >> 5) << 2);
  const bit: u32 = 1 << (depth & 31);
  store<u32>(word, object ? load<u32>(word) | bit : load<u32>(word) & ~bit);
  depth++;
  if (child) tracked = depth;
  at++;
  return object ? LEX_FIRST_KEY : LEX_FIRST_ELEMENT;
}

/** Is the innermost container an object? */
function inObject(scan: usize): bool {
  const index = depth - 1;
  return ((load<u32>(scan + SCAN_BITS + <usize>((index >> 5) << 2)) >> (index & 31)) & 1) != 0;
}

function closeContainer(scan: usize): u32 {
  if (depth == tracked) tracked--;
  depth--;
  at++;
  return afterValue(scan);
}

function afterValue(scan: usize): u32 {
  if (depth == tracked) valueEnd(scan, depth, at, position());
  return LEX_AFTER;
}

function stepAfter(scan: usize): u32 {
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

function stepKey(scan: usize, first: bool): u32 {
  at = skipSpace(at, end);
  if (at == end) return first ? LEX_FIRST_KEY : LEX_KEY;
  const byte = <u32>load<u8>(at);
  if (first && byte == CLOSE_OBJECT) return closeContainer(scan);
  if (byte != QUOTE) return refuse(SCAN_REASON_BYTE);
  at++;
  const nested = depth != tracked;
  if (nested && !looksInside(scan)) {
    store<u32>(scan, SINK_OTHER_KEY, SCAN_SINK);
    return LEX_STRING;
  }
  v128.store(scan, i64x2.splat(0), SCAN_KEY);
  v128.store(scan, i64x2.splat(0), SCAN_KEY + 16);
  if (shortKey(scan)) {
    if (nested) nestedKeyEnd(scan);
    else keyEnd(scan, depth);
    return stepColon(scan);
  }
  store<u32>(scan, nested ? SINK_NESTED_KEY : SINK_KEY, SCAN_SINK);
  store<u32>(scan, 0, SCAN_KEY_LENGTH);
  return LEX_STRING;
}

/** Take a key of at most 15 bytes without escapes, quote included, in one go; false when it is of another sort. */
function shortKey(scan: usize): bool {
  const stop = stringStop(at);
  if (stop == 0) return false;
  const length = <usize>ctz<i32>(stop);
  if (at + length >= end || <u32>load<u8>(at + length) != QUOTE) return false;
  const word = load<u64>(at);
  if (length < 8) {
    store<u64>(scan, word & (((<u64>1) << ((<u64>length) << 3)) - 1), SCAN_KEY);
  } else {
    store<u64>(scan, word, SCAN_KEY);
    store<u64>(scan, load<u64>(at, 8) & (((<u64>1) << ((<u64>(length - 8)) << 3)) - 1), SCAN_KEY + 8);
  }
  store<u32>(scan, <u32>length, SCAN_KEY_LENGTH);
  at += length + 1;
  return true;
}

function stepColon(scan: usize): u32 {
  at = skipSpace(at, end);
  if (at == end) return LEX_COLON;
  if (<u32>load<u8>(at) != COLON) return refuse(SCAN_REASON_BYTE);
  at++;
  return stepValue(scan, false);
}

// ---------------------------------------------------------------------------------------------- strings and escapes

function stepString(scan: usize): u32 {
  const sink = load<u32>(scan, SCAN_SINK);
  if (sink == SINK_PROMPT) return stepPrompt(scan);
  if (sink == SINK_NONE) return stepSkipped(scan);
  const from = at;
  at = stringEnd(at, end);
  if (at > from) takeString(scan, sink, from, <u32>(at - from));
  if (at == end) return LEX_STRING;
  const byte = <u32>load<u8>(at);
  if (byte == QUOTE) {
    at++;
    if (sink == SINK_KEY) {
      keyEnd(scan, depth);
      return LEX_COLON;
    }
    if (sink == SINK_NESTED_KEY) {
      nestedKeyEnd(scan);
      return LEX_COLON;
    }
    if (sink == SINK_TYPE) typeEnd(scan);
    return sink == SINK_OTHER_KEY ? LEX_COLON : afterValue(scan);
  }
  if (byte != BACKSLASH) return refuse(SCAN_REASON_CONTROL);
  at++;
  return LEX_ESCAPE;
}

/**
 * The same for prompt content, which is long and full of short escapes: those are decoded on the spot. Addresses are held
 * in locals, because a global is a place in memory and would be written and read again for every escape.
 */
function stepPrompt(scan: usize): u32 {
  const stop = end;
  let from = at;
  let to = contentEnd();
  let byte: u32 = 0;
  while (from < stop) {
    const plainEnd = copyString(from, stop, to);
    to += plainEnd - from;
    from = plainEnd;
    if (from == stop) break;
    byte = load<u8>(from);
    if (byte != BACKSLASH) break;
    from++;
    const value = from < stop ? escapeValue(load<u8>(from)) : 0;
    if (value == 0) break;
    store<u8>(to, value);
    to++;
    from++;
    byte = 0;
  }
  at = from;
  contentMove(to);
  return stringStopped(scan, byte);
}

/** The same for strings of which nothing is kept. */
function stepSkipped(scan: usize): u32 {
  const stop = end;
  let from = at;
  let byte: u32 = 0;
  while (from < stop) {
    from = stringEnd(from, stop);
    if (from == stop) break;
    byte = load<u8>(from);
    if (byte != BACKSLASH) break;
    from++;
    if (from == stop || escapeValue(load<u8>(from)) == 0) break;
    from++;
    byte = 0;
  }
  at = from;
  return stringStopped(scan, byte);
}

/** A string stopped at `byte` (0 = only the feed ended); of an escape that is not decoded yet, behind the backslash. */
function stringStopped(scan: usize, byte: u32): u32 {
  if (byte == QUOTE) {
    at++;
    return afterValue(scan);
  }
  if (byte == BACKSLASH) return LEX_ESCAPE;
  return at == end ? LEX_STRING : refuse(SCAN_REASON_CONTROL);
}

function stepEscape(scan: usize): u32 {
  const byte = <u32>load<u8>(at);
  if (byte == LETTER_U) {
    at++;
    store<u32>(scan, 0, SCAN_UNIT);
    store<u32>(scan, 0, SCAN_DIGITS);
    return LEX_UNICODE;
  }
  const value = escapeValue(byte);
  if (value == 0) return refuse(SCAN_REASON_ESCAPE);
  at++;
  emit(scan, value);
  return LEX_STRING;
}

function stepUnicode(scan: usize): u32 {
  const digit = hexValue(load<u8>(at));
  if (digit > 15) return refuse(SCAN_REASON_UNICODE);
  at++;
  const unit = (load<u32>(scan, SCAN_UNIT) << 4) | digit;
  const digits = load<u32>(scan, SCAN_DIGITS) + 1;
  store<u32>(scan, unit, SCAN_UNIT);
  store<u32>(scan, digits, SCAN_DIGITS);
  return digits < 4 ? LEX_UNICODE : takeUnit(scan, unit);
}

/** Take a whole UTF-16 unit; surrogates without their other half become U+FFFD, as in any encoder of UTF-8. */
function takeUnit(scan: usize, unit: u32): u32 {
  const high = load<u32>(scan, SCAN_HIGH);
  const low = unit >= 0xdc00 && unit < 0xe000;
  store<u32>(scan, 0, SCAN_HIGH);
  if (high != 0 && low) {
    emit(scan, 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
    return LEX_STRING;
  }
  if (high != 0) emit(scan, REPLACEMENT);
  if (unit >= 0xd800 && unit < 0xdc00) {
    store<u32>(scan, unit, SCAN_HIGH);
    return LEX_HIGH;
  }
  emit(scan, low ? REPLACEMENT : unit);
  return LEX_STRING;
}

function stepHigh(scan: usize): u32 {
  if (<u32>load<u8>(at) == BACKSLASH) {
    at++;
    return LEX_HIGH_ESCAPE;
  }
  giveUpHigh(scan);
  return LEX_STRING;
}

function stepHighEscape(scan: usize): u32 {
  if (<u32>load<u8>(at) != LETTER_U) giveUpHigh(scan);
  return LEX_ESCAPE;
}

function giveUpHigh(scan: usize): void {
  store<u32>(scan, 0, SCAN_HIGH);
  emit(scan, REPLACEMENT);
}

function emit(scan: usize, point: u32): void {
  const length = writeCodePoint(scan + SCAN_DECODED, point);
  takeString(scan, load<u32>(scan, SCAN_SINK), scan + SCAN_DECODED, length);
}

// --------------------------------------------------------------------------------------------- literals and numbers

function startLiteral(scan: usize, byte: u32): u32 {
  let rest: u32 = 0;
  if (byte == LETTER_T)
    rest = 0x657572; // "rue"
  else if (byte == LETTER_F)
    rest = 0x65736c61; // "alse"
  else if (byte == LETTER_N)
    rest = 0x6c6c75; // "ull"
  else return refuse(SCAN_REASON_BYTE);
  store<u32>(scan, rest, SCAN_LITERAL);
  at++;
  return LEX_LITERAL;
}

function stepLiteral(scan: usize): u32 {
  let rest = load<u32>(scan, SCAN_LITERAL);
  while (rest != 0 && at < end) {
    if (<u32>load<u8>(at) != (rest & 255)) return refuse(SCAN_REASON_LITERAL);
    rest >>= 8;
    at++;
  }
  store<u32>(scan, rest, SCAN_LITERAL);
  return rest == 0 ? afterValue(scan) : LEX_LITERAL;
}

function startNumber(scan: usize, byte: u32): u32 {
  takeNumber(scan, load<u32>(scan, SCAN_SINK), at, 1);
  at++;
  if (byte == MINUS) return LEX_MINUS;
  return byte == ZERO ? LEX_ZERO : LEX_INTEGER;
}

function stepNumber(scan: usize, lex: u32): u32 {
  const from = at;
  const sink = load<u32>(scan, SCAN_SINK);
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

/** The grammar of numbers, RFC 8259 section 6: what the next byte may be after `byte`. */
function numberStep(lex: u32, byte: u32): u32 {
  const digit = isDigit(byte);
  switch (lex) {
    case LEX_INTEGER:
      if (digit) return LEX_INTEGER;
      break;
    case LEX_FRACTION:
      if (digit) return LEX_FRACTION;
      return (byte | 0x20) == 0x65 ? LEX_EXPONENT : LEX_NUMBER_OVER;
    case LEX_POWER:
      return digit ? LEX_POWER : LEX_NUMBER_OVER;
    case LEX_MINUS:
      if (byte == ZERO) return LEX_ZERO;
      return digit ? LEX_INTEGER : LEX_NUMBER_BAD;
    case LEX_DOT:
      return digit ? LEX_FRACTION : LEX_NUMBER_BAD;
    case LEX_EXPONENT:
      if (byte == PLUS || byte == MINUS) return LEX_SIGN;
      return digit ? LEX_POWER : LEX_NUMBER_BAD;
    case LEX_SIGN:
      return digit ? LEX_POWER : LEX_NUMBER_BAD;
    default: // LEX_ZERO
      break;
  }
  if (byte == DOT) return LEX_DOT;
  return (byte | 0x20) == 0x65 ? LEX_EXPONENT : LEX_NUMBER_OVER;
}
