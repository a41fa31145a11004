import type { Label } from '../core/label.js';
import { ChangeDetector } from './change-detector.js';

const FADE = 0.99;
/** Residuals count at most threefold, so that one stalled request does not make an endpoint slow. */
const MOST_RATIO = 3;
/** Weight of the assumption that an endpoint is like the others, in requests. */
const SHRINK = 20;
/** Differences below e^0.12 = 13 % are noise in a pool of equal machines. */
const GATE = 0.12;
/** Beyond a factor of e^1.2 = 3.3 an endpoint is out of order rather than slow. */
const FARTHEST = 1.2;
const CACHE_FADE = 0.98;
const LEAST_RELIABLE = 0.5;
const MOST_RELIABLE = 1.1;

/** What is learned about one endpoint: its speed and how far the prefix index is right about it. */
export class EndpointModel {
  readonly generation: number;
  readonly #changes = new ChangeDetector();
  #observed = 0;
  #expected = 0;
  #reported = 0;
  #promised = 0;

  constructor(generation: number) {
    this.generation = generation;
  }

  /** Logarithm of how much longer its output takes than the pool's model says, drawn towards 0. */
  get slowness(): number {
    return Math.log((this.#observed + SHRINK) / (this.#expected + SHRINK));
  }

  /** @param mean slowness of all endpoints. @returns factor on all times; 1 when it is within the noise */
  speed(mean: number): number {
    const own = this.slowness - mean;
    return Math.abs(own) > GATE ? Math.exp(Math.min(FARTHEST, Math.max(-FARTHEST, own))) : 1;
  }

  /** Share of the tokens thought to be cached here that were, 0.5 … 1.1; 1 while the engine does not report them. */
  get reliability(): number {
    if (this.#promised === 0) return 1;
    return Math.min(MOST_RELIABLE, Math.max(LEAST_RELIABLE, this.#reported / this.#promised));
  }

  /**
   * Time per output token beside what the pool's model says for an endpoint of usual speed. (Not the time to first output:
   * its errors mistake wrong beliefs about the cache for slowness.)
   */
  noteOutputTime(observedMs: number, expectedMs: number): void {
    if (!(expectedMs > 0) || !(observedMs > 0)) return;
    const ratio = observedMs / expectedMs;
    this.#observed = FADE * this.#observed + Math.min(MOST_RATIO, ratio);
    this.#expected = FADE * this.#expected + 1;
    if (!this.#changes.observe(Math.log(ratio))) return;
    this.#observed = 0;
    this.#expected = 0;
  }

  noteCached({ promptTokens, uncachedTokens, cachedTokens, reportedPromptTokens }: Label): void {
    const promised = promptTokens - uncachedTokens;
    if (cachedTokens === undefined || !reportedPromptTokens || promised === 0) return;
    this.#reported = CACHE_FADE * this.#reported + (promptTokens * cachedTokens) / reportedPromptTokens;
    this.#promised = CACHE_FADE * this.#promised + promised;
  }
}
