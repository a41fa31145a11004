/** First pause before charges are tried again, and the longest: each pause is twice the one before. */
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 1_000;

/**
 * Charges that could not be released because a dead thread holds the lock. They are tried again together, more and more
 * seldom, until the lock has been repaired. None is given up, and there cannot be more of them than the ledger holds.
 */
export class LateReleases {
  readonly #waiting: (() => boolean)[] = [];
  readonly #later: (run: () => void, ms: number) => void;
  #pauseMs = FIRST_PAUSE_MS;

  /** @param later runs something after so many milliseconds; a timer that does not keep the thread alive */
  constructor(later: (run: () => void, ms: number) => void = (run, ms) => setTimeout(run, ms).unref()) {
    this.#later = later;
  }

  /** @param again tries once more; false = the lock is still held */
  add(again: () => boolean): void {
    this.#waiting.push(again);
    if (this.#waiting.length === 1) this.#wait();
  }

  #wait(): void {
    this.#later(() => this.#try(), this.#pauseMs);
  }

  #try(): void {
    const before = this.#waiting.length;
    while (this.#waiting.length > 0 && this.#waiting[0]!()) this.#waiting.shift();
    const progress = this.#waiting.length < before;
    this.#pauseMs = progress ? FIRST_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2);
    if (this.#waiting.length > 0) this.#wait();
  }
}
