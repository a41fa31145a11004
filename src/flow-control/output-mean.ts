import { PRIOR_OUTPUT_TOKENS } from './flow-table.js';

/** Weight of the prior in requests (docs/internals/flow-control.md). */
const PRIOR_REQUESTS = 4;
const FADE_MS = 60_000;

/**
 * Mean output of the pool's requests: generated tokens divided by completions, both fading within a minute. Tokens of
 * running requests count, so that short requests, which end first, do not lower the mean.
 */
export class OutputMean {
  #tokens = PRIOR_REQUESTS * PRIOR_OUTPUT_TOKENS;
  #completions = PRIOR_REQUESTS;
  #sinceMs: number | undefined;

  /** Mean in tokens. */
  get value(): number {
    return this.#completions > 0 ? this.#tokens / this.#completions : PRIOR_OUTPUT_TOKENS;
  }

  generated(tokens: number, nowMs: number): void {
    this.#fade(nowMs);
    this.#tokens += tokens;
  }

  completed(nowMs: number): void {
    this.#fade(nowMs);
    this.#completions += 1;
  }

  #fade(nowMs: number): void {
    this.#sinceMs ??= nowMs;
    const elapsed = nowMs - this.#sinceMs;
    if (elapsed < 1) return;
    // One prior request remains, so that a quiet pool does not divide 0 by 0.
    const share = Math.exp(-elapsed / FADE_MS);
    this.#tokens = this.#tokens * share + PRIOR_OUTPUT_TOKENS * (1 - share);
    this.#completions = this.#completions * share + (1 - share);
    this.#sinceMs = nowMs;
  }
}
