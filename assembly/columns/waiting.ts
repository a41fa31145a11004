// Predicted waiting counts: how many requests wait in each engine, by its last scrape and what has come and gone since.
//
// Owns: the column WAITING_COUNTS behind the endpoint columns in REGION_ENDPOINTS: the prediction of each slot, made
// anew under the commit lock with each change of what it is made of (INFLIGHT, INFLIGHT_SCRAPED, WAITING, RUNNING,
// STARTS, SLOTS_FULL). A decision reads one column in the place of six; readers take no lock.
import { ASSERTIONS } from '../assertions';
import {
  COLUMN_INFLIGHT,
  COLUMN_INFLIGHT_SCRAPED,
  COLUMN_RUNNING,
  COLUMN_SLOTS_FULL,
  COLUMN_STARTS,
  COLUMN_WAITING,
  columnAddress,
} from '../endpoints';
import { journalAllChanged } from '../load-journal';
import { COMMIT_LOCK, lockHeld } from '../lock';
import { SLOTS, WAITING_COUNTS } from '../memory';
import * as column from './column';
import { slotOffset } from './column';

/**
 * Steps of a waiting count that nothing but the number of requests sent since the last scrape speaks for. One request
 * more on one endpoint than on another is no reason to leave a cache; a step of four keeps bursts even to within four.
 */
const GUESS_STEP: f32 = 4;

/**
 * Waiting requests as predicted for now (architecture §6), from the scraped counts and the change of what is in flight
 * since: what was sent less what has ended. Where something waited, what was sent waits behind it, and what ended let
 * others start. Where nothing waited, what is above `full` waits if that is known, and what is above `starts` is taken
 * to, in steps (scheduling/slots.ts).
 */
export function predictWaiting(waiting: v128, running: v128, change: v128, starts: v128, full: v128): v128 {
  const zero = f32x4.splat(0);
  const total = f32x4.add(running, change);
  const over = v128.and(f32x4.sub(total, full), f32x4.gt(full, zero));
  const steps = f32x4.ceil(f32x4.mul(f32x4.sub(total, starts), f32x4.splat(<f32>1 / GUESS_STEP)));
  const none = f32x4.pmax(over, f32x4.mul(steps, f32x4.splat(GUESS_STEP)));
  return f32x4.pmax(zero, v128.bitselect(f32x4.add(waiting, change), none, f32x4.gt(waiting, zero)));
}

/** The predicted waiting counts of four endpoints, at byte `at` of the columns. */
export function waitingAt(at: usize): v128 {
  const inflight = v128.load(columnAddress(COLUMN_INFLIGHT) + at);
  return predictWaiting(
    v128.load(columnAddress(COLUMN_WAITING) + at),
    v128.load(columnAddress(COLUMN_RUNNING) + at),
    f32x4.convert_i32x4_s(i32x4.sub(inflight, v128.load(columnAddress(COLUMN_INFLIGHT_SCRAPED) + at))),
    v128.load(columnAddress(COLUMN_STARTS) + at),
    v128.load(columnAddress(COLUMN_SLOTS_FULL) + at),
  );
}

/** The predicted waiting count of one endpoint. */
export function predictedWaiting(slot: u32): f32 {
  return load<f32>(WAITING_COUNTS + slotOffset(slot));
}

/** As predictWaiting, of one slot: its cells were just written one by one, and are read fastest in the same way. */
function predict(slot: u32): f32 {
  const waiting = column.f32(COLUMN_WAITING, slot);
  const change = <f32>(<i32>(column.u32(COLUMN_INFLIGHT, slot) - column.u32(COLUMN_INFLIGHT_SCRAPED, slot)));
  if (waiting > 0) return max<f32>(0, waiting + change);
  const total = column.f32(COLUMN_RUNNING, slot) + change;
  const full = column.f32(COLUMN_SLOTS_FULL, slot);
  const over: f32 = full > 0 ? total - full : 0;
  const steps = ceil<f32>((total - column.f32(COLUMN_STARTS, slot)) * (<f32>1 / GUESS_STEP));
  return max<f32>(0, max<f32>(over, steps * GUESS_STEP));
}

/** Makes the count of a slot anew. Commit lock held. */
export function renewWaiting(slot: u32): void {
  if (ASSERTIONS) assert(lockHeld(COMMIT_LOCK), 'predicted waiting counts change under the commit lock');
  store<f32>(WAITING_COUNTS + slotOffset(slot), predict(slot));
}

/** Makes all counts anew, for a memory whose columns were written from outside. No other thread is at work. */
export function waitingRenew(): void {
  for (let at: usize = 0, end = slotOffset(SLOTS); at < end; at += 16) v128.store(WAITING_COUNTS + at, waitingAt(at));
  journalAllChanged();
}

/** Whether the count of each of four slots is the one that its columns give. Commit lock held. */
export function waitingStands(at: usize): bool {
  return i32x4.all_true(i32x4.eq(v128.load(WAITING_COUNTS + at), waitingAt(at)));
}
