/** New work that waits for its turn. */
export interface BudgetedWork {
  /** Its turn has come. Called at most once. */
  begin(): void;
}

export interface WorkGateOptions {
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** Runs something after the event loop has read what arrived meanwhile. */
  readonly defer: (run: () => void) => void;
  /** New work may use this many milliseconds of one turn of the event loop before the rest waits. */
  readonly sliceMs: number;
  /** Most work that waits. */
  readonly maxWaiting: number;
  /** Nothing new is queued while the oldest has waited longer than this. */
  readonly maxWaitMs: number;
}

/**
 * Lets work in progress go before new work. New work runs at once until it has used its slice of the current turn of
 * the event loop; the rest waits for the next turn, in which the sockets are read first, so that streams which are
 * under way get their messages. What would wait too long is refused at once. When turns take long (the loop lags),
 * the slice grows to half of a turn: it shares the thread with the work in progress and cannot starve.
 */
export class TurnBudget {
  readonly #options: WorkGateOptions;
  readonly #waiting: { work: BudgetedWork; since: number }[] = [];
  /** Index of the oldest entry: the front is cut off in one piece when it has grown long. */
  #head = 0;
  #turnStart = -1;
  #slice: number;
  #lag = 0;

  constructor(options: WorkGateOptions) {
    this.#options = options;
    this.#slice = options.sliceMs;
  }

  get waiting(): number {
    return this.#waiting.length - this.#head;
  }

  /** How long the last turn of the event loop took, in milliseconds; 0 while idle. */
  get lagMs(): number {
    return this.#lag;
  }

  /** `now`: the caller goes on by itself. `later`: `begin` will be called. `refused`: there is no room. */
  enter(work: BudgetedWork): 'now' | 'later' | 'refused' {
    const at = this.#options.now();
    if (this.#turnStart < 0) this.#openTurn(at);
    if (this.waiting === 0 && at - this.#turnStart <= this.#slice) return 'now';
    const oldest = this.#waiting[this.#head];
    if (oldest !== undefined && at - oldest.since > this.#options.maxWaitMs) return 'refused';
    if (this.waiting >= this.#options.maxWaiting) return 'refused';
    this.#waiting.push({ work, since: at });
    return 'later';
  }

  #openTurn(at: number): void {
    this.#turnStart = at;
    this.#options.defer(() => this.#nextTurn());
  }

  #nextTurn(): void {
    const at = this.#options.now();
    this.#lag = at - this.#turnStart;
    this.#slice = Math.max(this.#options.sliceMs, this.#lag / 2);
    this.#turnStart = -1;
    if (this.waiting === 0) return;
    this.#openTurn(at);
    do {
      const next = this.#waiting[this.#head++]!;
      next.work.begin();
    } while (this.waiting > 0 && this.#options.now() - at <= this.#slice);
    this.#compact();
  }

  #compact(): void {
    if (this.waiting === 0) this.#waiting.length = 0;
    else if (this.#head > 1_024) this.#waiting.splice(0, this.#head);
    else return;
    this.#head = 0;
  }
}
