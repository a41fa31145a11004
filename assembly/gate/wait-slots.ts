// Requests that wait: how a shard enqueues one, how the control thread lets it go on or turns it away, how it is given
// up.
//
// Owns: the wait slots and the sets of slots behind them. A slot's state changes under the commit lock only, together
// with the count of its band, and with the charge when it is a dispatch: so every race between a dispatch, a cancel and
// another request is decided by who has the lock first, and there is no moment in which a promise is not backed by a
// charge.
//
// A held turn is counted apart from its band: requests that need no room of sessions overtake it.
//
//   free ─ enqueue (shard) → waiting ─ dispatch (control) → dispatched ─┐
//                            ├─ reject (control) → rejected ───┼─ back through the return ring → free (shard)
//                            └─ cancel (shard) → cancelled ────┘
//
// Every waiting slot comes back exactly once. A shard that dies takes its slots along: the control thread frees them.

import { ASSERTIONS } from '../assertions';
import { deathOf, markCandidates, slotsUsed } from '../columns/candidates';
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import {
  COLUMN_INFLIGHT,
  COLUMN_PREFILL_RATE,
  COLUMN_PREFILL_RATE_PEAK,
  COLUMN_PREFILL_RATE_TIME,
  DEATH_DEAD,
} from '../endpoints';
import { tried } from '../load/dead';
import { beginProbe } from '../load/ejection';
import { charge } from '../load/ledger';
import { entryAt } from '../load/ledger-entries';
import { COMMIT_LOCK, lockAcquire, lockHeld, lockRelease } from '../lock';
import { CANDIDATES, MATCH, SCANS, SLOTS, SUBSET, THREAD, THREADS } from '../memory';
import { isScan, isThread, isTime } from '../preconditions';
import { bandOf, isTop, othersWait, rankOf, waitingAdd, waitingClear } from './bands';
import { noteCharge } from './charges';
import { keepOpen } from './conditions';
import {
  GATE,
  GATE_ASLEEP,
  GATE_BELL,
  gateOn,
  RING_ASLEEP,
  RING_BELL,
  returnRing,
  WAIT_FLAG_ANYWHERE,
  WAIT_FLAG_ASIDE,
  WAIT_FLAG_BLIND,
  WAIT_FLAG_HELD,
  WAIT_FLAG_HOME,
  WAIT_FLAG_TURN,
  WAIT_SLOT_CANCELLED,
  WAIT_SLOT_DISPATCHED,
  WAIT_SLOT_FREE,
  WAIT_SLOT_REJECTED,
  WAIT_SLOT_WAITING,
  WaitSlot,
  waitSlotAt,
  waitSlotMaskAddress,
  waitSlotRing,
} from './layout';
import { ringClear, ringControl, ringPop, ringPush, ringShard } from './rings';
import { heldClaims, SESSIONS_HEAD_HELD, sessionsHead, sessionsHold, setHeldClaims } from './sessions-layout';
import { claimOf, waitingFits, waitingGone, waitingHome, waitingNeed } from './sessions-room';
import { turnKeeps } from './sessions-turns';

/** Bit of a number in a enqueue ring: the shard gave the slot up. */
export const RING_CANCEL: u32 = 1 << 30;
/** As EndpointTable's writes: the control thread must not stop for long. */
const SHORT: u32 = 20;
const LONG: u32 = 2000;

export const DISPATCH_DONE: u32 = 0;
export const DISPATCH_CLOSED: u32 = 1; // no endpoint that it may use is open
export const DISPATCH_GONE: u32 = 2; // it does not wait any more
export const DISPATCH_BUSY: u32 = 3; // the commit lock could not be had in time
export const DISPATCH_NOWHERE: u32 = 4; // no endpoint that it may use is left
/** others are open, but not the one that holds its prefix: it waits for that one, once */
export const DISPATCH_STICKS: u32 = 5;
export const DISPATCH_HELD: u32 = 6; // no endpoint has room for its session: it is held

/** Changes the state of a wait slot. Commit lock held, unless the shard frees its own slot. */
function setWaitState(at: WaitSlot, state: u32): void {
  atomic.store<u32>(changetype<usize>(at), state, offsetof<WaitSlot>('state'));
}

/** One waiting request more (1) or less (-1), by its flags. Commit lock held. */
function countWaiting(at: WaitSlot, by: i32): void {
  if ((at.flags & WAIT_FLAG_HELD) == 0) return waitingAdd(at.ranked, by);
  atomic.store<u32>(changetype<usize>(sessionsHead()), sessionsHead().held + by, SESSIONS_HEAD_HELD);
  setHeldClaims(heldClaims() + <f64>by * <f64>at.claim);
}

/**
 * The waiting request takes its place: state and count in one step. Commit lock held.
 * @param flags WAIT_FLAG_* bits
 */
export function waitSlotLocked(slot: u32, priority: i32, flags: u32): void {
  const at = waitSlotAt(THREAD, slot);
  if (ASSERTIONS) assert(lockHeld(COMMIT_LOCK), 'a request begins to wait under the commit lock');
  if (ASSERTIONS) assert(at.state == WAIT_SLOT_FREE, 'a taken wait slot was free');
  at.priority = priority;
  at.ranked = bandOf(priority);
  at.flags = flags;
  // The state first: a repair counts the waiting ones by it.
  setWaitState(at, WAIT_SLOT_WAITING);
  countWaiting(at, 1);
}

/** Tells the control thread of a waiting slot whose description is complete. Shard only. */
export function waitSlotEnqueue(slot: u32): void {
  if (ASSERTIONS) assert(isScan(slot), 'the wait slot is one of the thread');
  if (ASSERTIONS) assert(waitSlotAt(THREAD, slot).state != WAIT_SLOT_FREE, 'an enqueued request waits');
  ringPush(waitSlotRing(THREAD), 2 * SCANS, slot);
  ringControl();
}

function leave(at: WaitSlot, state: u32): void {
  if (ASSERTIONS) assert(lockHeld(COMMIT_LOCK), 'a request stops waiting under the commit lock');
  if (ASSERTIONS) assert(at.state == WAIT_SLOT_WAITING, 'a request that leaves was waiting');
  setWaitState(at, state);
  countWaiting(at, -1);
  if (state != WAIT_SLOT_DISPATCHED && (at.flags & WAIT_FLAG_TURN) != 0) waitingGone(at);
}

/**
 * Gives a waiting request up. Shard only.
 * @returns 0 done, 1 it is dispatched or rejected already: that comes through the ring, 2 the lock could not be had:
 * call again
 */
export function waitSlotCancel(slot: u32): u32 {
  if (ASSERTIONS) assert(isScan(slot), 'the wait slot is one of the thread');
  const at = waitSlotAt(THREAD, slot);
  if (!lockAcquire(COMMIT_LOCK, LONG)) return 2;
  const waits = at.state == WAIT_SLOT_WAITING;
  if (waits) leave(at, WAIT_SLOT_CANCELLED);
  if (ASSERTIONS) assert(at.state != WAIT_SLOT_WAITING, 'a request that was given up does not wait');
  lockRelease(COMMIT_LOCK);
  if (!waits) return 1;
  ringPush(waitSlotRing(THREAD), 2 * SCANS, slot | RING_CANCEL);
  ringControl();
  return 0;
}

/** A slot that came back can be used again. Shard only. */
export function waitSlotFree(slot: u32): void {
  if (ASSERTIONS) assert(isScan(slot), 'the wait slot is one of the thread');
  const at = waitSlotAt(THREAD, slot);
  if (ASSERTIONS) assert(at.state != WAIT_SLOT_WAITING, 'a freed wait slot has stopped waiting');
  setWaitState(at, WAIT_SLOT_FREE);
}

/** The next slot that comes back to this shard, or -1. */
export function waitSlotReturned(): i32 {
  const slot = ringPop(returnRing(THREAD), SCANS);
  if (ASSERTIONS) assert(slot < 0 || isScan(<u32>slot), 'the wait slot is one of the thread');
  return slot;
}

/** The next number of a shard's enqueue ring, or -1. Bit 30 = given up. Control thread only. */
export function waitSlotEnqueued(thread: u32): i32 {
  if (ASSERTIONS) assert(isThread(thread), 'the thread is one of the pool');
  const slot = ringPop(waitSlotRing(thread), 2 * SCANS);
  if (ASSERTIONS) assert(slot < 0 || isScan(<u32>slot & ~RING_CANCEL), 'the wait slot is one of the thread');
  return slot;
}

/** The open endpoint with the fewest requests in flight. Its own scores decide when the shard takes the dispatch. */
function leastBusy(used: u32): u32 {
  let best: u32 = u32.MAX_VALUE;
  let least: u32 = u32.MAX_VALUE;
  for (let slot: u32 = 0; slot < used; slot++) {
    if (load<i32>(CANDIDATES + slotOffset(slot)) == 0) continue;
    const requests = column.u32(COLUMN_INFLIGHT, slot);
    if (requests >= least) continue;
    best = slot;
    least = requests;
  }
  return best;
}

function isMarked(slot: i32, used: u32): bool {
  return slot >= 0 && <u32>slot < used && load<i32>(CANDIDATES + slotOffset(slot)) != 0;
}

/** Charges a waiting request to an endpoint in the name of its shard. Commit lock held. */
function dispatchLocked(at: WaitSlot, thread: u32, slot: u32, now: f64): void {
  const uncached = at.uncached;
  const priority = at.priority;
  const alone = column.u32(COLUMN_INFLIGHT, slot) == 0;
  const prompt = at.prompt;
  const rate = column.f32(COLUMN_PREFILL_RATE, slot);
  const peak = column.f32(COLUMN_PREFILL_RATE_PEAK, slot);
  const rateTime = column.f64(COLUMN_PREFILL_RATE_TIME, slot);
  tried(slot, now);
  const ticket = charge(slot, uncached + at.output, prompt, uncached, 0, beginProbe(slot), priority, now);
  // Restores the prefill rate: the request is counted as sent when its shard decides.
  column.setF32(COLUMN_PREFILL_RATE, slot, rate);
  column.setF32(COLUMN_PREFILL_RATE_PEAK, slot, peak);
  column.setF64(COLUMN_PREFILL_RATE_TIME, slot, rateTime);
  at.endpoint = slot;
  at.ticket = ticket;
  at.ticketGeneration = ticket == 0 ? 0 : entryAt(ticket - 1).generation;
  if (ticket != 0) {
    entryAt(ticket - 1).thread = thread;
    // The blocks of the prompt are counted as active only when the shard takes the dispatch: until then it is plain.
    const blind = (at.flags & WAIT_FLAG_BLIND) != 0;
    noteCharge(ticket - 1, slot, priority, uncached, prompt, alone, blind);
  }
  leave(at, WAIT_SLOT_DISPATCHED);
  if (ASSERTIONS)
    assert(ticket == 0 || entryAt(ticket - 1).thread == thread, 'the charge of a dispatch belongs to its shard');
}

function returnSlot(thread: u32, slot: u32): void {
  ringPush(returnRing(thread), SCANS, slot);
  ringShard(returnRing(thread));
}

/**
 * Marks the endpoints that a waiting request may use. Commit lock held. Control thread only.
 * @param only the one endpoint slot that it waits for, -1 = any that it may use
 * @returns how many
 */
export function waitSlotCandidates(thread: u32, slot: u32, used: u32, only: i32, now: f64): u32 {
  // A dead endpoint is not worth a wait.
  if (only >= 0 && deathOf(<u32>only) == DEATH_DEAD) return 0;
  const anywhere = (waitSlotAt(thread, slot).flags & WAIT_FLAG_ANYWHERE) != 0;
  if (only >= 0) {
    memory.fill(SUBSET, 0, SLOTS >> 3);
    store<u8>(SUBSET + (only >> 3), <u8>((<u32>1) << (only & 7)));
  } else if (!anywhere) memory.copy(SUBSET, waitSlotMaskAddress(thread, slot), SLOTS >> 3);
  return markCandidates(used, now, only >= 0 || !anywhere, true);
}

/** No endpoint has room for the session of the waiting turn taken last. Commit lock held. @returns DISPATCH_HELD */
function holdLocked(at: WaitSlot, used: u32): u32 {
  if ((at.flags & WAIT_FLAG_HELD) == 0) {
    countWaiting(at, -1);
    at.claim = claimOf(used);
    at.flags = (at.flags & ~WAIT_FLAG_HOME) | WAIT_FLAG_HELD;
    countWaiting(at, 1);
  }
  return DISPATCH_HELD;
}

/**
 * Lets a waiting turn go to its home, or to an open endpoint with room for it. MATCH is empty. Commit lock held.
 * @returns DISPATCH_*
 */
function dispatchTurn(at: WaitSlot, thread: u32, used: u32, rank: u32, now: f64): u32 {
  const home = waitingHome(at, used, now);
  if (gateOn() && keepOpen(used, rank, at.uncached, at.prompt, othersWait(), now) == 0) return DISPATCH_CLOSED;
  if (!home && !waitingFits(at, used, now)) return holdLocked(at, used);
  const slot = leastBusy(used);
  const need = waitingNeed(slot);
  dispatchLocked(at, thread, slot, now);
  if (at.ticket != 0) turnKeeps(at.ticket - 1, slot, need);
  return DISPATCH_DONE;
}

/**
 * Lets a waiting request go on if an endpoint that it may use is open. Control thread only.
 * @param only the one endpoint slot that it waits for, -1 = any that it may use
 * @param now pool clock
 * @returns DISPATCH_*
 */
export function waitSlotDispatch(thread: u32, slot: u32, only: i32, now: f64): u32 {
  if (ASSERTIONS) assert(isThread(thread), 'the thread is one of the pool');
  if (ASSERTIONS) assert(isScan(slot), 'the wait slot is one of the thread');
  if (ASSERTIONS) assert(only < <i32>SLOTS, 'the one candidate is a slot of the pool');
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  const at = waitSlotAt(thread, slot);
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return DISPATCH_BUSY;
  let result = DISPATCH_GONE;
  if (at.state == WAIT_SLOT_WAITING) {
    const used = slotsUsed();
    const candidates = waitSlotCandidates(thread, slot, used, only, now);
    const prompt = at.prompt;
    const rank = rankOf(at.priority);
    const turn = sessionsHold() && (at.flags & WAIT_FLAG_TURN) != 0 && !isTop(rank);
    result = candidates == 0 ? DISPATCH_NOWHERE : DISPATCH_CLOSED;
    memory.fill(MATCH, 0, slotOffset(used));
    const sticky = at.sticky;
    const flags = at.flags;
    const waits = !turn && only < 0 && (flags & WAIT_FLAG_ASIDE) == 0 && isMarked(sticky, used) && !isTop(rank);
    if (turn && candidates != 0) result = dispatchTurn(at, thread, used, rank, now);
    else if (candidates != 0 && (!gateOn() || keepOpen(used, rank, at.uncached, prompt, true, now) != 0)) {
      const held = isMarked(sticky, used);
      if (waits && !held) {
        at.flags = flags | WAIT_FLAG_ASIDE;
        result = DISPATCH_STICKS;
      } else {
        dispatchLocked(at, thread, held ? <u32>sticky : leastBusy(used), now);
        result = DISPATCH_DONE;
      }
    }
  }
  if (ASSERTIONS)
    assert(result != DISPATCH_DONE || at.state == WAIT_SLOT_DISPATCHED, 'a dispatched request does not wait');
  lockRelease(COMMIT_LOCK);
  if (result == DISPATCH_DONE) returnSlot(thread, slot);
  return result;
}

/**
 * Turns a waiting request away; the reason stands in the slot already. Control thread only.
 * @returns as waitSlotDispatch
 */
export function waitSlotReject(thread: u32, slot: u32): u32 {
  if (ASSERTIONS) assert(isThread(thread), 'the thread is one of the pool');
  if (ASSERTIONS) assert(isScan(slot), 'the wait slot is one of the thread');
  const at = waitSlotAt(thread, slot);
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return DISPATCH_BUSY;
  const waits = at.state == WAIT_SLOT_WAITING;
  if (waits) leave(at, WAIT_SLOT_REJECTED);
  lockRelease(COMMIT_LOCK);
  if (!waits) return DISPATCH_GONE;
  returnSlot(thread, slot);
  return DISPATCH_DONE;
}

/** The control thread has forgotten a request that was given up: its slot is free again. */
export function waitSlotForget(thread: u32, slot: u32): void {
  if (ASSERTIONS) assert(isThread(thread), 'the thread is one of the pool');
  if (ASSERTIONS) assert(isScan(slot), 'the wait slot is one of the thread');
  if (ASSERTIONS)
    assert(waitSlotAt(thread, slot).state == WAIT_SLOT_CANCELLED, 'a forgotten request was given up by its shard');
  returnSlot(thread, slot);
}

/** Counts the waiting requests again from the wait slots. Commit lock held. */
export function waitSlotRecount(): void {
  waitingClear();
  sessionsHead().held = 0;
  setHeldClaims(0);
  for (let thread: u32 = 1; thread < THREADS; thread++) {
    for (let slot: u32 = 0; slot < SCANS; slot++) {
      const at = waitSlotAt(thread, slot);
      if (at.state == WAIT_SLOT_WAITING) countWaiting(at, 1);
    }
  }
}

/** Wait slots that a thread has in use. */
export function waitingOf(thread: u32): u32 {
  if (!gateOn()) return 0;
  let count: u32 = 0;
  for (let slot: u32 = 0; slot < SCANS; slot++) {
    count += u32(waitSlotAt(thread, slot).state != WAIT_SLOT_FREE);
  }
  return count;
}

/**
 * Frees the slots of a dead shard and empties its rings. Commit lock held; its charges are released with the ledger's.
 */
export function waitSlotAbandon(thread: u32): void {
  for (let slot: u32 = 0; slot < SCANS; slot++) {
    const at = waitSlotAt(thread, slot);
    if (at.state == WAIT_SLOT_WAITING && (at.flags & WAIT_FLAG_TURN) != 0) waitingGone(at);
    setWaitState(at, WAIT_SLOT_FREE);
  }
  ringClear(waitSlotRing(thread));
  ringClear(returnRing(thread));
  waitSlotRecount();
}

/** Stores that the control thread is about to sleep: writers ring from now on. */
export function controlDozes(): void {
  atomic.store<u32>(GATE, 1, GATE_ASLEEP);
}

export function controlWakes(): void {
  atomic.store<u32>(GATE, 0, GATE_ASLEEP);
}

/** Address of the bell word of the control thread (0) or of a shard. */
export function bellAddress(thread: u32): usize {
  if (ASSERTIONS) assert(isThread(thread), 'the thread is one of the pool');
  return thread == 0 ? GATE + GATE_BELL : returnRing(thread) + RING_BELL;
}

export function shardDozes(): void {
  atomic.store<u32>(returnRing(THREAD), 1, RING_ASLEEP);
}

export function shardWakes(): void {
  atomic.store<u32>(returnRing(THREAD), 0, RING_ASLEEP);
}
