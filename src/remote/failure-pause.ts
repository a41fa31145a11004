/** Failures in a row after which a source is left alone. */
const FAILURES = 5;
const FIRST_PAUSE_MS = 1_000;
const PAUSE_MS_MAX = 30_000;

/**
 * Leaves a failing source alone, for a time that doubles, so that requests do not wait in vain. After each pause one
 * request tries.
 */
export class FailurePause {
  readonly #now: () => number;
  #failures = 0;
  #until = 0;
  #length = FIRST_PAUSE_MS;

  /** @param now milliseconds of a monotonic clock */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Whether a request may try now: none during a pause, then one until its result is known. */
  admits(): boolean {
    if (this.#failures < FAILURES) return true;
    const now = this.#now();
    if (now < this.#until) return false;
    this.#until = now + this.#length;
    return true;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#length = FIRST_PAUSE_MS;
  }

  failed(): void {
    this.#failures++;
    if (this.#failures < FAILURES) return;
    if (this.#failures > FAILURES) this.#length = Math.min(PAUSE_MS_MAX, this.#length * 2);
    this.#until = this.#now() + this.#length;
  }
}
