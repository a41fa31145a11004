// Powers of four numbers at once, without tables. Owns no memory.

/** 2^x for x in [-126, 126], relative error below 3e-6; smaller x give 0. Series of e^(f ln 2) for the fraction f. */
export function exponential2(x: v128): v128 {
  const least = f32x4.splat(-126);
  const y = f32x4.pmin(f32x4.splat(126), f32x4.pmax(least, x));
  const whole = f32x4.nearest(y);
  const f = f32x4.mul(f32x4.sub(y, whole), f32x4.splat(0.6931471805599453));
  const one = f32x4.splat(1);
  let sum = f32x4.add(one, f32x4.mul(f, f32x4.splat(1.0 / 6)));
  sum = f32x4.add(one, f32x4.mul(f, f32x4.mul(sum, f32x4.splat(1.0 / 5))));
  sum = f32x4.add(one, f32x4.mul(f, f32x4.mul(sum, f32x4.splat(1.0 / 4))));
  sum = f32x4.add(one, f32x4.mul(f, f32x4.mul(sum, f32x4.splat(1.0 / 3))));
  sum = f32x4.add(one, f32x4.mul(f, f32x4.mul(sum, f32x4.splat(1.0 / 2))));
  sum = f32x4.add(one, f32x4.mul(f, sum));
  const scale = i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(whole), i32x4.splat(127)), 23);
  return v128.and(f32x4.mul(sum, scale), f32x4.ge(x, least));
}

/** log2 x of finite x > 0, absolute error below 1e-5: 2 artanh((m - 1)/(m + 1)) of the mantissa by its series. */
function logarithm2(x: v128): v128 {
  const exponent = i32x4.sub(i32x4.shr_u(x, 23), i32x4.splat(127));
  const mantissa = v128.or(v128.and(x, i32x4.splat(0x007fffff)), i32x4.splat(0x3f800000));
  const one = f32x4.splat(1);
  const t = f32x4.div(f32x4.sub(mantissa, one), f32x4.add(mantissa, one));
  const t2 = f32x4.mul(t, t);
  let sum = f32x4.add(f32x4.splat(1.0 / 7), f32x4.mul(t2, f32x4.splat(1.0 / 9)));
  sum = f32x4.add(f32x4.splat(1.0 / 5), f32x4.mul(t2, sum));
  sum = f32x4.add(f32x4.splat(1.0 / 3), f32x4.mul(t2, sum));
  sum = f32x4.add(one, f32x4.mul(t2, sum));
  const fraction = f32x4.mul(f32x4.mul(t, sum), f32x4.splat(2 / 0.6931471805599453));
  return f32x4.add(f32x4.convert_i32x4_s(exponent), fraction);
}

/** x^exponent for finite x > 0. */
export function power(x: v128, exponent: f32): v128 {
  return exponential2(f32x4.mul(logarithm2(x), f32x4.splat(exponent)));
}
