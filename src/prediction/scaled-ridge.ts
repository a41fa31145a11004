import { RidgeEquations, relativeWeight } from '../runtime/ridge-equations.js';

/** Prior of one coefficient. */
export interface CoefficientPrior {
  readonly value: number;
  /** Size of the feature in a typical observation. Above 0. */
  readonly magnitude: number;
  readonly min: number;
  readonly max: number;
}

export interface RidgeOptions {
  readonly priors: readonly CoefficientPrior[];
  /** Weight of the prior, in typical observations; it does not fade. Above 0. */
  readonly worth: number;
  /** Memory in observations: older ones fade by 1 - 1/memory with each new one. */
  readonly memory: number;
  /** Least prediction that errors are divided by. Above 0. */
  readonly floor: number;
}

/** Smoothing factor of the mean size of the predictions, which scales the prior. */
const SCALE_FOLLOWS = 0.05;

/**
 * A linear model that learns one observation at a time and forgets old ones: an anchored forgetting ridge on relative
 * errors (RidgeEquations), with λ = 1 - 1 / memory. Its pull is the inverse square of the usual prediction, times worth
 * × magnitude²: what the prior is worth does not depend on whether answers take milliseconds or minutes.
 */
export class ScaledRidge {
  readonly #options: RidgeOptions;
  readonly #equations: RidgeEquations;
  readonly #anchors: Float64Array;
  readonly #squares: Float64Array;
  #scale = 0;
  #observations = 0;

  constructor(options: RidgeOptions) {
    const { priors } = options;
    this.#options = options;
    this.#equations = new RidgeEquations(priors.map(({ min, max }) => ({ low: min, high: max })));
    this.#anchors = Float64Array.from(priors, ({ value }) => value);
    this.#squares = Float64Array.from(priors, ({ magnitude }) => magnitude ** 2);
    this.#equations.theta.set(this.#anchors);
  }

  get coefficients(): Float64Array {
    return this.#equations.theta;
  }

  /** Observations taken in. */
  get observations(): number {
    return this.#observations;
  }

  /** Pulls towards other values from now on, for features of other sizes: the squares of their magnitudes. */
  anchor(values: ArrayLike<number>, squares: ArrayLike<number>): void {
    this.#anchors.set(values);
    this.#squares.set(squares);
  }

  predict(features: ArrayLike<number>): number {
    return this.#equations.predict(features);
  }

  /**
   * Takes in one observation. Numbers that are not finite leave everything as it is.
   * @returns whether it was taken in
   */
  observe(features: ArrayLike<number>, value: number): boolean {
    if (!Number.isFinite(value)) return false;
    for (let i = 0; i < this.#equations.size; i++) if (!Number.isFinite(features[i])) return false;
    const predicted = Math.max(this.predict(features), this.#options.floor);
    if (this.#observations === 0) this.#begin(Math.max(predicted, value));
    this.#observations++;
    this.#scale += SCALE_FOLLOWS * (predicted - this.#scale);
    const fading = 1 / this.#options.memory;
    this.#equations.fade(1 - fading);
    this.#equations.add(features, value, relativeWeight(value - predicted, predicted));
    this.#equations.pull(this.#share(fading), this.#squares, this.#anchors);
    this.#equations.solve();
    return true;
  }

  /** Weighs the prior against the first observation: before it, usual times of this pool are unknown. */
  #begin(scale: number): void {
    this.#scale = scale;
    this.#equations.begin(this.#share(1), this.#squares, this.#anchors);
  }

  #share(fading: number): number {
    return (fading * this.#options.worth) / this.#scale ** 2;
  }
}
