// The gate's settings, and the control thread's look at it: bands, ceilings, the load of replicas, saturation, what is
// overdue.
//
// Owns: the settings in the head of REGION_GATE (control thread, under the commit lock, which is taken here).
import { ASSERTIONS } from '../assertions';
import { deathOf, slotsUsed } from '../columns/candidates';
import { slotOffset } from '../columns/column';
import { DEATH_DEAD } from '../endpoints';
import { entryAt, isCharged, LedgerEntry } from '../load/ledger-entries';
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import { KEYS, REQUESTS, SLOTS, SUBSET } from '../memory';
import { isAmount, isSlot, isTime } from '../preconditions';
import { bandKnown, bandsForget, ceilingOf, drainOf, rankOf, setCeiling, setDrain } from './bands';
import { gateEnter, gateOpened, gateRank, slotIsCurrent, sumPendingAgain } from './capacity-gate';
import { noteFirstToken, noteForget, notesClear } from './charges';
import { saturationKeys } from './conditions';
import {
  GATE_OFF,
  GATE_RANKS,
  GATE_WORST,
  gateChargeAt,
  gateHead,
  gateOn,
  NOTE_BLIND,
  NOTE_PENDING,
  ROOM_OVERDUE,
  ROOM_REMOTE_COUNT,
  ROOM_REMOTE_KV,
  ROOM_REMOTE_REQUESTS,
  ROOM_REMOTE_TOKENS,
} from './layout';
import { expectedFirstToken, isOverdue, learnBegin, learnCapacity, learnLook, stretch } from './learn';
import * as room from './room';

const SHORT: u32 = 20;

/**
 * Opens, closes or changes the gate. Takes the commit lock.
 * @param mode GATE_*
 * @param share part of every endpoint that this replica may fill
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function gateConfigure(
  mode: u32,
  blockTokens: u32,
  share: f32,
  queueThreshold: f32,
  usageThreshold: f32,
  staleness: f32,
  requests: f32,
  tokens: f32,
  now: f64,
): u32 {
  if (ASSERTIONS) assert(mode <= GATE_WORST, 'the mode is one of the gate');
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (ASSERTIONS) assert(isAmount(share), '`share` is a number from 0 on');
  if (ASSERTIONS) assert(isAmount(queueThreshold), '`queueThreshold` is a number from 0 on');
  if (ASSERTIONS) assert(isAmount(usageThreshold), '`usageThreshold` is a number from 0 on');
  if (ASSERTIONS) assert(isAmount(staleness), '`staleness` is a number from 0 on');
  if (ASSERTIONS) assert(isAmount(requests), '`requests` is a number from 0 on');
  if (ASSERTIONS) assert(isAmount(tokens), '`tokens` is a number from 0 on');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  const before = gateHead().mode;
  if (before == GATE_OFF && mode != GATE_OFF) {
    // Requests charged before are counted by the ledger alone.
    for (let i: u32 = 0; i < REQUESTS; i++) noteForget(i);
    gateHead().mode = mode;
    for (let slot: u32 = 0; slot < SLOTS; slot++) notesClear(slot);
    learnBegin(now);
  }
  gateHead().mode = mode;
  gateHead().blockTokens = blockTokens;
  gateHead().share = share;
  gateHead().queueThreshold = queueThreshold;
  gateHead().usageThreshold = usageThreshold;
  gateHead().staleness = staleness;
  gateHead().requests = requests;
  gateHead().tokens = tokens;
  for (let slot: u32 = 0; slot < SLOTS; slot++) if (mode != GATE_OFF) learnCapacity(slot);
  lockRelease(COMMIT_LOCK);
  gateOpened();
  return 0;
}

/**
 * Makes sure that a band is in the table, as if it had had a request.
 * @param now pool clock, 0 = unknown
 * @returns its rank, or -1 when the lock could not be had
 */
export function gateBand(priority: i32, now: f64): i32 {
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return -1;
  const rank = gateEnter(priority, now);
  lockRelease(COMMIT_LOCK);
  if (ASSERTIONS) assert(rank < GATE_RANKS, 'a band has a rank');
  return <i32>rank;
}

/**
 * Forgets the bands in which nothing waits and that had no request since `before`: what they are counted with changes,
 * and a band below them is the highest again.
 * @param before seconds of the pool clock
 * @returns how many are gone
 */
export function gateBandsForget(before: u32): u32 {
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 0;
  const gone = bandsForget(before);
  if (gone != 0) sumPendingAgain();
  lockRelease(COMMIT_LOCK);
  return gone;
}

/** Stores the estimated drain time of a band, in seconds. @returns 1 when it was written */
export function gateDrains(priority: i32, seconds: f32): u32 {
  if (ASSERTIONS) assert(isAmount(seconds), '`seconds` is a number from 0 on');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 0;
  if (bandKnown(priority)) setDrain(rankOf(priority), seconds);
  lockRelease(COMMIT_LOCK);
  return 1;
}

/**
 * Seconds until what waits before a request of this priority has left, 0 = unknown. Takes no lock: a guess either way.
 */
export function gateDrainsIn(priority: i32): f32 {
  const seconds = drainOf(rankOf(priority));
  if (ASSERTIONS) assert(seconds >= 0, 'the time to the end of a queue is a number from 0 on');
  return seconds;
}

/**
 * Sets the load of other pickers on an endpoint. Takes the commit lock.
 * @param requests in flight
 * @param tokens uncached prompt tokens of those without a first token
 * @param count requests without a first token
 * @param held tokens of all of them in the KV cache
 * @returns 1 when it was written
 */
export function gateRemote(slot: u32, requests: u32, tokens: u32, count: u32, held: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (slot >= SLOTS || !lockAcquire(COMMIT_LOCK, SHORT)) return 0;
  const less = requests < room.u32(ROOM_REMOTE_REQUESTS, slot) || tokens < room.u32(ROOM_REMOTE_TOKENS, slot);
  room.setU32(ROOM_REMOTE_REQUESTS, slot, requests);
  room.setU32(ROOM_REMOTE_TOKENS, slot, tokens);
  room.setU32(ROOM_REMOTE_COUNT, slot, count);
  room.setU32(ROOM_REMOTE_KV, slot, held);
  lockRelease(COMMIT_LOCK);
  if (less) gateOpened();
  return 1;
}

/** Stores the ceiling of a band: its share of every endpoint, 1 = all. @returns 1 when it was written */
export function gateCeiling(priority: i32, ceiling: f32): u32 {
  if (ASSERTIONS) assert(isAmount(ceiling), '`ceiling` is a number from 0 on');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 0;
  const rank = gateRank(priority);
  const raised = ceiling > ceilingOf(rank);
  setCeiling(rank, ceiling);
  lockRelease(COMMIT_LOCK);
  if (raised) gateOpened();
  return 1;
}

/**
 * Saturation of the live endpoints in this thread's SUBSET mask: their mean; 1 or more = full. Takes no lock.
 * @returns -1 when there are none
 */
export function gateSaturation(now: f64): f32 {
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (!gateOn()) return -1;
  const used = slotsUsed();
  saturationKeys(used, now);
  let sum: f32 = 0;
  let count: f32 = 0;
  for (let slot: u32 = 0; slot < used; slot++) {
    if ((load<u32>(SUBSET + ((<usize>(slot >> 5)) << 2)) & (1 << (slot & 31))) == 0) continue;
    // A dead endpoint has no room, and no load that says so.
    if (deathOf(slot) == DEATH_DEAD) continue;
    sum += load<f32>(KEYS + slotOffset(slot));
    count += 1;
  }
  const mean: f32 = count == 0 ? -1 : sum / count;
  if (ASSERTIONS) assert(mean == -1 || mean >= 0, 'the saturation is -1 or a number from 0 on');
  return mean;
}

/**
 * Earliest time (pool clock) at which an invisible first token is overdue, by this thread's last pass. Infinity = none.
 */
let nextUnseen: f64 = Infinity;

/** A request whose first token cannot be seen is pending for as long as its prefill should take. */
function passUnseen(index: u32, entry: LedgerEntry, slot: u32, now: f64): void {
  const due = entry.time + <f64>expectedFirstToken(index, slot);
  if (now < due) nextUnseen = min(nextUnseen, due);
  else noteFirstToken(index, slot, entry.priority, true);
}

/**
 * Ends the pending prefill of requests whose first token cannot be seen and must have come. Takes the commit lock.
 * @param now pool clock
 * @returns when to do it again, pool clock; `now` when the lock could not be had, Infinity when nothing is pending in
 * this way
 */
export function gateUnseen(now: f64): f64 {
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (!gateOn()) return Infinity;
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return now;
  nextUnseen = Infinity;
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const unseen = NOTE_PENDING | NOTE_BLIND;
    if ((gateChargeAt(i).state & unseen) != unseen) continue;
    const entry = entryAt(i);
    if (isCharged(entry) && slotIsCurrent(entry)) passUnseen(i, entry, entry.slot, now);
  }
  lockRelease(COMMIT_LOCK);
  return nextUnseen;
}

/** As gateUnseen() would say: of the last look. */
export function gateNextUnseen(): f64 {
  return nextUnseen;
}

/**
 * Finds the late ones, and lets those go whose first token cannot be seen: KEYS marks their slots. Commit lock held.
 */
function lookAtCharges(now: f64): void {
  for (let slot: u32 = 0; slot < SLOTS; slot++) room.setU32(ROOM_OVERDUE, slot, 0);
  memory.fill(KEYS, 0, slotOffset(SLOTS));
  nextUnseen = Infinity;
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const state = gateChargeAt(i).state;
    if ((state & NOTE_PENDING) == 0) continue;
    const entry = entryAt(i);
    if (!isCharged(entry) || !slotIsCurrent(entry)) continue;
    const slot = entry.slot;
    if ((state & NOTE_BLIND) != 0) {
      store<u32>(KEYS + slotOffset(slot), 1);
      passUnseen(i, entry, slot, now);
    } else if (isOverdue(i, slot, now - entry.time, now)) {
      room.setU32(ROOM_OVERDUE, slot, room.u32(ROOM_OVERDUE, slot) + 1);
    }
  }
}

/**
 * The look at what may have filled up, every 50 ms while something waits. Takes the commit lock.
 * @param now pool clock
 * @param passed ms since the last look
 * @returns 0, or 1 when the lock could not be had
 */
export function gateUpdate(now: f64, passed: f64): u32 {
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (ASSERTIONS) assert(passed >= 0, 'the time that has passed is not negative');
  if (!gateOn()) return 0;
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  lookAtCharges(now);
  const used = slotsUsed();
  for (let slot: u32 = 0; slot < used; slot++) {
    learnLook(slot, now, passed);
    if (load<u32>(KEYS + slotOffset(slot)) != 0) stretch(slot, now);
  }
  lockRelease(COMMIT_LOCK);
  return 0;
}

export function gateRanks(): u32 {
  return min(gateHead().bands, GATE_RANKS);
}
