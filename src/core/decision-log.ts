import { CORE } from './core-names.js';
import { type DecisionStatus, decisionStatuses } from './decider.js';
import type { CoreInstance } from './memory.js';

/** One decision as recorded by its thread. */
export interface DecisionRecord {
  /** Milliseconds of the pool clock. */
  readonly timeMs: number;
  readonly thread: number;
  readonly status: DecisionStatus;
  readonly profile: number;
  /** Whether the decision is for the same request as the thread's previous one. */
  readonly further: boolean;
  /** Slot of the first pick; undefined without a pick. */
  readonly slot: number | undefined;
  /** Endpoints that passed the filters. */
  readonly candidates: number;
  readonly matchedBlocks: number;
  readonly totalBlocks: number;
  readonly score: number;
  readonly promptTokens: number;
  /** Charged tokens. */
  readonly uncachedTokens: number;
}

/**
 * Reads the decision rings of all threads. A record may be overwritten while it is read, because the ring keeps the
 * newest.
 */
export class DecisionLog {
  readonly #core: CoreInstance;
  readonly #rings: number;

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#rings = core.call.regionAddress(CORE.REGION_DECISIONS) >>> 0;
  }

  /** The last decisions of all threads, newest first, at most `limit`. */
  recent(limit: number): DecisionRecord[] {
    const records: DecisionRecord[] = [];
    for (let thread = 0; thread < this.#core.sizes.threads; thread++) records.push(...this.#ofThread(thread, limit));
    return records.sort((a, b) => b.timeMs - a.timeMs).slice(0, limit);
  }

  #ofThread(thread: number, limit: number): DecisionRecord[] {
    const { i32 } = this.#core;
    const ring = this.#rings + thread * CORE.DECISION_RING_BYTES;
    const made = Atomics.load(i32, ring >>> 2) >>> 0;
    const kept = Math.min(made, CORE.DECISION_COUNT - 1, limit);
    return Array.from({ length: kept }, (_, age) =>
      this.#read(ring + 64 + ((made - 1 - age) % CORE.DECISION_COUNT) * CORE.DECISION_BYTES),
    );
  }

  #read(at: number): DecisionRecord {
    const { view } = this.#core;
    const word = (offset: number) => view.getUint32(at + offset, true);
    const slot = word(20);
    return {
      timeMs: view.getFloat64(at, true),
      thread: word(8),
      status: decisionStatuses[word(12)]!,
      profile: word(16),
      slot: slot === 0xffff_ffff ? undefined : slot,
      candidates: word(24),
      matchedBlocks: word(28),
      totalBlocks: word(32),
      score: view.getFloat32(at + 36, true),
      promptTokens: word(40),
      uncachedTokens: word(44),
      further: word(48) === 1,
    };
  }
}
