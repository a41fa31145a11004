/** Time between two reports of one kind. */
const PAUSE_MS = 60_000;

/**
 * Reports of one kind that others can cause in any number: the first ones at once, then at most one a minute, with the
 * number of reports left out. Has no timer: what follows the last report is told with the next one, and by a counter
 * meanwhile.
 */
export class PacedReport<Details> {
  readonly #report: (details: Details, count: number) => void;
  readonly #atOnce: number;
  #count = 0;
  /** Reports of the present minute, which began at the first one. */
  #told = 0;
  #sinceMs = Number.NEGATIVE_INFINITY;

  /**
   * @param report called with the latest details and the number of notes since its last call
   * @param atOnce reports of a minute that are made at once
   */
  constructor(report: (details: Details, count: number) => void, atOnce = 1) {
    this.#report = report;
    this.#atOnce = atOnce;
  }

  note(details: Details, nowMs = performance.now()): void {
    this.#count++;
    if (nowMs - this.#sinceMs >= PAUSE_MS) {
      this.#sinceMs = nowMs;
      this.#told = 0;
    }
    if (this.#told >= this.#atOnce) return;
    const count = this.#count;
    this.#count = 0;
    this.#told++;
    this.#report(details, count);
  }
}
