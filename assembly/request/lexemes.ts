// The bytes of JSON (RFC 8259): what they are called and where the interesting ones are.
//
// Owns: nothing in shared memory; reads only the addresses it is given.

export const QUOTE: u32 = 0x22;
export const PLUS: u32 = 0x2b;
export const COMMA: u32 = 0x2c;
export const MINUS: u32 = 0x2d;
export const DOT: u32 = 0x2e;
export const SLASH: u32 = 0x2f;
export const ZERO: u32 = 0x30;
export const COLON: u32 = 0x3a;
export const OPEN_ARRAY: u32 = 0x5b;
export const BACKSLASH: u32 = 0x5c;
export const CLOSE_ARRAY: u32 = 0x5d;
export const LETTER_B: u32 = 0x62;
export const LETTER_F: u32 = 0x66;
export const LETTER_N: u32 = 0x6e;
export const LETTER_R: u32 = 0x72;
export const LETTER_T: u32 = 0x74;
export const LETTER_U: u32 = 0x75;
export const OPEN_OBJECT: u32 = 0x7b;
export const CLOSE_OBJECT: u32 = 0x7d;

// V8 (Node 24) loads a vector constant anew in every turn of a loop, which costs as much as comparing with it. What is
// splat from a variable before the loop stays in a register, so these three are variables to the compiler.
let two: u32 = 0;
let space: u32 = 0;
let backslash: u32 = 0;

/** Called once before the first string; costs nothing. */
export function lexemesStart(): void {
  two = 2;
  space = 0x20;
  backslash = BACKSLASH;
}

/**
 * Bits of the bytes at which the plain part of a string stops: quote, backslash, control byte. Flipping bit 1 brings
 * the quote (0x22) to 0x20 and leaves control bytes below it, so that one comparison finds both. V8 compiles "at most"
 * for bytes to two instructions, and "less than" to four.
 */
function stopBits(bytes: v128, twos: v128, limits: v128, backslashes: v128): i32 {
  return i8x16.bitmask(v128.or(i8x16.le_u(v128.xor(bytes, twos), limits), i8x16.eq(bytes, backslashes)));
}

/** Of the 16 bytes at `at`, bits of those at which the plain part of a string stops. */
export function stringStop(at: usize): i32 {
  return stopBits(v128.load(at), i8x16.splat(2), i8x16.splat(0x20), i8x16.splat(0x5c));
}

/** Address of the first byte from `at` at which the plain part of a string stops, or `end`. */
export function stringEnd(at: usize, end: usize): usize {
  const twos = i8x16.splat(<u8>two);
  const limits = i8x16.splat(<u8>space);
  const backslashes = i8x16.splat(<u8>backslash);
  while (at < end) {
    const stop = stopBits(v128.load(at), twos, limits, backslashes);
    if (stop != 0) {
      at += <usize>ctz<i32>(stop);
      break;
    }
    at += 16;
  }
  return at < end ? at : end;
}

/** The same, copying what is before that address to `to`; writes up to 15 bytes more than that. */
export function copyString(at: usize, end: usize, to: usize): usize {
  const twos = i8x16.splat(<u8>two);
  const limits = i8x16.splat(<u8>space);
  const backslashes = i8x16.splat(<u8>backslash);
  while (at < end) {
    const bytes = v128.load(at);
    v128.store(to, bytes);
    const stop = stopBits(bytes, twos, limits, backslashes);
    if (stop != 0) {
      at += <usize>ctz<i32>(stop);
      break;
    }
    to += 16;
    at += 16;
  }
  return at < end ? at : end;
}

/**
 * Address behind the plain bytes of a string from `at` on, by whole groups of 64: behind it lies a group in which the
 * plain part stops, or fewer bytes than a group.
 */
export function plainGroupsEnd(at: usize, end: usize): usize {
  const twos = i8x16.splat(<u8>two);
  const limits = i8x16.splat(<u8>space);
  const backslashes = i8x16.splat(<u8>backslash);
  for (; at + 64 <= end; at += 64) {
    const a = v128.load(at);
    const b = v128.load(at, 16);
    const c = v128.load(at, 32);
    const d = v128.load(at, 48);
    const low = i8x16.min_u(v128.xor(a, twos), v128.xor(b, twos));
    const high = i8x16.min_u(v128.xor(c, twos), v128.xor(d, twos));
    const escapes = v128.or(
      v128.or(i8x16.eq(a, backslashes), i8x16.eq(b, backslashes)),
      v128.or(i8x16.eq(c, backslashes), i8x16.eq(d, backslashes)),
    );
    if (v128.any_true(v128.or(i8x16.le_u(i8x16.min_u(low, high), limits), escapes))) break;
  }
  return at;
}

/** Address of the first byte from `at` that is no white space, or `end`. */
export function skipSpace(at: usize, end: usize): usize {
  while (at < end) {
    const byte = load<u8>(at);
    if (byte > 0x20 || (byte != 0x20 && byte != 0x0a && byte != 0x0d && byte != 0x09)) break;
    at++;
  }
  return at;
}

/** Whether the byte is a decimal digit. */
export function isDigit(byte: u32): bool {
  return byte - ZERO < 10;
}

/** Value of a hex digit, or 16 and more. */
export function hexValue(byte: u32): u32 {
  if (byte - ZERO < 10) return byte - ZERO;
  const letter = (byte | 0x20) - 0x61;
  return letter < 6 ? letter + 10 : 16;
}

/** Value of the escape of two bytes that ends in `byte` (RFC 8259 section 7), or 0 when there is none. */
export function escapeValue(byte: u32): u32 {
  if (byte == LETTER_N) return 0x0a;
  if (byte == QUOTE || byte == BACKSLASH || byte == SLASH) return byte;
  if (byte == LETTER_T) return 0x09;
  if (byte == LETTER_R) return 0x0d;
  if (byte == LETTER_B) return 0x08;
  return byte == LETTER_F ? 0x0c : 0;
}
