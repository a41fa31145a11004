/** Time between two reports of one kind. */
const PAUSE_MS = 60_000;

/**
 * Reports of one kind, as many as others can cause: the first one at once, then one a minute at most, with the number of those that it
 * stands for. Has no timer: what follows the last report is told with the next one, and by a counter meanwhile.
 */
export class PacedReport<Details> {
  readonly #report: (details: Details, count: number) => void;
  #count = 0;
  #toldMs = Number.NEGATIVE_INFINITY;

  /** @param report called with the latest details and the number of notes since its last call */
  constructor(report: (details: Details, count: number) => void) {
    this.#report = report;
  }

  note(details: Details, nowMs = performance.now()): void {
    this.#count++;
    if (nowMs - this.#toldMs < PAUSE_MS) return;
    const count = this.#count;
    this.#count = 0;
    this.#toldMs = nowMs;
    this.#report(details, count);
  }
}
