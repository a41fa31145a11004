// What a decision found of the session of its prompt, for the decision log: which one it goes on with, the fate of
// that one's place, and what room it needs.
//
// Owns: scratch of one decision of this thread, nothing in shared memory. Commit lock held while a session is read.
import { hasTurn, NO_HOME, SESSION_IDLE, Session, sessionAt, WAS_FORGOTTEN } from './sessions-layout';
import { classOf, keptAge } from './sessions-returns';

// Fates of the place of the session.
export const FOUND_NONE: u32 = 0; // no session's turn
export const FOUND_NEW: u32 = 1; // first turn of a session
export const FOUND_FORK: u32 = 2; // the same, and it goes on from a prompt of a session with a turn in flight
export const FOUND_PROTECTED: u32 = 3; // its place was kept
export const FOUND_GIVEN_UP: u32 = 4; // its place was given to another turn
export const FOUND_FORGOTTEN: u32 = 5; // the engine has forgotten it
export const FOUND_UNCOUNTED: u32 = 6; // no entry was left for it
/** Added in a record when the header alone led to the session. */
export const FOUND_BY_HEADER: u32 = 128;

/** FOUND_*. */
export let foundFate: u32 = FOUND_NONE;
/** Whether its header alone led to it, not its prompt. */
export let foundByHeader: bool = false;
/** LOOK_* of the look at its room; LOOK_FREE also when there was none. */
export let foundLook: u32 = 0;
/** Turns before this one, 255 = that many or more. */
export let foundTurns: u32 = 0;
/** Bin of the longest age at which such a session is kept, + 1; 0 = at none. */
export let foundKept: u32 = 0;
/** Slot of its last turn, NO_HOME = none. */
export let foundHome: u32 = NO_HOME;
/** Tenths of a second that it was idle: when it lost its place, or by now. */
export let foundIdle: u32 = 0;
/** Tokens that it had after its last turn. */
export let foundTokens: u32 = 0;
/** Those of them that it shares with others. */
export let foundShared: u32 = 0;
/** Least tokens that a candidate must have room for, 0 = no look for room. */
export let foundNeed: u32 = 0;

/** A decision begins. */
export function foundBegin(): void {
  foundFate = FOUND_NONE;
  foundByHeader = false;
  foundLook = 0;
  foundTurns = 0;
  foundKept = 0;
  foundHome = NO_HOME;
  foundIdle = 0;
  foundTokens = 0;
  foundShared = 0;
  foundNeed = 0;
}

/** Notes what the look at the room has found. @param look LOOK_* */
export function noteLook(look: u32, need: u32): void {
  foundLook = look;
  foundNeed = need;
}

/** Notes that no entry was left for the session. */
export function noteUncounted(): void {
  foundFate = FOUND_UNCOUNTED;
}

/** Tenths of a second, as many as 16 bits hold. */
export function tenths(ms: f64): u32 {
  return <u32>min<f64>(max<f64>(ms / 100, 0), u16.MAX_VALUE);
}

function fateOf(session: Session): u32 {
  if (session.state == SESSION_IDLE) return FOUND_PROTECTED;
  return (session.ages & WAS_FORGOTTEN) != 0 ? FOUND_FORGOTTEN : FOUND_GIVEN_UP;
}

/** Notes the session that a prompt goes on with, before its turn begins. @param entry 0 = a new one */
export function noteFound(entry: u32, byHeader: bool, now: f64): void {
  if (entry == 0) {
    foundFate = FOUND_NEW;
    return;
  }
  const session = sessionAt(entry);
  if (hasTurn(session)) {
    foundFate = FOUND_FORK;
    return;
  }
  foundFate = fateOf(session);
  foundByHeader = byHeader;
  foundTurns = session.turns;
  foundKept = keptAge(classOf(session));
  foundHome = session.home;
  foundIdle = session.state == SESSION_IDLE ? tenths(now - session.lastUse) : session.idle;
  foundTokens = session.own + session.shared;
  foundShared = session.shared;
}

/** FOUND_* of the last decision of this thread. */
export function sessionFound(): u32 {
  return foundFate;
}
