/** Least interval between two updates. */
export const INTERVAL_MS_MIN = 5;
/** Greatest interval: older loads of peers mislead decisions. */
export const INTERVAL_MS_MAX = 20;
/** Interval at which the time of the exchange is compared with its share. */
const WINDOW_MS = 250;
/** Part of the share below which updates may come more often again. */
const CALM = 0.5;

/**
 * Interval between two updates of this replica, by the CPU time that the exchange takes here. Every replica receives
 * what all others send, so each one measures the work of all, and they slow down together. Loads are sums: an interval
 * that is twice as long has half the rows.
 */
export class ExchangePace {
  readonly #share: number;
  #spentMs = 0;
  #beganMs = Number.NaN;
  #intervalMs = INTERVAL_MS_MIN;
  #usedShare = 0;

  /** @param share of one core that the exchange may take, 0 to 1 */
  constructor(share: number) {
    this.#share = share;
  }

  /** Milliseconds between two updates. */
  get intervalMs(): number {
    return this.#intervalMs;
  }

  /** Share of a core that the exchange took in the last window. */
  get usedShare(): number {
    return this.#usedShare;
  }

  /** Whether the exchange takes more than its share although its updates come as rarely as they may. */
  get isOver(): boolean {
    return this.#usedShare > this.#share && this.#intervalMs === INTERVAL_MS_MAX;
  }

  /** Adds the time of a call. */
  spent(ms: number): void {
    this.#spentMs += ms;
  }

  /** Adapts the interval at the end of a window. */
  look(nowMs: number): void {
    if (Number.isNaN(this.#beganMs)) this.#beganMs = nowMs;
    const elapsedMs = nowMs - this.#beganMs;
    if (elapsedMs < WINDOW_MS) return;
    this.#usedShare = this.#spentMs / elapsedMs;
    this.#spentMs = 0;
    this.#beganMs = nowMs;
    const pressure = this.#usedShare / this.#share;
    if (pressure > 1) this.#set(this.#intervalMs * Math.min(2, pressure));
    else if (pressure < CALM) this.#set(this.#intervalMs / 2);
  }

  #set(ms: number): void {
    this.#intervalMs = Math.min(INTERVAL_MS_MAX, Math.max(INTERVAL_MS_MIN, ms));
  }
}
