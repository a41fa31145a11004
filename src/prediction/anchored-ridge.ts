/** What is believed about one coefficient before anything is seen. */
export interface CoefficientPrior {
  readonly value: number;
  /** Size of the feature in a typical observation. Above 0. */
  readonly magnitude: number;
  readonly least: number;
  readonly most: number;
}

export interface RidgeOptions {
  readonly priors: readonly CoefficientPrior[];
  /** Typical observations that the prior is worth, for ever. Above 0. */
  readonly worth: number;
  /** Observations that are remembered: older ones fade by 1 - 1/memory with each new one. */
  readonly memory: number;
  /** Predictions below this count as this when errors are weighed against them. Above 0. */
  readonly floor: number;
}

/** Errors above this many times the prediction count linearly (Huber's loss): one outlier moves little. */
const HUBER = 2.5;
/** Rounds of coordinate descent for each observation; the start is the last solution, so few are enough. */
const SWEEPS = 2;
/** How fast the usual size of the predictions, against which the prior is weighed, follows. */
const SCALE_FOLLOWS = 0.05;

/**
 * A linear model that learns one observation at a time and forgets old ones: ridge regression on relative errors, pulled
 * towards anchors for ever, with every coefficient inside its bounds. The pull keeps the matrix regular and takes
 * directions that nothing excites back to the anchor, where plain recursive least squares would drift (the anchored
 * forgetting ridge of docs/internals/learning.md).
 *
 *   A ← λ A + ω x xᵀ + (1 - λ) Λ      b ← λ b + ω x y + (1 - λ) Λ anchor      λ = 1 - 1 / memory
 *   coefficient_i ← clip((b_i - Σ_{j≠i} A_ij coefficient_j) / A_ii, least_i, most_i)
 *
 * ω is the inverse square of the prediction, and Λ that of the usual one, times worth × magnitude²: what the prior is
 * worth does not depend on whether answers take milliseconds or minutes.
 */
export class AnchoredRidge {
  readonly #options: RidgeOptions;
  readonly #size: number;
  readonly #matrix: Float64Array;
  readonly #vector: Float64Array;
  readonly #anchors: Float64Array;
  readonly #squares: Float64Array;
  readonly coefficients: Float64Array;
  #scale = 0;
  #observations = 0;

  constructor(options: RidgeOptions) {
    const { priors } = options;
    this.#options = options;
    this.#size = priors.length;
    this.#matrix = new Float64Array(priors.length ** 2);
    this.#vector = new Float64Array(priors.length);
    this.#anchors = Float64Array.from(priors, ({ value }) => value);
    this.#squares = Float64Array.from(priors, ({ magnitude }) => magnitude ** 2);
    this.coefficients = Float64Array.from(this.#anchors);
  }

  /** Observations taken in. */
  get observations(): number {
    return this.#observations;
  }

  /** Pull towards other values from now on, for features of other sizes: the squares of their magnitudes. */
  anchor(values: ArrayLike<number>, squares: ArrayLike<number>): void {
    for (let i = 0; i < this.#size; i++) {
      this.#anchors[i] = values[i]!;
      this.#squares[i] = squares[i]!;
    }
  }

  predict(features: ArrayLike<number>): number {
    let sum = 0;
    for (let i = 0; i < this.#size; i++) sum += this.coefficients[i]! * features[i]!;
    return sum;
  }

  /** Take in one observation. Numbers that are not finite leave everything as it is. @returns whether it was taken in */
  observe(features: ArrayLike<number>, value: number): boolean {
    if (!Number.isFinite(value)) return false;
    for (let i = 0; i < this.#size; i++) if (!Number.isFinite(features[i])) return false;
    const predicted = Math.max(this.predict(features), this.#options.floor);
    if (this.#observations === 0) this.#begin(Math.max(predicted, value));
    this.#observations++;
    this.#scale += SCALE_FOLLOWS * (predicted - this.#scale);
    const error = Math.abs(value - predicted) / predicted;
    const weight = (error > HUBER ? HUBER / error : 1) / predicted ** 2;
    this.#add(features, value, weight);
    this.#solve();
    return true;
  }

  /** The prior, weighed against the first observation: before it nobody knows how long answers take here. */
  #begin(scale: number): void {
    this.#scale = scale;
    for (let i = 0; i < this.#size; i++) {
      const pull = this.#pull(i);
      this.#matrix[i * this.#size + i] = pull;
      this.#vector[i] = pull * this.#anchors[i]!;
    }
  }

  #pull(i: number): number {
    return (this.#options.worth * this.#squares[i]!) / this.#scale ** 2;
  }

  #add(features: ArrayLike<number>, value: number, weight: number): void {
    const size = this.#size;
    const fading = 1 / this.#options.memory;
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < size; j++) {
        const at = i * size + j;
        this.#matrix[at] = this.#matrix[at]! * (1 - fading) + weight * features[i]! * features[j]!;
      }
      const pull = fading * this.#pull(i);
      this.#matrix[i * size + i]! += pull;
      this.#vector[i] = this.#vector[i]! * (1 - fading) + weight * features[i]! * value + pull * this.#anchors[i]!;
    }
  }

  #solve(): void {
    const size = this.#size;
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
      for (let i = 0; i < size; i++) {
        let rest = this.#vector[i]!;
        for (let j = 0; j < size; j++) if (j !== i) rest -= this.#matrix[i * size + j]! * this.coefficients[j]!;
        const { least, most } = this.#options.priors[i]!;
        this.coefficients[i] = Math.min(Math.max(rest / this.#matrix[i * size + i]!, least), most);
      }
    }
  }
}
