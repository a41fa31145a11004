// Sums over all sessions, for pages of the control thread.
//
// Owns: the sums of the last tally, and this thread's KEYS column, which holds the protected tokens of each endpoint
// until its next use. No lock: a session that changes meanwhile counts as before or as after.

import { ASSERTIONS } from '../assertions';
import { slotOffset } from '../columns/column';
import { KEYS, SLOTS } from '../memory';
import { isSlot, isTime } from '../preconditions';
import { hostsSessions } from './sessions-hosts';
import {
  NO_HOME,
  SESSION_FREE,
  SESSION_IDLE,
  SESSION_RUNNING,
  SESSIONS_PREFIX_TOKENS,
  SESSIONS_RUNNING_TOKENS,
  sessionAt,
  sessionsColumn,
  sessionsHead,
} from './sessions-layout';

// Figures of a tally.
export const TALLY_RUNNING: u32 = 0; // sessions with a turn in flight
export const TALLY_IDLE: u32 = 1; // protected ones between turns
export const TALLY_LAPSED: u32 = 2; // sessions without a place
export const TALLY_ACTIVE: u32 = 3; // sessions with a turn since the given time
export const TALLY_ACTIVE_TOKENS: u32 = 4; // tokens that these hold alone
const FIGURES: u32 = 5;

let running: f64 = 0;
let idle: f64 = 0;
let lapsed: f64 = 0;
let active: f64 = 0;
let activeTokens: f64 = 0;

/** Sums the sessions. @param since milliseconds of the pool clock from which on a turn makes a session active */
export function sessionsTally(since: f64): void {
  if (ASSERTIONS) assert(isTime(since), 'the time is one of the pool clock');
  running = 0;
  idle = 0;
  lapsed = 0;
  active = 0;
  activeTokens = 0;
  memory.fill(KEYS, 0, slotOffset(SLOTS));
  for (let entry: u32 = 1, made = sessionsHead().made; entry <= made; entry++) {
    const session = sessionAt(entry);
    const state = session.state;
    if (state == SESSION_FREE) continue;
    running += f64(state == SESSION_RUNNING);
    idle += f64(state == SESSION_IDLE);
    lapsed += f64(state > SESSION_IDLE);
    const home = session.home;
    if (state == SESSION_IDLE && home != NO_HOME) {
      store<u32>(KEYS + slotOffset(home), load<u32>(KEYS + slotOffset(home)) + session.own);
    }
    if (state != SESSION_RUNNING && session.lastUse < since) continue;
    active += 1;
    activeTokens += <f64>session.own;
  }
}

/** A figure of the last tally. @param figure TALLY_* */
export function sessionsTallied(figure: u32): f64 {
  if (ASSERTIONS) assert(figure < FIGURES, 'the figure is one of a tally');
  if (figure == TALLY_RUNNING) return running;
  if (figure == TALLY_IDLE) return idle;
  if (figure == TALLY_LAPSED) return lapsed;
  if (figure == TALLY_ACTIVE) return active;
  return activeTokens;
}

/** Milliseconds in which an engine computes as many tokens as its cache holds, 0 = unknown. */
export function sessionsRefill(): f32 {
  return sessionsHead().refill;
}

/** Tokens of protected sessions on an endpoint, by the tally that this thread has just made. */
export function sessionsProtected(slot: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  const others = sessionsColumn(SESSIONS_RUNNING_TOKENS, slot) + sessionsColumn(SESSIONS_PREFIX_TOKENS, slot);
  return load<u32>(KEYS + slotOffset(slot)) + others;
}

/** Whether sessions may have their home on an endpoint. */
export function sessionsHosted(slot: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  return u32(hostsSessions(slot));
}

/** Tokens of the beginnings that sessions of an endpoint share, each once. */
export function sessionsShared(slot: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  return sessionsColumn(SESSIONS_PREFIX_TOKENS, slot);
}
