import { errorMessage } from './error-message.js';

/** Reports a recurring problem once, until it is over or another problem replaces it. */
export class ReportOnce {
  readonly #report: (problem: string) => void;
  #last: string | undefined;

  constructor(report: (problem: string) => void) {
    this.#report = report;
  }

  /** @param problem a text or a thrown value */
  problem(problem: unknown): void {
    const text = errorMessage(problem);
    if (text === this.#last) return;
    this.#last = text;
    this.#report(text);
  }

  /** The problem of now; undefined = there is none. */
  get present(): string | undefined {
    return this.#last;
  }

  /** Ends the problem. The next one is reported, also an equal one. */
  over(): void {
    this.#last = undefined;
  }
}
