export interface PressureOptions {
  /** Time without a long wait after which there is no pressure any more, in milliseconds. */
  readonly calmMs: number;
  /** Length of the windows in which the growth of the queue is looked at, in milliseconds. */
  readonly windowMs: number;
  /** Work of a thread that has just begun, until which its windows are `COLD_LENGTH` times as long. */
  readonly coldWork: number;
  /** Growing windows in a row from which on it may be an overload. */
  readonly suspectWindows: number;
  /** Growing windows from which on it is one, of so many latest ones over which the queue has become longer. */
  readonly overloadWindows: number;
  readonly latestWindows: number;
}

/** Part of the work of a window that may be refused, or be left to the next window, without being pressure. */
const SPARE_PART = 1 / 20;
/** Code that is not compiled yet serves less than it will: its queue is given more time to become shorter. */
const COLD_LENGTH = 2;
/**
 * In an overload the queue may grow for a moment in each of these intervals, as far as a wait that is none: a fixed
 * number of callers who wait for their answers is served then, and the overload is over. It is long enough for a calm
 * time to be seen, and ends with the first long wait.
 */
const TRIAL_EVERY_MS = 3_000;
const TRIAL_SHARE = 1.25;

/**
 * Tells an overload from a burst. New work waits for long in both, but what waits of a burst becomes less when the
 * burst is over, while the queue of an overload grows in most windows of time, or is kept down by refusals. It is the
 * distinction between a good queue and a standing one of "Controlling Queue Delay" (Nichols and Jacobson, ACM Queue
 * 10:5, 2012).
 */
export class Pressure {
  readonly #options: PressureOptions;
  /** Time at which work would last have waited for long, and since when there was such work without a calm time. */
  #pressedAt = Number.NEGATIVE_INFINITY;
  #pressedSince = 0;
  /** Begin of the present window, what waited then and at least since, and the work that was taken and refused. */
  #windowAt = Number.NEGATIVE_INFINITY;
  #windowWaiting = 0;
  #leastWaiting = 0;
  #taken = 0;
  #refused = 0;
  #windowMs: number;
  /** Work that is still to be taken until the thread counts as warm. */
  #coldWork: number;
  /** Growing windows in a row. */
  #grown = 0;
  /** Growth of the latest windows beyond the spare part, as a ring; 0 = there was no pressure then. */
  readonly #growth: number[];
  #next = 0;
  #isOverload = false;
  /** Number of the trial that failed last. */
  #failedTrial = 0;

  constructor(options: PressureOptions) {
    this.#options = options;
    this.#windowMs = options.windowMs * COLD_LENGTH;
    this.#coldWork = options.coldWork;
    this.#growth = new Array<number>(options.latestWindows).fill(0);
  }

  /**
   * Takes new work.
   * @param isLong whether it would wait for long
   * @param waiting work that waits
   * @param behindSince since when more work is left in the sockets than is read; infinite = all is read
   */
  came(at: number, isLong: boolean, waiting: number, behindSince: number): void {
    const isCalm = this.#isCalm(at);
    if (isCalm) this.#relax();
    if (isLong) {
      if (isCalm) this.#pressedSince = at;
      this.#pressedAt = at;
    }
    this.#leastWaiting = Math.min(this.#leastWaiting, waiting);
    if (at - this.#windowAt >= this.#windowMs) this.#nextWindow(at, waiting, behindSince);
  }

  /** Counts work that was not refused. */
  taken(): void {
    this.#taken++;
  }

  /** Counts work that was refused. */
  refused(): void {
    this.#refused++;
  }

  /** Milliseconds for which there has been pressure; 0 = there is none. */
  ms(at: number): number {
    return this.#isCalm(at) ? 0 : at - this.#pressedSince;
  }

  /** Begin of the pressure, or of the last one. */
  get since(): number {
    return this.#pressedSince;
  }

  /** Whether the queue has grown for so long that it may be that of an overload, and no more is known. */
  isSuspect(at: number): boolean {
    return !this.#isOverload && this.#grown >= this.#options.suspectWindows && !this.#isCalm(at);
  }

  isOverload(at: number): boolean {
    return this.#isOverload && !this.#isCalm(at);
  }

  /** Whether the queue may grow for a moment, to see if the overload is over. @param isLong as of `came` */
  isTrial(at: number, isLong: boolean): boolean {
    const ms = at - this.#pressedSince;
    const trial = Math.trunc(ms / TRIAL_EVERY_MS);
    if (trial === this.#failedTrial || ms % TRIAL_EVERY_MS >= this.#options.calmMs * TRIAL_SHARE) return false;
    if (isLong) this.#failedTrial = trial;
    return !isLong;
  }

  #isCalm(at: number): boolean {
    return at - this.#pressedAt > this.#options.calmMs;
  }

  #relax(): void {
    this.#isOverload = false;
    this.#grown = 0;
    this.#growth.fill(0);
    this.#failedTrial = 0;
  }

  #nextWindow(at: number, waiting: number, behindSince: number): void {
    const spare = this.#taken * SPARE_PART;
    const isRefusing = this.#refused > spare;
    // Refused requests are pressure, too: without refusals the wait would be as long.
    if (isRefusing && !this.#isCalm(at)) this.#pressedAt = at;
    const isPressed = this.#pressedSince <= this.#windowAt && !this.#isCalm(at);
    const isBehind = behindSince <= this.#windowAt;
    const growth = waiting - this.#windowWaiting + this.#refused - spare;
    // A queue that was empty is none that stands.
    if (this.#leastWaiting === 0 && !isRefusing && !isBehind) this.#growth.fill(0);
    this.#note(isPressed ? Math.max(growth, isBehind ? 1 : growth) : 0);
    this.#coldWork -= this.#taken;
    if (this.#coldWork <= 0) this.#windowMs = this.#options.windowMs;
    this.#windowAt = at;
    this.#windowWaiting = waiting;
    this.#leastWaiting = waiting;
    this.#taken = 0;
    this.#refused = 0;
  }

  /** Takes the growth of the queue in a window. */
  #note(growth: number): void {
    this.#growth[this.#next] = growth;
    this.#next = (this.#next + 1) % this.#growth.length;
    this.#grown = growth > 0 ? this.#grown + 1 : 0;
    let growing = 0;
    let sum = 0;
    for (const each of this.#growth) {
      if (each > 0) growing++;
      sum += each;
    }
    if (growing >= this.#options.overloadWindows && sum > 0) this.#isOverload = true;
  }
}
