/** A part of a picker with a lifetime. */
export interface Part {
  /** Opens what the part serves or follows. */
  start?(): Promise<void> | void;
  /** Waits until the work of the part has finished, at most `timeoutMs`. A second call may shorten the time. */
  drain?(timeoutMs: number): Promise<void> | void;
  /** Ends the part, also when it was not started or its start failed. */
  stop?(): Promise<void> | void;
}

/** Parts that start one after another, drain in the same order and stop in the reverse order. */
export class PartList {
  readonly #parts: readonly Part[];
  readonly #now: () => number;
  #stopped = false;

  /** @param now milliseconds of a clock that does not go back */
  constructor(parts: readonly (Part | undefined)[], now: () => number = () => performance.now()) {
    this.#parts = parts.filter((part) => part !== undefined);
    this.#now = now;
  }

  /** Starts the parts. When one fails, all of them are stopped. @throws the error of that part */
  async start(): Promise<void> {
    try {
      for (const part of this.#parts) await part.start?.();
    } catch (error) {
      await this.stop(0);
      throw error;
    }
  }

  /** Drains within `drainMs` in all. A second call may shorten the time. */
  async drain(drainMs: number): Promise<void> {
    const end = this.#now() + drainMs;
    for (const part of this.#parts) await part.drain?.(Math.max(0, end - this.#now()));
  }

  /** Drains within `drainMs` in all, then stops. A second call may shorten the time; each part is stopped once. */
  async stop(drainMs: number): Promise<void> {
    await this.drain(drainMs);
    if (this.#stopped) return;
    this.#stopped = true;
    for (const part of [...this.#parts].reverse()) await part.stop?.();
  }
}
