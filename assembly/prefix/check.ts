// Whether everything in the prefix index fits together: for tests and for the repair's own tests.
//
// Owns nothing. Index lock held (or nobody else at work). Uses the reference words of no structure: it counts anew, in
// quadratic time where that is simplest, so it is for small indexes.
import { COLUMN_PREFIX_BLOCKS, cell } from '../endpoints';
import {
  counted,
  HEAD_SEGMENT_TOP,
  HEAD_SET_TOP,
  PREFIX_COUNTER_BLOCKS,
  PREFIX_COUNTER_MEMBERSHIPS,
  PREFIX_COUNTER_SEGMENTS,
  PREFIX_COUNTER_SETS,
} from './counters';
import {
  BLOCK_LIMIT,
  GROUP_SHIFT,
  HEAD,
  MEMBER_WORDS,
  MEMBERS,
  SEGMENT_BLOCKS,
  SEGMENT_COUNT,
  SEGMENT_MASK,
  SEGMENT_SHIFT,
  SET_COUNT,
  SLOT_LIMIT,
} from './layout';
import {
  childrenOf,
  contentOf,
  depthOf,
  firstOf,
  lastOf,
  lengthOf,
  neededOf,
  parentOf,
  pinsOf,
  registeredOf,
  segmentAt,
  spanEnd,
  spanList,
  spanSet,
  spansOf,
} from './segments';
import { setHolds, setReferences } from './sets';
import { tableFind } from './table';

function spanAt(at: usize, i: u32): u32 {
  return load<u32>(spanList(at) + ((<usize>i) << 2));
}

/** @returns 0, or what is wrong with one segment by itself */
function checkSegment(segment: u32, at: usize): u32 {
  const length = lengthOf(at);
  if ((load<u32>(at) & 1) != 0) return 1; // left half changed
  if (length > SEGMENT_BLOCKS) return 2;
  if ((depthOf(at) & SEGMENT_MASK) + length > SEGMENT_BLOCKS) return 3; // crosses a window
  if (firstOf(at) != load<u64>(contentOf(at))) return 4;
  if (lastOf(at) != load<u64>(contentOf(at) + ((<usize>(length - 1)) << 3))) return 5;
  const registered = registeredOf(at);
  if (registered == 0 || registered > length) return 6;
  for (let i: u32 = 0; i < registered; i++) {
    if (tableFind(load<u64>(contentOf(at) + ((<usize>i) << 3))) != ((segment << SEGMENT_SHIFT) | i)) return 7;
  }
  return checkSpans(segment, at, registered);
}

function checkSpans(segment: u32, at: usize, registered: u32): u32 {
  let from: u32 = 0;
  let before: u32 = 0xffffffff;
  for (let i: u32 = 0; i < spansOf(at); i++) {
    const span = spanAt(at, i);
    if (spanEnd(span) <= from) return 8; // out of order
    if (spanEnd(span) > registered) return 9; // held but not in the table
    if (spanSet(span) == before) return 10; // not merged
    if (spanSet(span) >= SET_COUNT) return 11;
    if (i == spansOf(at) - 1 && spanSet(span) == 0) return 12; // nobody holds the last span
    if (!checkMembers(segment, spanSet(span))) return 13;
    from = spanEnd(span);
    before = spanSet(span);
  }
  // What nobody holds and nothing needs must be gone.
  const needed = childrenOf(at) == 0 ? 0 : neededOf(at);
  if (pinsOf(at) == 0 && lengthOf(at) > max(from, needed)) return 14;
  if ((childrenOf(at) == 0) != (neededOf(at) == 0)) return 15;
  return 0;
}

/** Every holder's row knows the segment. */
function checkMembers(segment: u32, set: u32): bool {
  const group = segment >> GROUP_SHIFT;
  for (let slot: u32 = 0; slot < SLOT_LIMIT; slot++) {
    if (!setHolds(set, slot)) continue;
    const word = MEMBERS + ((<usize>slot * MEMBER_WORDS + (group >> 6)) << 3);
    if ((load<u64>(word) & ((<u64>1) << (group & 63))) == 0) return false;
  }
  return true;
}

/** @returns 0, or what is wrong between a segment and its parent */
function checkParent(at: usize): u32 {
  const parent = parentOf(at);
  if (parent == 0) return depthOf(at) == 0 ? 0 : 20;
  if (parent > SEGMENT_COUNT) return 21;
  const above = segmentAt(parent);
  const fork = depthOf(at) - depthOf(above);
  if (lengthOf(above) == 0 || depthOf(at) <= depthOf(above)) return 22;
  return fork > lengthOf(above) || fork > neededOf(above) ? 23 : 0;
}

/** Children and set references, counted anew. */
function checkCounts(top: u32): u32 {
  for (let segment: u32 = 1; segment <= top; segment++) {
    if (lengthOf(segmentAt(segment)) == 0) continue;
    let children: u32 = 0;
    for (let other: u32 = 1; other <= top; other++) {
      const at = segmentAt(other);
      if (lengthOf(at) != 0 && parentOf(at) == segment) children++;
    }
    if (children != childrenOf(segmentAt(segment))) return 30;
  }
  let sets: u32 = 0;
  for (let set: u32 = 1; set <= load<u32>(HEAD + HEAD_SET_TOP); set++) {
    let references: u32 = 0;
    for (let segment: u32 = 1; segment <= top; segment++) {
      const at = segmentAt(segment);
      if (lengthOf(at) == 0) continue;
      for (let i: u32 = 0; i < spansOf(at); i++) if (spanSet(spanAt(at, i)) == set) references++;
    }
    if (references != setReferences(set) && (references != 0 || isInUse(set))) return 31;
    if (references != 0) sets++;
  }
  return counted(PREFIX_COUNTER_SETS) == sets ? 0 : 32;
}

/** A free set's reference word is 0 as well. */
function isInUse(set: u32): bool {
  return setReferences(set) != 0;
}

/** Blocks per endpoint, counted anew. */
function checkHeld(top: u32): u32 {
  let pairs: i64 = 0;
  for (let slot: u32 = 0; slot < SLOT_LIMIT; slot++) {
    let held: u32 = 0;
    for (let segment: u32 = 1; segment <= top; segment++) {
      const at = segmentAt(segment);
      let from: u32 = 0;
      if (lengthOf(at) == 0) continue;
      for (let i: u32 = 0; i < spansOf(at); i++) {
        const span = spanAt(at, i);
        if (setHolds(spanSet(span), slot)) held += spanEnd(span) - from;
        from = spanEnd(span);
      }
    }
    if (held != load<u32>(cell(COLUMN_PREFIX_BLOCKS, slot))) return 40;
    pairs += held;
  }
  return counted(PREFIX_COUNTER_MEMBERSHIPS) == pairs ? 0 : 41;
}

/** Check every invariant of the prefix index. @returns 0, or the number of the first one that does not hold */
export function prefixCheck(): u32 {
  const top = load<u32>(HEAD + HEAD_SEGMENT_TOP);
  let blocks: i64 = 0;
  let segments: i64 = 0;
  for (let segment: u32 = 1; segment <= top; segment++) {
    const at = segmentAt(segment);
    if (lengthOf(at) == 0) continue;
    segments++;
    blocks += lengthOf(at);
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
