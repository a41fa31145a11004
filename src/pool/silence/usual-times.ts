import type { TrainingSample } from '../../core/training-sample.js';

/** Answers until an endpoint's own times count, and not those of the pool. */
const OWN_ANSWERS = 8;
/** Answers over which a mean is taken. */
const MEAN_OVER = 64;
/** Share of the longest answer that is left after the next one: half after 350. */
const KEPT_SHARE = 0.998;
/** Least mean of tokens before a first output, so that after a few cached prompts the others do not look endless. */
const TOKENS_MIN = 64;

/** How long answers usually take, in milliseconds; learned from the answers of one endpoint, or of the pool. */
export class UsualTimes {
  #firsts = 0;
  #firstMs = 0;
  #tokens = 0;
  #steps = 0;
  #stepMs = 0;
  #answers = 0;
  #longestMs = 0;
  #longestTokens = 0;

  /** Answers noted. */
  get answers(): number {
    return this.#answers;
  }

  note({ firstOutputMs, perTokenMs, durationMs, outputTokens, uncachedTokens, prefillTokens }: TrainingSample): void {
    this.#answers++;
    this.#longestMs = Math.max(durationMs, this.#longestMs * KEPT_SHARE);
    this.#longestTokens = Math.max(outputTokens ?? 0, this.#longestTokens * KEPT_SHARE);
    if (firstOutputMs !== undefined) {
      const share = 1 / Math.min(++this.#firsts, MEAN_OVER);
      this.#firstMs += (firstOutputMs - this.#firstMs) * share;
      this.#tokens += (uncachedTokens + prefillTokens - this.#tokens) * share;
    }
    if (perTokenMs !== undefined) this.#stepMs += (perTokenMs - this.#stepMs) / Math.min(++this.#steps, MEAN_OVER);
  }

  /**
   * Time to the first output behind `tokens` uncached tokens. Beyond the usual number all of the time counts as work on
   * tokens, so that a long prompt after short ones is given too much time rather than too little.
   */
  firstMs(tokens: number): number {
    if (this.#firsts === 0) return this.#longestMs;
    return this.#firstMs * Math.max(1, tokens / Math.max(TOKENS_MIN, this.#tokens));
  }

  /** Time between two pieces of output; undefined = no stream was seen. */
  get stepMs(): number | undefined {
    return this.#steps === 0 ? undefined : this.#stepMs;
  }

  /** Longest whole answer of late. */
  get longestMs(): number {
    return this.#longestMs;
  }

  get longestTokens(): number {
    return this.#longestTokens;
  }
}

/** The usual times of every endpoint. An endpoint with few answers has those of the pool. */
export class PoolTimes {
  readonly #pool = new UsualTimes();
  readonly #bySlot = new Map<number, { readonly generation: number; readonly times: UsualTimes }>();

  /** Learns from an answer that came to its end; others teach nothing. */
  note(sample: TrainingSample): void {
    if (sample.outcome !== 'completed') return;
    this.#pool.note(sample);
    const { slot, slotGeneration: generation } = sample;
    const known = this.#bySlot.get(slot);
    const times = known?.generation === generation ? known.times : new UsualTimes();
    if (times !== known?.times) this.#bySlot.set(slot, { generation, times });
    times.note(sample);
  }

  /** Undefined until an answer of the pool was seen to its end: usual times are unknown then. */
  of(slot: number, generation: number): UsualTimes | undefined {
    const own = this.#bySlot.get(slot);
    if (own?.generation === generation && own.times.answers >= OWN_ANSWERS) return own.times;
    return this.#pool.answers === 0 ? undefined : this.#pool;
  }
}
