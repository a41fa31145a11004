import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

/** What is done with sessions (assembly/gate/sessions-room.ts). */
export interface SessionRule {
  readonly mode: 'off' | 'shadow' | 'on';
  /** Share of an endpoint's cache below which a prompt is no session's turn. */
  readonly smallPrompt: number;
  /** Share of a cache that a turn may exceed once it was held for long. */
  readonly stretch: number;
  /** Milliseconds after which a held turn goes on without room; Infinity = never. */
  readonly maxWaitMs: number;
  /** Milliseconds for which an idle session is kept; absent = as is learned. */
  readonly idleLeaseMs?: number | undefined;
  /** Tokens that a cache holds while its endpoint does not tell; absent = it has room for every turn. */
  readonly capacityTokens?: number | undefined;
  /** Share of a cache that sessions may fill; absent = all of it. */
  readonly usableCache?: number | undefined;
  /** Milliseconds after which a session without a place is forgotten; absent = when its entry is needed. */
  readonly forgetAfterMs?: number | undefined;
}

/** Counts of the sessions of a pool since they were turned on. */
export interface SessionCounts {
  /** Turns by the state of their session. */
  readonly recognised: Readonly<Record<'prompt' | 'header' | 'new' | 'fork' | 'uncounted', number>>;
  /** Turns whose session was told by their prompt or their header, and not by both. */
  readonly splits: Readonly<Record<'rewritten' | 'merged' | 'renamed', number>>;
  /** Turns by the kind of room that was found for them. */
  readonly looks: Readonly<Record<'protected' | 'room' | 'none' | 'small', number>>;
  /**
   * Sessions that lost their room: it was given to another turn, the engine forgot them before, or their client ended
   * them.
   */
  readonly lapsed: Readonly<Record<'given-up' | 'forgotten' | 'ended', number>>;
  /** Tokens of known sessions that were computed again, by cause. */
  readonly recomputed: Readonly<Record<'lapsed' | 'lost' | 'moved', number>>;
  /** Tokens of protected sessions that were found in the cache. */
  readonly found: number;
  /** Held turns that went on without room after the longest wait. */
  readonly forced: number;
  /** Turns that began, and turns that were held, by what their session had before. */
  readonly released: TurnsByPlace;
  readonly held: TurnsByPlace;
}

/** Turns of sessions whose place was kept, of those that had lost it, and of new ones. */
export type TurnsByPlace = Readonly<Record<'protected' | 'lapsed' | 'new', number>>;

/** Time in milliseconds for which a session counts as active after a turn. */
export const ACTIVE_MS = 300_000;

/** Sums over all sessions of a pool. */
export interface SessionTally {
  readonly running: number;
  /** Protected ones between turns. */
  readonly idle: number;
  readonly lapsed: number;
  /** Sessions with a turn in the last five minutes, and the tokens that one of them holds alone on the average. */
  readonly active: number;
  readonly meanTokens: number;
  /** Sessions of that size that the caches of the pool hold; undefined = none is active, or no cache is known. */
  readonly fit: number | undefined;
  /** Each endpoint of the given ones. */
  readonly endpoints: readonly EndpointSessions[];
}

/** Tokens of sessions on an endpoint. */
export interface EndpointSessions {
  readonly slot: number;
  /** Tokens of its cache; 0 = unknown. */
  readonly capacity: number;
  /** Tokens in use: protected ones, and what lies between them in the engine's order of eviction. */
  readonly used: number;
  readonly protected: number;
}

/** Pauses between turns: cumulative counts up to a number of seconds, the last one without an end. */
export interface Pauses {
  readonly buckets: readonly { readonly upTo: number; readonly count: number }[];
  readonly sum: number;
  readonly count: number;
}

/** Classes of sessions by the number of their turns. */
export const SESSION_CLASSES = ['1', '2-4', '5+'] as const;

const MODES: Readonly<Record<SessionRule['mode'], number>> = {
  off: CORE.SESSIONS_OFF,
  shadow: CORE.SESSIONS_SHADOW,
  on: CORE.SESSIONS_ON,
};

/** Interval in milliseconds between two looks at idle sessions. */
export const SESSION_TICK_MS = 500;

/** The control thread's access to the sessions of a pool. A write returns false when the lock was not free. */
export class SessionLedger {
  readonly #core: CoreInstance;
  #isOn = false;
  /** Counts of each second of the last minute, the oldest first. */
  #minute: { readonly atMs: number; readonly found: number; readonly none: number }[] = [];

  constructor(core: CoreInstance) {
    this.#core = core;
  }

  /** Whether sessions are counted. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** Turns the sessions on or off; they begin with none. */
  configure(rule: SessionRule): boolean {
    const { mode, smallPrompt, stretch, maxWaitMs } = rule;
    const maxWait = Number.isFinite(maxWaitMs) ? maxWaitMs : 0;
    if (this.#core.call.sessionsConfigure(MODES[mode], smallPrompt, stretch, maxWait) !== 0) return false;
    // It forgets what was given when it turns sessions on.
    const { capacityTokens = 0, usableCache = 1, idleLeaseMs = -1, forgetAfterMs = 0 } = rule;
    if (this.#core.call.sessionsGive(capacityTokens, usableCache, idleLeaseMs, forgetAfterMs) !== 0) return false;
    // The counts begin anew when sessions are turned on.
    if (mode === 'off' || !this.#isOn) this.#minute = [];
    this.#isOn = mode !== 'off';
    return true;
  }

  /** Looks at idle sessions and reckons how long they are kept. Without effect while the lock is not free. */
  tick(nowMs: number): void {
    this.#core.call.sessionsTick(nowMs);
    this.#note(nowMs);
  }

  #note(atMs: number): void {
    const count = (counter: number) => this.#core.call.sessionsCounter(counter);
    const last = this.#minute.at(-1);
    if (last !== undefined && atMs - last.atMs < 1_000) return;
    this.#minute.push({ atMs, found: count(CORE.SESSIONS_SAVED), none: count(CORE.SESSIONS_HELD) });
    while (this.#minute.length > 1 && atMs - this.#minute[0]!.atMs > 60_000) this.#minute.shift();
  }

  /** Tokens of protected sessions that were found in caches in the last minute, and turns without room. */
  get lastMinute(): { readonly found: number; readonly none: number } {
    const [first] = this.#minute;
    if (first === undefined) return { found: 0, none: 0 };
    const count = (counter: number) => this.#core.call.sessionsCounter(counter);
    return { found: count(CORE.SESSIONS_SAVED) - first.found, none: count(CORE.SESSIONS_HELD) - first.none };
  }

  /** Milliseconds in which an engine computes as many tokens as its cache holds; 0 = unknown. */
  get refillMs(): number {
    return this.#core.call.sessionsRefill();
  }

  counts(): SessionCounts {
    const count = (counter: number) => this.#core.call.sessionsCounter(counter);
    return {
      recognised: {
        prompt: count(CORE.SESSIONS_RECOGNISED),
        header: count(CORE.SESSIONS_NAMED),
        new: count(CORE.SESSIONS_NEW),
        fork: count(CORE.SESSIONS_FORKED),
        uncounted: count(CORE.SESSIONS_UNCOUNTED),
      },
      splits: {
        rewritten: count(CORE.SESSIONS_REWRITTEN),
        merged: count(CORE.SESSIONS_MERGED),
        renamed: count(CORE.SESSIONS_RENAMED),
      },
      looks: {
        protected: count(CORE.SESSIONS_AT_HOME),
        room: count(CORE.SESSIONS_FIT),
        none: count(CORE.SESSIONS_HELD),
        small: count(CORE.SESSIONS_SMALL),
      },
      lapsed: {
        'given-up': count(CORE.SESSIONS_GIVEN_UP),
        forgotten: count(CORE.SESSIONS_FORGOTTEN),
        ended: count(CORE.SESSIONS_ENDED),
      },
      recomputed: {
        lapsed: count(CORE.SESSIONS_AGAIN_LAPSED),
        lost: count(CORE.SESSIONS_AGAIN_LOST),
        moved: count(CORE.SESSIONS_AGAIN_MOVED),
      },
      found: count(CORE.SESSIONS_SAVED),
      forced: count(CORE.SESSIONS_FORCED),
      released: this.#released(),
      held: {
        protected: count(CORE.SESSIONS_HOLDS_PROTECTED),
        lapsed: count(CORE.SESSIONS_HOLDS_RESUMED),
        new: count(CORE.SESSIONS_HOLDS_NEW),
      },
    };
  }

  #released(): TurnsByPlace {
    const count = (counter: number) => this.#core.call.sessionsCounter(counter);
    const known = count(CORE.SESSIONS_RECOGNISED) + count(CORE.SESSIONS_NAMED);
    const lapsed = count(CORE.SESSIONS_RESUMED);
    return { protected: known - lapsed, lapsed, new: count(CORE.SESSIONS_NEW) + count(CORE.SESSIONS_FORKED) };
  }

  /** Sums the sessions. @param endpoints slots with the tokens of their caches, 0 = unknown */
  tally(endpoints: readonly { readonly slot: number; readonly capacity: number }[], nowMs: number): SessionTally {
    const { call } = this.#core;
    call.sessionsTally(Math.max(0, nowMs - ACTIVE_MS));
    const active = call.sessionsTallied(CORE.TALLY_ACTIVE);
    const meanTokens = active === 0 ? 0 : call.sessionsTallied(CORE.TALLY_ACTIVE_TOKENS) / active;
    const known = endpoints.filter(({ slot, capacity }) => capacity > 0 && call.sessionsHosted(slot) !== 0);
    const free = known.reduce((sum, { slot, capacity }) => {
      return sum + Math.max(0, capacity - (call.sessionsShared(slot) >>> 0));
    }, 0);
    return {
      running: call.sessionsTallied(CORE.TALLY_RUNNING),
      idle: call.sessionsTallied(CORE.TALLY_IDLE),
      lapsed: call.sessionsTallied(CORE.TALLY_LAPSED),
      active,
      meanTokens,
      fit: meanTokens > 0 && known.length > 0 ? free / meanTokens : undefined,
      endpoints: endpoints.map(({ slot, capacity }) => ({
        slot,
        capacity,
        used: this.usedTokens(slot),
        protected: call.sessionsProtected(slot) >>> 0,
      })),
    };
  }

  /** Pauses between the turns of sessions that have ended: a histogram in seconds. */
  pauses(): Pauses {
    const { call } = this.#core;
    let count = 0;
    const buckets = Array.from({ length: CORE.AGES }, (_, age) => {
      count += call.sessionsPauses(age);
      return { upTo: call.sessionsAgeEnd(age + 1) / 1_000, count };
    });
    return { buckets, sum: call.sessionsPausesSum() / 1_000, count };
  }

  /** Turns that are held. */
  get held(): number {
    return this.#core.call.sessionsHeld() >>> 0;
  }

  /** Tokens of an endpoint's cache that protected sessions need, with what lies between them. */
  usedTokens(slot: number): number {
    this.#core.asserts?.slot(slot);
    return this.#core.call.sessionsUsed(slot) >>> 0;
  }

  /** Seconds up to which an idle session is worth its room, for each of SESSION_CLASSES; Infinity = always. */
  keptSeconds(): readonly number[] {
    return SESSION_CLASSES.map((_, kind) => this.#core.call.sessionsKeptFor(kind) / 1_000);
  }
}
