import type { SessionLoss } from './cache-loss.js';
import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

const FATES = {
  [CORE.FOUND_NEW]: 'new',
  [CORE.FOUND_FORK]: 'fork',
  [CORE.FOUND_PROTECTED]: 'protected',
  [CORE.FOUND_GIVEN_UP]: 'given-up',
  [CORE.FOUND_FORGOTTEN]: 'forgotten',
  [CORE.FOUND_UNCOUNTED]: 'uncounted',
} as const satisfies Readonly<Record<number, string>>;

/**
 * Fate of the place of a session before its turn. new: it is the first turn · fork: the same, and it goes on
 * from a session with a turn in flight · protected: it was kept · given-up: another turn got it · forgotten: by the
 * engine, for want of room · uncounted: no entry was left for the session
 */
export type SessionFate = (typeof FATES)[keyof typeof FATES];

/** What a decision found of the session of its prompt. */
export interface FoundSession {
  readonly fate: SessionFate;
  /** Whether its header alone led to the session, not its prompt. */
  readonly byHeader: boolean;
  /** Turns before this one; 255 = that many or more. */
  readonly turns: number;
  /** Endpoint slot of its last turn; undefined = none, or it has left. */
  readonly home: number | undefined;
  /** Milliseconds for which it was idle: when it lost its place, or by now. */
  readonly idleMs: number;
  /** Idle time up to which such a session was worth its place; Infinity = always. */
  readonly keptMs: number;
  /** Tokens that it had after its last turn, and those of them that it shares with others. */
  readonly tokens: number;
  readonly sharedTokens: number;
  /** Least tokens that a candidate must have room for, where none had that room; undefined = one had. */
  readonly missedTokens: number | undefined;
}

/** The session of a record at an address of the memory; undefined = its prompt was no session's turn. */
export function foundSessionAt({ call, view }: CoreInstance, at: number): FoundSession | undefined {
  const number = view.getUint8(at + CORE.DECISION_SESSION_FATE);
  const fate = fateOf(number);
  if (fate === undefined) return undefined;
  const home = view.getUint16(at + CORE.DECISION_SESSION_HOME, true);
  const missed = view.getUint8(at + CORE.DECISION_SESSION_LOOK) === CORE.LOOK_HELD;
  return {
    fate,
    byHeader: (number & CORE.FOUND_BY_HEADER) !== 0,
    turns: view.getUint8(at + CORE.DECISION_SESSION_TURNS),
    home: home === CORE.NO_HOME ? undefined : home,
    idleMs: view.getUint16(at + CORE.DECISION_SESSION_IDLE, true) * 100,
    keptMs: call.sessionsAgeEnd(view.getUint8(at + CORE.DECISION_SESSION_KEPT)),
    tokens: view.getUint32(at + CORE.DECISION_SESSION_TOKENS, true),
    sharedTokens: view.getUint32(at + CORE.DECISION_SESSION_SHARED, true),
    missedTokens: missed ? view.getUint32(at + CORE.DECISION_SESSION_NEED, true) : undefined,
  };
}

function fateOf(number: number): SessionFate | undefined {
  return (FATES as Readonly<Record<number, SessionFate>>)[number & ~CORE.FOUND_BY_HEADER];
}

/** Cause of a loss of cache that the fate of a session's place explains. */
export function sessionLossOf(fate: SessionFate | undefined): SessionLoss | undefined {
  if (fate === 'given-up') return 'session-lapsed';
  return fate === 'forgotten' ? 'session-lost' : undefined;
}

/** The same of a record at an address of the memory. */
export function sessionLossAt({ view }: CoreInstance, at: number): SessionLoss | undefined {
  return sessionLossOf(fateOf(view.getUint8(at + CORE.DECISION_SESSION_FATE)));
}
