/** Least interval between two updates. */
export const INTERVAL_MS_MIN = 5;
/** Greatest interval while all that is worth it is told: older loads of peers mislead decisions. */
export const INTERVAL_MS_MAX = 20;
/** Greatest interval, once next to no placement is told. */
export const INTERVAL_MS_LAST = 100;
/** Greatest bound on the blocks of a placement that is told without a lot. */
export const BLOCKS_TOLD_MAX = 1_024;
/** Interval at which the time of the exchange is compared with its share. */
const WINDOW_MS = 250;
/** Part of the share below which updates may come more often, and tell more, again. */
const CALM = 0.5;
/** Greatest factor of one step, so that a single busy window is no reason to fall silent. */
const STEP_MAX = 2;

/**
 * Pace of this replica's updates, and what placements they leave out, by the CPU time that the exchange takes here.
 * Every replica receives what all others send, so each one measures the work of all, and they slow down together. First
 * updates come less often: loads are sums, and an interval that is twice as long has half the rows. Then they leave out
 * placements, those of few blocks first. At last they come as rarely as the silence of a peer allows.
 */
export class ExchangePace {
  readonly #share: number;
  #spentMs = 0;
  #beganMs = Number.NaN;
  #intervalMs = INTERVAL_MS_MIN;
  #leastBlocks = 0;
  #usedShare = 0;

  /** @param share of one core that the exchange may take, 0 to 1 */
  constructor(share: number) {
    this.#share = share;
  }

  /** Milliseconds between two updates. */
  get intervalMs(): number {
    return this.#intervalMs;
  }

  /** Blocks from which on every placement is told; one of fewer is told by lot, in proportion. 0 = all are told. */
  get leastBlocks(): number {
    return this.#leastBlocks;
  }

  /** Share of a core that the exchange took in the last window. */
  get usedShare(): number {
    return this.#usedShare;
  }

  /** Whether the exchange takes more than its share although its updates are as rare and short as they may be. */
  get isOver(): boolean {
    return this.#usedShare > this.#share && this.#intervalMs === INTERVAL_MS_LAST;
  }

  /** Adds the time of a call. */
  spent(ms: number): void {
    this.#spentMs += ms;
  }

  /** Whether a placement of so many new blocks is told. @param lot from [0, 1) */
  tells(blocks: number, lot: number): boolean {
    return this.#leastBlocks === 0 || blocks > lot * this.#leastBlocks;
  }

  /** Adapts the pace at the end of a window. */
  look(nowMs: number): void {
    if (Number.isNaN(this.#beganMs)) this.#beganMs = nowMs;
    const elapsedMs = nowMs - this.#beganMs;
    if (elapsedMs < WINDOW_MS) return;
    this.#usedShare = this.#spentMs / elapsedMs;
    this.#spentMs = 0;
    this.#beganMs = nowMs;
    const pressure = this.#usedShare / this.#share;
    if (pressure > 1) this.#slow(Math.min(STEP_MAX, pressure));
    else if (pressure < CALM) this.#hasten();
  }

  #slow(by: number): void {
    if (this.#intervalMs < INTERVAL_MS_MAX) this.#intervalMs = Math.min(INTERVAL_MS_MAX, this.#intervalMs * by);
    else if (this.#leastBlocks < BLOCKS_TOLD_MAX)
      this.#leastBlocks = Math.min(BLOCKS_TOLD_MAX, Math.max(1, this.#leastBlocks) * by);
    else this.#intervalMs = Math.min(INTERVAL_MS_LAST, this.#intervalMs * by);
  }

  #hasten(): void {
    if (this.#intervalMs > INTERVAL_MS_MAX) this.#intervalMs = Math.max(INTERVAL_MS_MAX, this.#intervalMs / STEP_MAX);
    else if (this.#leastBlocks > 0) this.#leastBlocks = this.#leastBlocks <= 1 ? 0 : this.#leastBlocks / STEP_MAX;
    else this.#intervalMs = Math.max(INTERVAL_MS_MIN, this.#intervalMs / STEP_MAX);
  }
}
