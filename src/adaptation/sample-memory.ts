/** Memory of an estimator: the samples of two minutes, at least 500 and at most 5,000. */
const MEMORY_MS = 120_000;
const MEMORY_MIN = 500;
const MEMORY_MAX = 5000;
/** Samples over which the time between samples is averaged. */
const RATE_MEMORY = 100;

/** Length of an estimator's memory, by the rate of its samples. */
export class SampleMemory {
  #lastMs: number | undefined;
  #gapMs = 0;

  /** Notes the time of a sample. */
  note(nowMs: number): void {
    if (this.#lastMs !== undefined) {
      const gap = Math.max(0, nowMs - this.#lastMs);
      this.#gapMs += (gap - this.#gapMs) / RATE_MEMORY;
    }
    this.#lastMs = nowMs;
  }

  /** Factor on the weight of older samples for each new one. */
  get forget(): number {
    const perMemory = this.#gapMs > 0 ? MEMORY_MS / this.#gapMs : MEMORY_MAX;
    return Math.exp(-1 / Math.min(MEMORY_MAX, Math.max(MEMORY_MIN, perMemory)));
  }
}
