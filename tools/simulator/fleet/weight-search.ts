import type { RandomStream } from './random-stream.js';

/** Samples of one candidate, and samples after a change that still belong to the candidate before. */
const WINDOW = 100;
const HOP = 50;
const FIRST_STEP = 0.5;
/**
 * The fifth rule in the form of Kern et al. (2004): longer steps after a success, shorter ones by a quarter of that
 * after a failure.
 */
const LONGER = 1.5;
const FARTHEST = Math.log(100);

/**
 * A (1+1) evolution strategy over the logarithm of one weight: a candidate decides for a window of samples and stays
 * when their 95th percentile is no worse than that of the one before.
 */
export class WeightSearch {
  readonly #random: RandomStream;
  #parent = 0;
  #parentScore = Number.POSITIVE_INFINITY;
  #candidate = 0;
  #step = FIRST_STEP;
  #skip = HOP;
  #samples: number[] = [];

  constructor(random: RandomStream) {
    this.#random = random;
  }

  /** The weight that decides now. */
  get value(): number {
    return Math.exp(this.#candidate);
  }

  /** Records the time of a recent decision, in ms. */
  note(ms: number): void {
    if (this.#skip > 0) {
      this.#skip--;
      return;
    }
    this.#samples.push(ms);
    if (this.#samples.length < WINDOW) return;
    this.#judge(percentile95(this.#samples));
    this.#samples = [];
    this.#skip = HOP;
  }

  #judge(score: number): void {
    if (score <= this.#parentScore) {
      this.#parent = this.#candidate;
      this.#parentScore = score;
      this.#step *= LONGER;
    } else {
      this.#step *= LONGER ** -0.25;
    }
    const next = this.#parent + this.#step * this.#random.normal();
    this.#candidate = Math.min(FARTHEST, Math.max(-FARTHEST, next));
  }
}

function percentile95(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(0.95 * values.length)]!;
}
