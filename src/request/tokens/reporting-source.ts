import { PacedReport } from '../../runtime/paced-report.js';
import type { PromptBody, SegmentsState, TokenFailure, Tokenised, TokenSource } from './token-source.js';

/** Log that names the failures. */
interface WarningLog {
  warn(details: object, message: string): void;
}

/** A token source whose failures are logged: each outcome at most once a minute, with the reason and their number. */
export class ReportingSource implements TokenSource {
  readonly #source: TokenSource;
  readonly #log: WarningLog;
  readonly #reports = new Map<TokenFailure, PacedReport<string>>();

  constructor(source: TokenSource, log: WarningLog) {
    this.#source = source;
    this.#log = log;
  }

  reads(prompt: Parameters<TokenSource['reads']>[0]): boolean {
    return this.#source.reads(prompt);
  }

  async tokenise(body: PromptBody, signal: AbortSignal): Promise<Tokenised> {
    const tokenised = await this.#source.tokenise(body, signal);
    // A client that has left is no failure of the source.
    if (tokenised.outcome !== 'tokenised' && !signal.aborted) this.#report(tokenised.outcome).note(tokenised.why);
    return tokenised;
  }

  get segments(): SegmentsState | undefined {
    return this.#source.segments;
  }

  close(): Promise<void> {
    return this.#source.close();
  }

  #report(outcome: TokenFailure): PacedReport<string> {
    let report = this.#reports.get(outcome);
    if (report === undefined) {
      report = new PacedReport((why, prompts) =>
        this.#log.warn(
          { part: 'tokens', outcome, prompts },
          `a prompt got no tokens and is estimated: ${why} (docs/tokens.md)`,
        ),
      );
      this.#reports.set(outcome, report);
    }
    return report;
  }
}
