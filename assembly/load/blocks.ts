// Active blocks: which blocks running requests use on each endpoint, each counted once however many requests share it
// (after NVIDIA Dynamo's PR 1731).
//
// Owns: COLUMN_ACTIVE_BLOCKS, and the pins of segments. Index lock held throughout, but by activeOf. What live requests
// use is pinned, so eviction keeps it. A charge is named by its handle, the last segment and block of the prompt:
// everything before is found by walking to the root, without the hashes.
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { COLUMN_ACTIVE_BLOCKS, cell } from '../endpoints';
import { INDEX_LOCK, lockAcquire, lockHeld, lockRelease } from '../lock';
import { HASHES } from '../memory';
import { fitsChain, isSlot } from '../preconditions';
import { count, counted, PREFIX_COUNTER_ACTIVE_ENTRIES, PREFIX_COUNTER_ACTIVE_REFUSED } from '../prefix/counters';
import { indexHead } from '../prefix/head';
import { CHAIN_LIMIT, SEGMENT_MASK, SEGMENT_SHIFT, SLOT_LIMIT } from '../prefix/layout';
import { addStep, beginPath, extendPath, followPath, stepAt, steps, tick } from '../prefix/path';
import { prefixRepair } from '../prefix/repair';
import { segmentAt } from '../prefix/segment';
import { pin, trim, unpin } from '../prefix/segments';
import {
  activeEnd,
  activeRecount,
  activeRequests,
  addEnd,
  countRequest,
  countsFit,
  entriesClear,
  entriesFit,
  entriesRecount,
  entryFind,
  removeEnd,
  wouldSpill,
} from './active-entries';

export { activeRequests };

const PATIENCE: u32 = 100;

function change(slot: u32, by: u32): void {
  const at = cell(COLUMN_ACTIVE_BLOCKS, slot);
  store<u32>(at, load<u32>(at) + by);
}

/** Charges the path found. @returns the handle */
function charge(slot: u32, handle: u32): u32 {
  let fresh: u32 = 0;
  for (let step: u32 = 0; step < steps; step++) fresh += addEnd(stepAt(step).segment, slot, stepAt(step).to);
  change(slot, fresh);
  countRequest(1);
  return handle;
}

/** Returns whether the entries of the path found have room for one request more on `slot`. */
function chargeFits(slot: u32): bool {
  if (!entriesFit(steps)) return false;
  if (countsFit(steps)) return true;
  let lists: u32 = 0;
  for (let step: u32 = 0; step < steps; step++) lists += u32(wouldSpill(stepAt(step).segment, slot, stepAt(step).to));
  return countsFit(lists);
}

/**
 * A request runs on `slot` with the first `blocks` blocks of HASHES.
 * @returns the charge's handle, or 0 when there is no room: the request is not accounted, and counted as such
 */
export function activeAddLocked(slot: u32, blocks: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(fitsChain(blocks), 'the blocks are those of one chain');
  if (ASSERTIONS) assert(lockHeld(INDEX_LOCK), 'active blocks change under the index lock');
  if (slot >= SLOT_LIMIT || blocks == 0) return 0;
  const whole = min(blocks, CHAIN_LIMIT);
  tick();
  beginPath(0, 0);
  let found = followPath(HASHES, whole);
  if (found < whole) found = extendPath(HASHES, found, whole);
  if (found < whole || !chargeFits(slot)) {
    if (steps != 0) trim(stepAt(steps - 1).segment);
    count(PREFIX_COUNTER_ACTIVE_REFUSED, 1);
    return 0;
  }
  const last = stepAt(steps - 1).segment;
  pin(last);
  return charge(slot, (last << SEGMENT_SHIFT) | (stepAt(steps - 1).to - 1));
}

/** Returns whether a handle names a block that exists, `blocks` deep. */
function isHandle(handle: u32, blocks: u32): bool {
  const segment = handle >> SEGMENT_SHIFT;
  const end = (handle & SEGMENT_MASK) + 1;
  if (segment == 0 || segment > indexHead().segmentTop) return false;
  const at = segmentAt(segment);
  return end <= at.length && <u32>at.depth + end == min(blocks, CHAIN_LIMIT);
}

/** Removes the blocks of a handle whose request has ended. */
export function activeRemoveLocked(slot: u32, handle: u32, blocks: u32): void {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(lockHeld(INDEX_LOCK), 'active blocks change under the index lock');
  if (slot >= SLOT_LIMIT || !isHandle(handle, blocks)) return;
  const last = handle >> SEGMENT_SHIFT;
  let segment = last;
  let end = (handle & SEGMENT_MASK) + 1;
  let gone: u32 = 0;
  while (segment != 0) {
    gone += removeEnd(segment, slot, end);
    const at = segmentAt(segment);
    segment = at.parent;
    if (segment != 0) end = <u32>at.depth - <u32>segmentAt(segment).depth;
  }
  if (ASSERTIONS)
    assert(gone <= column.u32(COLUMN_ACTIVE_BLOCKS, slot), 'no more blocks become inactive than were active');
  change(slot, 0 - gone);
  countRequest(-1);
  unpin(last);
  trim(last);
}

/**
 * Follows the first `blocks` blocks of HASHES for activeOverlapOf.
 */
export function activeOverlapBegin(blocks: u32): void {
  beginPath(0, 0);
  followPath(HASHES, min(blocks, CHAIN_LIMIT));
}

/** Returns the number of active blocks on `slot` of the prompt that activeOverlapBegin followed. */
export function activeOverlapOf(slot: u32): u32 {
  let overlap: u32 = 0;
  for (let step: u32 = 0; step < steps; step++) {
    const at = entryFind(stepAt(step).segment, slot);
    if (at == null) break;
    const shared = min(activeEnd(at), stepAt(step).to);
    overlap += shared;
    if (shared < stepAt(step).to) break;
  }
  return overlap;
}

/** Returns the number of active blocks on `slot` among the first `blocks` of HASHES. */
export function activeOverlap(slot: u32, blocks: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(fitsChain(blocks), 'the blocks are those of one chain');
  activeOverlapBegin(blocks);
  const overlap = activeOverlapOf(slot);
  if (ASSERTIONS) assert(overlap <= blocks, 'no more of a chain is active than it has');
  return overlap;
}

/** As activeAddLocked, for callers without the lock. @returns also 0 when the lock cannot be had in time */
export function activeAdd(slot: u32, blocks: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(fitsChain(blocks), 'the blocks are those of one chain');
  if (!lockAcquire(INDEX_LOCK, PATIENCE)) return 0;
  const handle = activeAddLocked(slot, blocks);
  if (ASSERTIONS) assert(handle == 0 || isHandle(handle, blocks), 'the handle names the last block of the request');
  lockRelease(INDEX_LOCK);
  return handle;
}

/** As activeRemoveLocked, for callers without the lock. @returns 0, or -1 when the lock cannot be had: call again */
export function activeRemove(slot: u32, handle: u32, blocks: u32): i32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (!lockAcquire(INDEX_LOCK, PATIENCE)) return -1;
  activeRemoveLocked(slot, handle, blocks);
  lockRelease(INDEX_LOCK);
  return 0;
}

/** Blocks active on a slot. */
export function activeOf(slot: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  return slot < SLOT_LIMIT ? column.u32(COLUMN_ACTIVE_BLOCKS, slot) : 0;
}

// ---- repair: the caller has seized the index lock from a dead thread and knows the live requests

/** Repairs the segments and empties the active blocks. First step. */
export function activeRepairBegin(): void {
  if (ASSERTIONS) assert(lockHeld(INDEX_LOCK), 'active blocks are repaired under the index lock');
  prefixRepair();
  entriesClear();
  for (let slot: u32 = 0; slot < SLOT_LIMIT; slot++) column.setU32(COLUMN_ACTIVE_BLOCKS, slot, 0);
}

/** Makes the path found the way from a handle to the root, in this order. */
function pathTo(handle: u32): void {
  let end = (handle & SEGMENT_MASK) + 1;
  let segment = handle >> SEGMENT_SHIFT;
  beginPath(0, 0);
  while (segment != 0) {
    addStep(segment, end);
    const at = segmentAt(segment);
    segment = at.parent;
    if (segment != 0) end = <u32>at.depth - <u32>segmentAt(segment).depth;
  }
}

/**
 * Second step, for every live request: charge it again.
 * @returns its handle, or 0 when its blocks did not survive: then it is not accounted any more
 */
export function activeRepairAdd(slot: u32, handle: u32, blocks: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (slot >= SLOT_LIMIT || !isHandle(handle, blocks)) return 0;
  pathTo(handle);
  if (!chargeFits(slot)) return 0;
  pin(handle >> SEGMENT_SHIFT);
  return charge(slot, handle);
}

/** Checks the invariants of the active blocks. @returns 0, or the number of the first that does not hold */
export function activeCheck(): u32 {
  const used = entriesRecount();
  if (used == u32.MAX_VALUE) return 60;
  if (<i64>used != counted(PREFIX_COUNTER_ACTIVE_ENTRIES)) return 61;
  for (let slot: u32 = 0; slot < SLOT_LIMIT; slot++) if (activeRecount(slot) != activeOf(slot)) return 62;
  let pins: u32 = 0;
  for (let segment: u32 = 1; segment <= indexHead().segmentTop; segment++) {
    if (segmentAt(segment).length != 0) pins += segmentAt(segment).pins;
  }
  return pins == activeRequests() ? 0 : 63;
}
