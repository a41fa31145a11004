import type { DispatchResult } from './queue-contract.js';

/** Bound on the rounds in a row that end because room came for a higher band. */
const OVERTAKEN_MAX = 8;

/**
 * Rounds of tries over the bands, each from the highest on. Shards free places meanwhile: one that came after a higher
 * band had found none is that band's. The bell has rung then, and the round that follows begins with it.
 */
export class BandRound {
  /** Highest band that has found no room in this round, and the count of the bell before it was tried. */
  #closedBand = Number.NEGATIVE_INFINITY;
  #rungBefore = 0;
  /** Rounds in a row that ended because room came for a higher band. */
  #overtaken = 0;

  /** Begins a round: every band may have room again. */
  begin(): void {
    this.#closedBand = Number.NEGATIVE_INFINITY;
  }

  /**
   * Tries a request of a band, unless room may have come for a higher one.
   * @param rung count of the bell now; it rises with whatever may give a waiting request room
   * @returns `stopped` = the round has to end
   */
  try(priority: number, rung: number, tryDispatch: () => DispatchResult): DispatchResult {
    const isLower = priority < this.#closedBand;
    if (isLower && rung !== this.#rungBefore && this.#overtaken < OVERTAKEN_MAX) {
      this.#overtaken++;
      return 'stopped';
    }
    const result = tryDispatch();
    if (isLower) this.#overtaken = 0;
    else if (result === 'closed' && priority > this.#closedBand) {
      this.#closedBand = priority;
      this.#rungBefore = rung;
    }
    return result;
  }
}
