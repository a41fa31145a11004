// Removals of a decision: which endpoints are no candidates, and what removed each.
//
// Owns: this thread's REMOVED column, written by its own thread.
import { CANDIDATES, KEPT, REMOVED, SUBSET } from '../memory';
import { DECIDE_SUBSET, request } from '../request-area';
import { REMOVED_BY_GATE, REMOVED_NOT_ADMITTED, REMOVED_OUTSIDE_SUBSET } from './decision-record';

/** Whether the gate has removed endpoints in this decision. */
let closed: bool = false;

/** Begins a decision. */
export function removalsBegin(): void {
  closed = false;
}

function isInSubset(slot: u32): bool {
  return (load<u32>(SUBSET + ((<usize>(slot >> 5)) << 2)) & (1 << (slot & 31))) != 0;
}

/** Notes the endpoints that were no candidates from the beginning. */
export function noteNotAdmitted(used: u32): void {
  const out = i32x4.splat(REMOVED_NOT_ADMITTED);
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16) {
    v128.store(REMOVED + at, v128.andnot(out, v128.load(CANDIDATES + at)));
  }
}

/** Notes the endpoints that are no candidates any more: `reason` removed them. */
export function noteRemoved(used: u32, reason: u32): void {
  if (reason == REMOVED_BY_GATE) closed = true;
  const zero = i32x4.splat(0);
  const mine = i32x4.splat(reason);
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16) {
    const before = v128.load(REMOVED + at);
    const fresh = v128.andnot(i32x4.eq(before, zero), v128.load(CANDIDATES + at));
    v128.store(REMOVED + at, v128.or(before, v128.and(mine, fresh)));
  }
}

/**
 * Notes that the request has to wait although endpoints were left.
 * @param open reason for those that KEPT marks, which have room
 * @param shut reason for the others
 */
export function noteAllClosed(used: u32, open: u32, shut: u32): void {
  closed = true;
  const zero = i32x4.splat(0);
  const ofOpen = i32x4.splat(open);
  const ofShut = i32x4.splat(shut);
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16) {
    const before = v128.load(REMOVED + at);
    const mine = v128.bitselect(ofOpen, ofShut, v128.load(KEPT + at));
    v128.store(REMOVED + at, v128.or(before, v128.and(mine, i32x4.eq(before, zero))));
  }
}

/** Reason for which a slot is no candidate: 0 = it is one, REMOVED_*, or the operation + 1. */
export function removalOf(slot: u32): u32 {
  const removed = load<u32>(REMOVED + ((<usize>slot) << 2));
  const outside = removed == REMOVED_NOT_ADMITTED && (request().flags & DECIDE_SUBSET) != 0 && !isInSubset(slot);
  return outside ? REMOVED_OUTSIDE_SUBSET : removed;
}

/** Number of endpoints that only the gate has removed. */
export function removedByGate(used: u32): u32 {
  if (!closed) return 0;
  const mine = i32x4.splat(REMOVED_BY_GATE);
  let count: u32 = 0;
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16) {
    count += <u32>popcnt<i32>(i32x4.bitmask(i32x4.eq(v128.load(REMOVED + at), mine)));
  }
  return count;
}
