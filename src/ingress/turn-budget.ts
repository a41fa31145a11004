import { Pressure, type PressureOptions } from './pressure.js';

/** New work that waits for its turn. */
export interface BudgetedWork {
  /** Called at its turn. Either this or `expire` is called, at most once. */
  begin(): void;
  /** Called when the work has waited too long. */
  expire(): void;
  /** Whether it still waits; false after `TurnBudget.leave`. */
  readonly isWaiting: boolean;
}

export interface TurnBudgetOptions {
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** Time at which that clock was last read: new work comes behind a reading. */
  readonly recent: () => number;
  /** Runs something after the event loop has read what arrived meanwhile. */
  readonly defer: (run: () => void) => void;
  /** New work may use this many milliseconds of one turn of the event loop before the rest waits. */
  readonly sliceMs: number;
  /** Bound on work that waits. */
  readonly waitingMax: number;
  /** Age at which work is refused, and time for which there may be a wait before `standingWaitMs` holds. */
  readonly waitMsMax: number;
  /**
   * Bound on the wait while the wait has not been short for `waitMsMax`: it is no burst then, and a long wait serves no
   * request.
   */
  readonly standingWaitMs: number;
  /** Age at which work is refused in an overload, beyond the length of the turns. */
  readonly overloadWaitMs: number;
  /** Windows by which a burst and an overload are told apart. */
  readonly windows: Omit<PressureOptions, 'calmMs'>;
  /** Bounds on the queue from then on: work that may wait in any case, and its own milliseconds. */
  readonly shortQueue: number;
  readonly shortQueueMs: number;
  /** Work that is taken in each `standingWaitMs` at any age. */
  readonly lightMax: number;
  /** Milliseconds that waiting work lets sockets be read which are behind. */
  readonly readMsMax: number;
}

/** Bound on the time of new work in a long turn, in slices: each piece makes work for the turns after it. */
const SLICES_MAX = 2;
/** Entries of the queue that are over, from which on it is made shorter. */
const COMPACT_MIN = 1_024;
/** Waits below this share of `standingWaitMs` count as no wait. */
const CALM_SHARE = 0.25;
/** Share of the longest turn that is remembered a turn later. */
const LAG_SHARE = 0.95;
/** Turns for which sockets must also have been behind: a thread with little of its core has few and long turns. */
const BEHIND_TURNS_MIN = 16;
/** Share of the latest turn in the mean cost of a piece of work. */
const COST_SHARE = 0.2;
/**
 * Work that must have been begun from the queue before its cost counts: the first pieces run code that is not compiled
 * yet.
 */
const MEASURED_MIN = 256;
/**
 * Bound on the cost of a turn, in what its work costs by the mean: a stall is not the cost of the work that came in it.
 */
const COST_GROWTH_MAX = 4;

/**
 * Lets work in progress go before new work. New work runs at once until its slice of the current turn of the event loop
 * is used. The rest waits for the next turn, in which the sockets are read first, so that streams under way get their
 * messages. Work is refused by its age, counted from its first byte, and by the wait before it. Two bounds on the wait,
 * one for bursts and one for overload, are those of "Fail at Scale" (Maurer, ACM Queue 13:8, 2015, "Controlled Delay");
 * `Pressure` tells one from the other.
 * When turns take long (the loop lags), the slice grows with what the others take, to twice its length.
 */
export class TurnBudget {
  readonly #options: TurnBudgetOptions;
  readonly #waiting: { work: BudgetedWork; since: number }[] = [];
  /** Index of the oldest entry: the front is cut off in one piece when it has grown long. */
  #head = 0;
  /** Entries that have left before their turn. */
  #left = 0;
  #turnStart = -1;
  #slice: number;
  #lag = 0;
  #costTime = 0;
  #workTime = 0;
  #costCount = 0;
  /** Whether the last time for waiting work was too short for all of it. */
  #leftWaiting = false;
  /** Milliseconds that waiting work has used of the latest turn. */
  #spentMs = 0;
  /** Work that was begun in the latest turn. */
  #begun = 0;
  /** Milliseconds from one piece of work to the next while some waits; 0 = none has waited yet. */
  #costMs = 0;
  /** Milliseconds that a piece of work takes by itself; 0 = no work has waited so far. */
  #workMs = 0;
  /** Work that was begun from the queue since the start, counted up to `MEASURED_MIN`. */
  #measured = 0;
  readonly #pressure: Pressure;
  /** Duration of the longest of the latest turns. */
  #longestLag = 0;
  /** Begin of the present `standingWaitMs`, and the work received in it. */
  #windowAt = Number.NEGATIVE_INFINITY;
  #windowCount = 0;
  /** Whether new work is left in the sockets; since when that was so in every turn, and the number of those turns. */
  #behind = false;
  #behindSince = Number.POSITIVE_INFINITY;
  #behindTurns = 0;
  /** Time at which waiting work last had its share. */
  #servedAt = 0;

  constructor(options: TurnBudgetOptions) {
    this.#options = options;
    this.#slice = options.sliceMs;
    this.#pressure = new Pressure({ ...options.windows, calmMs: options.standingWaitMs });
  }

  get waiting(): number {
    return this.#waiting.length - this.#head - this.#left;
  }

  /** Duration of the last turn of the event loop, in milliseconds; 0 while idle. */
  get lagMs(): number {
    return this.#lag;
  }

  /**
   * Notes that the sockets hold new requests that have not been read. They are read before waiting work continues,
   * because they grow old in the sockets and are cheap to refuse.
   */
  behind(): void {
    this.#behind = true;
    if (this.#turnStart < 0) this.#openTurn(this.#options.now());
  }

  /** Whether work of this age would wait too long. @param since when its first byte came */
  refuses(since: number): boolean {
    return this.#refuses(since, this.#options.recent());
  }

  /**
   * `now`: the caller continues by itself. `later`: `begin` or `expire` will be called. `refused`: there is no room.
   * @param since when the first byte of the work came
   */
  enter(work: BudgetedWork, since: number): 'now' | 'later' | 'refused' {
    const at = this.#options.recent();
    if (this.#turnStart < 0) this.#openTurn(at);
    if (this.#refuses(since, at)) return 'refused';
    this.#pressure.taken();
    // Sockets that are behind are read first: what waits here can be counted, and what waits there cannot.
    if (this.waiting === 0 && this.#behindTurns === 0 && at - this.#turnStart <= this.#slice) return 'now';
    this.#waiting.push({ work, since: this.#counted(since) });
    return 'later';
  }

  /** Takes the end of work that waits: it keeps no other work from its turn. */
  leave(): void {
    this.#left++;
    if (this.waiting === 0 || this.#left > this.waiting + COMPACT_MIN) this.#compact();
  }

  /** Counts work that another bound has refused while it waited: without it the queue would be longer. */
  displaced(): void {
    this.#pressure.refused();
  }

  #refuses(since: number, at: number): boolean {
    const { standingWaitMs } = this.#options;
    const queueMs = this.#measured < MEASURED_MIN ? 0 : this.waiting * this.#costMs;
    const isLong = at - since + queueMs > standingWaitMs * CALM_SHARE;
    this.#pressure.came(at, isLong, this.waiting, this.#behindSince);
    if (!this.#isRefused(since, at, queueMs, isLong)) return false;
    this.#pressure.refused();
    return true;
  }

  #isRefused(since: number, at: number, queueMs: number, isLong: boolean): boolean {
    const { waitingMax, waitMsMax, standingWaitMs } = this.#options;
    if (this.waiting >= waitingMax) return true;
    if (this.#isLight(at)) return false;
    const waitMs = at - since + queueMs;
    if (this.#pressure.isOverload(at)) return this.#refusesInOverload(at, waitMs, isLong);
    if (this.#pressure.ms(at) > waitMsMax) return waitMs > standingWaitMs;
    return at - this.#counted(since) + queueMs > waitMsMax;
  }

  #refusesInOverload(at: number, waitMs: number, isLong: boolean): boolean {
    // What a proxy holds back behind a full socket is older than anything that can be seen here.
    if (waitMs > this.#overloadWaitMs || this.#isBehind(at)) return true;
    return this.#isLong && !this.#pressure.isTrial(at, isLong);
  }

  /** Age at which work is refused in an overload: what came in a long turn is not older than that turn. */
  get #overloadWaitMs(): number {
    const { overloadWaitMs, standingWaitMs } = this.#options;
    return Math.min(overloadWaitMs + this.#longestLag, standingWaitMs);
  }

  /** Whether more waits than the thread serves between two readings of its sockets. */
  get #isLong(): boolean {
    const { shortQueue, shortQueueMs } = this.#options;
    return this.waiting > shortQueue && this.waiting * this.#workMs > shortQueueMs;
  }

  /** Whether the sockets have been behind for as long as a wait may be. */
  #isBehind(at: number): boolean {
    return this.#behindTurns >= BEHIND_TURNS_MIN && at - this.#behindSince > this.#options.standingWaitMs;
  }

  /**
   * Age is counted from the beginning of the pressure: a stall of the thread makes old what came meanwhile, and is no
   * overload.
   */
  #counted(since: number): number {
    return Math.max(since, this.#pressure.since);
  }

  /**
   * Whether so little has arrived of late that the thread can serve all of it. A pause of the thread does not count.
   */
  #isLight(at: number): boolean {
    if (at - this.#windowAt > this.#options.standingWaitMs) {
      this.#windowAt = at;
      this.#windowCount = 0;
    }
    return ++this.#windowCount <= this.#options.lightMax;
  }

  #openTurn(at: number): void {
    this.#turnStart = at;
    this.#options.defer(() => this.#nextTurn());
  }

  #nextTurn(): void {
    const at = this.#options.now();
    this.#lag = at - this.#turnStart;
    this.#longestLag = Math.max(this.#lag, this.#longestLag * LAG_SHARE);
    const { sliceMs, readMsMax } = this.#options;
    this.#turnStart = -1;
    const behind = this.#behind;
    this.#behind = false;
    this.#behindSince = behind ? Math.min(this.#behindSince, at) : Number.POSITIVE_INFINITY;
    this.#behindTurns = behind ? this.#behindTurns + 1 : 0;
    if (this.waiting > 0 || behind) this.#openTurn(at);
    if (behind && at - this.#servedAt < readMsMax) return;
    this.#slice = Math.min(Math.max(sliceMs, this.#lag - this.#spentMs), sliceMs * SLICES_MAX);
    if (this.waiting === 0) return;
    this.#begun = 0;
    const before = this.#leftWaiting ? this.#servedAt : at;
    do this.#beginNext();
    while (this.waiting > 0 && this.#options.now() - at <= this.#slice);
    this.#servedAt = this.#options.now();
    this.#spentMs = this.#servedAt - at;
    this.#leftWaiting = this.waiting > 0;
    this.#learnCost(this.#servedAt - before);
    this.#compact();
  }

  /**
   * Learns the time from one piece of work to the next while some waits: the mean over the latest turns, with all else
   * that they did.
   */
  #learnCost(turnMs: number): void {
    const bound = COST_GROWTH_MAX * this.#begun * this.#costMs + this.#options.sliceMs;
    const ms = this.#costMs === 0 ? turnMs : Math.min(turnMs, bound);
    this.#measured = Math.min(MEASURED_MIN, this.#measured + this.#begun);
    this.#costTime += ms - COST_SHARE * this.#costTime;
    this.#costCount += this.#begun - COST_SHARE * this.#costCount;
    this.#workTime += Math.min(this.#spentMs, ms) - COST_SHARE * this.#workTime;
    if (this.#costCount === 0) return;
    this.#costMs = this.#costTime / this.#costCount;
    this.#workMs = this.#workTime / this.#costCount;
  }

  #beginNext() {
    const { work, since } = this.#next();
    if (!work.isWaiting) {
      this.#left--;
      return;
    }
    const at = this.#options.now();
    const ageMax = this.#pressure.isOverload(at) ? this.#overloadWaitMs : this.#options.waitMsMax;
    if (at - since > ageMax) return work.expire();
    this.#begun++;
    work.begin();
  }

  /**
   * Takes work from the queue: the oldest, and the newest while it may be an overload (adaptive LIFO of "Fail at
   * Scale"). If it is one, the oldest is refused, and what was served meanwhile was young.
   */
  #next(): { work: BudgetedWork; since: number } {
    if (this.#pressure.isSuspect(this.#options.recent())) return this.#waiting.pop()!;
    return this.#waiting[this.#head++]!;
  }

  #compact(): void {
    if (this.waiting === 0) this.#waiting.length = 0;
    else if (this.#left > this.waiting + COMPACT_MIN) this.#keepWaiting();
    else if (this.#head > COMPACT_MIN) this.#waiting.splice(0, this.#head);
    else return;
    this.#head = 0;
    if (this.#waiting.length === 0) this.#left = 0;
  }

  /** Drops what has been begun or has left. */
  #keepWaiting(): void {
    const kept = this.#waiting.slice(this.#head).filter(({ work }) => work.isWaiting);
    this.#waiting.splice(0, this.#waiting.length, ...kept);
    this.#left = 0;
  }
}
