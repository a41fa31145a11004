// A decimal number from text to f64.
//
// Owns: nothing; reads the bytes it is given. The global holds the last result.
//
// Up to 2^53 × 10^±22 one exact multiplication or division rounds correctly (Clinger, "How to read floating point
// numbers accurately", 1990). Beyond that, 19 digits are scaled in 128 bits, one power of ten at a time: an error below
// 2^-115, so that the result is the nearest number or, next to a tie, its neighbour.

export const NUMBER_BAD: u32 = 0; // not a number
export const NUMBER_FINITE: u32 = 1;
export const NUMBER_NOT_FINITE: u32 = 2; // NaN, infinite, or too large for f64

export let NUMBER: f64 = 0; // the last finite result

let MANTISSA: u64 = 0;
let SCALE: i32 = 0; // decimal exponent of the mantissa

const EXACT_MANTISSA: u64 = 1 << 53;
const ROOM: u64 = 999999999999999999; // one more digit fits into u64
const EXPONENT_BOUND: i32 = 99999; // beyond every f64; further digits change nothing

/**
 * Reads the whole of [start, end) as a number; the result stands in NUMBER.
 * @returns NUMBER_*.
 */
export function parseNumber(start: usize, end: usize): u32 {
  let p = start;
  let negative = false;
  if (p < end && (load<u8>(p) == 0x2d || load<u8>(p) == 0x2b)) {
    negative = load<u8>(p) == 0x2d;
    p++;
  }
  if (p >= end) return NUMBER_BAD;
  if (load<u8>(p) > 0x39) return isNotFinite(p, end) ? NUMBER_NOT_FINITE : NUMBER_BAD;
  p = readMantissa(p, end);
  if (p == 0) return NUMBER_BAD;
  if (p < end) {
    if ((load<u8>(p) | 0x20) != 0x65 || !readExponent(p + 1, end)) return NUMBER_BAD;
  }
  const magnitude = scaled();
  if (magnitude == Infinity) return NUMBER_NOT_FINITE;
  NUMBER = negative ? -magnitude : magnitude;
  return NUMBER_FINITE;
}

/** Whether the text is "NaN", "Inf" or "Infinity", in any case. */
function isNotFinite(p: usize, end: usize): bool {
  const n = end - p;
  if (n != 3 && n != 8) return false;
  const word = load<u32>(p) & 0xffffff & 0xdfdfdf;
  if (n == 3) return word == 0x4e414e || word == 0x464e49; // NAN, INF
  return (load<u64>(p) & 0xdfdfdfdfdfdfdfdf) == 0x5954494e49464e49; // INFINITY
}

/** Digits and point into MANTISSA and SCALE; address behind them, 0 when there is no digit. */
function readMantissa(start: usize, end: usize): usize {
  MANTISSA = 0;
  SCALE = 0;
  let digits: u32 = 0;
  let fraction = false;
  let p = start;
  for (; p < end; p++) {
    const digit = <u32>load<u8>(p) - 0x30;
    if (digit <= 9) {
      digits++;
      if (MANTISSA <= ROOM) {
        MANTISSA = MANTISSA * 10 + digit;
        if (fraction) SCALE--;
      } else if (!fraction) {
        SCALE++;
      }
    } else if (digit == <u32>-2 && !fraction) {
      fraction = true; // "." is two below "0"
    } else {
      break;
    }
  }
  return digits == 0 ? 0 : p;
}

/** Reads the exponent's digits, all of [start, end), and adds them to SCALE. */
function readExponent(start: usize, end: usize): bool {
  let p = start;
  let negative = false;
  if (p < end && (load<u8>(p) == 0x2d || load<u8>(p) == 0x2b)) {
    negative = load<u8>(p) == 0x2d;
    p++;
  }
  if (p >= end) return false;
  let exponent: i32 = 0;
  for (; p < end; p++) {
    const digit = <u32>load<u8>(p) - 0x30;
    if (digit > 9) return false;
    exponent = min(exponent * 10 + <i32>digit, EXPONENT_BOUND);
  }
  SCALE += negative ? -exponent : exponent;
  return true;
}

/** MANTISSA × 10^SCALE. */
function scaled(): f64 {
  if (MANTISSA == 0 || SCALE < -345) return 0;
  if (SCALE > 310) return Infinity;
  if (MANTISSA <= EXACT_MANTISSA && SCALE >= -22 && SCALE <= 22) {
    let power: f64 = 1;
    for (let i = abs(SCALE); i > 0; i--) power *= 10;
    return SCALE < 0 ? <f64>MANTISSA / power : <f64>MANTISSA * power;
  }
  return scaledWide();
}

/** The same in 128 bits: (high × 2^64 + low) × 2^binary, the top bit always set. */
function scaledWide(): f64 {
  const shift = clz(MANTISSA);
  let high = MANTISSA << shift;
  let low: u64 = 0;
  let binary: i32 = -64 - <i32>shift;
  for (let i = SCALE; i > 0; i--) {
    // × 5 after making room for its three bits, × 2 in the exponent.
    low = (low >> 3) | (high << 61);
    high >>= 3;
    const fourLow = low << 2;
    const fiveLow = fourLow + low;
    high = ((high << 2) | (low >> 62)) + high + (fiveLow < fourLow ? 1 : 0);
    low = fiveLow;
    const up = clz(high);
    if (up != 0) high = (high << up) | (low >> (64 - up));
    low <<= up;
    binary += 4 - <i32>up;
  }
  for (let i = SCALE; i < 0; i++) {
    const upper = ((high % 5) << 32) | (low >> 32);
    const lower = ((upper % 5) << 32) | (low & 0xffffffff);
    high /= 5;
    low = ((upper / 5) << 32) | (lower / 5);
    const up = clz(high); // 2 or 3
    high = (high << up) | (low >> (64 - up));
    low <<= up;
    binary -= 1 + <i32>up;
  }
  const rounded = <f64>(high | (low != 0 ? 1 : 0));
  const exponent = binary + 64;
  const first = max(-1000, min(exponent, 900));
  return rounded * powerOfTwo(first) * powerOfTwo(exponent - first);
}

function powerOfTwo(exponent: i32): f64 {
  return reinterpret<f64>((<u64>(exponent + 1023)) << 52);
}
