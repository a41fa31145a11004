// Consistency check of the prefix index: for tests, those of the repair included.
//
// Owns nothing. Index lock held, or no other thread at work. Counts anew instead of reading the reference counts, in
// quadratic time where that is simplest: for small indexes.
import * as column from '../columns/column';
import { COLUMN_PREFIX_BLOCKS } from '../endpoints';
import {
  counted,
  PREFIX_COUNTER_BLOCKS,
  PREFIX_COUNTER_MEMBERSHIPS,
  PREFIX_COUNTER_SEGMENTS,
  PREFIX_COUNTER_SETS,
} from './counters';
import { indexHead } from './head';
import {
  BLOCK_LIMIT,
  GROUP_SHIFT,
  MEMBER_WORDS,
  MEMBERS,
  SEGMENT_BLOCKS,
  SEGMENT_COUNT,
  SEGMENT_MASK,
  SEGMENT_SHIFT,
  SET_COUNT,
  SLOT_LIMIT,
} from './layout';
import { sentTick } from './recency';
import { extentAt, extentEnd, extentList, extentSet, Segment, segmentAt } from './segment';
import { setHolds, setReferences, setTiered, tiersStand } from './sets';
import { tableFind } from './table';

/** @returns 0, or what is wrong with one segment by itself */
function checkSegment(segment: u32, at: Segment): u32 {
  const length = <u32>at.length;
  if ((at.version & 1) != 0) return 1; // left half changed
  if (length > SEGMENT_BLOCKS) return 2;
  if ((<u32>at.depth & SEGMENT_MASK) + length > SEGMENT_BLOCKS) return 3; // crosses a window
  if (at.first != load<u64>(at.content)) return 4;
  if (at.last != load<u64>(at.content + ((<usize>(length - 1)) << 3))) return 5;
  const registered = <u32>at.registered;
  if (registered == 0 || registered > length) return 6;
  for (let i: u32 = 0; i < registered; i++) {
    if (tableFind(load<u64>(at.content + ((<usize>i) << 3))) != ((segment << SEGMENT_SHIFT) | i)) return 7;
  }
  return checkExtents(segment, at, registered);
}

function checkExtents(segment: u32, at: Segment, registered: u32): u32 {
  let from: u32 = 0;
  let before: u32 = 0xffffffff;
  for (let i: u32 = 0; i < at.extents; i++) {
    const extent = extentAt(extentList(at), i);
    if (extentEnd(extent) <= from) return 8; // out of order
    if (extentEnd(extent) > registered) return 9; // held but not in the table
    if (extentSet(extent) == before) return 10; // not merged
    if (extentSet(extent) >= SET_COUNT) return 11;
    if (i == <u32>at.extents - 1 && extentSet(extent) == 0) return 12; // no endpoint holds the last extent
    if (!checkMembers(segment, extentSet(extent))) return 13;
    from = extentEnd(extent);
    before = extentSet(extent);
  }
  // Content without holders that no child and no live request needs must have been dropped.
  const needed = at.children == 0 ? 0 : <u32>at.needed;
  if (at.pins == 0 && at.length > max(from, needed)) return 14;
  if ((at.children == 0) != (at.needed == 0)) return 15;
  return 0;
}

/** Every holder's row knows the segment, and no holder was sent it in the future. */
function checkMembers(segment: u32, set: u32): bool {
  const group = segment >> GROUP_SHIFT;
  for (let slot: u32 = 0; slot < SLOT_LIMIT; slot++) {
    if (!setHolds(set, slot)) continue;
    const word = MEMBERS + ((<usize>slot * MEMBER_WORDS + (group >> 6)) << 3);
    if ((load<u64>(word) & ((<u64>1) << (group & 63))) == 0) return false;
    if (<i32>(indexHead().tick - sentTick(slot, segment)) < 0) return false;
  }
  return true;
}

/** @returns 0, or what is wrong between a segment and its parent */
function checkParent(at: Segment): u32 {
  const parent = at.parent;
  if (parent == 0) return at.depth == 0 ? 0 : 20;
  if (parent > SEGMENT_COUNT) return 21;
  const above = segmentAt(parent);
  const fork = <u32>at.depth - <u32>above.depth;
  if (above.length == 0 || at.depth <= above.depth) return 22;
  return fork > above.length || fork > above.needed ? 23 : 0;
}

/** Children and set references, counted anew. */
function checkCounts(top: u32): u32 {
  for (let segment: u32 = 1; segment <= top; segment++) {
    if (segmentAt(segment).length == 0) continue;
    let children: u32 = 0;
    for (let other: u32 = 1; other <= top; other++) {
      const at = segmentAt(other);
      if (at.length != 0 && at.parent == segment) children++;
    }
    if (children != segmentAt(segment).children) return 30;
  }
  let sets: u32 = 0;
  let tiered: u32 = 0;
  for (let set: u32 = 1; set <= indexHead().setTop; set++) {
    let references: u32 = 0;
    for (let segment: u32 = 1; segment <= top; segment++) {
      const at = segmentAt(segment);
      if (at.length == 0) continue;
      for (let i: u32 = 0; i < at.extents; i++) if (extentSet(extentAt(extentList(at), i)) == set) references++;
    }
    if (references != setReferences(set)) return 31; // the word of a free set is 0
    if (references == 0) continue;
    if (!tiersStand(set)) return 33;
    sets++;
    tiered += u32(setTiered(set));
  }
  if (tiered != indexHead().tieredSets) return 34;
  return counted(PREFIX_COUNTER_SETS) == sets ? 0 : 32;
}

/** Blocks per endpoint, counted anew. */
function checkHeld(top: u32): u32 {
  let pairs: i64 = 0;
  for (let slot: u32 = 0; slot < SLOT_LIMIT; slot++) {
    let held: u32 = 0;
    for (let segment: u32 = 1; segment <= top; segment++) {
      const at = segmentAt(segment);
      let from: u32 = 0;
      if (at.length == 0) continue;
      for (let i: u32 = 0; i < at.extents; i++) {
        const extent = extentAt(extentList(at), i);
        if (setHolds(extentSet(extent), slot)) held += extentEnd(extent) - from;
        from = extentEnd(extent);
      }
    }
    if (held != column.u32(COLUMN_PREFIX_BLOCKS, slot)) return 40;
    pairs += held;
  }
  return counted(PREFIX_COUNTER_MEMBERSHIPS) == pairs ? 0 : 41;
}

/** Checks every invariant of the prefix index. @returns 0, or the number of the first one that does not hold */
export function prefixCheck(): u32 {
  const top = indexHead().segmentTop;
  let blocks: i64 = 0;
  let segments: i64 = 0;
  for (let segment: u32 = 1; segment <= top; segment++) {
    const at = segmentAt(segment);
    if (at.length == 0) continue;
    segments++;
    blocks += <u32>at.length;
    const own = checkSegment(segment, at);
    if (own != 0) return own;
    const parent = checkParent(at);
    if (parent != 0) return parent;
  }
  if (blocks != counted(PREFIX_COUNTER_BLOCKS)) return 50;
  if (blocks > <i64>BLOCK_LIMIT) return 51;
  if (segments != counted(PREFIX_COUNTER_SEGMENTS)) return 52;
  const counts = checkCounts(top);
  return counts != 0 ? counts : checkHeld(top);
}
