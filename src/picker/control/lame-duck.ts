import type { Part } from '../part.js';

export interface LameDuckOptions {
  /** Milliseconds that a drain goes on serving at least, also when idle; 0 = none. */
  readonly timeMs: number;
  /** Requests so far. */
  readonly requests: () => number;
}

/** Time without a new request after which proxies have turned to other replicas. */
const QUIET_MS = 1_000;
const LOOK_MS = 100;

/**
 * Keeps a picker serving after it has reported not ready: proxies learn of that late, and a refused connection or
 * request would fail for a client. Serves for the configured time, and on while requests come, up to half of the drain
 * time: the other half is for the streams that are open then.
 */
export class LameDuck implements Part {
  readonly #options: LameDuckOptions;
  #end = Number.POSITIVE_INFINITY;

  constructor(options: LameDuckOptions) {
    this.#options = options;
  }

  /** A second call ends the first when its time is shorter. */
  async drain(timeoutMs: number): Promise<void> {
    const { timeMs, requests } = this.#options;
    if (timeMs === 0) return;
    const begin = performance.now();
    this.#end = Math.min(this.#end, begin + timeoutMs);
    const least = begin + timeMs;
    const latest = begin + Math.max(timeMs, timeoutMs / 2);
    let seen = requests();
    let quietSince = begin;
    for (;;) {
      const now = performance.now();
      const count = requests();
      if (count !== seen) quietSince = now;
      seen = count;
      const quiet = now - quietSince >= QUIET_MS;
      if (now >= this.#end || now >= latest || (now >= least && quiet)) return;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }
}
