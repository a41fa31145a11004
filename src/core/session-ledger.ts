import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

/** What is done with sessions (assembly/gate/sessions-room.ts). */
export interface SessionRule {
  readonly mode: 'off' | 'shadow' | 'on';
  /** Share of an endpoint's cache below which a prompt is nobody's turn. */
  readonly smallPrompt: number;
  /** Share of a cache that a turn may exceed once it was held for long. */
  readonly stretch: number;
  /** Milliseconds after which a held turn goes on without room; Infinity = never. */
  readonly maxWaitMs: number;
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

  constructor(core: CoreInstance) {
    this.#core = core;
  }

  /** Whether sessions are counted. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** Turns the sessions on or off; they begin with none. */
  configure({ mode, smallPrompt, stretch, maxWaitMs }: SessionRule): boolean {
    const maxWait = Number.isFinite(maxWaitMs) ? maxWaitMs : 0;
    if (this.#core.call.sessionsConfigure(MODES[mode], smallPrompt, stretch, maxWait) !== 0) return false;
    this.#isOn = mode !== 'off';
    return true;
  }

  /** Looks at idle sessions and reckons how long they are kept. Without effect while the lock is not free. */
  tick(nowMs: number): void {
    this.#core.call.sessionsTick(nowMs);
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
    };
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
