// What the log says of processing modes that cost requests, or work (docs/guides/processing-modes.md).
import type { RequestRecorder } from '../response/recorder.js';
import { PacedReport } from '../runtime/paced-report.js';

interface WarningLog {
  warn(details: object, message: string): void;
}

/** Answers whose bodies the proxy sends although no decision of the configuration depends on them. */
export class UnreadAnswers {
  readonly #recorder: Pick<RequestRecorder, 'unreadAnswer'>;
  readonly #log: WarningLog;
  #told = false;

  constructor(recorder: Pick<RequestRecorder, 'unreadAnswer'>, log: WarningLog) {
    this.#recorder = recorder;
    this.#log = log;
  }

  /** Counts one answer; the first one is logged. */
  note(): void {
    this.#recorder.unreadAnswer();
    if (this.#told) return;
    this.#told = true;
    this.#log.warn(
      { metric: 'pointsman_unread_answers_total' },
      'the proxy sends bodies of answers on which no decision depends: response_body_mode NONE saves their way, ' +
        'and with it the metrics of tokens and of first tokens (docs/guides/processing-modes.md)',
    );
  }
}

/** Requests that are refused since their proxy sends bodies in a mode of no use; each of them has a 500. */
export function unusableModes(log: WarningLog): PacedReport<string> {
  return new PacedReport((problem, refused) => log.warn({ refused }, `${problem} (docs/guides/processing-modes.md)`));
}
