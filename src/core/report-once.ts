import { errorMessage } from './error-message.js';

/** Reports a problem that is met again and again once: until it is over, or another problem takes its place. */
export class ReportOnce {
  readonly #report: (problem: string) => void;
  #last: string | undefined;

  constructor(report: (problem: string) => void) {
    this.#report = report;
  }

  /** @param problem a text, or what was thrown */
  problem(problem: unknown): void {
    const text = errorMessage(problem);
    if (text === this.#last) return;
    this.#last = text;
    this.#report(text);
  }

  /** The next problem is reported, whichever it is. */
  over(): void {
    this.#last = undefined;
  }
}
