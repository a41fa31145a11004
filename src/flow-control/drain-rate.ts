/** One step of the average (docs/internals/flow-control.md: 0.1 for each 500 ms, about 5 s together). */
const STEP_MS = 500;
const STEP_SHARE = 0.1;
/** What the band could do once is believed for a while: a pool that stands still for some seconds has not become slower. */
const BEST_HALF_LIFE_MS = 60_000;

/** How many tokens a second leave a band while it has a backlog. Time without a backlog says nothing and is left out. */
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

  /** The best of the last minutes, fading with a half-life of one; undefined as long as nothing is known. */
  bestPerSecond(nowMs: number): number | undefined {
    if (this.#perSecond === undefined) return undefined;
    return Math.max(this.#perSecond, this.#faded(nowMs));
  }

  #faded(nowMs: number): number {
    return this.#best * 0.5 ** ((nowMs - this.#bestMs) / BEST_HALF_LIFE_MS);
  }

  /** The band has something waiting from now on. */
  begin(nowMs: number): void {
    this.#stepStartMs = nowMs;
    this.#tokens = 0;
  }

  /** Nothing waits in the band any more. */
  stop(nowMs: number): void {
    this.look(nowMs);
    this.#stepStartMs = undefined;
  }

  dispatched(tokens: number, nowMs: number): void {
    this.look(nowMs);
    this.#tokens += tokens;
  }

  /** Take the steps that have passed into account. */
  look(nowMs: number): void {
    if (this.#stepStartMs === undefined) return;
    const steps = Math.floor((nowMs - this.#stepStartMs) / STEP_MS);
    if (steps < 1) return;
    const sample = this.#tokens / (STEP_MS / 1000);
    this.#perSecond =
      this.#perSecond === undefined ? sample : this.#perSecond + STEP_SHARE * (sample - this.#perSecond);
    if (this.#perSecond >= this.#faded(nowMs)) [this.#best, this.#bestMs] = [this.#perSecond, nowMs];
    // What was dispatched fell into the first step; in the others there was nothing.
    this.#perSecond *= (1 - STEP_SHARE) ** (steps - 1);
    this.#tokens = 0;
    this.#stepStartMs += steps * STEP_MS;
  }
}
