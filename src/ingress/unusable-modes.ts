/** Log that names the problem. */
interface WarningLog {
  warn(details: object, message: string): void;
}

/** Interval between two log lines, in milliseconds. */
const INTERVAL_MS = 60_000;

/** Requests that are refused since their proxy sends bodies in a mode of no use. Each of them has a 500. */
export class UnusableModes {
  readonly #log: WarningLog;
  readonly #now: () => number;
  #refused = 0;
  #nextMs = Number.NEGATIVE_INFINITY;

  /** @param now milliseconds of a monotonic clock */
  constructor(log: WarningLog, now: () => number) {
    this.#log = log;
    this.#now = now;
  }

  /** Counts one request; a line a minute says how many there were. */
  note(problem: string): void {
    this.#refused++;
    const now = this.#now();
    if (now < this.#nextMs) return;
    this.#nextMs = now + INTERVAL_MS;
    this.#log.warn({ refused: this.#refused }, `${problem} (docs/guides/processing-modes.md)`);
    this.#refused = 0;
  }
}
