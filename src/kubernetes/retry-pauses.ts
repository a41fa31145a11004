/** Settings of the pauses between the tries of a reflector. */
interface PauseOptions {
  /** Longest pause between two tries. */
  readonly backoffMsMax: number;
  /** Pause before the cluster is asked again for a missing kind. Default 5 s. */
  readonly absentRetryMs?: number;
}

const BACKOFF_MS_MIN = 100;
/**
 * Pause after the first 403, doubled for each further one. A server that has just started refuses everything for up to
 * a second, until it has read its roles (seen with 1.36).
 */
const FORBIDDEN_RETRY_MS = 1_000;
const FORBIDDEN_RETRY_MS_MAX = 30_000;
const ABSENT_RETRY_MS = 5_000;
/** A server that has just started can answer 404 for custom resources: the second answer counts. */
const ABSENT_CONFIRM_MS = 1_000;
/** Failures of one kind that are counted; each doubles a pause. */
const DOUBLINGS_MAX = 16;

/** Pauses of a reflector before its next try, by the failures in a row. */
export class RetryPauses {
  readonly #options: PauseOptions;
  readonly #random: () => number;
  #failures = 0;
  #misses = 0;
  #refusals = 0;
  #unauthorised = 0;

  /** @param random from [0, 1) */
  constructor(options: PauseOptions, random: () => number) {
    this.#options = options;
    this.#random = random;
  }

  /** Takes a stream that has shown a healthy server. */
  streamed(): void {
    this.#failures = 0;
  }

  /** Takes a good answer of the server. */
  answered(): void {
    this.#misses = 0;
    this.#refusals = 0;
    this.#unauthorised = 0;
  }

  /** Takes an answer with a status other than 200, which ends a row of others. */
  failedWith(status: number): void {
    if (status !== 404) this.#misses = 0;
    if (status !== 403) this.#refusals = 0;
  }

  /** Counts a failure. @returns the pause after it, in milliseconds */
  backoffMs(): number {
    const full = Math.min(this.#options.backoffMsMax, BACKOFF_MS_MIN * 2 ** Math.min(this.#failures, DOUBLINGS_MAX));
    this.#failures++;
    return full / 2 + (full / 2) * this.#random();
  }

  /** Pause before a further first state: none, unless the last one has just failed as well. */
  relistMs(): number {
    if (this.#failures > 0) return this.backoffMs();
    this.#failures++;
    return 0;
  }

  /** Counts a 403. @returns the pause after it, and whether it is not the first one */
  forbidden(): { readonly pauseMs: number; readonly isLasting: boolean } {
    const full = Math.min(FORBIDDEN_RETRY_MS * 2 ** this.#refusals, FORBIDDEN_RETRY_MS_MAX);
    this.#refusals = Math.min(this.#refusals + 1, DOUBLINGS_MAX);
    return { pauseMs: full * (0.9 + 0.2 * this.#random()), isLasting: this.#refusals >= 2 };
  }

  /** Counts a 404. @returns the pause after it, and whether it is not the first one */
  missing(): { readonly pauseMs: number; readonly isConfirmed: boolean } {
    const isConfirmed = this.#misses++ > 0;
    const pauseMs = isConfirmed ? (this.#options.absentRetryMs ?? ABSENT_RETRY_MS) : ABSENT_CONFIRM_MS;
    return { pauseMs, isConfirmed };
  }

  /** Counts a 401. @returns whether it is not the first one: fresh credentials were refused as well */
  isUnauthorised(): boolean {
    return ++this.#unauthorised >= 2;
  }
}
