import type { TrainingSample } from '../core/training-sample.js';
import { ChangeDetector } from './change-detector.js';

/** Weight of the sums of output times after one more observation: about the last hundred count. */
const FADE = 0.99;
/** Bound on a residual, so that one stalled request does not make an endpoint slow. */
const RATIO_MAX = 3;
/** The same of cached tokens: about the last fifty requests. */
const CACHE_FADE = 0.98;
/** Bounds on the reliability of the index: tokens that the engine had cached over those expected. */
const RELIABLE_MIN = 0.5;
const RELIABLE_MAX = 1.1;

/** Observations of one endpoint: its output times, and the reliability of the prefix index for it. */
export class EndpointModel {
  readonly generation: number;
  readonly #changes = new ChangeDetector();
  #heardMs = Number.NEGATIVE_INFINITY;
  #observed = 0;
  #expected = 0;
  #reported = 0;
  #promised = 0;

  constructor(generation: number) {
    this.generation = generation;
  }

  /** Sums of observed and expected output times in units of an average request; older ones count less. */
  get evidence(): { readonly observed: number; readonly expected: number } {
    return { observed: this.#observed, expected: this.#expected };
  }

  /** Time of the last observed output, in milliseconds of the samples' clock. */
  get heardMs(): number {
    return this.#heardMs;
  }

  /** Share of the tokens thought to be cached that really were, 0.5 … 1.1; 1 while the engine does not report it. */
  get reliability(): number {
    if (this.#promised === 0) return 1;
    return Math.min(RELIABLE_MAX, Math.max(RELIABLE_MIN, this.#reported / this.#promised));
  }

  /**
   * Records a time per output token against the pool model's value for an endpoint of average speed. The time to first
   * output is not used: wrong beliefs about the cache would count as slowness.
   */
  noteOutputTime(observedMs: number, expectedMs: number, nowMs: number): void {
    if (!(expectedMs > 0) || !(observedMs > 0)) return;
    this.#heardMs = nowMs;
    const ratio = observedMs / expectedMs;
    this.#observed = FADE * this.#observed + Math.min(RATIO_MAX, ratio);
    this.#expected = FADE * this.#expected + 1;
    if (!this.#changes.observe(Math.log(ratio))) return;
    this.#observed = 0;
    this.#expected = 0;
  }

  noteCached({ promptTokens, uncachedTokens, cachedTokens, reportedPromptTokens }: TrainingSample): void {
    const promised = promptTokens - uncachedTokens;
    if (cachedTokens === undefined || !reportedPromptTokens || promised === 0) return;
    this.#reported = CACHE_FADE * this.#reported + (promptTokens * cachedTokens) / reportedPromptTokens;
    this.#promised = CACHE_FADE * this.#promised + promised;
  }
}
