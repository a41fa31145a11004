// Changes to the prefix index: what was placed somewhere, and what engines say.
//
// Owns nothing by itself; every function here needs the index lock. Hashes stand in this thread's HASHES area.

import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import {
  COLUMN_CHARGED,
  COLUMN_HIT_SHARE,
  COLUMN_PREFIX_BLOCKS,
  COLUMN_PREFIX_CAPACITY,
  COLUMN_REACHED,
} from '../endpoints';
import { INDEX_LOCK, lockHeld } from '../lock';
import { HASHES } from '../memory';
import { isSlot } from '../preconditions';
import {
  count,
  PREFIX_COUNTER_CONFLICTS,
  PREFIX_COUNTER_ORPHANS,
  PREFIX_COUNTER_REMOVED,
  PREFIX_COUNTER_STORED,
} from './counters';
import { dropHeld, evictHeld, makeSets } from './evict';
import { dropRange, holdRange, holdsRange, moveRange } from './extents';
import { CHAIN_LIMIT, SEGMENT_MASK, SEGMENT_SHIFT, SLOT_LIMIT } from './layout';
import { LOSS_UNCONFIRMED } from './losses';
import { beginPath, extendPath, followPath, stepAt, steps, tick, touch } from './path';
import { markSent, markSentAbove } from './recency';
import { Segment, segmentAt } from './segment';
import { pin, register, trim, unpin } from './segments';
import { PLACE_GPU, PLACE_NONE, PLACE_REMOTE } from './sets';
import { tableFind } from './table';
import { forgetTails } from './tails';

/** `slot` holds the blocks of one step of the path at `place`. @returns false when not all of them could be entered */
function holdStep(step: u32, slot: u32, place: u32): bool {
  const segment = stepAt(step).segment;
  const at = segmentAt(segment);
  const from = stepAt(step).from;
  const to = stepAt(step).to;
  if (holdsRange(at, from, to, slot, place)) return true;
  makeSets();
  let known = to;
  if (at.registered < to) known = register(segment, to);
  if (known > from) held += holdRange(segment, from, known, slot, place);
  if (known < to) count(PREFIX_COUNTER_CONFLICTS, to - known);
  return known >= to;
}

let held: u32 = 0; // blocks newly held, of the path under way

/** `slot` holds the whole path at `place`. @returns blocks for which this is new */
function holdPath(slot: u32, place: u32): u32 {
  held = 0;
  if (steps == 0) return 0;
  const last = stepAt(steps - 1).segment;
  pin(last);
  for (let step: u32 = 0; step < steps; step++) {
    markSent(slot, stepAt(step).segment);
    if (!holdStep(step, slot, place)) break;
  }
  unpin(last);
  trim(last);
  count(PREFIX_COUNTER_STORED, held);
  return held;
}

/** Stores `blocks` hashes behind the path that has been begun. @returns blocks newly held */
function storeBehind(slot: u32, hashes: usize, blocks: u32, place: u32): u32 {
  const found = followPath(hashes, blocks);
  if (found < blocks) extendPath(hashes, found, blocks);
  const fresh = holdPath(slot, place);
  const capacity = column.u32(COLUMN_PREFIX_CAPACITY, slot);
  if (capacity != 0) evictHeld(slot, capacity);
  return fresh;
}

/**
 * Believes that `slot` holds (or will hold) the first `blocks` blocks of the prompt. Beyond the index or the endpoint's
 * capacity the blocks that were longest not sent to it make room; what still does not fit is not stored.
 * @returns blocks newly stored for the slot
 */
export function prefixInsertLocked(slot: u32, blocks: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(lockHeld(INDEX_LOCK), 'the index changes under its lock');
  if (slot >= SLOT_LIMIT || blocks == 0) return 0;
  tick();
  const capacity = column.u32(COLUMN_PREFIX_CAPACITY, slot);
  let whole = min(blocks, CHAIN_LIMIT);
  if (capacity != 0) whole = min(whole, capacity);
  beginPath(0, 0);
  const stored = storeBehind(slot, HASHES, whole, PLACE_GPU);
  if (ASSERTIONS) assert(stored <= whole, 'no more blocks are stored than there are');
  return stored;
}

/** Touches the chain above a segment, so that no block looks older than what hangs on it. */
function touchAbove(segment: u32): void {
  for (let at = segmentAt(segment).parent; at != 0; at = segmentAt(at).parent) touch(at);
}

/**
 * An engine says that it stored `blocks` blocks at `hashes`, behind the block whose hash stands at `parentPointer`
 * (hasParent) or at the beginning of a prompt. Behind an unknown parent nothing can be matched: counted, not stored.
 * @param place PLACE_*, the nearest one that has them
 * @returns blocks newly stored for the slot
 */
export function prefixStoreAt(
  slot: u32,
  hasParent: u32,
  parentPointer: usize,
  hashes: usize,
  blocks: u32,
  place: u32,
): u32 {
  if (slot >= SLOT_LIMIT || blocks == 0) return 0;
  tick();
  let segment: u32 = 0;
  let position: u32 = 0;
  let depth: u32 = 0;
  if (hasParent != 0) {
    const location = tableFind(load<u64>(parentPointer));
    if (location == 0) {
      count(PREFIX_COUNTER_ORPHANS, blocks);
      return 0;
    }
    segment = location >> SEGMENT_SHIFT;
    position = (location & SEGMENT_MASK) + 1;
    depth = <u32>segmentAt(segment).depth + position;
    if (column.u32(COLUMN_PREFIX_CAPACITY, slot) != 0) {
      touchAbove(segment);
      markSentAbove(slot, segment);
    }
  }
  const whole = depth >= CHAIN_LIMIT ? 0 : min(blocks, CHAIN_LIMIT - depth);
  beginPath(segment, position);
  return storeBehind(slot, hashes, whole, place);
}

/** As prefixStoreAt, with the hashes in HASHES. */
export function prefixStoreLocked(slot: u32, hasParent: u32, parentPointer: usize, blocks: u32, place: u32): u32 {
  return prefixStoreAt(slot, hasParent, parentPointer, HASHES, min(blocks, CHAIN_LIMIT), place);
}

/** Returns the number of hashes from `i` on that the segment has from `position` on. */
function runLength(at: Segment, position: u32, hashes: usize, i: u32, blocks: u32): u32 {
  const longest = min(<u32>at.registered - position, blocks - i);
  const content = at.content + ((<usize>position) << 3);
  const wanted = hashes + ((<usize>i) << 3);
  let run: u32 = 1;
  while (run < longest && load<u64>(content + ((<usize>run) << 3)) == load<u64>(wanted + ((<usize>run) << 3))) run++;
  return run;
}

/**
 * `blocks` blocks at `hashes`, in any order, leave the slot (PLACE_NONE), or lie at `place` where it holds them.
 * @param lost LOSS_* cause, for PLACE_NONE
 * @returns blocks that left it
 */
function changeEach(slot: u32, hashes: usize, blocks: u32, place: u32, lost: u32): u32 {
  let removed: u32 = 0;
  let i: u32 = 0;
  while (i < blocks) {
    const location = tableFind(load<u64>(hashes + ((<usize>i) << 3)));
    if (location == 0) {
      i++;
      continue;
    }
    const segment = location >> SEGMENT_SHIFT;
    const position = location & SEGMENT_MASK;
    const run = runLength(segmentAt(segment), position, hashes, i, blocks);
    pin(segment);
    makeSets();
    if (place == PLACE_NONE) removed += dropRange(segment, position, position + run, slot, lost);
    else moveRange(segment, position, position + run, slot, place);
    unpin(segment);
    trim(segment);
    i += run;
  }
  return removed;
}

/**
 * The slot holds `blocks` blocks at `hashes`, in any order, no more.
 * @param lost LOSS_* cause
 * @returns blocks that the slot held
 */
export function prefixRemoveAt(slot: u32, hashes: usize, blocks: u32, lost: u32): u32 {
  if (slot >= SLOT_LIMIT) return 0;
  tick();
  const removed = changeEach(slot, hashes, blocks, PLACE_NONE, lost);
  count(PREFIX_COUNTER_REMOVED, removed);
  return removed;
}

/** What the slot holds of the `blocks` hashes in HASHES lies at `place` from now on, the nearest one that has it. */
export function prefixMoveLocked(slot: u32, blocks: u32, place: u32): void {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(lockHeld(INDEX_LOCK), 'the index changes under its lock');
  if (ASSERTIONS) assert(place >= PLACE_GPU && place <= PLACE_REMOTE, 'the place is one that has blocks');
  if (slot >= SLOT_LIMIT) return;
  tick();
  changeEach(slot, HASHES, min(blocks, CHAIN_LIMIT), place, 0);
}

/** As prefixRemoveAt, with the hashes in HASHES. */
export function prefixRemoveLocked(slot: u32, blocks: u32, lost: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(lockHeld(INDEX_LOCK), 'the index changes under its lock');
  return prefixRemoveAt(slot, HASHES, min(blocks, CHAIN_LIMIT), lost);
}

/** The endpoint holds nothing any more. @param lost LOSS_* cause @returns blocks that it held */
export function prefixClearLocked(slot: u32, lost: u32): u32 {
  if (slot >= SLOT_LIMIT) return 0;
  tick();
  forgetTails(slot);
  column.setU32(COLUMN_CHARGED, slot, 0);
  column.setU32(COLUMN_REACHED, slot, 0);
  column.setF32(COLUMN_HIT_SHARE, slot, 0);
  const removed = dropHeld(slot, lost);
  count(PREFIX_COUNTER_REMOVED, removed);
  return removed;
}

/**
 * The endpoint is gone: it holds nothing, and the slot's next user has no capacity of its own yet. As
 * prefixClearLocked.
 */
export function prefixRemoveEndpointLocked(slot: u32, lost: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(lockHeld(INDEX_LOCK), 'the index changes under its lock');
  if (ASSERTIONS) assert(lost <= LOSS_UNCONFIRMED, 'the reason of the loss is a known one');
  if (slot >= SLOT_LIMIT) return 0;
  column.setU32(COLUMN_PREFIX_CAPACITY, slot, 0);
  return prefixClearLocked(slot, lost);
}

/** Bounds the blocks of one endpoint; 0 = no bound of its own. Evicts at once what is over it. */
export function prefixSetCapacityLocked(slot: u32, blocks: u32): void {
  if (slot >= SLOT_LIMIT) return;
  column.setU32(COLUMN_PREFIX_CAPACITY, slot, blocks);
  if (blocks != 0) evictHeld(slot, blocks);
}

/** Blocks that the index says a slot holds. */
export function prefixHeld(slot: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  return slot < SLOT_LIMIT ? column.u32(COLUMN_PREFIX_BLOCKS, slot) : 0;
}
