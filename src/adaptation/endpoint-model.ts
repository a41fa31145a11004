import type { TrainingSample } from '../core/training-sample.js';
import { ChangeDetector } from './change-detector.js';

/** Weight of the sums of output times after one more observation: about the last hundred count. */
const FADE = 0.99;
/** Bound on a residual, so that one stalled request does not make an endpoint slow. */
const RATIO_MAX = 3;
/** Requests in a row that are slower, or faster, than before by this factor beside the pool's: a change of the endpoint. */
const RUN = 4;
const RUN_FACTOR = 1.5;
/** Weight of what a run has shown, or the first request after a silence, in requests. */
const SHOWN = 60;
/** Silence, beyond 1.5 durations of its requests, from which on what was seen of an endpoint fades, and how fast. */
const SILENT_MS = 10_000;
const SILENT_FADE_MS = 10_000;
/** The same of cached tokens: about the last fifty requests. */
const CACHE_FADE = 0.98;
/** Bounds on the reliability of the index: tokens that the engine had cached over those expected. */
const RELIABLE_MIN = 0.5;
const RELIABLE_MAX = 1.1;

/** Time per output token of a request, and that of an endpoint of average speed by the pool's model. */
export interface OutputTime {
  readonly observedMs: number;
  readonly expectedMs: number;
  /** End of the request on the clock of the samples, and its duration. */
  readonly nowMs: number;
  readonly durationMs: number;
}

/** Observations of one endpoint: its output times, and the reliability of the prefix index for it. */
export class EndpointModel {
  readonly generation: number;
  readonly #changes = new ChangeDetector();
  #heardMs = Number.NEGATIVE_INFINITY;
  #durationMs = 0;
  #observed = 0;
  #expected = 0;
  /** Sum of the times against those of the pool at that time; weight as #expected. */
  #beside = 0;
  /** Requests of the present run: above 0 = slower than before, below 0 = faster; sums of their times. */
  #run = 0;
  #runObserved = 0;
  #runBeside = 0;
  #reported = 0;
  #promised = 0;

  constructor(generation: number) {
    this.generation = generation;
  }

  /** Sums of observed and expected output times in units of an average request; older ones count less. */
  get evidence(): { readonly observed: number; readonly expected: number } {
    return { observed: this.#observed, expected: this.#expected };
  }

  /** Share of the evidence that is left at `nowMs`, after a silence. An avoided endpoint shows no recovery. */
  kept(nowMs: number): number {
    const silentMs = nowMs - this.#heardMs - SILENT_MS - 1.5 * this.#durationMs;
    return silentMs > 0 ? Math.exp(-silentMs / SILENT_FADE_MS) : 1;
  }

  /** Share of the tokens thought to be cached that really were, 0.5 … 1.1; 1 while the engine does not report it. */
  get reliability(): number {
    if (this.#promised === 0) return 1;
    return Math.min(RELIABLE_MAX, Math.max(RELIABLE_MIN, this.#reported / this.#promised));
  }

  /**
   * Records a time per output token against the pool model's value for an endpoint of average speed. The time to first
   * output is not used: wrong beliefs about the cache would count as slowness.
   * @param usual ratio of observed and expected times that the pool has at present
   */
  noteOutputTime({ observedMs, expectedMs, nowMs, durationMs }: OutputTime, usual: number): void {
    if (!(expectedMs > 0) || !(observedMs > 0)) return;
    const ratio = Math.min(RATIO_MAX, observedMs / expectedMs);
    const beside = ratio / usual;
    if (this.#expected > 0) this.#replace(1 - this.kept(nowMs), ratio, beside);
    this.#heardMs = nowMs;
    this.#durationMs = durationMs;
    this.#noteRun(ratio, beside);
    this.#observed = FADE * this.#observed + ratio;
    this.#beside = FADE * this.#beside + beside;
    this.#expected = FADE * this.#expected + 1;
    if (this.#changes.observe(Math.log(observedMs / expectedMs))) this.#replace(1, 0, 0, 0);
  }

  /** Takes several requests in a row that deviate in one direction for the present speed. */
  #noteRun(ratio: number, beside: number): void {
    if (this.#expected < 1) return;
    const change = (beside * this.#expected) / this.#beside;
    const direction = change > RUN_FACTOR ? 1 : change < 1 / RUN_FACTOR ? -1 : 0;
    if (direction === 0 || direction * this.#run < 0) this.#endRun();
    if (direction === 0) return;
    this.#run += direction;
    this.#runObserved += ratio;
    this.#runBeside += beside;
    if (Math.abs(this.#run) < RUN) return;
    this.#replace(1, this.#runObserved / RUN, this.#runBeside / RUN);
    this.#changes.reset();
    this.#endRun();
  }

  #endRun(): void {
    this.#run = 0;
    this.#runObserved = 0;
    this.#runBeside = 0;
  }

  /** Replaces a share of the evidence by `weight` requests of this kind. */
  #replace(share: number, ratio: number, beside: number, weight = SHOWN): void {
    const kept = 1 - share;
    this.#observed = kept * this.#observed + share * weight * ratio;
    this.#beside = kept * this.#beside + share * weight * beside;
    this.#expected = kept * this.#expected + share * weight;
  }

  /** @param priced tokens that count as uncached because they are loaded from below the GPU */
  noteCached(sample: TrainingSample, priced: number): void {
    const { promptTokens, uncachedTokens, cachedTokens, reportedPromptTokens } = sample;
    const promised = promptTokens - uncachedTokens + priced;
    if (cachedTokens === undefined || !reportedPromptTokens || promised === 0) return;
    this.#reported = CACHE_FADE * this.#reported + (promptTokens * cachedTokens) / reportedPromptTokens;
    this.#promised = CACHE_FADE * this.#promised + promised;
  }
}
