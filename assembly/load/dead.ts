// Dead endpoints: those that take no connections. The control thread finds that out
// (src/picker/control/death-watch.ts).
//
// Owns: the columns DEATH and DEATH_TIME and the pool word dead, all under the commit lock. States of a slot:
//
//   none ──a request got no answer──▶ in doubt ──▶ none, or dead      by what the control thread finds, at once
//   none ──────────────────────────────────────▶ dead                 by what it finds without a request
//   dead ──▶ none                                                     it takes connections, or has answered for certain
//
// An endpoint that answers with errors is judged (ejection.ts), and never more than half of the pool is out for it. A
// dead one is a fact: no bound applies, and it is no candidate while another endpoint is not dead. A doubt lasts as
// long as one look of the control thread, DOUBT_MS at most, so that no more requests follow the one that failed.
import { ASSERTIONS } from '../assertions';
import { DOUBT_MS, deathOf } from '../columns/candidates';
import * as column from '../columns/column';
import {
  COLUMN_DEATH,
  COLUMN_DEATH_TIME,
  COLUMN_FAILURES,
  COLUMN_GENERATION,
  COLUMN_STATE,
  DEATH_DEAD,
  DEATH_DOUBTED,
  DEATH_NONE,
  STATE_LIVE,
} from '../endpoints';
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import { SLOTS } from '../memory';
import { poolWords } from '../pool-words';
import { isSlot, isTime } from '../preconditions';
import { ejectForProbe, readmit } from './ejection';

/** The control thread must not stop for long. */
const SHORT: u32 = 20;

function setDeath(slot: u32, state: u32): void {
  const before = u32(deathOf(slot) != DEATH_NONE);
  column.setU32(COLUMN_DEATH, slot, state);
  poolWords().dead += u32(state != DEATH_NONE) - before;
  if (ASSERTIONS) assert(poolWords().dead <= SLOTS, 'no more endpoints are dead than there are slots');
}

/**
 * A request to the endpoint got no answer that is its own. Commit lock held. @returns 1 when the endpoint is in doubt
 * from now on
 */
export function doubt(slot: u32, now: f64): u32 {
  if (poolWords().watched == 0 || poolWords().ejectionOff != 0) return 0;
  if (column.u32(COLUMN_STATE, slot) != STATE_LIVE || deathOf(slot) != DEATH_NONE) return 0;
  // One that was found to take connections just now is not asked again for every failure.
  const looked = column.f64(COLUMN_DEATH_TIME, slot);
  if (looked != 0 && now < looked + DOUBT_MS) return 0;
  setDeath(slot, DEATH_DOUBTED);
  column.setF64(COLUMN_DEATH_TIME, slot, now);
  return 1;
}

/** Time after a death in which answers can still be on their way that were given before, in milliseconds. */
const LATE_ANSWER_MS: f64 = 250;

function revive(slot: u32, now: f64): void {
  setDeath(slot, DEATH_NONE);
  column.setF64(COLUMN_DEATH_TIME, slot, now);
}

/** Takes an answer of the endpoint itself. Commit lock held. */
export function answeredItself(slot: u32, now: f64): void {
  if (deathOf(slot) == DEATH_NONE) return;
  if (now < column.f64(COLUMN_DEATH_TIME, slot) + LATE_ANSWER_MS) return answeredPerhaps(slot, now);
  revive(slot, now);
}

/**
 * Takes an answer that another endpoint may have given. Where all are dead it is taken for the endpoint's own: there is
 * nothing better to go by. Commit lock held.
 */
export function answeredPerhaps(slot: u32, now: f64): void {
  if (deathOf(slot) == DEATH_DEAD && poolWords().dead >= poolWords().live) revive(slot, now);
}

/** Notes that a request is sent to a dead endpoint: the next request tries another dead one. Commit lock held. */
export function tried(slot: u32, now: f64): void {
  if (deathOf(slot) == DEATH_DEAD) column.setF64(COLUMN_DEATH_TIME, slot, now);
}

/** Forgets doubt and death of a slot that gets no new picks. Commit lock held. */
export function deathForget(slot: u32): void {
  setDeath(slot, DEATH_NONE);
  column.setF64(COLUMN_DEATH_TIME, slot, 0);
}

/**
 * The control thread has found that an endpoint takes no connections. Takes the commit lock.
 * @returns 1 when it is dead by this, 0 when it was dead, or the slot is not live or has another endpoint, 2 when the
 *   lock not had in time: call again
 */
export function endpointDead(slot: u32, generation: u32, now: f64): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (slot >= SLOTS) return 0;
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 2;
  let dies: u32 = 0;
  if (column.u32(COLUMN_GENERATION, slot) == generation && column.u32(COLUMN_STATE, slot) == STATE_LIVE) {
    dies = u32(deathOf(slot) != DEATH_DEAD);
    if (dies != 0) {
      setDeath(slot, DEATH_DEAD);
      column.setF64(COLUMN_DEATH_TIME, slot, now);
      // It is not judged: the bound on judged ones leaves it out.
      column.setU32(COLUMN_FAILURES, slot, 0);
      readmit(slot);
    }
  }
  if (ASSERTIONS) assert(dies == 0 || deathOf(slot) == DEATH_DEAD, 'an endpoint that dies is dead');
  lockRelease(COMMIT_LOCK);
  return dies;
}

/**
 * The control thread has found that an endpoint takes connections. One that was dead is out until a probe succeeds,
 * which is due at once; the bound on ejected endpoints holds. Takes the commit lock.
 * @returns 1 when it was dead, 0 when it was not, 2 when the lock was not had in time: call again
 */
export function endpointAlive(slot: u32, generation: u32, now: f64): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (slot >= SLOTS) return 0;
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 2;
  let was: u32 = DEATH_NONE;
  if (column.u32(COLUMN_GENERATION, slot) == generation) {
    was = deathOf(slot);
    if (was != DEATH_NONE) revive(slot, now);
    if (was == DEATH_DEAD) ejectForProbe(slot, now);
    if (ASSERTIONS) assert(deathOf(slot) == DEATH_NONE, 'an endpoint that takes connections is not dead');
  }
  lockRelease(COMMIT_LOCK);
  return u32(was == DEATH_DEAD);
}

/** Live endpoints that are in doubt or dead. */
export function deadEndpoints(): u32 {
  if (ASSERTIONS) assert(poolWords().dead <= poolWords().slotsUsed, 'dead endpoints are in slots in use');
  return poolWords().dead;
}

/** Counts the doubted and the dead again. Commit lock held (seized). */
export function deathRepair(): void {
  let dead: u32 = 0;
  for (let slot: u32 = 0; slot < SLOTS; slot++) dead += u32(deathOf(slot) != DEATH_NONE);
  poolWords().dead = dead;
}
