import type { CapacityGate, Evicted } from '../core/capacity-gate.js';
import type { Queues } from './queue-contract.js';

/** Requests that may be on their way out at a time, as in llm-d-router: an estimate that is wrong costs no more than these. */
const AT_ONCE_MAX = 2;
/** After so long a request that was to be ended is not waited for any more (docs/internals/flow-control.md). */
const LOST_MS = 2_000;
/** Between two looks for somebody to end: each goes through all charges under the lock. */
const LOOK_MS = 50;
/** Waiting requests that one look asks for. */
const HEADS_MAX = 8;

/** How a request that was to be ended went: it ended, or nothing was heard of it in time. */
export type EvictionEnd = 'confirmed' | 'timed_out';

export interface EvictionOptions {
  readonly gate: Pick<CapacityGate, 'evictRequest' | 'isHeld' | 'evictionLost'>;
  readonly queues: Pick<Queues, 'blocked'>;
  /** Where a waiting request is waiting. */
  readonly placeOf: (handle: number) => { readonly thread: number; readonly slot: number };
  /** Tell its shard to end a request. */
  readonly tell: (evicted: Evicted) => void;
  /** A request is to be ended for one of a band. */
  readonly issued: (priority: number) => void;
  /** What came of it, and after how many seconds. */
  readonly ended: (how: EvictionEnd, seconds: number) => void;
}

/**
 * Ends running requests of lower bands for waiting ones of higher bands that no endpoint takes. Stop and wait: while some are
 * on their way out nobody else is chosen, so that nobody is ended in vain. Control thread only.
 */
export class Evictions {
  readonly #options: EvictionOptions;
  readonly #underWay: { readonly evicted: Evicted; readonly sinceMs: number }[] = [];
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(options: EvictionOptions) {
    this.#options = options;
  }

  /** Requests that have been told to end and have not. */
  get underWay(): number {
    return this.#underWay.length;
  }

  /** When one of them counts as lost, in milliseconds of the pool clock; Infinity = none is under way. */
  get nextMs(): number {
    return this.#underWay.length === 0 ? Number.POSITIVE_INFINITY : this.#underWay[0]!.sinceMs + LOST_MS;
  }

  /** Take note of those that have ended, and of those that should have. */
  settle(nowMs: number): void {
    const { gate, ended } = this.#options;
    for (let i = this.#underWay.length - 1; i >= 0; i--) {
      const { evicted, sinceMs } = this.#underWay[i]!;
      const held = gate.isHeld(evicted);
      if (held && (nowMs < sinceMs + LOST_MS || !gate.evictionLost(evicted))) continue;
      this.#underWay.splice(i, 1);
      ended(held ? 'timed_out' : 'confirmed', (nowMs - sinceMs) / 1_000);
    }
  }

  /** Something waits after a dispatch: end requests for it where that helps. */
  demand(nowMs: number): void {
    if (this.#underWay.length > 0 || nowMs < this.#lookedMs + LOOK_MS) return;
    this.#lookedMs = nowMs;
    let heads = 0;
    this.#options.queues.blocked((handle, priority) => {
      this.#endFor(handle, priority, nowMs);
      return this.#underWay.length < AT_ONCE_MAX && ++heads < HEADS_MAX;
    });
  }

  #endFor(handle: number, priority: number, nowMs: number): void {
    const { gate, placeOf, tell, issued } = this.#options;
    const { thread, slot } = placeOf(handle);
    while (this.#underWay.length < AT_ONCE_MAX) {
      const evicted = gate.evictRequest(thread, slot, nowMs);
      if (evicted === undefined) return;
      this.#underWay.push({ evicted, sinceMs: nowMs });
      issued(priority);
      tell(evicted);
    }
  }
}
