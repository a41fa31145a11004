// The gate as the rest of the core sees it: the events of a charge, the settings, the look, the repair.
//
// Owns: the settings in the head of REGION_GATE (control thread, under the commit lock). Everything here is called with
// the commit lock held, unless it takes it itself.
import { ASSERTIONS } from '../assertions';
import { deathOf, slotsUsed } from '../columns/candidates';
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { COLUMN_GENERATION, COLUMN_INFLIGHT, DEATH_DEAD } from '../endpoints';
import { entryAt, isCharged, LedgerEntry } from '../load/ledger-entries';
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import { KEYS, REQUESTS, SLOTS, SUBSET } from '../memory';
import { isAmount, isSlot, isTime } from '../preconditions';
import {
  bandAdd,
  bandKnown,
  bandsForget,
  bandUsed,
  ceilingOf,
  drainOf,
  rankOf,
  setCeiling,
  setDrain,
  waitingIn,
} from './bands';
import {
  noteAnswered,
  noteCharge,
  noteFirstToken,
  noteForget,
  noteMove,
  noteOutput,
  noteRecount,
  noteRelease,
  notesClear,
  plainTokens,
  roomSum,
} from './charges';
import { saturationKeys } from './conditions';
import {
  GATE,
  GATE_OFF,
  GATE_RANKS,
  GATE_WAIT_MASK,
  GATE_WORST,
  gateChargeAt,
  gateHead,
  gateOn,
  NOTE_ALONE,
  NOTE_BLIND,
  NOTE_EVICTED,
  NOTE_PENDING,
  ROOM_KV_NOW,
  ROOM_OVERDUE,
  ROOM_PENDING,
  ROOM_PENDING_COUNT,
  ROOM_REMOTE_COUNT,
  ROOM_REMOTE_KV,
  ROOM_REMOTE_REQUESTS,
  ROOM_REMOTE_TOKENS,
  ROOM_UNANSWERED,
} from './layout';
import {
  expectedFirstToken,
  isOverdue,
  learnBegin,
  learnCapacity,
  learnEnd,
  learnFirstToken,
  learnFoot,
  learnForget,
  learnLook,
  learnOutput,
  learnScrape,
  learnStep,
  stretch,
} from './learn';
import { ringControl } from './rings';
import * as room from './room';
import { sessionsLeave } from './sessions';
import { sessionsHeld, sessionsOn } from './sessions-layout';
import { turnEnds, turnGrows, turnMoves, turnsRepair, turnsSeen } from './sessions-turns';
import { waitSlotAbandon, waitSlotRecount } from './wait-slots';

const SHORT: u32 = 20;

/** Wakes the control thread when an endpoint may have room now and requests wait. */
export function gateOpened(): void {
  if (!gateOn()) return;
  if ((atomic.load<u32>(GATE, GATE_WAIT_MASK) | sessionsHeld()) != 0) ringControl();
}

function slotIsCurrent(entry: LedgerEntry): bool {
  return column.u32(COLUMN_GENERATION, entry.slot) == entry.slotGeneration;
}

/** Sums the columns of pending requests again from the charges of the live entries. */
export function sumPendingAgain(): void {
  for (let slot: u32 = 0; slot < SLOTS; slot++) notesClear(slot);
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const entry = entryAt(i);
    if (isCharged(entry) && slotIsCurrent(entry)) noteRecount(i, entry.slot, entry.priority);
  }
}

/** The rank of a request that comes; its band is made if it has none. @param now pool clock, 0 = unknown */
export function gateEnter(priority: i32, now: f64): u32 {
  const rank = gateRank(priority);
  bandUsed(rank, now);
  return rank;
}

/** The rank of a priority; its band is made if it has none. */
function gateRank(priority: i32): u32 {
  if (!bandKnown(priority) && bandAdd(priority)) {
    sumPendingAgain();
    // The control thread sets the ceiling of the new band.
    ringControl();
  }
  return rankOf(priority);
}

/**
 * A request was charged to `slot` as ledger entry `index`.
 * @param uncached prompt tokens that the endpoint does not hold
 * @param blocks whole blocks of the prompt
 */
export function gateCharged(
  index: u32,
  slot: u32,
  priority: i32,
  uncached: u32,
  prompt: u32,
  blocks: u32,
  blind: bool,
  now: f64,
): void {
  if (!gateOn()) {
    noteForget(index);
    return;
  }
  const alone = column.u32(COLUMN_INFLIGHT, slot) == 1;
  noteCharge(index, slot, priority, uncached, plainTokens(prompt, blocks), alone, blind);
  learnFoot(rankOf(priority), prompt, now);
}

/** The first token of an entry came. */
export function gateFirstToken(index: u32, now: f64): void {
  if (!gateOn()) return;
  const entry = entryAt(index);
  const current = slotIsCurrent(entry);
  noteAnswered(index, entry.slot, current);
  const state = noteFirstToken(index, entry.slot, entry.priority, current);
  // The endpoint has one unanswered request less, though the request had no pending tokens.
  if (state == 0) return gateOpened();
  if (current && (state & NOTE_BLIND) == 0 && now > 0) {
    learnFirstToken(index, entry.slot, now - entry.time, (state & NOTE_ALONE) != 0);
  }
  gateOpened();
}

/**
 * Another endpoint computes the prompt of an entry: nothing of it is pending here, and its first token says nothing
 * about this one.
 */
export function gatePrefillElsewhere(index: u32): void {
  if (!gateOn()) return;
  const entry = entryAt(index);
  if (noteFirstToken(index, entry.slot, entry.priority, slotIsCurrent(entry)) != 0) gateOpened();
}

/** The output of an entry has grown to `tokens`. */
export function gateOutput(index: u32, tokens: u32): void {
  if (!gateOn()) return;
  const entry = entryAt(index);
  const grown = noteOutput(index, entry.slot, tokens, slotIsCurrent(entry));
  if (grown == 0) return;
  learnOutput(grown);
  turnGrows(index, tokens);
}

/** A piece of output came `ms` after the one before. Takes no lock. */
export function gateStep(slot: u32, ms: f32): void {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (gateOn() && slot < SLOTS) learnStep(slot, ms);
}

/** The answer of an entry is complete and has `tokens` tokens. */
export function gateEnded(index: u32, tokens: u32, now: f64): void {
  if (!gateOn()) return;
  turnsSeen(now);
  gateOutput(index, tokens);
  if (gateChargeAt(index).output != 0) learnEnd(now);
}

/** An entry is about to be released; it is still charged. */
export function gateReleased(index: u32): void {
  if (!gateOn()) return;
  const entry = entryAt(index);
  const evicted = (gateChargeAt(index).state & NOTE_EVICTED) != 0;
  turnEnds(index);
  noteRelease(index, entry.slot, entry.priority, slotIsCurrent(entry));
  // The control thread waits for its end, also when no request waits for its room any more.
  if (evicted) ringControl();
  else gateOpened();
}

/** An entry is about to be charged to another slot. */
export function gateMoved(index: u32, to: u32): void {
  if (!gateOn()) return;
  const entry = entryAt(index);
  turnMoves(index, to);
  noteMove(index, entry.slot, to, entry.priority, slotIsCurrent(entry));
  gateOpened();
}

/** A slot got another endpoint. */
export function gateSlotCleared(slot: u32): void {
  if (!gateOn()) return;
  notesClear(slot);
  if (sessionsOn()) sessionsLeave(slot);
  learnForget(slot);
}

/** A scrape of a slot was written. */
export function gateScraped(slot: u32): void {
  if (!gateOn()) return;
  learnScrape(slot);
  gateOpened();
}

/** The columns are summed again from the ledger's entries, and the waiting counts from the wait slots. */
export function gateRepair(): void {
  if (!gateOn()) return;
  sumPendingAgain();
  if (sessionsOn()) turnsRepair();
  waitSlotRecount();
}

/** A thread died: what it had waiting is gone. Takes the commit lock. @returns false when it could not be had */
export function gateThreadDied(thread: u32): bool {
  if (!gateOn()) return true;
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return false;
  waitSlotAbandon(thread);
  lockRelease(COMMIT_LOCK);
  gateOpened();
  return true;
}

// ----------------------------------------------------------------------------------------------- the control thread's
// face

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
