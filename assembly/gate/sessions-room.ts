// Room for the turns of sessions: which endpoints have it, and whose is given away.
//
// Owns: the settings in the head of REGION_SESSIONS (control thread), and the thread's KEYS column. Commit lock held,
// unless it is taken here. The order of a look: a protected session has its place; a small prompt needs none; any other
// turn must fit beside what is protected, or takes the place of sessions that are not worth theirs.
import { ASSERTIONS } from '../assertions';
import { slotsUsed } from '../columns/candidates';
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { COLUMN_PREFILL_RATE_PEAK, COLUMN_STATE, STATE_FREE } from '../endpoints';
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import { CANDIDATES, SLOTS } from '../memory';
import { isTime } from '../preconditions';
import { request } from '../request-area';
import { sessionLapse, sessionsUsed } from './sessions';
import {
  NO_HOME,
  SESSION_IDLE,
  SESSION_RUNNING,
  SESSIONS_AT_HOME,
  SESSIONS_FIT,
  SESSIONS_GIVEN_UP,
  SESSIONS_HELD,
  SESSIONS_OFF,
  SESSIONS_OLDEST,
  SESSIONS_SHADOW,
  SESSIONS_SMALL,
  SESSIONS_UNLISTED,
  sessionAt,
  sessionsClear,
  sessionsColumn,
  sessionsCount,
  sessionsHead,
  sessionsOn,
} from './sessions-layout';
import { countedPrefix } from './sessions-prefixes';
import { halveReturns, isKept, noteAbsence, reckonKept } from './sessions-returns';
import { cacheTokens, isSmall, sharedBlocks, soughtSession } from './sessions-turns';

const SHORT: u32 = 20;
/** Sessions that one look at an endpoint may give up. */
const GIVEN_UP_MAX: u32 = 256;
/** Entries that a tick looks at. */
const LOOKED_AT: u32 = 4096;
const HALVED_MS: f64 = 1_800_000;

function isCandidate(slot: u32): bool {
  return load<i32>(CANDIDATES + slotOffset(slot)) != 0;
}

/** Tokens of the prompt that an endpoint must have room for. */
function needOf(slot: u32, known: u32): u32 {
  const prompt = request().promptTokens;
  let shared: u32 = 0;
  if (known == 0) shared = sharedBlocks(slot) * request().blockTokens;
  else if (sessionAt(known).prefix != 0) shared = countedPrefix(sessionAt(known).prefix, slot);
  return prompt > shared ? prompt - shared : 0;
}

/** Tokens by which the room of an endpoint exceeds what the turn needs; one that nobody uses always has room. */
function spare(slot: u32, known: u32): f64 {
  const capacity = <f64>cacheTokens(slot);
  if (capacity <= 0) return Infinity;
  const used = <f64>sessionsUsed(slot);
  return used == 0 ? Infinity : capacity - used - <f64>needOf(slot, known);
}

/**
 * Looks how many of the sessions at the head of an endpoint's list would have to go for `missing` tokens.
 * @returns how many, 0 = those that are not worth their room do not suffice
 */
function dispensable(slot: u32, missing: f64, now: f64): u32 {
  let left = missing;
  let count: u32 = 0;
  for (let entry = sessionsColumn(SESSIONS_OLDEST, slot); entry != 0 && count < GIVEN_UP_MAX; ) {
    const session = sessionAt(entry);
    if (session.state == SESSION_IDLE && isKept(session, now)) return 0;
    count++;
    left -= <f64>session.own;
    // What lies behind the next one is given up with it.
    const next = session.newer;
    left -= <f64>(next == 0 ? sessionsColumn(SESSIONS_UNLISTED, slot) : sessionAt(next).behind);
    if (left <= 0) return count;
    entry = next;
  }
  return 0;
}

/** Gives up the room of `count` sessions at the head of an endpoint's list. */
function giveUp(slot: u32, count: u32): void {
  let given: u32 = 0;
  let entry = sessionsColumn(SESSIONS_OLDEST, slot);
  for (let i: u32 = 0; i < count && entry != 0; i++) {
    const session = sessionAt(entry);
    const next = session.newer;
    if (session.state == SESSION_IDLE) {
      sessionLapse(entry);
      given++;
    }
    entry = next;
  }
  sessionsCount(SESSIONS_GIVEN_UP, given);
}

/** Makes room on the candidate whose sessions were away longest. @returns whether one has room now */
function makeRoom(used: u32, known: u32, now: f64): bool {
  let best: u32 = SLOTS;
  let bestCount: u32 = 0;
  let longest: f64 = Infinity;
  for (let slot: u32 = 0; slot < used; slot++) {
    if (!isCandidate(slot)) continue;
    const missing = -spare(slot, known);
    const count = missing > 0 ? dispensable(slot, missing, now) : 0;
    if (count == 0) continue;
    const last = sessionAt(sessionsColumn(SESSIONS_OLDEST, slot)).lastUse;
    const home = known != 0 && sessionAt(known).home == slot;
    if (!home && last >= longest) continue;
    best = slot;
    bestCount = count;
    longest = home ? -Infinity : last;
  }
  if (best == SLOTS) return false;
  giveUp(best, bestCount);
  return true;
}

function anyFits(used: u32, known: u32): bool {
  for (let slot: u32 = 0; slot < used; slot++) if (isCandidate(slot) && spare(slot, known) >= 0) return true;
  return false;
}

function isSmallAnywhere(used: u32): bool {
  const prompt = request().promptTokens;
  for (let slot: u32 = 0; slot < used; slot++) if (isCandidate(slot) && isSmall(prompt, slot)) return true;
  return false;
}

/**
 * Looks whether the request of this decision has room among its candidates, and counts what it found. Sessions that are
 * not worth their room give it up if that makes room for it.
 */
export function sessionsLook(used: u32): void {
  const known = soughtSession();
  const state = known == 0 ? 0 : sessionAt(known).state;
  if (isSmallAnywhere(used)) return sessionsCount(SESSIONS_SMALL, 1);
  if (state == SESSION_IDLE) return sessionsCount(SESSIONS_AT_HOME, 1);
  const own = state == SESSION_RUNNING ? 0 : known;
  const now = request().now;
  const fits = anyFits(used, own) || makeRoom(used, own, now);
  sessionsCount(fits ? SESSIONS_FIT : SESSIONS_HELD, 1);
}

/**
 * Turns the sessions on or off, or changes their settings. Takes the commit lock.
 * @param mode SESSIONS_*
 * @param small share of a cache below which a prompt is nobody's turn
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function sessionsConfigure(mode: u32, small: f32): u32 {
  if (ASSERTIONS) assert(mode <= SESSIONS_SHADOW, 'the mode is one of the sessions');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  // What runs now was not counted: it is not ended either.
  if (mode != SESSIONS_OFF && sessionsHead().mode == SESSIONS_OFF) {
    sessionsClear();
    reckonKept();
  }
  sessionsHead().small = small;
  sessionsHead().smallTokens = smallEverywhere();
  sessionsHead().mode = mode;
  lockRelease(COMMIT_LOCK);
  return 0;
}

/** Tokens below which a prompt is small on every endpoint; 0 while a cache is of unknown size. */
function smallEverywhere(): u32 {
  const used = slotsUsed();
  let least: f32 = Infinity;
  for (let slot: u32 = 0; slot < used; slot++) {
    if (column.u32(COLUMN_STATE, slot) != STATE_FREE) least = min(least, cacheTokens(slot));
  }
  return least == Infinity ? 0 : <u32>(least * sessionsHead().small);
}

/** Mean over the endpoints of the milliseconds in which an engine computes as many tokens as its cache holds. */
function refillTime(): f32 {
  const used = slotsUsed();
  let sum: f32 = 0;
  let count: f32 = 0;
  for (let slot: u32 = 0; slot < used; slot++) {
    const rate = column.f32(COLUMN_PREFILL_RATE_PEAK, slot);
    const capacity = cacheTokens(slot);
    if (capacity <= 0 || rate <= 0) continue;
    sum += capacity / rate;
    count++;
  }
  return count == 0 ? 0 : sum / count;
}

/**
 * Looks at idle sessions, and reckons how long they are kept: twice a second, on the control thread. Takes the commit
 * lock.
 * @returns 0, or 1 when the lock could not be had
 */
export function sessionsTick(now: f64): u32 {
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (!sessionsOn()) return 0;
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  const head = sessionsHead();
  const made = head.made;
  for (let i: u32 = min(made, LOOKED_AT); i != 0; i--) {
    head.looked = (head.looked % made) + 1;
    const session = sessionAt(head.looked);
    if (session.home != NO_HOME && session.state > SESSION_RUNNING) noteAbsence(session, now);
  }
  if (now - head.halved > HALVED_MS) {
    head.halved = now;
    halveReturns();
  }
  head.refill = refillTime();
  head.smallTokens = smallEverywhere();
  lockRelease(COMMIT_LOCK);
  reckonKept();
  return 0;
}
