// The grammar of JSON strings: plain runs, escapes and surrogates, decoded into the sink of the scan.
//
// Owns: in this thread's part of REGION_SCANS the escape under way (unit, digits, high). No lock: all of it belongs to
// one thread. Invalid UTF-8 is passed on as it is.
import { writeCodePoint } from '../utf8';
import { contentEnd, contentLongRun, contentMove, LONG_RUN_BYTES } from './content';
import { takeString } from './kept-values';
import { BACKSLASH, copyString, escapeValue, hexValue, LETTER_U, QUOTE, stringEnd } from './lexemes';
import { RequestScan } from './scan-state';
import { SINK_NONE, SINK_PROMPT } from './value-sinks';

// Bytes that may come next inside of a string.
export const LEX_STRING: u32 = 6;
const LEX_ESCAPE: u32 = 7; // behind a backslash
const LEX_UNICODE: u32 = 8; // hex digits
const LEX_HIGH: u32 = 9; // behind a high surrogate
const LEX_HIGH_ESCAPE: u32 = 10; // behind a high surrogate and a backslash
export const LEX_STRING_LAST: u32 = LEX_HIGH_ESCAPE;
// Ends of a string, which no scan rests in.
export const LEX_STRING_OVER: u32 = 23; // behind its closing quote
export const LEX_STRING_CONTROL: u32 = 24; // at a raw control byte
export const LEX_STRING_ESCAPE: u32 = 25; // at an escape that JSON does not have
export const LEX_STRING_UNICODE: u32 = 26; // at \u without four hex digits

const REPLACEMENT: u32 = 0xfffd;

// The feed of the string under way.
let at: usize = 0;
let end: usize = 0;

/** Reads the string under way in [from, feedEnd). @param lex LEX_STRING to LEX_STRING_LAST. @returns the next state. */
export function stringFeed(scan: RequestScan, lex: u32, from: usize, feedEnd: usize): u32 {
  at = from;
  end = feedEnd;
  do lex = step(scan, lex);
  while (at < end && lex <= LEX_STRING_LAST);
  return lex;
}

/** Address of the first byte that the last feed has not taken. */
export function stringReached(): usize {
  return at;
}

function step(scan: RequestScan, lex: u32): u32 {
  switch (lex) {
    case LEX_STRING:
      return stepRun(scan);
    case LEX_ESCAPE:
      return stepEscape(scan);
    case LEX_UNICODE:
      return stepUnicode(scan);
    case LEX_HIGH:
      return stepHigh(scan);
    default:
      return stepHighEscape(scan);
  }
}

function stepRun(scan: RequestScan): u32 {
  const sink = scan.sink;
  if (sink == SINK_PROMPT) return stepPrompt(scan);
  if (sink == SINK_NONE) return stepSkipped();
  const from = at;
  at = stringEnd(at, end);
  if (at > from) takeString(scan, sink, from, <u32>(at - from));
  if (at == end) return LEX_STRING;
  const byte = <u32>load<u8>(at);
  if (byte == BACKSLASH) at++;
  return stringStopped(byte);
}

/**
 * The same for prompt content, which is long and full of short escapes: those are decoded on the spot. Addresses are
 * held in locals, because a global is a place in memory and would be written and read again for every escape.
 */
function stepPrompt(scan: RequestScan): u32 {
  const stop = end;
  let from = at;
  let to = contentEnd();
  let byte: u32 = 0;
  let bound = min(stop, from + LONG_RUN_BYTES);
  while (from < stop) {
    const plainEnd = copyString(from, bound, to);
    to += plainEnd - from;
    from = plainEnd;
    if (from == stop) break;
    if (from == bound) {
      contentMove(to);
      from = contentLongRun(scan, from, stop);
      to = contentEnd();
      bound = stop;
      continue;
    }
    byte = load<u8>(from);
    if (byte != BACKSLASH) break;
    from++;
    const value = from < stop ? escapeValue(load<u8>(from)) : 0;
    if (value == 0) break;
    store<u8>(to, value);
    to++;
    from++;
    byte = 0;
    bound = min(stop, from + LONG_RUN_BYTES);
  }
  at = from;
  contentMove(to);
  return stringStopped(byte);
}

/** The same for strings of which nothing is kept. */
function stepSkipped(): u32 {
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
  return stringStopped(byte);
}

/** A string stopped at `byte` (0 = only the feed ended); of an escape that is not decoded yet, behind the backslash. */
function stringStopped(byte: u32): u32 {
  if (byte == QUOTE) {
    at++;
    return LEX_STRING_OVER;
  }
  if (byte == BACKSLASH) return LEX_ESCAPE;
  return at == end ? LEX_STRING : LEX_STRING_CONTROL;
}

function stepEscape(scan: RequestScan): u32 {
  const byte = <u32>load<u8>(at);
  if (byte == LETTER_U) {
    at++;
    scan.unit = 0;
    scan.digits = 0;
    return LEX_UNICODE;
  }
  const value = escapeValue(byte);
  if (value == 0) return LEX_STRING_ESCAPE;
  at++;
  emit(scan, value);
  return LEX_STRING;
}

function stepUnicode(scan: RequestScan): u32 {
  const digit = hexValue(load<u8>(at));
  if (digit > 15) return LEX_STRING_UNICODE;
  at++;
  const unit = (scan.unit << 4) | digit;
  const digits = scan.digits + 1;
  scan.unit = unit;
  scan.digits = digits;
  return digits < 4 ? LEX_UNICODE : takeUnit(scan, unit);
}

/** Takes a whole UTF-16 unit; surrogates without their other half become U+FFFD, as in any encoder of UTF-8. */
function takeUnit(scan: RequestScan, unit: u32): u32 {
  const high = scan.high;
  const low = unit >= 0xdc00 && unit < 0xe000;
  scan.high = 0;
  if (high != 0 && low) {
    emit(scan, 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
    return LEX_STRING;
  }
  if (high != 0) emit(scan, REPLACEMENT);
  if (unit >= 0xd800 && unit < 0xdc00) {
    scan.high = unit;
    return LEX_HIGH;
  }
  emit(scan, low ? REPLACEMENT : unit);
  return LEX_STRING;
}

function stepHigh(scan: RequestScan): u32 {
  if (<u32>load<u8>(at) == BACKSLASH) {
    at++;
    return LEX_HIGH_ESCAPE;
  }
  giveUpHigh(scan);
  return LEX_STRING;
}

function stepHighEscape(scan: RequestScan): u32 {
  if (<u32>load<u8>(at) != LETTER_U) giveUpHigh(scan);
  return LEX_ESCAPE;
}

function giveUpHigh(scan: RequestScan): void {
  scan.high = 0;
  emit(scan, REPLACEMENT);
}

function emit(scan: RequestScan, point: u32): void {
  const length = writeCodePoint(scan.decodedAt, point);
  takeString(scan, scan.sink, scan.decodedAt, length);
}
