import { CORE } from './core-names.js';
import { type Label, OUTCOMES, type Outcome, UNKNOWN_COUNT } from './label.js';
import type { CoreInstance } from './memory.js';

/**
 * Records this near to being overwritten are taken as lost: their writer may be at work on them already, and plain
 * reads of another thread's writes come in no particular order.
 */
const MARGIN = 16;

/**
 * Reads the label rings of all threads, each record once. Every consumer has a reader of its own, with its own place in
 * the rings; readers do not disturb each other or the writers. What a consumer does not take in time is lost and counted.
 */
export class LabelReader {
  readonly #core: CoreInstance;
  readonly #rings: number;
  /** By thread: number of the next record. */
  readonly #next: Uint32Array;
  readonly #label = {} as Label;
  #lost = 0;

  /** @param from 'now' = only what is written from now on; 'oldest' = what the rings still hold as well */
  constructor(core: CoreInstance, from: 'now' | 'oldest' = 'now') {
    this.#core = core;
    this.#rings = core.call.regionAddress(CORE.REGION_LABEL_RING) >>> 0;
    this.#next = new Uint32Array(core.sizes.threads);
    const kept = CORE.LABEL_COUNT - MARGIN;
    for (let thread = 0; thread < this.#next.length; thread++) {
      const written = this.#written(thread);
      this.#next[thread] = from === 'now' ? written : written - Math.min(written, kept);
    }
  }

  /** Records that were overwritten before this reader came to them. */
  get lost(): number {
    return this.#lost;
  }

  /**
   * Hand over the records that are new, thread by thread, each thread's in order. The label belongs to the reader and is
   * overwritten by the next one.
   * @param limit how many at most
   * @returns how many; fewer than `limit` = nothing is left
   */
  drain(visit: (label: Label) => void, limit = Number.POSITIVE_INFINITY): number {
    let count = 0;
    for (let thread = 0; thread < this.#next.length && count < limit; thread++) {
      count += this.#drainThread(thread, visit, limit - count);
    }
    return count;
  }

  #written(thread: number): number {
    return Atomics.load(this.#core.i32, this.#ringOf(thread) >>> 2) >>> 0;
  }

  #ringOf(thread: number): number {
    return this.#rings + thread * CORE.LABEL_RING_BYTES;
  }

  #drainThread(thread: number, visit: (label: Label) => void, limit: number): number {
    const { LABEL_COUNT: size, LABEL_BYTES: bytes } = CORE;
    const kept = size! - MARGIN;
    let count = 0;
    for (let behind = this.#behind(thread); behind > 0 && count < limit; behind = this.#behind(thread)) {
      if (behind > kept) this.#skip(thread, behind - kept);
      const number = this.#next[thread]!;
      this.#read(this.#ringOf(thread) + 64 + (number % size!) * bytes!);
      // The record counts only if its writer was not near it while it was read.
      if (this.#behind(thread) > kept) {
        this.#skip(thread, 1);
        continue;
      }
      this.#next[thread] = number + 1;
      visit(this.#label);
      count++;
    }
    return count;
  }

  /** Records written and not read; the counts wrap round at 2^32 together. */
  #behind(thread: number): number {
    return (this.#written(thread) - this.#next[thread]!) >>> 0;
  }

  #skip(thread: number, records: number): void {
    this.#next[thread]! += records;
    this.#lost += records;
  }

  #read(at: number): void {
    const { view } = this.#core;
    const label = this.#label;
    label.timeMs = view.getFloat64(at, true);
    label.slot = view.getUint32(at + 8, true);
    label.slotGeneration = view.getUint32(at + 12, true);
    this.#readFeatures(at + CORE.LABEL_FEATURES);
    label.outcome = outcomeOf.get(view.getUint32(at + CORE.LABEL_OUTCOME, true))!;
    label.firstOutputMs = known(view.getFloat32(at + CORE.LABEL_FIRST_OUTPUT, true));
    label.perTokenMs = known(view.getFloat32(at + CORE.LABEL_PER_TOKEN, true));
    label.durationMs = view.getFloat32(at + CORE.LABEL_DURATION, true);
    label.outputTokens = counted(view.getUint32(at + CORE.LABEL_OUTPUT_TOKENS, true));
    label.reportedPromptTokens = counted(view.getUint32(at + CORE.LABEL_PROMPT_TOKENS, true));
    label.cachedTokens = counted(view.getUint32(at + CORE.LABEL_CACHED_TOKENS, true));
    label.inflightAtEnd = view.getUint32(at + CORE.LABEL_INFLIGHT_AT_END, true);
    label.promptTokensAtEnd = view.getUint32(at + CORE.LABEL_PROMPT_AT_END, true);
    label.staged = view.getUint32(at + CORE.LABEL_STAGED, true) !== 0;
    label.priority = view.getInt32(at + CORE.LABEL_PRIORITY, true);
  }

  #readFeatures(at: number): void {
    const { view } = this.#core;
    const label = this.#label;
    const tag = view.getUint32(at + CORE.FEATURE_TAG, true);
    const bits = view.getUint32(at + CORE.FEATURE_KNOWN, true);
    const wouldPick = bits >>> 16;
    label.wouldPick = wouldPick === 0 ? undefined : wouldPick - 1;
    const signal = (bit: number, offset: number) =>
      (bits & bit) === 0 ? undefined : view.getFloat32(at + offset, true);
    label.profile = tag & 0xff;
    label.tag = tag >>> 8;
    label.modelLow = view.getUint32(at + CORE.FEATURE_MODEL, true);
    label.modelHigh = view.getUint32(at + CORE.FEATURE_MODEL + 4, true);
    label.promptTokens = view.getUint32(at + CORE.FEATURE_PROMPT, true);
    label.uncachedTokens = view.getUint32(at + CORE.FEATURE_UNCACHED, true);
    label.bestCachedTokens = view.getUint32(at + CORE.FEATURE_BEST_CACHED, true);
    label.inflight = view.getUint32(at + CORE.FEATURE_INFLIGHT, true);
    label.prefillTokens = view.getUint32(at + CORE.FEATURE_PREFILL_AHEAD, true);
    label.promptTokensInFlight = view.getUint32(at + CORE.FEATURE_PROMPT_AHEAD, true);
    label.waiting = signal(CORE.SIGNAL_WAITING, CORE.FEATURE_WAITING);
    label.running = signal(CORE.SIGNAL_RUNNING, CORE.FEATURE_RUNNING);
    label.kvUsage = signal(CORE.SIGNAL_KV_USAGE, CORE.FEATURE_KV_USAGE);
    label.prefillRate = view.getFloat32(at + CORE.FEATURE_PREFILL_RATE, true);
    label.activeBlocks = view.getUint32(at + CORE.FEATURE_ACTIVE_BLOCKS, true);
  }
}

const outcomeOf: ReadonlyMap<number, Outcome> = new Map(
  Object.entries(OUTCOMES).map(([outcome, number]) => [number, outcome as Outcome]),
);

function known(value: number): number | undefined {
  return Number.isNaN(value) ? undefined : value;
}

function counted(value: number): number | undefined {
  return value === UNKNOWN_COUNT ? undefined : value;
}
