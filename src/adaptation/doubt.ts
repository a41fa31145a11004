import type { CostSoFar } from './epochs.js';
import { ALARMING } from './guard-rules.js';

/** waits: too few requests have ended · excess: ln of the cost over that of the configured weights, too much */
export type Verdict = 'waits' | 'cleared' | { readonly excess: number };

/**
 * Doubt about an epoch of learned costs whose requests cost far more than those of the configured weights before it.
 * The traffic may have changed as well, so the configured weights decide, and their next epoch tells which it was.
 */
export class Doubt {
  /** Doubted epochs. */
  readonly epochs: number;
  readonly #sinceMs: number;
  #cost: number;
  /** Number of the epoch of the configured weights that tells; undefined = it has not begun. */
  #witness: number | undefined;

  /** @param cost ln of what the doubted epochs cost at least */
  constructor(epochs: number, cost: number, nowMs: number) {
    this.epochs = epochs;
    this.#cost = cost;
    this.#sinceMs = nowMs;
  }

  /** ln of what the doubted epochs cost at least. */
  get cost(): number {
    return this.#cost;
  }

  /** An epoch of the configured weights has begun, or goes on. The first one tells. */
  callWitness(epoch: number): void {
    this.#witness ??= epoch;
  }

  /** Milliseconds for which no epoch of the configured weights has begun. */
  waitsFor(nowMs: number): number {
    return this.#witness === undefined ? nowMs - this.#sinceMs : 0;
  }

  /** Further requests of the doubted epochs have ended, or all. @param cost as in the constructor */
  raise(cost: number): void {
    this.#cost = Math.max(this.#cost, cost);
  }

  /**
   * @param costOf cost so far of an open epoch
   * @param last result of the last epoch of the configured weights that was judged
   */
  verdict(costOf: (epoch: number) => CostSoFar | undefined, last: number): Verdict {
    if (this.#witness === undefined) return 'waits';
    const seen = costOf(this.#witness);
    // Its requests have all arrived, so it was judged.
    if (seen === undefined) return this.#against(last) ?? 'cleared';
    return this.#against(seen.mean + seen.error) ?? 'waits';
  }

  #against(configured: number): { readonly excess: number } | undefined {
    const excess = this.#cost - configured;
    return excess > ALARMING ? { excess } : undefined;
  }
}
