/** Timers of a flow controller. */
export interface FlowTimers {
  /** Runs a function after `ms` milliseconds, at least 0. @returns a function that forgets it */
  after(run: () => void, ms: number): () => void;
  /** Runs a function after the messages and timers that are due now. */
  soon(run: () => void): void;
}

/** Timers of this thread; they do not keep it alive. */
export const threadTimers: FlowTimers = {
  after(run, ms) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
  soon(run) {
    setImmediate(run);
  },
};
