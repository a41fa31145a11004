/** Interval at which the time of the polls is compared with its share. */
const WINDOW_MS = 500;
/** Longest interval of an endpoint without traffic, as long as the share is enough for that. */
const QUIET_MS = 1_000;
/** Longest interval of any endpoint: with it the share may be exceeded. */
const INTERVAL_MS_MAX = 10_000;
/** Part of the earlier windows' times and polls that is kept at the end of a window: half of it after 1.2 s. */
const KEPT = 0.75;
/** Power of the share over what was used by which the polls change in a window. */
const GAIN = 0.25;
/** Bounds on what the polls are changed by beyond what the time of one tells. */
const [CORRECTION_MIN, CORRECTION_MAX] = [0.25, 1.25];

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

/** CPU time of a thread in milliseconds. */
export interface ThreadCpu {
  readonly userMs: number;
  readonly systemMs: number;
}

/** CPU time of this thread; the time that passes under a Node.js that does not tell it. */
function threadCpu(): ThreadCpu {
  const usage = process.threadCpuUsage?.();
  if (usage === undefined) return { userMs: performance.now(), systemMs: 0 };
  return { userMs: usage.user / 1_000, systemMs: usage.system / 1_000 };
}

/**
 * Intervals of polls within a share of the CPU time of a core. As long as all endpoints can be polled at the base
 * interval within the share, they are.
 *
 * What a poll takes is the mean of the last seconds, so that one long window counts neither more nor less than others.
 * Polls come more often than planned where endpoints get traffic; while the intervals are stretched, what was used is
 * therefore held against the share as well.
 */
export class PollPace {
  readonly #baseMs: number;
  readonly #share: number;
  readonly #cpu: () => ThreadCpu;
  #cpuBegan: ThreadCpu = { userMs: 0, systemMs: 0 };
  #spentMs = 0;
  #polls = 0;
  #beganMs = Number.NaN;
  /** Sums over windows, of which each counts `KEPT` times as much as the next. */
  #sumSpentMs = 0;
  #sumPolls = 0;
  #sumElapsedMs = 0;
  #correction = 1;
  #intervals: PollIntervals;

  /**
   * @param baseMs interval that no endpoint is polled more often than
   * @param share of one core that polls may take, above 0; undefined = no bound, and the base interval for all
   * @param cpu CPU time of this thread: on a machine without a free core more time passes than is spent
   */
  constructor(baseMs: number, share: number | undefined, cpu = threadCpu) {
    this.#cpu = cpu;
    this.#baseMs = baseMs;
    this.#share = share ?? Number.POSITIVE_INFINITY;
    this.#intervals = { busyMs: baseMs, quietMs: baseMs };
  }

  get intervals(): PollIntervals {
    return this.#intervals;
  }

  /** Share of a core that the polls took in the last seconds. */
  get usedShare(): number {
    return this.#sumElapsedMs === 0 ? 0 : this.#sumSpentMs / this.#sumElapsedMs;
  }

  /** Whether endpoints without traffic are polled more rarely than others. */
  get isStretched(): boolean {
    return this.#intervals.quietMs > this.#baseMs;
  }

  /** Whether polls take more than their share although they are as rare as they may be. */
  get isOver(): boolean {
    return this.usedShare > this.#share && this.#intervals.quietMs >= INTERVAL_MS_MAX;
  }

  /** Adds the time of a part of polls, without what the system does between these parts. */
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
    this.#sumSpentMs = KEPT * this.#sumSpentMs + this.#windowMs();
    this.#sumPolls = KEPT * this.#sumPolls + this.#polls;
    this.#sumElapsedMs = KEPT * this.#sumElapsedMs + elapsedMs;
    this.#begin(nowMs);
    if (this.#sumSpentMs === 0 || this.#sumPolls === 0) return;
    this.#correct();
    const perSecond = (1_000 * this.#share * this.#correction * this.#sumPolls) / this.#sumSpentMs;
    this.#intervals = intervalsFor(numbers(), perSecond, this.#baseMs);
  }

  /**
   * CPU time of the window's polls. The sockets are read by the system before the parts that are told begin, and this
   * thread's time in the system is nearly all of polls.
   */
  #windowMs(): number {
    const { userMs, systemMs } = this.#cpu();
    const ofSystemMs = systemMs - this.#cpuBegan.systemMs;
    return Math.min(this.#spentMs + ofSystemMs, userMs - this.#cpuBegan.userMs + ofSystemMs);
  }

  #correct(): void {
    const change = this.isStretched ? (this.#share / this.usedShare) ** GAIN : 1 / this.#correction;
    this.#correction = Math.min(CORRECTION_MAX, Math.max(CORRECTION_MIN, this.#correction * change));
  }

  #begin(nowMs: number): void {
    this.#spentMs = 0;
    this.#polls = 0;
    this.#beganMs = nowMs;
    this.#cpuBegan = this.#cpu();
  }
}
