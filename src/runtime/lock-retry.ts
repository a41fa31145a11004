/**
 * Interval between two tries of an attempt that met the lock of a dead thread. The control thread repairs a lock within
 * milliseconds of the death, unless the lock of another dead thread comes first.
 */
export const LOCK_RETRY_MS = 5;
const PAUSE_MS_MAX = 1_000;
const STALL_MS = 1_000;

export interface LockRetryOptions {
  /** Bound on the pause between two tries in milliseconds; each pause is twice the one before. Default: one second. */
  readonly pauseMsMax?: number;
  /** Called once for every second without progress. */
  readonly stalled?: () => void;
  /** Runs a function after `ms` milliseconds. Default: a timer that does not keep the thread alive. */
  readonly later?: (run: () => void, ms: number) => void;
}

/**
 * Attempts that met the lock of a dead thread. They are repeated together, in order, until the lock has been repaired.
 * No attempt is dropped; their number is bounded by the structure behind the lock.
 */
export class LockRetry {
  readonly #waiting: (() => boolean)[] = [];
  readonly #options: Required<LockRetryOptions>;
  #pauseMs = LOCK_RETRY_MS;
  #stalledMs = 0;

  constructor({
    pauseMsMax = PAUSE_MS_MAX,
    stalled = () => {},
    later = (run, ms) => setTimeout(run, ms).unref(),
  }: LockRetryOptions = {}) {
    this.#options = { pauseMsMax, stalled, later };
  }

  /** Runs an attempt at once, or after the attempts that wait. @param attempt returns false while the lock is held */
  run(attempt: () => boolean): void {
    if (this.#waiting.length > 0 || !attempt()) this.add(attempt);
  }

  /** As `run`, for an attempt that has just failed. */
  add(attempt: () => boolean): void {
    this.#waiting.push(attempt);
    if (this.#waiting.length === 1) this.#wait();
  }

  #wait(): void {
    this.#options.later(() => this.#try(), this.#pauseMs);
  }

  #try(): void {
    const before = this.#waiting.length;
    while (this.#waiting.length > 0 && this.#waiting[0]!()) this.#waiting.shift();
    if (this.#waiting.length < before) this.#progressed();
    else this.#failed();
    if (this.#waiting.length > 0) this.#wait();
  }

  #progressed(): void {
    this.#pauseMs = LOCK_RETRY_MS;
    this.#stalledMs = 0;
  }

  #failed(): void {
    const { pauseMsMax, stalled } = this.#options;
    this.#stalledMs += this.#pauseMs;
    this.#pauseMs = Math.min(pauseMsMax, this.#pauseMs * 2);
    if (this.#stalledMs < STALL_MS) return;
    this.#stalledMs = 0;
    stalled();
  }
}
