import type { ComputedTokens } from '../core/decision-log.js';

/** Time over which the tokens are averaged: longer than the pauses of most sessions. */
const MEMORY_MS = 300_000;
/** Bound on the odds in the price: what returns beyond them has no room at any endpoint. */
const PRICED_ODDS_MAX = 0.5;

/**
 * Price of what the tokens of a miss evict. A token that is computed takes the room of another one. With these odds the
 * other one is wanted again before long, is computed again, and evicts in its turn: together 1 + p + p² + …
 * = 1 / (1 - p) tokens. The odds are the share of the computed tokens that had been evicted before, since as many
 * tokens leave full caches as come in; they are 0 while caches have room, and where what is evicted does not return.
 */
export class EvictionPrice {
  #counted: ComputedTokens | undefined;
  #countedMs = 0;
  #computed = 0;
  #evicted = 0;

  /** Takes the tokens since the start of the pool. */
  note(counts: ComputedTokens, nowMs: number): void {
    const before = this.#counted ?? counts;
    const keep = this.#counted === undefined ? 1 : Math.exp((this.#countedMs - nowMs) / MEMORY_MS);
    this.#computed = keep * this.#computed + counts.computed - before.computed;
    this.#evicted = keep * this.#evicted + counts.evicted - before.evicted;
    this.#counted = counts;
    this.#countedMs = nowMs;
  }

  /** Odds that an evicted token is wanted again, 0 to 1. */
  get odds(): number {
    return this.#computed > 0 ? this.#evicted / this.#computed : 0;
  }

  /** Tokens that are computed for a missed one, 1 to 2. */
  get price(): number {
    return 1 / (1 - Math.min(PRICED_ODDS_MAX, this.odds));
  }
}
