import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';
import { OUTCOMES, type Outcome, type TrainingSample, UNKNOWN_COUNT } from './training-sample.js';

/**
 * Distance in records at which a record counts as lost. Its writer may be overwriting it already, and plain reads see
 * another thread's writes in no particular order.
 */
const MARGIN = 16;

/**
 * Reads the sample rings of all threads, each record once. Every consumer has its own reader with its own position in
 * the rings; readers do not disturb each other or the writers. Records that a consumer does not read in time are lost
 * and counted.
 */
export class SampleReader {
  readonly #core: CoreInstance;
  readonly #rings: number;
  /** By thread: number of the next record. */
  readonly #next: Uint32Array;
  readonly #sample = {} as TrainingSample;
  #lost = 0;

  /** @param from 'now' = only records written later; 'oldest' = also those still in the rings */
  constructor(core: CoreInstance, from: 'now' | 'oldest' = 'now') {
    this.#core = core;
    this.#rings = core.call.regionAddress(CORE.REGION_SAMPLE_RING) >>> 0;
    this.#next = new Uint32Array(core.sizes.threads);
    const kept = CORE.SAMPLE_COUNT - MARGIN;
    for (let thread = 0; thread < this.#next.length; thread++) {
      const written = this.#written(thread);
      this.#next[thread] = from === 'now' ? written : written - Math.min(written, kept);
    }
  }

  /** Records that were overwritten before this reader reached them. */
  get lost(): number {
    return this.#lost;
  }

  /**
   * Passes the new records to `visit`, thread by thread, each thread's in order. The sample belongs to the reader and
   * is overwritten by the next one.
   * @param limit bound on the number of records
   * @param every one record of so many is passed, in each thread's order; the others are passed over
   * @returns the number of records that were passed; fewer than `limit` = less than `every` are left of each thread
   */
  drain(visit: (sample: TrainingSample) => void, limit = Number.POSITIVE_INFINITY, every = 1): number {
    let count = 0;
    for (let thread = 0; thread < this.#next.length && count < limit; thread++) {
      count += this.#drainThread(thread, visit, limit - count, every);
    }
    return count;
  }

  #written(thread: number): number {
    return Atomics.load(this.#core.i32, this.#ringOf(thread) >>> 2) >>> 0;
  }

  #ringOf(thread: number): number {
    return this.#rings + thread * CORE.SAMPLE_RING_BYTES;
  }

  #drainThread(thread: number, visit: (sample: TrainingSample) => void, limit: number, every: number): number {
    const { SAMPLE_COUNT: size, SAMPLE_BYTES: bytes } = CORE;
    const kept = size! - MARGIN;
    let count = 0;
    for (let behind = this.#behind(thread); behind >= every && count < limit; behind = this.#behind(thread)) {
      if (behind > kept) this.#skip(thread, behind - kept);
      const number = this.#next[thread]!;
      this.#read(this.#ringOf(thread) + CORE.SAMPLE_RECORDS + (number % size!) * bytes!);
      // The record counts only if its writer was not near it during the read.
      if (this.#behind(thread) > kept) {
        this.#skip(thread, 1);
        continue;
      }
      this.#next[thread] = number + every;
      visit(this.#sample);
      count++;
    }
    return count;
  }

  /** Records written and not read; both counts wrap round at 2^32. */
  #behind(thread: number): number {
    return (this.#written(thread) - this.#next[thread]!) >>> 0;
  }

  #skip(thread: number, records: number): void {
    this.#next[thread]! += records;
    this.#lost += records;
  }

  #read(at: number): void {
    const { view } = this.#core;
    const sample = this.#sample;
    sample.timeMs = view.getFloat64(at, true);
    sample.slot = view.getUint32(at + CORE.SAMPLE_SLOT, true);
    sample.slotGeneration = view.getUint32(at + CORE.SAMPLE_SLOT_GENERATION, true);
    this.#readFeatures(at + CORE.SAMPLE_FEATURES);
    sample.outcome = outcomeOf.get(view.getUint32(at + CORE.SAMPLE_OUTCOME, true))!;
    sample.firstOutputMs = known(view.getFloat32(at + CORE.SAMPLE_FIRST_OUTPUT, true));
    sample.perTokenMs = known(view.getFloat32(at + CORE.SAMPLE_PER_TOKEN, true));
    sample.durationMs = view.getFloat32(at + CORE.SAMPLE_DURATION, true);
    sample.outputTokens = counted(view.getUint32(at + CORE.SAMPLE_OUTPUT_TOKENS, true));
    sample.reportedPromptTokens = counted(view.getUint32(at + CORE.SAMPLE_PROMPT_TOKENS, true));
    sample.cachedTokens = counted(view.getUint32(at + CORE.SAMPLE_CACHED_TOKENS, true));
    sample.inflightAtEnd = view.getUint32(at + CORE.SAMPLE_INFLIGHT_AT_END, true);
    sample.promptTokensAtEnd = view.getUint32(at + CORE.SAMPLE_PROMPT_AT_END, true);
    const staged = view.getUint32(at + CORE.SAMPLE_STAGED, true);
    sample.staged = (staged & ((1 << CORE.SAMPLE_BELOW_SHIFT) - 1)) !== 0;
    const below = staged >>> CORE.SAMPLE_BELOW_SHIFT;
    sample.hostTokens = shareOf(below, 0) * sample.promptTokens;
    sample.diskTokens = shareOf(below, 1) * sample.promptTokens;
    sample.remoteTokens = shareOf(below, 2) * sample.promptTokens;
    const sign = view.getUint32(at + CORE.SAMPLE_SIGN, true);
    const targets = sign & (CORE.TARGETS_MET | CORE.TARGETS_MISSED);
    sample.unheard = (sign ^ targets) === (CORE.EXPECTS_STREAM | CORE.UNHEARD);
    sample.targetsMet = targets === 0 ? undefined : targets === CORE.TARGETS_MET;
    sample.priority = view.getInt32(at + CORE.SAMPLE_PRIORITY, true);
  }

  #readFeatures(at: number): void {
    const { view } = this.#core;
    const sample = this.#sample;
    const tag = view.getUint32(at + CORE.FEATURE_TAG, true);
    const bits = view.getUint32(at + CORE.FEATURE_KNOWN, true);
    const wouldPick = bits >>> CORE.FEATURE_WOULD_PICK_SHIFT;
    sample.wouldPick = wouldPick === 0 ? undefined : wouldPick - 1;
    const signal = (bit: number, offset: number) =>
      (bits & bit) === 0 ? undefined : view.getFloat32(at + offset, true);
    sample.profile = tag & ((1 << CORE.FEATURE_TAG_SHIFT) - 1);
    sample.tag = tag >>> CORE.FEATURE_TAG_SHIFT;
    sample.modelLow = view.getUint32(at + CORE.FEATURE_MODEL, true);
    sample.modelHigh = view.getUint32(at + CORE.FEATURE_MODEL_HIGH, true);
    sample.promptTokens = view.getUint32(at + CORE.FEATURE_PROMPT, true);
    sample.uncachedTokens = view.getUint32(at + CORE.FEATURE_UNCACHED, true);
    sample.bestCachedTokens = view.getUint32(at + CORE.FEATURE_BEST_CACHED, true);
    sample.inflight = view.getUint32(at + CORE.FEATURE_INFLIGHT, true);
    sample.prefillTokens = view.getUint32(at + CORE.FEATURE_PREFILL_AHEAD, true);
    sample.promptTokensInFlight = view.getUint32(at + CORE.FEATURE_PROMPT_AHEAD, true);
    sample.waiting = signal(CORE.SIGNAL_WAITING, CORE.FEATURE_WAITING);
    sample.running = signal(CORE.SIGNAL_RUNNING, CORE.FEATURE_RUNNING);
    sample.kvUsage = signal(CORE.SIGNAL_KV_USAGE, CORE.FEATURE_KV_USAGE);
    sample.prefillRate = view.getFloat32(at + CORE.FEATURE_PREFILL_RATE, true);
    sample.activeBlocks = view.getUint32(at + CORE.FEATURE_ACTIVE_BLOCKS, true);
  }
}

const outcomeOf: ReadonlyMap<number, Outcome> = new Map(
  Object.entries(OUTCOMES).map(([outcome, number]) => [number, outcome as Outcome]),
);

/** Share of the prompt at the `number`-th place below the GPU. */
function shareOf(below: number, number: number): number {
  return ((below >>> (number * CORE.BELOW_BITS)) & CORE.BELOW_PARTS) / CORE.BELOW_PARTS;
}

function known(value: number): number | undefined {
  return Number.isNaN(value) ? undefined : value;
}

function counted(value: number): number | undefined {
  return value === UNKNOWN_COUNT ? undefined : value;
}
