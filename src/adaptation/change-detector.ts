/**
 * Page–Hinkley test (Page 1954) in both directions over relative errors z = ln(observed/predicted). Alarms when the sum
 * of z - mean - drift has risen by more than the threshold above its minimum, or fallen as far below its maximum.
 */
export class ChangeDetector {
  #count = 0;
  #mean = 0;
  #variance = 0;
  #up = 0;
  #down = 0;

  /** @returns whether this observation raises an alarm, which restarts the test */
  observe(z: number): boolean {
    const seen = Math.min(CUT, Math.max(-CUT, z));
    this.#count++;
    const rate = 1 / Math.min(this.#count, MEMORY);
    const deviation = seen - this.#mean;
    this.#mean += rate * deviation;
    this.#variance += rate * (deviation * deviation - this.#variance);
    // Noisy errors need more drift: with 0.05 alone an error of standard deviation 1 alarms every few hundred requests.
    const drift = DRIFT + NOISE * Math.sqrt(this.#variance);
    if (this.#count < WARM_UP) return false;
    this.#up = Math.max(0, this.#up + deviation - drift);
    this.#down = Math.max(0, this.#down - deviation - drift);
    if (this.#up <= THRESHOLD && this.#down <= THRESHOLD) return false;
    this.reset();
    return true;
  }

  reset(): void {
    this.#count = 0;
    this.#mean = 0;
    this.#variance = 0;
    this.#up = 0;
    this.#down = 0;
  }
}

/** Sum of z at which the test alarms. */
const THRESHOLD = 12;
/** Drift of z that is no change: this much, and a share of the standard deviation of z. */
const DRIFT = 0.05;
const NOISE = 0.25;
/** Bound on a single error: errors beyond a factor of e² count as e². */
const CUT = 2;
/** Observations before the first alarm. */
const WARM_UP = 50;
/** Observations over which the mean of the errors is averaged. */
const MEMORY = 1000;
