/** Interval at which the time of the polls is compared with its share. */
const WINDOW_MS = 500;
/** Longest interval of an endpoint without traffic, as long as the share is enough for that. */
const QUIET_MS = 1_000;
/** Longest interval of any endpoint: with it the share may be exceeded. */
const INTERVAL_MS_MAX = 10_000;
/** Weight of a window in the mean time of a poll. */
const WEIGHT = 0.3;

/** Endpoints by what their polls are worth. */
export interface PolledNumbers {
  /** Endpoints with requests in flight, or whose signals have changed of late. */
  readonly busy: number;
  /** All others. */
  readonly quiet: number;
}

/** Intervals of polls in milliseconds. */
export interface PollIntervals {
  readonly busyMs: number;
  readonly quietMs: number;
}

/**
 * Intervals with which the polls of so many endpoints take at most `perSecond` polls a second: at first only endpoints
 * without traffic are asked more rarely, up to once a second, then those with traffic too, then all alike.
 */
export function intervalsFor({ busy, quiet }: PolledNumbers, perSecond: number, baseMs: number): PollIntervals {
  const perMs = perSecond / 1_000;
  const quietMax = Math.max(baseMs, QUIET_MS);
  const left = perMs - busy / baseMs;
  if (left > 0 && quiet / left <= quietMax) return { busyMs: baseMs, quietMs: Math.max(baseMs, quiet / left) };
  const rest = perMs - quiet / quietMax;
  if (rest > 0 && busy / rest <= quietMax) return { busyMs: Math.max(baseMs, busy / rest), quietMs: quietMax };
  const all = Math.min(INTERVAL_MS_MAX, Math.max(quietMax, (busy + quiet) / perMs));
  return { busyMs: all, quietMs: all };
}

/** CPU time of this thread; the time that passes under a Node.js that does not tell it. */
function threadCpuMs(): number {
  const usage = process.threadCpuUsage?.();
  return usage === undefined ? performance.now() : (usage.user + usage.system) / 1_000;
}

/**
 * Intervals of polls within a share of the CPU time of a core. As long as all endpoints can be polled at the base
 * interval within the share, they are.
 */
export class PollPace {
  readonly #baseMs: number;
  readonly #share: number;
  readonly #cpuMs: () => number;
  #cpuBeganMs = 0;
  #spentMs = 0;
  #polls = 0;
  #beganMs = Number.NaN;
  /** Mean time of a poll; 0 = not known yet. */
  #pollMs = 0;
  #usedShare = 0;
  #intervals: PollIntervals;

  /**
   * @param baseMs interval that no endpoint is polled more often than
   * @param share of one core that polls may take, above 0; undefined = no bound, and the base interval for all
   * @param cpuMs CPU time of this thread: on a machine without a free core more time passes than is spent
   */
  constructor(baseMs: number, share: number | undefined, cpuMs = threadCpuMs) {
    this.#cpuMs = cpuMs;
    this.#baseMs = baseMs;
    this.#share = share ?? Number.POSITIVE_INFINITY;
    this.#intervals = { busyMs: baseMs, quietMs: baseMs };
  }

  get intervals(): PollIntervals {
    return this.#intervals;
  }

  /** Share of a core that the polls took in the last window. */
  get usedShare(): number {
    return this.#usedShare;
  }

  /** Whether endpoints without traffic are polled more rarely than others. */
  get isStretched(): boolean {
    return this.#intervals.quietMs > this.#baseMs;
  }

  /** Whether polls take more than their share although they are as rare as they may be. */
  get isOver(): boolean {
    return this.#usedShare > this.#share && this.#intervals.quietMs >= INTERVAL_MS_MAX;
  }

  /** Adds the time of a part of polls. */
  spent(ms: number): void {
    this.#spentMs += ms;
  }

  /** Counts a poll. */
  polled(): void {
    this.#polls += 1;
  }

  /** Adapts the intervals at the end of a window. @param numbers called then */
  look(nowMs: number, numbers: () => PolledNumbers): void {
    if (Number.isNaN(this.#beganMs)) this.#begin(nowMs);
    const elapsedMs = nowMs - this.#beganMs;
    if (elapsedMs < WINDOW_MS) return;
    const spentMs = Math.min(this.#spentMs, this.#cpuMs() - this.#cpuBeganMs);
    this.#usedShare = spentMs / elapsedMs;
    if (this.#polls > 0) {
      const mean = spentMs / this.#polls;
      // What takes longer than before counts at once: the share is a bound.
      this.#pollMs = mean > this.#pollMs ? mean : this.#pollMs + WEIGHT * (mean - this.#pollMs);
    }
    this.#begin(nowMs);
    if (this.#pollMs > 0) {
      this.#intervals = intervalsFor(numbers(), (1_000 * this.#share) / this.#pollMs, this.#baseMs);
    }
  }

  #begin(nowMs: number): void {
    this.#spentMs = 0;
    this.#polls = 0;
    this.#beganMs = nowMs;
    this.#cpuBeganMs = this.#cpuMs();
  }
}
