// The natural logarithm without a table: the standard library's keeps one in static data, which a module on shared
// memory must not have. Owns no memory.

/**
 * ln(x) for finite x > 0, relative error below 1e-12: x = m · 2^e with m in [√½, √2), ln m = 2 artanh((m - 1)/(m + 1))
 * by its series.
 */
export function naturalLog(x: f64): f64 {
  const bits = reinterpret<u64>(x);
  let exponent = <i32>((bits >> 52) & 0x7ff) - 1023;
  let mantissa = reinterpret<f64>((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    exponent += 1;
  }
  const t = (mantissa - 1) / (mantissa + 1);
  const t2 = t * t;
  let sum: f64 = 0;
  for (let k = 17; k >= 1; k -= 2) sum = sum * t2 + 1 / <f64>k;
  return 2 * t * sum + <f64>exponent * 0.6931471805599453;
}
