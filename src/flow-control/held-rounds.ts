import type { ReplicaPlace } from '../contract/replica-place.js';

/** Part of a round in which one replica lets held turns go on (docs/internals/held-turns.md, measured there). */
export const PART_MS = 25;
/** Begin of a part, in which the replica hears of the turns that the one before it has dispatched. */
const HEARING_MS = 12;
/** Bound on the parts of a round, so that it stays short. Beyond it several replicas share a part. */
export const PARTS_MAX = 8;

/**
 * Times at which this replica may try held turns. All replicas hear at nearly one time that room is free, and each
 * would let a turn of its own in: so time goes round among them, a part each. A replica alone may always.
 */
export class HeldRounds {
  #part = 0;
  #parts = 1;

  /** Takes the place of this replica. @returns whether its part has changed */
  take({ place, replicas }: ReplicaPlace): boolean {
    const parts = Math.min(Math.max(replicas, 1), PARTS_MAX);
    const part = place % parts;
    if (part === this.#part && parts === this.#parts) return false;
    this.#part = part;
    this.#parts = parts;
    return true;
  }

  /** Whether this replica may let held turns go on. @param wallMs milliseconds since 1970 */
  mayLook(wallMs: number): boolean {
    if (this.#parts === 1) return true;
    return Math.floor(wallMs / PART_MS) % this.#parts === this.#part && wallMs % PART_MS >= HEARING_MS;
  }

  /** Milliseconds until it may the next time anew; Infinity when it is alone. @param wallMs milliseconds since 1970 */
  untilNext(wallMs: number): number {
    if (this.#parts === 1) return Number.POSITIVE_INFINITY;
    const roundMs = this.#parts * PART_MS;
    const sinceMs = (wallMs - this.#part * PART_MS - HEARING_MS) % roundMs;
    return roundMs - (sinceMs < 0 ? sinceMs + roundMs : sinceMs);
  }
}
