import type { TrainingSample } from '../core/training-sample.js';
import { EndpointTimes, type SeenTime } from './endpoint-times.js';

/** Weight of the sums of cached tokens after one more observation: about the last fifty requests count. */
const CACHE_FADE = 0.98;
/** Bounds on the reliability of the index: tokens that the engine had cached over those expected. */
const RELIABLE_MIN = 0.5;
const RELIABLE_MAX = 1.1;
/** Factors of a run (EndpointTimes). Times to first output vary more, with what else the engine has to do. */
const OUTPUT_RUN = 1.5;
const FIRST_OUTPUT_RUN = 2;

/** Observations of one endpoint: its times, and the reliability of the prefix index for it. */
export class EndpointModel {
  readonly generation: number;
  /** Times per output token. */
  readonly output = new EndpointTimes(OUTPUT_RUN);
  /** Times to first output of requests whose prefill is known from the engine. */
  readonly firstOutput = new EndpointTimes(FIRST_OUTPUT_RUN);
  #reported = 0;
  #promised = 0;

  constructor(generation: number) {
    this.generation = generation;
  }

  /** Share of the tokens thought to be cached that really were, 0.5 … 1.1; 1 while the engine does not report it. */
  get reliability(): number {
    if (this.#promised === 0) return 1;
    return Math.min(RELIABLE_MAX, Math.max(RELIABLE_MIN, this.#reported / this.#promised));
  }

  /**
   * Records a time per output token. A change of it is taken for one of the first outputs too, until they show another.
   * @param usual ratio of observed and expected times that the pool has at present
   * @param noise as of EndpointTimes.note()
   */
  noteOutput(time: SeenTime, usual: number, noise: number): void {
    if (this.output.note(time, usual, noise)) this.firstOutput.forget();
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
