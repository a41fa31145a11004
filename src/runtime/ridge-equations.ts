/** Range of a coefficient. */
export interface CoefficientBounds {
  readonly low: number;
  readonly high: number;
}

/** Relative errors above this lose weight (Huber 1964; 2.5 keeps 98 % efficiency). */
const HUBER = 2.5;
/** Least information along an observation that can fade: with less the quotients below have no digits. */
const NORM_MIN = 1e-100;
/** Rounds of coordinate descent per observation. Few are enough, because the start is the last solution. */
export const SWEEPS = 2;

/**
 * Weight of an observation in a regression on relative errors, robust against outliers.
 * @param error of the prediction, in units of y
 * @param predicted scale of the relative error, above 0
 * @param weight below 1 for a less certain observation
 */
export function relativeWeight(error: number, predicted: number, weight = 1): number {
  const scale = 1 / predicted;
  const relative = Math.abs(error) * scale;
  return weight * scale * scale * (relative > HUBER ? HUBER / relative : 1);
}

/**
 * Normal equations of an anchored forgetting ridge: least squares with decaying weights, pulled to anchors as fast as
 * it decays. A direction without observations returns to its anchor, so the matrix never becomes singular. The bounds
 * are kept while the equations are solved (coordinate descent), not cut off afterwards.
 *
 *   A ← keep A + weight x xᵀ + diag(share pull)      b ← keep b + weight x y + share pull · anchor
 *   theta_i ← clip((b_i - Σ_{j≠i} A_ij theta_j) / A_ii, low_i, high_i)
 */
export class RidgeEquations {
  readonly size: number;
  readonly matrix: Float64Array;
  readonly vector: Float64Array;
  readonly theta: Float64Array;
  readonly #bounds: readonly CoefficientBounds[];
  /** Scratch: the product of the matrix with an observation. */
  readonly #along: Float64Array;

  constructor(bounds: readonly CoefficientBounds[]) {
    this.size = bounds.length;
    this.matrix = new Float64Array(bounds.length ** 2);
    this.vector = new Float64Array(bounds.length);
    this.theta = new Float64Array(bounds.length);
    this.#bounds = bounds;
    this.#along = new Float64Array(bounds.length);
  }

  predict(x: ArrayLike<number>): number {
    let sum = 0;
    for (let i = 0; i < this.size; i++) sum += this.theta[i]! * x[i]!;
    return sum;
  }

  /** Drops all observations, so that only the pull to the anchors is left. */
  begin(share: number, pulls: ArrayLike<number>, anchors: ArrayLike<number>): void {
    this.matrix.fill(0);
    this.vector.fill(0);
    this.pull(share, pulls, anchors);
  }

  /** Keeps this share of all older observations. */
  fade(keep: number): void {
    for (let at = 0; at < this.matrix.length; at++) this.matrix[at]! *= keep;
    for (let i = 0; i < this.size; i++) this.vector[i]! *= keep;
  }

  /** Keeps this share of what is known along x, and all of what is known elsewhere (Cao and Schwartz 2000). */
  fadeAlong(x: ArrayLike<number>, keep: number): void {
    const { size, matrix, vector } = this;
    const along = this.#along;
    let norm = 0;
    let value = 0;
    for (let i = 0; i < size; i++) {
      along[i] = 0;
      for (let j = 0; j < size; j++) along[i]! += matrix[i * size + j]! * x[j]!;
      norm += along[i]! * x[i]!;
      value += vector[i]! * x[i]!;
    }
    if (!(norm > NORM_MIN)) return;
    const share = (1 - keep) / norm;
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < size; j++) matrix[i * size + j]! -= share * along[i]! * along[j]!;
      vector[i]! -= share * along[i]! * value;
    }
  }

  add(x: ArrayLike<number>, y: number, weight: number): void {
    const { size, matrix, vector } = this;
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < size; j++) matrix[i * size + j]! += weight * x[i]! * x[j]!;
      vector[i]! += weight * x[i]! * y;
    }
  }

  /** Adds `share × pulls[i]` observations of coefficient i that have the value of its anchor. */
  pull(share: number, pulls: ArrayLike<number>, anchors: ArrayLike<number>): void {
    for (let i = 0; i < this.size; i++) {
      const pull = share * pulls[i]!;
      this.matrix[i * this.size + i]! += pull;
      this.vector[i]! += pull * anchors[i]!;
    }
  }

  solve(sweeps = SWEEPS): void {
    const { size, matrix, vector, theta } = this;
    for (let sweep = 0; sweep < sweeps; sweep++) {
      for (let i = 0; i < size; i++) {
        let rest = vector[i]!;
        for (let j = 0; j < size; j++) if (j !== i) rest -= matrix[i * size + j]! * theta[j]!;
        const { low, high } = this.#bounds[i]!;
        theta[i] = Math.min(high, Math.max(low, rest / matrix[i * size + i]!));
      }
    }
  }
}
