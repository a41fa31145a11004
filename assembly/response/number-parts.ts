// Parts of a JSON number: which may follow which, and the count that its digits make.
//
// Owns nothing.
import { NOT_A_COUNT } from './usage';

// Parts of a number, by what was read last.
export const PART_SIGN: u32 = 0; // nothing but perhaps "-"
export const PART_ZERO: u32 = 1; // a leading zero: no digit may follow
export const PART_WHOLE: u32 = 2;
export const PART_POINT: u32 = 3;
export const PART_FRACTION: u32 = 4;
export const PART_E: u32 = 5;
export const PART_E_SIGN: u32 = 6;
export const PART_EXPONENT: u32 = 7;

/** A further decimal digit; what is no digit, or makes the number too large, is NOT_A_COUNT for good. */
export function withDigit(value: u64, digit: u32): u64 {
  return digit > 9 ? NOT_A_COUNT : min(value * 10 + digit, NOT_A_COUNT);
}

export function partAfterDigit(part: u32, digit: u32): u32 {
  if (part == PART_SIGN && digit == 0) return PART_ZERO;
  if (part <= PART_WHOLE) return PART_WHOLE;
  return part <= PART_FRACTION ? PART_FRACTION : PART_EXPONENT;
}

/** The part that the point, "e" or sign `c` opens, or `part` itself when it cannot stand here. */
export function partAfter(part: u32, c: u32): u32 {
  const whole = part == PART_ZERO || part == PART_WHOLE;
  if (c == 0x2e && whole) return PART_POINT;
  if ((c | 0x20) == 0x65 && (whole || part == PART_FRACTION)) return PART_E;
  if ((c == 0x2b || c == 0x2d) && part == PART_E) return PART_E_SIGN;
  return part;
}
