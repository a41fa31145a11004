/** One coefficient of a model: what it is taken to be, where it must lie, and how many observations that is worth. */
export interface RidgeTerm {
  readonly prior: number;
  readonly low: number;
  readonly high: number;
  /** Diagonal of the anchor Λ0: weight of the prior in units of 1/(term's unit)². */
  readonly anchor: number;
}

/** All that an estimator has learned, as plain data. */
export interface RidgeState {
  /** Rows of A, one after the other. */
  readonly matrix: readonly number[];
  readonly vector: readonly number[];
  readonly count: number;
}

/** Residuals beyond this many times the expected size lose weight (Huber 1964; 2.5 keeps 98 % efficiency). */
const HUBER = 2.5;
const SWEEPS = 2;

/**
 * Anchored forgetting ridge: least squares over relative errors that forgets, and that is pulled to its prior as much as it
 * forgets, so that a direction without observations returns there and the matrix never becomes singular:
 *   A ← λA + ω x xᵀ + (1 - λ)Λ0,  b ← λb + ω x y + (1 - λ)Λ0 θ⁰
 * The bounds are kept while the equations are solved (coordinate descent), not cut off afterwards.
 */
export class AnchoredRidge {
  readonly #terms: readonly RidgeTerm[];
  /** Predictions below this count as this, so that tiny ones do not get all the weight. */
  readonly #floor: number;
  readonly #matrix: Float64Array;
  readonly #vector: Float64Array;
  readonly #theta: Float64Array;
  #count = 0;

  constructor(terms: readonly RidgeTerm[], floor: number) {
    this.#terms = terms;
    this.#floor = floor;
    this.#matrix = new Float64Array(terms.length ** 2);
    this.#vector = new Float64Array(terms.length);
    this.#theta = new Float64Array(terms.length);
    this.reset();
  }

  /** Coefficients now; each within its bounds. The array belongs to the estimator. */
  get theta(): Readonly<Float64Array> {
    return this.#theta;
  }

  /** Observations since the last reset. */
  get count(): number {
    return this.#count;
  }

  predict(x: readonly number[]): number {
    let sum = 0;
    for (let i = 0; i < x.length; i++) sum += this.#theta[i]! * x[i]!;
    return sum;
  }

  /**
   * Take in one observation. Values that are not finite are ignored.
   * @param forget λ in (0, 1): weight that everything older keeps
   * @param weight below 1 for an observation that is known less well
   */
  learn(x: readonly number[], y: number, forget: number, weight = 1): void {
    if (!Number.isFinite(y) || !x.every(Number.isFinite)) return;
    const expected = this.predict(x);
    const scale = 1 / Math.max(expected, this.#floor);
    const residual = Math.abs(y - expected) * scale;
    const omega = weight * scale * scale * (residual > HUBER ? HUBER / residual : 1);
    const size = this.#terms.length;
    for (let i = 0; i < size; i++) {
      const { anchor, prior } = this.#terms[i]!;
      for (let j = 0; j < size; j++) {
        const at = i * size + j;
        this.#matrix[at] = forget * this.#matrix[at]! + omega * x[i]! * x[j]!;
      }
      this.#matrix[i * size + i]! += (1 - forget) * anchor;
      this.#vector[i] = forget * this.#vector[i]! + omega * x[i]! * y + (1 - forget) * anchor * prior;
    }
    this.#count++;
    this.#solve(SWEEPS);
  }

  /** Believe only `share` of what was learned, and the prior for the rest: something has changed. */
  soften(share: number): void {
    const size = this.#terms.length;
    for (let at = 0; at < size * size; at++) this.#matrix[at]! *= share;
    for (let i = 0; i < size; i++) {
      const { anchor, prior } = this.#terms[i]!;
      this.#matrix[i * size + i]! += (1 - share) * anchor;
      this.#vector[i] = share * this.#vector[i]! + (1 - share) * anchor * prior;
    }
    this.#solve(20);
  }

  /** Back to the prior. */
  reset(): void {
    const size = this.#terms.length;
    this.#matrix.fill(0);
    for (let i = 0; i < size; i++) {
      const { anchor, prior } = this.#terms[i]!;
      this.#matrix[i * size + i] = anchor;
      this.#vector[i] = anchor * prior;
      this.#theta[i] = prior;
    }
    this.#count = 0;
  }

  save(): RidgeState {
    return { matrix: [...this.#matrix], vector: [...this.#vector], count: this.#count };
  }

  /**
   * Go on from a saved state, of which `share` is still believed.
   * @returns false, and stays as it is, when the state does not fit
   */
  restore(state: RidgeState, share: number): boolean {
    const { matrix, vector, count } = state;
    const size = this.#terms.length;
    if (matrix.length !== size * size || vector.length !== size) return false;
    if (![...matrix, ...vector, count].every(Number.isFinite)) return false;
    if (this.#terms.some((_, i) => matrix[i * size + i]! <= 0)) return false;
    this.#matrix.set(matrix);
    this.#vector.set(vector);
    this.#count = count;
    this.soften(share);
    return true;
  }

  #solve(sweeps: number): void {
    const size = this.#terms.length;
    for (let sweep = 0; sweep < sweeps; sweep++) {
      for (let i = 0; i < size; i++) {
        let rest = this.#vector[i]!;
        for (let j = 0; j < size; j++) if (j !== i) rest -= this.#matrix[i * size + j]! * this.#theta[j]!;
        const { low, high } = this.#terms[i]!;
        this.#theta[i] = Math.min(high, Math.max(low, rest / this.#matrix[i * size + i]!));
      }
    }
  }
}
