// Upkeep of the sessions: their settings, and the look at idle ones twice a second.
//
// Owns: the settings, the halving and the tokens left in the head of REGION_SESSIONS (control thread). Takes the commit
// lock.
//
// An idle session that is not worth its room lapses at a tick, once nothing protected was used before it: what lies
// behind a protected one frees nothing. So a pool whose finished sessions fill its caches is one with room.
import { ASSERTIONS } from '../assertions';
import { slotsUsed } from '../columns/candidates';
import * as column from '../columns/column';
import { COLUMN_PREFILL_RATE_PEAK, COLUMN_STATE, STATE_FREE } from '../endpoints';
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import { isTime } from '../preconditions';
import { returnPrice } from '../prefix/match';
import { gateHead } from './layout';
import { sessionFree, sessionLapse, sessionsUsed } from './sessions';
import { cacheTokens, hostsSessions, SPACIOUS } from './sessions-hosts';
import {
  CROWDED_MS,
  crowdedUntil,
  heldClaims,
  NO_HOME,
  SESSION_LAPSED,
  SESSION_RUNNING,
  SESSIONS_GIVEN_UP,
  SESSIONS_OFF,
  SESSIONS_OLDEST,
  SESSIONS_ON,
  sessionAt,
  sessionsClear,
  sessionsColumn,
  sessionsCount,
  sessionsGiven,
  sessionsHead,
  sessionsOn,
  setCachesTokens,
  setCrowdedUntil,
  setHeldClaims,
  setTokensLeft,
  tokensLeft,
} from './sessions-layout';
import { endElsewhere, tellLapse } from './sessions-peers';
import { halveReturns, isKept, noteAbsence, reckonKept } from './sessions-returns';
import { turnsSeen } from './sessions-turns';

const SHORT: u32 = 20;
/** Entries that a tick looks at, and sessions that it lets lapse. */
const LOOKED_AT: u32 = 4096;
/** Lapses of a tick that peers are told: their ring of news has room for them. */
const TOLD_MAX: u32 = 256;
const HALVED_MS: f64 = 1_800_000;
/** Least price at which a tier returns what the GPU forgets, beside computing it: to keep has a worth then. */
const PRICE_MIN: f32 = 0.01;

/**
 * Turns the sessions on or off, or changes their settings. Takes the commit lock.
 * @param mode SESSIONS_*
 * @param small share of a cache below which a prompt is no session's turn
 * @param stretch share of a cache that a turn may exceed once it was held for long
 * @param maxWait milliseconds after which a held turn goes on without room, 0 = never
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function sessionsConfigure(mode: u32, small: f32, stretch: f32, maxWait: f32): u32 {
  if (ASSERTIONS) assert(mode <= SESSIONS_ON, 'the mode is one of the sessions');
  if (ASSERTIONS) assert(stretch >= 0, '`stretch` is not negative');
  if (ASSERTIONS) assert(maxWait >= 0, '`maxWait` is not negative');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  // What runs now was not counted: it is not ended either.
  if (mode != SESSIONS_OFF && sessionsHead().mode == SESSIONS_OFF) {
    const held = sessionsHead().held;
    const claims = heldClaims();
    sessionsClear();
    sessionsHead().held = held;
    setHeldClaims(claims);
    reckonKept();
  }
  sessionsHead().small = small;
  sessionsHead().stretch = stretch;
  sessionsHead().maxWait = maxWait;
  sessionsHead().smallTokens = smallEverywhere();
  setTokensLeft(reckonLeft());
  sessionsHead().mode = mode;
  lockRelease(COMMIT_LOCK);
  return 0;
}

/**
 * Sets bounds in the place of learned and told ones. Takes the commit lock.
 * @param capacity tokens that a cache holds while its endpoint does not tell, 0 = unknown
 * @param usable share of a cache that sessions may fill
 * @param lease milliseconds for which an idle session is kept, below 0 = as is learned
 * @param life milliseconds after which a session without a place is forgotten, 0 = never
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function sessionsGive(capacity: f32, usable: f32, lease: f32, life: f32): u32 {
  if (ASSERTIONS) assert(capacity >= 0, '`capacity` is not negative');
  if (ASSERTIONS) assert(usable > 0 && usable <= 1, '`usable` is a share above 0');
  if (ASSERTIONS) assert(life >= 0, '`life` is not negative');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  const given = sessionsGiven();
  given.capacity = capacity;
  given.spared = 1 - usable;
  given.lease = lease < 0 ? 0 : lease + 1;
  given.life = life;
  sessionsHead().smallTokens = smallEverywhere();
  setTokensLeft(reckonLeft());
  reckonKept();
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

/** Mean milliseconds in which an engine that hosts sessions computes as many tokens as its cache holds. */
function refillTime(): f32 {
  const used = slotsUsed();
  let sum: f32 = 0;
  let count: f32 = 0;
  for (let slot: u32 = 0; slot < used; slot++) {
    const rate = column.f32(COLUMN_PREFILL_RATE_PEAK, slot);
    const capacity = cacheTokens(slot);
    if (capacity <= 0 || rate <= 0 || !hostsSessions(slot)) continue;
    sum += capacity / rate;
    count++;
  }
  return count == 0 ? 0 : sum / count;
}

/** Tokens up to which sessions may grow in all caches that host them; Infinity while none is of known size. */
function reckonLeft(): f64 {
  const used = slotsUsed();
  let capacity: f64 = 0;
  let taken: f64 = 0;
  for (let slot: u32 = 0; slot < used; slot++) {
    const tokens = <f64>cacheTokens(slot) * <f64>gateHead().share;
    if (tokens <= 0 || column.u32(COLUMN_STATE, slot) == STATE_FREE || !hostsSessions(slot)) continue;
    capacity += tokens;
    taken += <f64>sessionsUsed(slot);
  }
  capacity *= 1 - <f64>sessionsGiven().spared;
  setCachesTokens(capacity);
  return capacity == 0 ? Infinity : SPACIOUS * capacity - taken;
}

/** A crowded pool is one no more when its sessions have had room for long, and no turn is held. */
function leaveCrowd(now: f64): void {
  if (crowdedUntil() == 0) return;
  if (tokensLeft() < 0 || sessionsHead().held != 0) setCrowdedUntil(now + CROWDED_MS);
  else if (now >= crowdedUntil()) setCrowdedUntil(0);
}

/** Lapses the sessions at the head of each endpoint's list that are not worth their room. */
function lapseIdle(now: f64): void {
  const used = slotsUsed();
  let count: u32 = 0;
  for (let slot: u32 = 0; slot < used; slot++) {
    let entry = sessionsColumn(SESSIONS_OLDEST, slot);
    while (entry != 0 && count < LOOKED_AT && !isKept(sessionAt(entry), now)) {
      if (count < TOLD_MAX) tellLapse(entry);
      sessionLapse(entry);
      count++;
      entry = sessionsColumn(SESSIONS_OLDEST, slot);
    }
  }
  sessionsCount(SESSIONS_GIVEN_UP, count);
}

/**
 * Looks at idle sessions, lapses those that are not worth their room, and reckons how long they are kept and what is
 * left: twice a second, on the control thread. Takes the commit lock.
 * @returns 0, or 1 when the lock could not be had
 */
export function sessionsTick(now: f64): u32 {
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (!sessionsOn()) return 0;
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  const head = sessionsHead();
  const made = head.made;
  const life = <f64>sessionsGiven().life;
  for (let i: u32 = min(made, LOOKED_AT); i != 0; i--) {
    head.looked = (head.looked % made) + 1;
    const session = sessionAt(head.looked);
    endElsewhere(head.looked, now);
    if (session.home != NO_HOME && session.state > SESSION_RUNNING) noteAbsence(session, now);
    if (life > 0 && session.state == SESSION_LAPSED && now - session.lastUse > life) sessionFree(head.looked);
  }
  if (now - head.halved > HALVED_MS) {
    head.halved = now;
    halveReturns();
  }
  head.refill = refillTime() * max<f32>(returnPrice(), PRICE_MIN);
  head.smallTokens = smallEverywhere();
  turnsSeen(now);
  lapseIdle(now);
  setTokensLeft(reckonLeft());
  leaveCrowd(now);
  lockRelease(COMMIT_LOCK);
  reckonKept();
  return 0;
}
