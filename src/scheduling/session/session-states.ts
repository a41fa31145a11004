/** Bound on the sessions that are remembered; the one without requests that was seen longest ago is dropped first. */
const SESSIONS_MAX = 65_536;
/** Sessions that are looked at for one without requests, when room is needed. */
const LOOKS_MAX = 16;
/** Bound on a session id in characters, because clients choose it. Longer ids are distinguished by their beginning. */
const ID_CHARACTERS_MAX = 256;

/** What is counted of a session, or added to it. */
export interface SessionTally {
  readonly turns: number;
  readonly inFlight: number;
  readonly completed: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** A remembered session. Times are milliseconds of the pool clock. */
export interface RememberedSession {
  readonly firstAt: number;
  readonly lastAt: number;
  readonly tally: SessionTally;
}

export interface SessionStatesOptions {
  /** Time in milliseconds for which a session without requests stays. */
  readonly ttlMs: number;
  /** Interval in milliseconds between two removals of sessions that are over. */
  readonly sweepMs: number;
}

/** Counts of sessions, bounded; those with requests in flight stay. */
export class SessionStates {
  readonly #options: SessionStatesOptions;
  /** In the order of their last change. */
  readonly #sessions = new Map<string, RememberedSession>();
  #nextSweep = 0;

  constructor(options: SessionStatesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#sessions.size;
  }

  find(session: string, nowMs: number): RememberedSession | undefined {
    const known = this.#sessions.get(session.slice(0, ID_CHARACTERS_MAX));
    return known === undefined || this.#isOver(known, nowMs) ? undefined : known;
  }

  /** Adds to the counts of a session, which begins with it if it is new. */
  add(session: string, tally: SessionTally, nowMs: number): void {
    this.#sweep(nowMs);
    const key = session.slice(0, ID_CHARACTERS_MAX);
    const known = this.find(key, nowMs);
    if (!this.#sessions.delete(key) && this.#sessions.size >= SESSIONS_MAX) this.#dropOne();
    this.#sessions.set(key, {
      firstAt: known?.firstAt ?? nowMs,
      lastAt: nowMs,
      tally: known === undefined ? positive(tally) : sum(known.tally, tally),
    });
  }

  #isOver({ lastAt, tally }: RememberedSession, nowMs: number): boolean {
    return tally.inFlight === 0 && nowMs - lastAt > this.#options.ttlMs;
  }

  #sweep(nowMs: number): void {
    if (nowMs < this.#nextSweep) return;
    this.#nextSweep = nowMs + this.#options.sweepMs;
    for (const [key, session] of this.#sessions) if (this.#isOver(session, nowMs)) this.#sessions.delete(key);
  }

  /** Drops the first of the oldest sessions that has no requests, else the oldest. */
  #dropOne(): void {
    let looks = 0;
    let oldest: string | undefined;
    for (const [key, { tally }] of this.#sessions) {
      oldest ??= key;
      if (tally.inFlight === 0 || ++looks === LOOKS_MAX) {
        this.#sessions.delete(tally.inFlight === 0 ? key : oldest);
        return;
      }
    }
  }
}

function sum(a: SessionTally, b: SessionTally): SessionTally {
  return positive({
    turns: a.turns + b.turns,
    inFlight: a.inFlight + b.inFlight,
    completed: a.completed + b.completed,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
  });
}

/** A session that was dropped with requests in flight has fewer of them than will end. */
function positive(tally: SessionTally): SessionTally {
  return { ...tally, inFlight: Math.max(tally.inFlight, 0) };
}
