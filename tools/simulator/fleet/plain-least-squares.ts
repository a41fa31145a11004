/** Covariance of the beginning, in units of the prior squared: nearly no trust in it. */
const OPEN = 100;

/** A coefficient: where it begins, and where it must lie. */
export interface Bounded {
  readonly prior: number;
  readonly low: number;
  readonly high: number;
}

/**
 * Recursive least squares with exponential forgetting over relative errors, its coefficients cut to their bounds after
 * every step: the textbook estimator that the anchored one is compared with.
 */
export class PlainLeastSquares {
  readonly #terms: readonly Bounded[];
  readonly #floor: number;
  readonly #forget: number;
  readonly #theta: Float64Array;
  readonly #covariance: Float64Array[];

  /** @param floor predictions below this count as this when errors are weighed */
  constructor(terms: readonly Bounded[], floor: number, forget: number) {
    this.#terms = terms;
    this.#floor = floor;
    this.#forget = forget;
    this.#theta = Float64Array.from(terms, ({ prior }) => prior);
    this.#covariance = terms.map(({ prior }, i) => {
      const row = new Float64Array(terms.length);
      row[i] = OPEN * prior * prior;
      return row;
    });
  }

  get theta(): Readonly<Float64Array> {
    return this.#theta;
  }

  learn(x: readonly number[], y: number): void {
    const expected = this.#theta.reduce((sum, value, i) => sum + value * x[i]!, 0);
    const scale = 1 / Math.max(expected, this.#floor);
    const scaled = x.map((value) => value * scale);
    const spread = this.#covariance.map((row) => scaled.reduce((sum, value, j) => sum + row[j]! * value, 0));
    const variance = this.#forget + scaled.reduce((sum, value, i) => sum + value * spread[i]!, 0);
    const error = (y - expected) * scale;
    for (const [i, { low, high }] of this.#terms.entries()) {
      const moved = this.#theta[i]! + (spread[i]! / variance) * error;
      this.#theta[i] = Math.min(high, Math.max(low, moved));
      for (let j = 0; j < spread.length; j++) {
        this.#covariance[i]![j] = (this.#covariance[i]![j]! - (spread[i]! * spread[j]!) / variance) / this.#forget;
      }
    }
  }
}
