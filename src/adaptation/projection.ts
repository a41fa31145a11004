import type { ProjectionSums } from '../core/coefficients.js';

/** Sampled decisions in the memory of the fit. */
const MEMORY = 512;
/** Minimum of decisions before the weights move. */
const SAMPLES_MIN = 64;
/** Strength of the pull towards the present weights, as a share of the mean square of a column. */
const INERTIA = 0.05;
const SWEEPS = 30;
/** Bound on the change of a weight per second, as a share. */
const CHANGE_MAX = 0.1;
/** Minimum share of the sum for every weight, so that its effect stays visible and it can grow again. */
const SHARE_MIN = 0.005;

/**
 * Weights of a profile's own scorers that come closest to marginal cost: the least squares fit of Σ weight × score to
 * -cost over the last sampled decisions, each centred over its candidates. Weights are at least 0 and move slowly.
 * Their sum remains that of the configured ones, because only the proportions matter.
 */
export class Projection {
  readonly #configured: readonly number[];
  readonly #size: number;
  readonly #products: Float64Array;
  readonly #costs: Float64Array;
  #samples = 0;
  #before: ProjectionSums | undefined;
  #weights: number[];

  /** @param configured weights of the scorers that may move, in the order of the sums */
  constructor(configured: readonly number[]) {
    this.#configured = configured;
    this.#size = configured.length;
    this.#products = new Float64Array(this.#size ** 2);
    this.#costs = new Float64Array(this.#size);
    this.#weights = [...configured];
  }

  get weights(): readonly number[] {
    return this.#weights;
  }

  /** Number of decisions behind the weights. */
  get samples(): number {
    return this.#samples;
  }

  /** Adds the sums since the last call, `seconds` ago, and moves the weights. */
  update(sums: ProjectionSums, seconds: number): void {
    const before = this.#before;
    this.#before = sums;
    const fresh = sums.samples - (before?.samples ?? 0);
    if (fresh > 0) this.#add(sums, before, fresh);
    if (this.#samples >= SAMPLES_MIN) this.#move(this.#fit(), seconds);
  }

  /** Resets to the configured weights. */
  reset(): void {
    this.#weights = [...this.#configured];
    this.#products.fill(0);
    this.#costs.fill(0);
    this.#samples = 0;
  }

  #add(sums: ProjectionSums, before: ProjectionSums | undefined, fresh: number): void {
    const kept = MEMORY / (MEMORY + fresh);
    this.#samples = this.#samples * kept + fresh;
    for (let i = 0; i < this.#size; i++) {
      for (let j = 0; j < this.#size; j++) {
        const added = sums.products[i]![j]! - (before?.products[i]?.[j] ?? 0);
        const at = i * this.#size + j;
        this.#products[at] = this.#products[at]! * kept + added;
      }
      this.#costs[i] = this.#costs[i]! * kept + sums.costs[i]! - (before?.costs[i] ?? 0);
    }
  }

  /** Coordinate descent on wᵀGw + 2 wᵀh + ε‖w - w₀‖², w ≥ 0, where w₀ are the present weights on the scale of cost. */
  #fit(): number[] {
    const size = this.#size;
    let trace = 0;
    for (let i = 0; i < size; i++) trace += this.#products[i * size + i]!;
    if (!(trace > 0)) return this.#weights;
    const epsilon = (INERTIA * trace) / size;
    const scale = this.#scaleOf(this.#weights);
    const fitted = this.#weights.map((weight) => weight * scale);
    const from = [...fitted];
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
      for (let i = 0; i < size; i++) {
        let rest = epsilon * from[i]! - this.#costs[i]!;
        for (let j = 0; j < size; j++) if (j !== i) rest -= this.#products[i * size + j]! * fitted[j]!;
        fitted[i] = Math.max(0, rest / (this.#products[i * size + i]! + epsilon));
      }
    }
    return fitted;
  }

  /** Factor that brings weights of these proportions closest to cost; 0 when they point away from it. */
  #scaleOf(weights: readonly number[]): number {
    let along = 0;
    let squared = 0;
    for (const [i, weight] of weights.entries()) {
      along -= weight * this.#costs[i]!;
      for (const [j, other] of weights.entries()) squared += weight * other * this.#products[i * this.#size + j]!;
    }
    return squared > 0 ? Math.max(0, along / squared) : 0;
  }

  #move(target: readonly number[], seconds: number): void {
    const total = this.#configured.reduce((sum, weight) => sum + weight, 0);
    const sum = target.reduce((all, weight) => all + weight, 0);
    if (!(sum > 0) || !Number.isFinite(sum)) return;
    const least = SHARE_MIN * total;
    const factorMax = (1 + CHANGE_MAX) ** seconds;
    const moved = this.#weights.map((weight, i) => {
      const wanted = Math.max(least, (target[i]! / sum) * total);
      return Math.min(weight * factorMax, Math.max(weight / factorMax, wanted));
    });
    const movedSum = moved.reduce((all, weight) => all + weight, 0);
    this.#weights = moved.map((weight) => Math.max(least, (weight / movedSum) * total));
  }
}
