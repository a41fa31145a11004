/**
 * Two-sided p-value of Student's paired t-test: the chance of a mean this far from 0 when the differences are normal
 * around 0. One difference tells nothing (1); equal differences other than 0 cannot be chance (0).
 */
export function pairedP(differences: readonly number[]): number {
  const count = differences.length;
  if (count < 2) return 1;
  const mean = differences.reduce((sum, value) => sum + value, 0) / count;
  const variance = differences.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1);
  if (variance === 0) return mean === 0 ? 1 : 0;
  const squared = (mean * mean * count) / variance;
  const freedom = count - 1;
  return incompleteBeta(freedom / (freedom + squared), freedom / 2, 0.5);
}

/** Holm (1979): p-values such that comparing each with a level errs anywhere in the family with at most that chance. */
export function holm(values: readonly number[]): number[] {
  const order = [...values.keys()].sort((a, b) => values[a]! - values[b]!);
  const corrected = new Array<number>(values.length);
  let before = 0;
  for (const [rank, index] of order.entries()) {
    before = Math.max(before, Math.min(1, (values.length - rank) * values[index]!));
    corrected[index] = before;
  }
  return corrected;
}

/**
 * Kendall's rank correlation τ-b of two rows of values: 1 = the same order, -1 = the reverse. NaN when all values of a
 * row are equal.
 */
export function kendall(a: readonly number[], b: readonly number[]): number {
  let agreement = 0;
  let pairsOfA = 0;
  let pairsOfB = 0;
  for (let i = 0; i < a.length; i++) {
    for (let j = 0; j < i; j++) {
      const [signA, signB] = [Math.sign(a[i]! - a[j]!), Math.sign(b[i]! - b[j]!)];
      agreement += signA * signB;
      pairsOfA += signA * signA;
      pairsOfB += signB * signB;
    }
  }
  return agreement / Math.sqrt(pairsOfA * pairsOfB);
}

/**
 * Regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8, method of Lentz 1976).
 */
function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  // The fraction converges fast below the mean; above it the symmetric one does.
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(1 - x)) / a;
  return front * betaFraction(x, a, b);
}

const TINY = 1e-30;
const PRECISION = 1e-12;
const TERMS_MAX = 300;

function betaFraction(x: number, a: number, b: number): number {
  let c = 1;
  let d = 1 / nonZero(1 - ((a + b) * x) / (a + 1));
  let product = d;
  for (let m = 1; m <= TERMS_MAX; m++) {
    for (const term of [
      (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)),
      (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1)),
    ]) {
      d = 1 / nonZero(1 + term * d);
      c = nonZero(1 + term / c);
      product *= c * d;
    }
    if (Math.abs(c * d - 1) < PRECISION) return product;
  }
  return product;
}

function nonZero(value: number): number {
  return Math.abs(value) < TINY ? TINY : value;
}

/** Logarithm of the gamma function for x ≥ 0.5 (Stirling's series from 10 on, the recurrence below it). */
function logGamma(x: number): number {
  let shift = 0;
  let y = x;
  for (; y < 10; y++) shift += Math.log(y);
  const inverse = 1 / (y * y);
  const series = (1 / 12 - inverse * (1 / 360 - inverse / 1260)) / y;
  return (y - 0.5) * Math.log(y) - y + 0.5 * Math.log(2 * Math.PI) + series - shift;
}
