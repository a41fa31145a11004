/** Times to first output of the requests that were decided in one step of the history, in milliseconds. */
export interface FitPoint {
  /** Milliseconds of the clock of the samples at the start of the step. */
  readonly timeMs: number;
  /** Means over the requests; as predicted before they were learned from. */
  readonly predictedMs: number;
  readonly observedMs: number;
}

const STEP_MS = 10_000;
/** Five minutes. */
const STEPS_MAX = 30;

/** Predicted and observed times of the last minutes, by the time of the decision. */
export class FitHistory {
  /** Number of the step at each place; -1 = none. */
  readonly #steps = new Float64Array(STEPS_MAX).fill(-1);
  readonly #predicted = new Float64Array(STEPS_MAX);
  readonly #observed = new Float64Array(STEPS_MAX);
  readonly #counts = new Uint32Array(STEPS_MAX);

  /** Adds a request that was decided at `timeMs`. One whose step has left the history is not added. */
  note(timeMs: number, predictedMs: number, observedMs: number): void {
    const step = Math.floor(timeMs / STEP_MS);
    const at = step % STEPS_MAX;
    if (step < this.#steps[at]!) return;
    if (step > this.#steps[at]!) {
      this.#steps[at] = step;
      this.#predicted[at] = this.#observed[at] = this.#counts[at] = 0;
    }
    this.#predicted[at]! += predictedMs;
    this.#observed[at]! += observedMs;
    this.#counts[at]! += 1;
  }

  /** The steps with requests that began in the last five minutes before `nowMs`, the oldest first. */
  points(nowMs: number): FitPoint[] {
    const oldest = Math.floor(nowMs / STEP_MS) - STEPS_MAX;
    return [...this.#steps.entries()]
      .filter(([, step]) => step >= 0 && step > oldest)
      .sort(([, a], [, b]) => a - b)
      .map(([at, step]) => ({
        timeMs: step * STEP_MS,
        predictedMs: this.#predicted[at]! / this.#counts[at]!,
        observedMs: this.#observed[at]! / this.#counts[at]!,
      }));
  }
}
