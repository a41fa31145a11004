import type { CapacityGate, Evicted } from '../core/capacity-gate.js';
import type { Queues } from './queue-contract.js';

/** Bound on the evictions under way, as in llm-d-router. A wrong estimate costs no more requests than these. */
const AT_ONCE_MAX = 2;
/** Time after which an eviction without an answer counts as lost (docs/internals/flow-control.md). */
const LOST_MS = 2_000;
/** Interval between two searches for victims. Each search scans all charges under the lock. */
const LOOK_MS = 50;
/** Waiting requests for which one search looks for victims. */
const HEADS_MAX = 8;

/** End of an eviction: the request ended, or no answer came in time. */
export type EvictionEnd = 'confirmed' | 'timed_out';

export interface EvictionOptions {
  readonly gate: Pick<CapacityGate, 'evictRequest' | 'isHeld' | 'evictionLost'>;
  readonly queues: Pick<Queues, 'blocked'>;
  /** Wait slot of a waiting request. */
  readonly placeOf: (handle: number) => { readonly thread: number; readonly slot: number };
  /** Tells the shard of a request to end it. */
  readonly tell: (evicted: Evicted) => void;
  /** Counts an eviction for a request of a band. */
  readonly issued: (priority: number) => void;
  /** Counts the end of an eviction, with its duration in seconds. */
  readonly ended: (how: EvictionEnd, seconds: number) => void;
}

/**
 * Evicts running requests of lower bands for waiting ones of higher bands that find no endpoint. Stop and wait: while
 * evictions are under way no further victim is chosen, so that none is evicted in vain. Control thread only.
 */
export class Evictions {
  readonly #options: EvictionOptions;
  readonly #underWay: { readonly evicted: Evicted; readonly sinceMs: number }[] = [];
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(options: EvictionOptions) {
    this.#options = options;
  }

  /** Evictions under way. */
  get underWay(): number {
    return this.#underWay.length;
  }

  /** Time at which an eviction counts as lost, in milliseconds of the pool clock; Infinity = none is under way. */
  get nextMs(): number {
    return this.#underWay.length === 0 ? Number.POSITIVE_INFINITY : this.#underWay[0]!.sinceMs + LOST_MS;
  }

  /** Records evictions that have ended and those that are overdue. */
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

  /** Evicts requests for those that wait after a dispatch, where that makes room. */
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
