/** What a wheel wakes. */
export interface Sleeper {
  /** Turn in which it is to be woken; earlier entries of it in the wheel are passed over. */
  wakeTurn: number;
}

/** Turns of a round: a later wake-up is one at the end of the round. */
const TURNS = 4_096;

/**
 * Wakes what sleeps, each at its time, rounded to whole turns. A turn costs by what it wakes, not by what sleeps. An
 * entry is woken once, at the time of the last call of `wakeAt`.
 */
export class WakeWheel<Entry extends Sleeper> {
  readonly #turnMs: number;
  readonly #turns: Entry[][] = Array.from({ length: TURNS }, () => []);
  #turn: number;

  /** @param nowMs by the clock of all later calls */
  constructor(turnMs: number, nowMs: number) {
    this.#turnMs = turnMs;
    this.#turn = Math.floor(nowMs / turnMs);
  }

  /** Wakes the entry at a time, not before the next turn and not after the round. */
  wakeAt(entry: Entry, ms: number): void {
    const turn = Math.min(this.#turn + TURNS - 1, Math.max(this.#turn + 1, Math.round(ms / this.#turnMs)));
    if (entry.wakeTurn === turn) return;
    entry.wakeTurn = turn;
    this.#turns[turn % TURNS]!.push(entry);
  }

  /** Forgets an entry. */
  forget(entry: Entry): void {
    entry.wakeTurn = 0;
  }

  /** Entries whose time has come, in the order of their turns. */
  woken(nowMs: number): Entry[] {
    const now = Math.floor(nowMs / this.#turnMs);
    const woken: Entry[] = [];
    // A clock that has jumped passes each turn of the round once.
    for (let turn = Math.max(this.#turn + 1, now - TURNS + 1); turn <= now; turn++) {
      const entries = this.#turns[turn % TURNS]!;
      if (entries.length === 0) continue;
      this.#turns[turn % TURNS] = [];
      for (const entry of entries) {
        if (entry.wakeTurn === 0 || entry.wakeTurn > turn) continue;
        entry.wakeTurn = 0;
        woken.push(entry);
      }
    }
    this.#turn = Math.max(this.#turn, now);
    return woken;
  }
}
