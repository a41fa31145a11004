import type { Rate } from './limits.js';

/** Counts events against a rate. */
export class TokenBucket {
  readonly #rate: Rate;
  #tokens: number;
  #at: number;

  /** @param now milliseconds of a monotonic clock */
  constructor(rate: Rate, now: number) {
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#at = now;
  }

  /** One event at `now`. @returns false when it is one too many */
  take(now: number): boolean {
    if (this.#tokens < 1) {
      const { burst, perSecond } = this.#rate;
      this.#tokens = Math.min(burst, this.#tokens + ((now - this.#at) / 1_000) * perSecond);
      this.#at = now;
    }
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}
