// An incremental JSON reader: fed with any cut of one document, it follows the structure, checks the grammar, and hands
// token counts to usage.ts and model names to rename.ts. Everything else is passed over.
//
// Owns: the reader words of a response scan (layout.ts); its own thread only, no lock. The globals are registers of the
// scan being fed, loaded and stored by readJson.
import {
  isCompleted,
  KEY_CACHE_READ,
  KEY_CACHED,
  KEY_COMPLETION,
  KEY_DETAILS,
  KEY_FINISH,
  KEY_LONGEST,
  KEY_MESSAGE,
  KEY_META,
  KEY_MODEL,
  KEY_OTHER,
  KEY_RESPONSE,
  KEY_TYPE,
  KEY_USAGE,
  keyOf,
} from './keys';
import {
  CONTAINER_LEVELS,
  FORM_MESSAGES,
  FORM_RESPONSES,
  FORM_SGLANG,
  MODE_EVENTS,
  SCAN_COMPLETED,
  SCAN_CONTAINERS,
  SCAN_DEPTH,
  SCAN_DETAILS_DEPTH,
  SCAN_FINISHED,
  SCAN_FORM,
  SCAN_KEY,
  SCAN_KEY_BYTES,
  SCAN_MODE,
  SCAN_NAME_BYTES,
  SCAN_PART,
  SCAN_SCOPE,
  SCAN_SCRATCH,
  SCAN_STAGED,
  SCAN_STATE,
  SCAN_STRING,
  SCAN_SURROGATE,
  SCAN_TAKEN,
  SCAN_UNIT,
  SCAN_USAGE_DEPTH,
  SCAN_VALUE,
  SCOPE_MESSAGE,
  SCOPE_NONE,
  SCOPE_RESPONSE,
  STAGED_NONE,
} from './layout';
import { nameClose, nameDrop, nameOpen, nameTake } from './rename';
import { NOT_A_COUNT, usageClose, usageCommit, usageCount, usageOpen } from './usage';

// What the reader expects next. Up to STATE_AFTER: a byte of structure.
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

const STRING_PLAIN: u32 = 0;
const STRING_KEY: u32 = 1;
const STRING_NAME: u32 = 2; // a model name that may have to be changed
const STRING_COUNT: u32 = 3; // a token count written as a string
const STRING_TYPE: u32 = 4; // the document's type

// Parts of a number, by what was read last.
const PART_SIGN: u32 = 0; // nothing but perhaps "-"
const PART_ZERO: u32 = 1; // a leading zero: no digit may follow
const PART_WHOLE: u32 = 2;
const PART_POINT: u32 = 3;
const PART_FRACTION: u32 = 4;
const PART_E: u32 = 5;
const PART_E_SIGN: u32 = 6;
const PART_EXPONENT: u32 = 7;

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

/** A new document begins. */
export function jsonBegin(at: usize): void {
  store<u32>(at, STATE_VALUE, SCAN_STATE);
  store<u32>(at, 0, SCAN_DEPTH);
  store<u32>(at, KEY_OTHER, SCAN_KEY);
  store<u32>(at, 0, SCAN_USAGE_DEPTH);
  store<u32>(at, 0, SCAN_DETAILS_DEPTH);
  store<u32>(at, SCOPE_NONE, SCAN_SCOPE);
  store<u32>(at, STAGED_NONE, SCAN_STAGED);
  store<u32>(at, 0, SCAN_COMPLETED);
}

/** The document has ended: its usage counts if it was JSON, and nothing of it is held back any longer. */
export function jsonEnd(at: usize): void {
  nameDrop(at);
  if (jsonComplete(at)) usageCommit(at);
}

/** The document is whole: only white space may follow. */
export function jsonComplete(at: usize): bool {
  return load<u32>(at, SCAN_STATE) == STATE_AFTER && load<u32>(at, SCAN_DEPTH) == 0;
}

/** True when nothing more of this document needs to be read. */
export function jsonIgnored(at: usize): bool {
  return load<u32>(at, SCAN_STATE) == STATE_IGNORED;
}

/**
 * Read the bytes [start, end) of the document.
 * @param quiet address behind which no member of interest begins in this document, or `end` when that is not known.
 */
export function readJson(at: usize, start: usize, end: usize, quiet: usize): void {
  STATE = load<u32>(at, SCAN_STATE);
  DEPTH = load<u32>(at, SCAN_DEPTH);
  KEY = load<u32>(at, SCAN_KEY);
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
  store<u32>(at, STATE, SCAN_STATE);
  store<u32>(at, DEPTH, SCAN_DEPTH);
  store<u32>(at, KEY, SCAN_KEY);
}

/** Structure up to and including the first byte of the next string, number or literal. */
function readStructure(at: usize, start: usize, end: usize, quiet: usize): usize {
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
      const close = <u32>load<u8>(at + SCAN_CONTAINERS + DEPTH);
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

function openContainer(at: usize, c: u32): void {
  if (DEPTH == CONTAINER_LEVELS) {
    STATE = STATE_IGNORED;
    return;
  }
  DEPTH++;
  store<u8>(at + SCAN_CONTAINERS + DEPTH, c + 2); // both closing brackets stand two behind the opening ones
  if (c == OBJECT_OPEN) {
    if (KEY != KEY_OTHER) openMember(at);
    STATE = STATE_KEY_OR_CLOSE;
  } else {
    STATE = STATE_VALUE_OR_CLOSE;
  }
  KEY = KEY_OTHER;
}

/** The object of a member of interest opens. */
function openMember(at: usize): void {
  const usage = load<u32>(at, SCAN_USAGE_DEPTH);
  if (usage != 0) {
    if (DEPTH != usage + 1) return;
    if (KEY == KEY_DETAILS) store<u32>(at, DEPTH, SCAN_DETAILS_DEPTH);
    else if (KEY == KEY_FINISH) store<u32>(at, 1, SCAN_FINISHED);
  } else if (KEY == KEY_USAGE) {
    if (tellsUsage(at)) usageOpen(at, DEPTH);
  } else if (DEPTH == 2) {
    if (KEY == KEY_RESPONSE) store<u32>(at, SCOPE_RESPONSE, SCAN_SCOPE);
    else if (KEY == KEY_MESSAGE) store<u32>(at, SCOPE_MESSAGE, SCAN_SCOPE);
    else if (KEY == KEY_META && load<u32>(at, SCAN_FORM) == FORM_SGLANG) usageOpen(at, DEPTH);
  }
}

/** A usage object that opens here is the answer's. */
function tellsUsage(at: usize): bool {
  const form = load<u32>(at, SCAN_FORM);
  if (form == FORM_SGLANG) return false;
  if (DEPTH == 2) return form != FORM_RESPONSES || load<u32>(at, SCAN_MODE) != MODE_EVENTS;
  const scope = load<u32>(at, SCAN_SCOPE);
  return DEPTH == 3 && (scope == SCOPE_RESPONSE || (scope == SCOPE_MESSAGE && form == FORM_MESSAGES));
}

function closeContainer(at: usize): void {
  if (DEPTH == load<u32>(at, SCAN_USAGE_DEPTH)) usageClose(at);
  if (DEPTH == load<u32>(at, SCAN_DETAILS_DEPTH)) store<u32>(at, 0, SCAN_DETAILS_DEPTH);
  if (DEPTH == 2) store<u32>(at, SCOPE_NONE, SCAN_SCOPE);
  DEPTH--;
  KEY = KEY_OTHER;
  STATE = STATE_AFTER;
}

/** A key begins at `p`; most of them end in the same piece and hold no escape. */
function openKey(at: usize, p: usize, end: usize): usize {
  const q = plainEnd(p, end);
  if (q < end && <u32>load<u8>(q) == QUOTE) {
    KEY = keyOf(p, q - p);
    STATE = STATE_COLON;
    return q + 1;
  }
  beginString(at, STRING_KEY);
  return p;
}

/** A string value's quote stands at `p`. */
function openString(at: usize, p: usize, end: usize): usize {
  const kind = KEY == KEY_OTHER ? STRING_PLAIN : kindOfString(at);
  if (kind == STRING_PLAIN) {
    const q = plainEnd(p + 1, end);
    if (q < end && <u32>load<u8>(q) == QUOTE) {
      STATE = STATE_AFTER;
      return q + 1;
    }
  } else if (kind == STRING_NAME) {
    nameOpen(at, p);
  } else if (kind == STRING_COUNT) {
    store<u64>(at, 0, SCAN_VALUE);
  }
  beginString(at, kind);
  return p + 1;
}

function beginString(at: usize, kind: u32): void {
  store<u32>(at, kind, SCAN_STRING);
  store<u32>(at, 0, SCAN_TAKEN);
  store<u32>(at, 0, SCAN_SURROGATE);
  STATE = STATE_STRING;
}

function kindOfString(at: usize): u32 {
  if (KEY == KEY_MODEL) {
    const place = DEPTH == 1 || (DEPTH == 2 && load<u32>(at, SCAN_SCOPE) != SCOPE_NONE);
    return place && load<u32>(at, SCAN_NAME_BYTES) != 0 ? STRING_NAME : STRING_PLAIN;
  }
  if (KEY == KEY_TYPE) return DEPTH == 1 ? STRING_TYPE : STRING_PLAIN;
  if (KEY == KEY_FINISH && DEPTH == load<u32>(at, SCAN_USAGE_DEPTH)) store<u32>(at, 1, SCAN_FINISHED);
  return isCount(at) ? STRING_COUNT : STRING_PLAIN;
}

/** The member at hand is one of the token counts, in its place. */
function isCount(at: usize): bool {
  if (KEY == KEY_OTHER || KEY > KEY_CACHE_READ) return false;
  const usage = load<u32>(at, SCAN_USAGE_DEPTH);
  const form = load<u32>(at, SCAN_FORM);
  if (KEY == KEY_CACHE_READ) return form == FORM_MESSAGES && DEPTH == usage;
  if (KEY == KEY_CACHED) return DEPTH == (form == FORM_SGLANG ? usage : load<u32>(at, SCAN_DETAILS_DEPTH));
  // The message that starts an Anthropic stream tells an output that is only just beginning.
  if (KEY == KEY_COMPLETION && load<u32>(at, SCAN_SCOPE) == SCOPE_MESSAGE) return false;
  return DEPTH == usage;
}

/** Number of the count at hand in usage.ts. */
function countField(): u32 {
  return KEY == KEY_CACHE_READ ? KEY_CACHED - 1 : KEY - 1;
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
function readString(at: usize, p: usize, end: usize): usize {
  const kind = load<u32>(at, SCAN_STRING);
  const q = plainEnd(p, end);
  if (kind != STRING_PLAIN && q > p) take(at, kind, p, q - p);
  if (q == end) return end;
  const c = <u32>load<u8>(q);
  if (c == QUOTE) closeString(at, kind, q + 1);
  else if (c == BACKSLASH) STATE = STATE_ESCAPE;
  else return refuse(end);
  return q + 1;
}

/** `n` decoded bytes of the open string. */
function take(at: usize, kind: u32, p: usize, n: usize): void {
  if (load<u32>(at, SCAN_SURROGATE) != 0) spoil(at, kind);
  if (kind == STRING_NAME) {
    nameTake(at, p, n);
    return;
  }
  const taken = load<u32>(at, SCAN_TAKEN);
  if (kind == STRING_KEY || kind == STRING_TYPE) {
    if (taken + <u32>n <= KEY_LONGEST) memory.copy(at + SCAN_KEY_BYTES + taken, p, n);
    store<u32>(at, min(taken + <u32>n, KEY_LONGEST + 1), SCAN_TAKEN);
    return;
  }
  let value = load<u64>(at, SCAN_VALUE);
  for (let i: usize = 0; i < n; i++) value = withDigit(value, <u32>load<u8>(p + i) - 0x30);
  store<u64>(at, value, SCAN_VALUE);
  store<u32>(at, 1, SCAN_TAKEN);
}

/** The open string holds half a surrogate pair: it is no name that anybody looks for. */
function spoil(at: usize, kind: u32): void {
  store<u32>(at, 0, SCAN_SURROGATE);
  if (kind == STRING_NAME) nameDrop(at);
  else if (kind == STRING_KEY || kind == STRING_TYPE) store<u32>(at, KEY_LONGEST + 1, SCAN_TAKEN);
  else store<u64>(at, NOT_A_COUNT, SCAN_VALUE);
}

/** The open string closes; `p` is the address behind its quote. */
function closeString(at: usize, kind: u32, p: usize): void {
  if (load<u32>(at, SCAN_SURROGATE) != 0) spoil(at, kind);
  STATE = kind == STRING_KEY ? STATE_COLON : STATE_AFTER;
  if (kind == STRING_KEY) KEY = keyOf(at + SCAN_KEY_BYTES, <usize>load<u32>(at, SCAN_TAKEN));
  else if (kind == STRING_NAME) nameClose(at, p);
  else if (kind == STRING_TYPE)
    store<u32>(at, isCompleted(at + SCAN_KEY_BYTES, <usize>load<u32>(at, SCAN_TAKEN)), SCAN_COMPLETED);
  else if (kind == STRING_COUNT && load<u32>(at, SCAN_TAKEN) != 0)
    usageCount(at, countField(), load<u64>(at, SCAN_VALUE));
}

/** The byte behind a backslash. */
function readEscape(at: usize, p: usize): usize {
  let c = <u32>load<u8>(p);
  STATE = STATE_STRING;
  if (c == 0x75) {
    store<u32>(at, 4, SCAN_PART);
    store<u32>(at, 0, SCAN_UNIT);
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
function readHex(at: usize, p: usize): usize {
  const c = <u32>load<u8>(p);
  const letter = (c | 0x20) - 0x61;
  const digit = c - 0x30 <= 9 ? c - 0x30 : letter <= 5 ? letter + 10 : 16;
  if (digit == 16) {
    STATE = STATE_IGNORED;
    return p;
  }
  const unit = (load<u32>(at, SCAN_UNIT) << 4) | digit;
  const left = load<u32>(at, SCAN_PART) - 1;
  store<u32>(at, unit, SCAN_UNIT);
  store<u32>(at, left, SCAN_PART);
  if (left == 0) {
    STATE = STATE_STRING;
    takeUnit(at, unit);
  }
  return p + 1;
}

/** One UTF-16 unit of the open string: half of a pair waits for the other half. */
function takeUnit(at: usize, unit: u32): void {
  const high = load<u32>(at, SCAN_SURROGATE);
  if (unit >> 10 == 0x37 && high != 0) {
    store<u32>(at, 0, SCAN_SURROGATE);
    takeCharacter(at, 0x10000 + ((high & 0x3ff) << 10) + (unit & 0x3ff));
  } else if (unit >> 11 == 0x1b) {
    if (high != 0 || unit >> 10 == 0x37) spoil(at, load<u32>(at, SCAN_STRING));
    if (unit >> 10 == 0x36) store<u32>(at, unit, SCAN_SURROGATE);
  } else {
    takeCharacter(at, unit);
  }
}

/** One character of the open string, as UTF-8. */
function takeCharacter(at: usize, code: u32): void {
  const kind = load<u32>(at, SCAN_STRING);
  if (kind == STRING_PLAIN) return;
  const to = at + SCAN_SCRATCH;
  let n: usize = 1;
  if (code < 0x80) {
    store<u8>(to, code);
  } else if (code < 0x800) {
    n = 2;
    store<u8>(to, 0xc0 | (code >> 6));
  } else if (code < 0x10000) {
    n = 3;
    store<u8>(to, 0xe0 | (code >> 12));
    store<u8>(to, 0x80 | ((code >> 6) & 0x3f), 1);
  } else {
    n = 4;
    store<u8>(to, 0xf0 | (code >> 18));
    store<u8>(to, 0x80 | ((code >> 12) & 0x3f), 1);
    store<u8>(to, 0x80 | ((code >> 6) & 0x3f), 2);
  }
  if (n > 1) store<u8>(to + n - 1, 0x80 | (code & 0x3f));
  take(at, kind, to, n);
}

/** The first byte `c` at `p` of a number or literal; numbers are read again from their first digit. */
function openScalar(at: usize, c: u32, p: usize, end: usize): usize {
  const digit = c - 0x30 <= 9;
  if (digit || c == 0x2d) {
    store<u32>(at, PART_SIGN, SCAN_PART);
    store<u64>(at, digit ? 0 : NOT_A_COUNT, SCAN_VALUE);
    STATE = STATE_NUMBER;
    return digit ? p : p + 1;
  }
  if (c != 0x74 && c != 0x66 && c != 0x6e) return refuse(end);
  store<u32>(at, c, SCAN_UNIT);
  store<u32>(at, 1, SCAN_PART);
  STATE = STATE_LITERAL;
  return p + 1;
}

function readLiteral(at: usize, start: usize, end: usize): usize {
  const first = load<u32>(at, SCAN_UNIT);
  const word = first == 0x74 ? TRUE : first == 0x66 ? FALSE : NULL;
  const length: u32 = first == 0x66 ? 5 : 4;
  let matched = load<u32>(at, SCAN_PART);
  let p = start;
  while (p < end && matched < length) {
    if (<u64>load<u8>(p) != ((word >> ((<u64>matched) << 3)) & 0xff)) return refuse(end);
    matched++;
    p++;
  }
  store<u32>(at, matched, SCAN_PART);
  if (matched == length) STATE = STATE_AFTER;
  return p;
}

/** A further decimal digit; what is no digit, or makes the number too large, is NOT_A_COUNT for good. */
function withDigit(value: u64, digit: u32): u64 {
  return digit > 9 ? NOT_A_COUNT : min(value * 10 + digit, NOT_A_COUNT);
}

/** A number's bytes. Its fraction is cut off; with a sign or an exponent it is no count. */
function readNumber(at: usize, start: usize, end: usize): usize {
  let part = load<u32>(at, SCAN_PART);
  let value = load<u64>(at, SCAN_VALUE);
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
  store<u32>(at, part, SCAN_PART);
  store<u64>(at, value, SCAN_VALUE);
  if (p == end) return end;
  if (part != PART_ZERO && part != PART_WHOLE && part != PART_FRACTION && part != PART_EXPONENT) return refuse(end);
  if (isCount(at)) usageCount(at, countField(), value);
  STATE = STATE_AFTER;
  return p;
}

function partAfterDigit(part: u32, digit: u32): u32 {
  if (part == PART_SIGN && digit == 0) return PART_ZERO;
  if (part <= PART_WHOLE) return PART_WHOLE;
  return part <= PART_FRACTION ? PART_FRACTION : PART_EXPONENT;
}

/** The part that the point, "e" or sign `c` opens, or `part` itself when it cannot stand here. */
function partAfter(part: u32, c: u32): u32 {
  const whole = part == PART_ZERO || part == PART_WHOLE;
  if (c == 0x2e && whole) return PART_POINT;
  if ((c | 0x20) == 0x65 && (whole || part == PART_FRACTION)) return PART_E;
  if ((c == 0x2b || c == 0x2d) && part == PART_E) return PART_E_SIGN;
  return part;
}
