/** Step of the average (docs/internals/flow-control.md: weight 0.1 per 500 ms, about 5 s in total). */
const STEP_MS = 500;
const STEP_SHARE = 0.1;
/** Half-life of the best rate. A pool that stands still for some seconds has not become slower. */
const BEST_HALF_LIFE_MS = 60_000;

/** Tokens per second that leave a band while it has a backlog. Time without a backlog is left out. */
export class DrainRate {
  #perSecond: number | undefined;
  #tokens = 0;
  #stepStartMs: number | undefined;
  #best = 0;
  #bestMs = 0;

  /** Tokens per second; undefined until the band has had a backlog for one step. */
  get tokensPerSecond(): number | undefined {
    return this.#perSecond;
  }

  /** The best rate of the last minutes, fading with a half-life of one minute; undefined while unknown. */
  bestPerSecond(nowMs: number): number | undefined {
    if (this.#perSecond === undefined) return undefined;
    return Math.max(this.#perSecond, this.#faded(nowMs));
  }

  #faded(nowMs: number): number {
    return this.#best * 0.5 ** ((nowMs - this.#bestMs) / BEST_HALF_LIFE_MS);
  }

  /** Starts the measurement: the band has a waiting request. */
  begin(nowMs: number): void {
    this.#stepStartMs = nowMs;
    this.#tokens = 0;
  }

  /** Stops the measurement: the band has no waiting request. */
  stop(nowMs: number): void {
    this.update(nowMs);
    this.#stepStartMs = undefined;
  }

  dispatched(tokens: number, nowMs: number): void {
    this.update(nowMs);
    this.#tokens += tokens;
  }

  /** Adds the steps that have passed to the average. */
  update(nowMs: number): void {
    if (this.#stepStartMs === undefined) return;
    const steps = Math.floor((nowMs - this.#stepStartMs) / STEP_MS);
    if (steps < 1) return;
    const sample = this.#tokens / (STEP_MS / 1000);
    this.#perSecond =
      this.#perSecond === undefined ? sample : this.#perSecond + STEP_SHARE * (sample - this.#perSecond);
    if (this.#perSecond >= this.#faded(nowMs)) [this.#best, this.#bestMs] = [this.#perSecond, nowMs];
    // All dispatched tokens belong to the first step; the other steps were empty.
    this.#perSecond *= (1 - STEP_SHARE) ** (steps - 1);
    this.#tokens = 0;
    this.#stepStartMs += steps * STEP_MS;
  }
}
