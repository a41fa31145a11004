// Server-sent events: lines, "data:" fields, [DONE], and the JSON document in each of them.
//
// Owns: the line words of a response scan (layout.ts); its own thread only, no lock.
//
// One data line is one event, since every engine writes its JSON on one line. Lines end with CR, LF or both. Most
// events hold nothing of interest, so a line that is wholly in the piece is first searched for the two members that
// matter; the JSON reader runs only where one may stand (a \u could spell any name, so it counts as one).
import { jsonBegin, jsonComplete, jsonEnd, jsonIgnored, readJson } from './json';
import { ResponseScan } from './scan-state';

const LINE_FIELD: u32 = 0; // matching "data:"
const LINE_OTHER: u32 = 1; // nothing of interest up to the end of the line
const LINE_DATA: u32 = 2; // before the document, or inside what may be [DONE]
const LINE_DOCUMENT: u32 = 3;

const DATA: u64 = 0x3a61746164; // "data:", little-endian
const DATA_BYTES: u32 = 5;
const DONE: u64 = 0x5d454e4f445b; // "[DONE]"
const DONE_BYTES: u32 = 6;
const USAGE: u64 = 0x22656761737522; // "usage" with its quotes
const MODEL: u64 = 0x226c65646f6d22; // "model" with its quotes
const META: u64 = 0x695f6174656d22; // the beginning of "meta_info", with its quote
const MEMBER_MASK: u64 = 0xffffffffffffff; // all are seven bytes

let LAST_MODEL: usize = 0; // where the last "model" of the line searched stands, 0 = nowhere

/** Begins a stream. */
export function eventsBegin(at: ResponseScan): void {
  at.events = 0;
  lineBegin(at);
}

function lineBegin(at: ResponseScan): void {
  at.line = LINE_FIELD;
  at.lineMatched = 0;
}

/**
 * Begins a chunk of the answer at `start`. Some servers end an event with its chunk and leave the line's end out: a
 * chunk that begins with "data:" after a whole document is a new line.
 */
export function eventsResume(at: ResponseScan, start: usize, end: usize): void {
  if (at.line != LINE_DOCUMENT || !jsonComplete(at)) return;
  if (start + DATA_BYTES > end || (load<u64>(start) & 0xffffffffff) != DATA) return;
  jsonEnd(at);
  lineBegin(at);
}

/** Reads the bytes [start, end) of the stream. */
export function readEvents(at: ResponseScan, start: usize, end: usize): void {
  let p = start;
  while (p < end) {
    const line = at.line;
    if (line == LINE_FIELD) p = readField(at, p, end);
    else if (line == LINE_DATA) p = readData(at, p, end);
    else if (line == LINE_DOCUMENT) p = readDocument(at, p, lineEnd(p, end), end, end);
    else p = lineClose(at, lineEnd(p, end), end);
  }
}

/** Ends the stream; its last line may lack its end. */
export function eventsEnd(at: ResponseScan): void {
  const line = at.line;
  if (line == LINE_DATA) countUnlessDone(at);
  else if (line == LINE_DOCUMENT) jsonEnd(at);
  at.line = LINE_OTHER;
}

function isLineEnd(c: u32): bool {
  return c == 0x0a || c == 0x0d;
}

/** The line ends at `p`, if that is before the piece's end. */
function lineClose(at: ResponseScan, p: usize, end: usize): usize {
  if (p >= end) return end;
  lineBegin(at);
  return p + 1;
}

function readField(at: ResponseScan, p: usize, end: usize): usize {
  const matched = at.lineMatched;
  if (matched == 0 && p + DATA_BYTES <= end && (load<u64>(p) & 0xffffffffff) == DATA) {
    at.line = LINE_DATA;
    return p + DATA_BYTES;
  }
  const c = <u32>load<u8>(p);
  if (isLineEnd(c)) {
    lineBegin(at);
  } else if (<u64>c != ((DATA >> ((<u64>matched) << 3)) & 0xff)) {
    at.line = LINE_OTHER;
  } else if (matched + 1 == DATA_BYTES) {
    at.line = LINE_DATA;
    at.lineMatched = 0;
  } else {
    at.lineMatched = matched + 1;
  }
  return p + 1;
}

function countEvent(at: ResponseScan): void {
  at.events += 1;
}

function countUnlessDone(at: ResponseScan): void {
  if (at.lineMatched != DONE_BYTES) countEvent(at);
}

function readData(at: ResponseScan, p: usize, end: usize): usize {
  const matched = at.lineMatched;
  const c = <u32>load<u8>(p);
  if (isLineEnd(c)) {
    countUnlessDone(at);
    lineBegin(at);
    return p + 1;
  }
  if ((c == 0x20 || c == 0x09) && (matched == 0 || matched == DONE_BYTES)) return p + 1;
  if (matched < DONE_BYTES && <u64>c == ((DONE >> ((<u64>matched) << 3)) & 0xff)) {
    at.lineMatched = matched + 1;
    return p + 1;
  }
  countEvent(at);
  return openDocument(at, p, end, matched);
}

/** The event's document goes on at `p`, after `matched` bytes that could have been [DONE]. */
function openDocument(at: ResponseScan, p: usize, end: usize, matched: u32): usize {
  if (matched > 1) {
    at.line = LINE_OTHER; // "[D" begins no JSON
    return p;
  }
  jsonBegin(at);
  at.line = LINE_DOCUMENT;
  if (matched == 1) {
    openBracket(at);
    return p;
  }
  LAST_MODEL = 0;
  const line = searchLine(p, end, at.nameBytes != 0);
  if (line < end) {
    if (LAST_MODEL == 0) return lineClose(at, line, end);
    return readDocument(at, p, line, end, LAST_MODEL);
  }
  return readDocument(at, p, lineEnd(p, end), end, end);
}

/** Feeds the "[" that was held back as a possible begin of [DONE]. */
function openBracket(at: ResponseScan): void {
  const scratch = at.scratch;
  store<u8>(scratch, 0x5b);
  readJson(at, scratch, scratch + 1, scratch + 1);
}

/** Reads the document's bytes [p, line); when the line's end is in the piece, the document ends there. */
function readDocument(at: ResponseScan, p: usize, line: usize, end: usize, quiet: usize): usize {
  readJson(at, p, line, quiet);
  if (line == end) {
    if (jsonIgnored(at)) at.line = LINE_OTHER;
    return end;
  }
  jsonEnd(at);
  return lineClose(at, line, end);
}

/** Address of the first CR or LF in [p, end), else `end`. */
function lineEnd(start: usize, end: usize): usize {
  const feeds = i8x16.splat(0x0a);
  const returns = i8x16.splat(0x0d);
  for (let p = start; p < end; p += 16) {
    const v = v128.load(p);
    const bits = i8x16.bitmask(v128.or(i8x16.eq(v, feeds), i8x16.eq(v, returns)));
    if (bits != 0) return min(p + <usize>ctz(bits), end);
  }
  return end;
}

/**
 * Searches a whole line for members of interest; LAST_MODEL says where the last "model" stands when names are wanted.
 * @returns the line's end when the JSON reader can be spared everything behind LAST_MODEL; `end` when the line is not
 * wholly there, or may hold a usage object.
 */
function searchLine(start: usize, end: usize, names: bool): usize {
  const quotes = i8x16.splat(0x22);
  const backslashes = i8x16.splat(0x5c);
  const us = i8x16.splat(0x75);
  const ms = i8x16.splat(0x6d);
  const feeds = i8x16.splat(0x0a);
  const returns = i8x16.splat(0x0d);
  for (let p = start; p < end; p += 16) {
    const v = v128.load(p);
    const next = v128.load(p + 1);
    const u = i8x16.eq(next, us);
    const quote = v128.and(i8x16.eq(v, quotes), v128.or(u, i8x16.eq(next, ms)));
    const escape = v128.and(i8x16.eq(v, backslashes), u);
    const ends = v128.or(i8x16.eq(v, feeds), i8x16.eq(v, returns));
    let bits = i8x16.bitmask(v128.or(v128.or(quote, escape), ends));
    for (; bits != 0; bits &= bits - 1) {
      const q = p + <usize>ctz(bits);
      if (q >= end) return end;
      const c = <u32>load<u8>(q);
      if (isLineEnd(c)) return q;
      if (c != 0x22) return end; // \u
      const member = load<u64>(q) & MEMBER_MASK;
      if (member == USAGE) {
        if (opensObject(q + 7, end)) return end;
      } else if (member == META) {
        return end;
      } else if (names && member == MODEL) {
        LAST_MODEL = q;
      }
    }
  }
  return end;
}

/** Whether the bytes from `p` on are a colon and an opening brace (or the piece ends before that is known). */
function opensObject(start: usize, end: usize): bool {
  let p = start;
  while (p < end && <u32>load<u8>(p) == 0x20) p++;
  if (p >= end) return true;
  if (<u32>load<u8>(p) != 0x3a) return <u32>load<u8>(p) == 0x09;
  p++;
  while (p < end && <u32>load<u8>(p) == 0x20) p++;
  return p >= end || <u32>load<u8>(p) == 0x7b || <u32>load<u8>(p) == 0x09;
}
