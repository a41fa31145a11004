import { RidgeEquations, relativeWeight } from '../runtime/ridge-equations.js';

/** One coefficient of a model: prior, range, and weight of the prior in observations. */
export interface RidgeTerm {
  readonly prior: number;
  readonly low: number;
  readonly high: number;
  /** Diagonal of the anchor Λ0: weight of the prior in units of 1/(term's unit)². */
  readonly anchor: number;
}

/** Learned state of an estimator as plain data. */
export interface RidgeState {
  /** Rows of A, concatenated. */
  readonly matrix: readonly number[];
  readonly vector: readonly number[];
  readonly count: number;
}

/** What fades with a new observation: all that is known, or what is known along the observation. */
export type Forgetting = 'all' | 'observed';

/** Rate, beside that of observed directions, at which the others return to the prior. */
const UNOBSERVED = 0.1;
/** Rounds of coordinate descent after a jump of the equations. */
const SOFTENED_SWEEPS = 20;

/**
 * Anchored forgetting ridge over relative errors, with anchors Λ0 that stay where they are put (RidgeEquations):
 *   A ← λA + ω x xᵀ + (1 - λ)Λ0,  b ← λb + ω x y + (1 - λ)Λ0 θ⁰
 * Where only what is observed is forgotten, the first λ holds along x alone, and the rest of both lines has λ^0.1:
 * traffic that says nothing of a coefficient leaves it as it is for ten times as long.
 */
export class AnchoredRidge {
  readonly #equations: RidgeEquations;
  /** Lower bound of a prediction in the weights, so that tiny ones do not get all the weight. */
  readonly #floor: number;
  readonly #forgetting: Forgetting;
  readonly #anchors: Float64Array;
  readonly #priors: Float64Array;
  #count = 0;

  constructor(terms: readonly RidgeTerm[], floor: number, forgetting: Forgetting = 'all') {
    this.#equations = new RidgeEquations(terms);
    this.#floor = floor;
    this.#forgetting = forgetting;
    this.#anchors = Float64Array.from(terms, ({ anchor }) => anchor);
    this.#priors = Float64Array.from(terms, ({ prior }) => prior);
    this.reset();
  }

  /** Present coefficients, each within its bounds. The array belongs to the estimator. */
  get theta(): Readonly<Float64Array> {
    return this.#equations.theta;
  }

  /** Observations since the last reset. */
  get count(): number {
    return this.#count;
  }

  predict(x: readonly number[]): number {
    return this.#equations.predict(x);
  }

  /**
   * Learns from one observation. Values that are not finite are ignored.
   * @param forget λ in (0, 1): factor on the weight of older observations
   * @param weight below 1 for a less certain observation
   */
  learn(x: readonly number[], y: number, forget: number, weight = 1): void {
    if (!Number.isFinite(y) || !x.every(Number.isFinite)) return;
    const expected = this.predict(x);
    const omega = relativeWeight(y - expected, Math.max(expected, this.#floor), weight);
    const keep = this.#forgetting === 'all' ? forget : forget ** UNOBSERVED;
    if (this.#forgetting === 'observed') this.#equations.fadeAlong(x, forget);
    this.#equations.fade(keep);
    this.#equations.add(x, y, omega);
    this.#equations.pull(1 - keep, this.#anchors, this.#priors);
    this.#count++;
    this.#equations.solve();
  }

  /** Moves the anchors. Without observations the coefficients go with them. @param weights diagonal of Λ0 */
  drawTo(anchors: readonly number[], weights: readonly number[]): void {
    this.#priors.set(anchors);
    this.#anchors.set(weights);
    if (this.#count > 0) return;
    this.reset();
    this.#equations.solve();
  }

  /** Keeps `share` of the learned state and takes the prior for the rest, after a change. */
  soften(share: number): void {
    this.#equations.fade(share);
    this.#equations.pull(1 - share, this.#anchors, this.#priors);
    this.#equations.solve(SOFTENED_SWEEPS);
  }

  /** Resets to the prior. */
  reset(): void {
    this.#equations.begin(1, this.#anchors, this.#priors);
    this.#equations.theta.set(this.#priors);
    this.#count = 0;
  }

  save(): RidgeState {
    const { matrix, vector } = this.#equations;
    return { matrix: [...matrix], vector: [...vector], count: this.#count };
  }

  /**
   * Continues from a saved state with `share` of its weight.
   * @returns false, without a change, when the state does not fit
   */
  restore(state: RidgeState, share: number): boolean {
    const { matrix, vector, count } = state;
    const { size } = this.#equations;
    if (matrix.length !== size * size || vector.length !== size) return false;
    if (![...matrix, ...vector, count].every(Number.isFinite)) return false;
    if (vector.some((_, i) => matrix[i * size + i]! <= 0)) return false;
    this.#equations.matrix.set(matrix);
    this.#equations.vector.set(vector);
    this.#count = count;
    this.soften(share);
    return true;
  }
}
