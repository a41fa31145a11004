/**
 * Pause before the second restart in a row of a shard, doubled for each later one, so that a busy port can become free.
 */
const RESTART_PAUSE_MS = 100;
const RESTART_PAUSE_MS_MAX = 30_000;
/** Time of service after which a shard's count of restarts begins anew. */
const SERVED_MS_MIN = 60_000;

interface Count {
  /** Restarts in a row. */
  restarts: number;
  listensSince: number | undefined;
}

/**
 * Restarts of each shard. They are spread over time, so that a shard that dies again and again takes nothing from the
 * others.
 */
export class Restarts {
  readonly #counts = new Map<number, Count>();
  readonly #now: () => number;

  /** @param now milliseconds of a clock that does not go back */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Notes that the shard listens. */
  listens(thread: number): void {
    this.#of(thread).listensSince = this.#now();
  }

  /** Takes the death of a shard. @returns milliseconds until it is started again */
  pauseOf(thread: number): number {
    const count = this.#of(thread);
    const since = count.listensSince;
    if (since !== undefined && this.#now() - since >= SERVED_MS_MIN) count.restarts = 0;
    count.listensSince = undefined;
    const before = count.restarts++;
    return before === 0 ? 0 : Math.min(RESTART_PAUSE_MS_MAX, RESTART_PAUSE_MS * 2 ** before);
  }

  /** Restarts in a row of the shard. */
  inARow(thread: number): number {
    return this.#of(thread).restarts;
  }

  #of(thread: number): Count {
    let count = this.#counts.get(thread);
    if (count === undefined) {
      count = { restarts: 0, listensSince: undefined };
      this.#counts.set(thread, count);
    }
    return count;
  }
}
