/** Interval of which the least lag is kept, together with the one before. */
const INTERVAL_MS = 10_000;

/**
 * Least lag of the messages of one sender within the last 10 to 20 s. The clocks of two machines differ by an unknown
 * constant, so a lag says nothing by itself; its excess over the least one is time under way.
 */
export class UsualLag {
  #leastMs = Number.POSITIVE_INFINITY;
  #leastBeforeMs = Number.POSITIVE_INFINITY;
  #sinceMs = Number.NEGATIVE_INFINITY;

  /** Notes the lag of a message. @returns milliseconds by which it exceeds the least one */
  excess(lagMs: number, nowMs: number): number {
    if (nowMs - this.#sinceMs > INTERVAL_MS) {
      this.#leastBeforeMs = this.#leastMs;
      this.#leastMs = lagMs;
      this.#sinceMs = nowMs;
    }
    this.#leastMs = Math.min(this.#leastMs, lagMs);
    return lagMs - Math.min(this.#leastMs, this.#leastBeforeMs);
  }
}
