import type { Engine, Step } from './engine.js';

/** Lag above which simulated time is skipped, not caught up with in one go. */
const LAG_MS_MAX = 250;

/**
 * Runs an engine against the wall clock: one timer per engine. Timers of Node.js are late by about a millisecond, so
 * the end of a step is reckoned from the end of the step before it, and steps that are due together run together.
 */
export class EnginePacing {
  readonly #engine: Engine;
  #step: Step | undefined;
  #due = 0;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Begins a step after a submission, unless one is under way. */
  wake(): void {
    if (this.#step !== undefined || this.#stopped || this.#timer !== undefined) return;
    // Requests that arrive in the same turn of the event loop share the first step.
    this.#due = performance.now();
    this.#timer = setTimeout(() => this.#run(), 0);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #run(): void {
    this.#timer = undefined;
    const now = performance.now();
    if (now - this.#due > LAG_MS_MAX) this.#due = now;
    while (!this.#stopped && this.#due <= now) {
      if (this.#step !== undefined) this.#engine.complete(this.#step, this.#due);
      this.#step = this.#engine.schedule(this.#due);
      if (this.#step === undefined) return;
      this.#due += this.#step.milliseconds;
    }
    if (!this.#stopped) this.#timer = setTimeout(() => this.#run(), Math.max(0, this.#due - performance.now()));
  }
}
