// An incremental JSON reader: fed with any cut of one document, it follows the structure, checks the grammar, and hands
// token counts to usage.ts and model names to rename.ts. members.ts says which members these are; everything else is
// passed over.
//
// Owns: the reader words of a response scan (layout.ts); its own thread only, no lock. The globals are registers of the
// scan being fed, loaded and stored by readJson.
import { writeCodePoint } from '../utf8';
import { isCompleted, KEY_BYTES_MAX, KEY_OTHER, keyOf } from './keys';
import { CONTAINER_LEVELS, SCAN_CONTAINERS, SCOPE_NONE, STAGED_NONE } from './layout';
import {
  countField,
  isCount,
  memberClose,
  memberOpen,
  memberString,
  STRING_COUNT,
  STRING_KEY,
  STRING_NAME,
  STRING_PLAIN,
  STRING_TYPE,
} from './members';
import {
  PART_E,
  PART_EXPONENT,
  PART_FRACTION,
  PART_SIGN,
  PART_WHOLE,
  PART_ZERO,
  partAfter,
  partAfterDigit,
  withDigit,
} from './number-parts';
import { nameClose, nameDrop, nameOpen, nameTake } from './rename';
import { ResponseScan } from './scan-state';
import { NOT_A_COUNT, usageCommit, usageCount } from './usage';

// States of the reader, by the next expected byte. Up to STATE_AFTER: a byte of structure.
const STATE_VALUE: u32 = 0;
const STATE_VALUE_OR_CLOSE: u32 = 1; // after "["
const STATE_KEY: u32 = 2; // after "," in an object
const STATE_KEY_OR_CLOSE: u32 = 3; // after "{"
const STATE_COLON: u32 = 4;
const STATE_AFTER: u32 = 5; // after a value: "," or a closing bracket, or the end
const STATE_STRING: u32 = 6;
const STATE_ESCAPE: u32 = 7; // after a backslash
const STATE_HEX: u32 = 8; // after \u
const STATE_NUMBER: u32 = 9;
const STATE_LITERAL: u32 = 10;
const STATE_IGNORED: u32 = 11; // not JSON, too deep, or nothing of interest can follow

const QUOTE: u32 = 0x22;
const COMMA: u32 = 0x2c;
const COLON: u32 = 0x3a;
const BACKSLASH: u32 = 0x5c;
const ARRAY_OPEN: u32 = 0x5b;
const ARRAY_CLOSE: u32 = 0x5d;
const OBJECT_OPEN: u32 = 0x7b;
const OBJECT_CLOSE: u32 = 0x7d;

const TRUE: u64 = 0x65757274; // "true", little-endian
const FALSE: u64 = 0x65736c6166;
const NULL: u64 = 0x6c6c756e;

let STATE: u32 = 0;
let DEPTH: u32 = 0;
let KEY: u32 = 0;

/** Begins a document. */
export function jsonBegin(at: ResponseScan): void {
  at.state = STATE_VALUE;
  at.depth = 0;
  at.key = KEY_OTHER;
  at.usageDepth = 0;
  at.detailsDepth = 0;
  at.scope = SCOPE_NONE;
  at.staged = STAGED_NONE;
  at.completed = 0;
}

/** Ends the document: its usage counts if it was JSON, and nothing of it is held back from then on. */
export function jsonEnd(at: ResponseScan): void {
  nameDrop(at);
  if (jsonComplete(at)) usageCommit(at);
}

/** Whether the document is complete: only white space may follow. */
export function jsonComplete(at: ResponseScan): bool {
  return at.state == STATE_AFTER && at.depth == 0;
}

/** True when nothing more of this document needs to be read. */
export function jsonIgnored(at: ResponseScan): bool {
  return at.state == STATE_IGNORED;
}

/**
 * Reads the bytes [start, end) of the document.
 * @param quiet address behind which no member of interest begins in this document, or `end` when that is not known.
 */
export function readJson(at: ResponseScan, start: usize, end: usize, quiet: usize): void {
  STATE = at.state;
  DEPTH = at.depth;
  KEY = at.key;
  let p = start;
  while (p < end) {
    if (STATE <= STATE_AFTER) p = readStructure(at, p, end, quiet);
    else if (STATE == STATE_STRING) p = readString(at, p, end);
    else if (STATE == STATE_NUMBER) p = readNumber(at, p, end);
    else if (STATE == STATE_LITERAL) p = readLiteral(at, p, end);
    else if (STATE == STATE_ESCAPE) p = readEscape(at, p);
    else if (STATE == STATE_HEX) p = readHex(at, p);
    else break;
  }
  if (STATE == STATE_IGNORED) nameDrop(at);
  at.state = STATE;
  at.depth = DEPTH;
  at.key = KEY;
}

/** Reads structure up to and including the first byte of the next string, number or literal. */
function readStructure(at: ResponseScan, start: usize, end: usize, quiet: usize): usize {
  let p = start;
  while (p < end) {
    const c = <u32>load<u8>(p);
    if (c <= 0x20) {
      if (c != 0x20 && c != 0x0a && c != 0x0d && c != 0x09) return refuse(end);
      p++;
    } else if (STATE == STATE_COLON) {
      if (c != COLON) return refuse(end);
      STATE = STATE_VALUE;
      p++;
    } else if (STATE == STATE_AFTER) {
      if (DEPTH == 0) return refuse(end);
      const close = <u32>load<u8>(changetype<usize>(at) + SCAN_CONTAINERS + DEPTH);
      if (c == close) closeContainer(at);
      else if (c != COMMA || p > quiet) return refuse(end);
      else STATE = close == OBJECT_CLOSE ? STATE_KEY : STATE_VALUE;
      p++;
    } else if (STATE >= STATE_KEY) {
      if (c == QUOTE) return openKey(at, p + 1, end);
      if (c != OBJECT_CLOSE || STATE != STATE_KEY_OR_CLOSE) return refuse(end);
      closeContainer(at);
      p++;
    } else {
      if (c == QUOTE) return openString(at, p, end);
      if (c == OBJECT_OPEN || c == ARRAY_OPEN) openContainer(at, c);
      else if (c == ARRAY_CLOSE && STATE == STATE_VALUE_OR_CLOSE) closeContainer(at);
      else return openScalar(at, c, p, end);
      p++;
    }
  }
  return p;
}

/** Not JSON, or of no interest: leave the document alone. */
function refuse(end: usize): usize {
  STATE = STATE_IGNORED;
  return end;
}

function openContainer(at: ResponseScan, c: u32): void {
  if (DEPTH == CONTAINER_LEVELS) {
    STATE = STATE_IGNORED;
    return;
  }
  DEPTH++;
  // Both closing brackets stand two behind the opening ones
  store<u8>(changetype<usize>(at) + SCAN_CONTAINERS + DEPTH, c + 2);
  if (c == OBJECT_OPEN) {
    if (KEY != KEY_OTHER) memberOpen(at, KEY, DEPTH);
    STATE = STATE_KEY_OR_CLOSE;
  } else {
    STATE = STATE_VALUE_OR_CLOSE;
  }
  KEY = KEY_OTHER;
}

function closeContainer(at: ResponseScan): void {
  memberClose(at, DEPTH);
  DEPTH--;
  KEY = KEY_OTHER;
  STATE = STATE_AFTER;
}

/** Reads a key from `p` on; most of them end in the same piece and hold no escape. */
function openKey(at: ResponseScan, p: usize, end: usize): usize {
  const q = plainEnd(p, end);
  if (q < end && <u32>load<u8>(q) == QUOTE) {
    KEY = keyOf(p, q - p);
    STATE = STATE_COLON;
    return q + 1;
  }
  beginString(at, STRING_KEY);
  return p;
}

/** Begins a string value whose quote stands at `p`. */
function openString(at: ResponseScan, p: usize, end: usize): usize {
  const kind = KEY == KEY_OTHER ? STRING_PLAIN : memberString(at, KEY, DEPTH);
  if (kind == STRING_PLAIN) {
    const q = plainEnd(p + 1, end);
    if (q < end && <u32>load<u8>(q) == QUOTE) {
      STATE = STATE_AFTER;
      return q + 1;
    }
  } else if (kind == STRING_NAME) {
    nameOpen(at, p);
  } else if (kind == STRING_COUNT) {
    at.value = 0;
  }
  beginString(at, kind);
  return p + 1;
}

function beginString(at: ResponseScan, kind: u32): void {
  at.string = kind;
  at.taken = 0;
  at.surrogate = 0;
  STATE = STATE_STRING;
}

/** Address of the first quote, backslash or control character in [p, end), else `end`. */
function plainEnd(start: usize, end: usize): usize {
  const quotes = i8x16.splat(0x22);
  const backslashes = i8x16.splat(0x5c);
  const space = i8x16.splat(0x20);
  for (let p = start; p < end; p += 16) {
    const v = v128.load(p);
    const found = v128.or(v128.or(i8x16.eq(v, quotes), i8x16.eq(v, backslashes)), i8x16.lt_u(v, space));
    const bits = i8x16.bitmask(found);
    if (bits != 0) return min(p + <usize>ctz(bits), end);
  }
  return end;
}

/** Bytes of the open string. */
function readString(at: ResponseScan, p: usize, end: usize): usize {
  const kind = at.string;
  const q = plainEnd(p, end);
  if (kind != STRING_PLAIN && q > p) take(at, kind, p, q - p);
  if (q == end) return end;
  const c = <u32>load<u8>(q);
  if (c == QUOTE) closeString(at, kind, q + 1);
  else if (c == BACKSLASH) STATE = STATE_ESCAPE;
  else return refuse(end);
  return q + 1;
}

/** Takes `n` decoded bytes of the open string. */
function take(at: ResponseScan, kind: u32, p: usize, n: usize): void {
  if (at.surrogate != 0) dropString(at, kind);
  if (kind == STRING_NAME) {
    nameTake(at, p, n);
    return;
  }
  const taken = at.taken;
  if (kind == STRING_KEY || kind == STRING_TYPE) {
    if (taken + <u32>n <= KEY_BYTES_MAX) memory.copy(at.keyText + taken, p, n);
    at.taken = min(taken + <u32>n, KEY_BYTES_MAX + 1);
    return;
  }
  let value = at.value;
  for (let i: usize = 0; i < n; i++) value = withDigit(value, <u32>load<u8>(p + i) - 0x30);
  at.value = value;
  at.taken = 1;
}

/** Marks the open string as no known name, as it holds half a surrogate pair. */
function dropString(at: ResponseScan, kind: u32): void {
  at.surrogate = 0;
  if (kind == STRING_NAME) nameDrop(at);
  else if (kind == STRING_KEY || kind == STRING_TYPE) at.taken = KEY_BYTES_MAX + 1;
  else at.value = NOT_A_COUNT;
}

/** Ends the open string; `p` is the address behind its quote. */
function closeString(at: ResponseScan, kind: u32, p: usize): void {
  if (at.surrogate != 0) dropString(at, kind);
  STATE = kind == STRING_KEY ? STATE_COLON : STATE_AFTER;
  if (kind == STRING_KEY) KEY = keyOf(at.keyText, <usize>at.taken);
  else if (kind == STRING_NAME) nameClose(at, p);
  else if (kind == STRING_TYPE) at.completed = u32(isCompleted(at.keyText, <usize>at.taken));
  else if (kind == STRING_COUNT && at.taken != 0) usageCount(at, countField(KEY), at.value);
}

/** The byte behind a backslash. */
function readEscape(at: ResponseScan, p: usize): usize {
  let c = <u32>load<u8>(p);
  STATE = STATE_STRING;
  if (c == 0x75) {
    at.part = 4;
    at.unit = 0;
    STATE = STATE_HEX;
    return p + 1;
  }
  if (c == 0x62) c = 0x08;
  else if (c == 0x66) c = 0x0c;
  else if (c == 0x6e) c = 0x0a;
  else if (c == 0x72) c = 0x0d;
  else if (c == 0x74) c = 0x09;
  else if (c != QUOTE && c != BACKSLASH && c != 0x2f) STATE = STATE_IGNORED;
  takeCharacter(at, c);
  return p + 1;
}

/** One hex digit of a \u escape. */
function readHex(at: ResponseScan, p: usize): usize {
  const c = <u32>load<u8>(p);
  const letter = (c | 0x20) - 0x61;
  const digit = c - 0x30 <= 9 ? c - 0x30 : letter <= 5 ? letter + 10 : 16;
  if (digit == 16) {
    STATE = STATE_IGNORED;
    return p;
  }
  const unit = (at.unit << 4) | digit;
  const left = at.part - 1;
  at.unit = unit;
  at.part = left;
  if (left == 0) {
    STATE = STATE_STRING;
    takeUnit(at, unit);
  }
  return p + 1;
}

/** Takes one UTF-16 unit of the open string: half of a pair waits for the other half. */
function takeUnit(at: ResponseScan, unit: u32): void {
  const high = at.surrogate;
  if (unit >> 10 == 0x37 && high != 0) {
    at.surrogate = 0;
    takeCharacter(at, 0x10000 + ((high & 0x3ff) << 10) + (unit & 0x3ff));
  } else if (unit >> 11 == 0x1b) {
    if (high != 0 || unit >> 10 == 0x37) dropString(at, at.string);
    if (unit >> 10 == 0x36) at.surrogate = unit;
  } else {
    takeCharacter(at, unit);
  }
}

/** Takes one character of the open string, as UTF-8. */
function takeCharacter(at: ResponseScan, code: u32): void {
  const kind = at.string;
  if (kind == STRING_PLAIN) return;
  take(at, kind, at.scratch, writeCodePoint(at.scratch, code));
}

/** The first byte `c` at `p` of a number or literal; numbers are read again from their first digit. */
function openScalar(at: ResponseScan, c: u32, p: usize, end: usize): usize {
  const digit = c - 0x30 <= 9;
  if (digit || c == 0x2d) {
    at.part = PART_SIGN;
    at.value = digit ? 0 : NOT_A_COUNT;
    STATE = STATE_NUMBER;
    return digit ? p : p + 1;
  }
  if (c != 0x74 && c != 0x66 && c != 0x6e) return refuse(end);
  at.unit = c;
  at.part = 1;
  STATE = STATE_LITERAL;
  return p + 1;
}

function readLiteral(at: ResponseScan, start: usize, end: usize): usize {
  const first = at.unit;
  const word = first == 0x74 ? TRUE : first == 0x66 ? FALSE : NULL;
  const length: u32 = first == 0x66 ? 5 : 4;
  let matched = at.part;
  let p = start;
  while (p < end && matched < length) {
    if (<u64>load<u8>(p) != ((word >> ((<u64>matched) << 3)) & 0xff)) return refuse(end);
    matched++;
    p++;
  }
  at.part = matched;
  if (matched == length) STATE = STATE_AFTER;
  return p;
}

/** Reads a number. Its fraction is cut off; with a sign or an exponent it is no count. */
function readNumber(at: ResponseScan, start: usize, end: usize): usize {
  let part = at.part;
  let value = at.value;
  let p = start;
  for (; p < end; p++) {
    const c = <u32>load<u8>(p);
    const digit = c - 0x30;
    if (digit <= 9) {
      if (part == PART_ZERO) return refuse(end);
      if (part <= PART_WHOLE) value = withDigit(value, digit);
      part = partAfterDigit(part, digit);
    } else {
      const next = partAfter(part, c);
      if (next == part) break; // no byte of this number
      if (next == PART_E) value = NOT_A_COUNT;
      part = next;
    }
  }
  at.part = part;
  at.value = value;
  if (p == end) return end;
  if (part != PART_ZERO && part != PART_WHOLE && part != PART_FRACTION && part != PART_EXPONENT) return refuse(end);
  if (isCount(at, KEY, DEPTH)) usageCount(at, countField(KEY), value);
  STATE = STATE_AFTER;
  return p;
}
