/**
 * A loop that waited at least this long had nothing to read before (a poll that finds something at once takes less).
 */
const IDLE_MS_MIN = 0.05;

export interface ArrivalClockOptions {
  /** Milliseconds that the event loop has spent waiting so far. */
  readonly idleMs: () => number;
  /** Runs something at the end of this turn of the event loop. */
  readonly defer: (run: () => void) => void;
}

const THREAD: ArrivalClockOptions = {
  idleMs: () => performance.nodeTiming.idleTime,
  defer: (run) => setImmediate(run),
};

/**
 * When bytes can have come that are read in this turn of the event loop: behind the last reading of the sockets, unless
 * the loop has waited since then with nothing to read.
 */
export class ArrivalClock {
  readonly #options: ArrivalClockOptions;
  #open = false;
  #firstAt = 0;
  #idleMs = 0;
  #earliest = 0;

  constructor(options = THREAD) {
    this.#options = options;
  }

  /**
   * Takes the read of a socket at `now`.
   * @returns the earliest possible arrival of its bytes, if it was read to its end before
   */
  read(now: number): number {
    if (this.#open) return this.#earliest;
    this.#open = true;
    this.#options.defer(this.#close);
    const idle = this.#options.idleMs();
    this.#earliest = idle - this.#idleMs > IDLE_MS_MIN ? now : this.#firstAt;
    this.#idleMs = idle;
    this.#firstAt = now;
    return this.#earliest;
  }

  readonly #close = (): void => {
    this.#open = false;
  };
}
