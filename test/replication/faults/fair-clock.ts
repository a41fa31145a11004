/** Most that one round may add to the clock. */
export const ROUND_MS_MAX = 50;

/**
 * Time that all processes of a group had at their disposal. A round ends when every process has answered since its
 * begin. However long a round takes, it counts for ROUND_MS_MAX: on a busy machine the clock is slow, so bounds on it
 * hold there too.
 */
export class FairClock {
  readonly #now: () => number;
  #ms = 0;
  #roundMs: number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#roundMs = now();
  }

  /** Fair milliseconds since the start. */
  get ms(): number {
    return this.#ms + Math.min(ROUND_MS_MAX, this.#now() - this.#roundMs);
  }

  /** Notes that every process has answered since the last call. */
  roundEnded(): void {
    this.#ms = this.ms;
    this.#roundMs = this.#now();
  }
}
