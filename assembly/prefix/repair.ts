// Repair after a thread died while it held the index lock.
//
// Owns nothing; runs under the seized index lock. Segments are the truth: each that is not left half changed says by
// itself what it holds, who holds it and where it hangs. Everything else (table, set references, free lists, members,
// per-endpoint counts) is made anew from them. A half-changed segment is given up with everything behind it: a miss,
// never a wrong answer. Readers go on meanwhile and find less.
import { COLUMN_PREFIX_BLOCKS, cell } from '../endpoints';
import {
  count,
  HEAD_OVERFLOW_FREE,
  HEAD_OVERFLOW_TOP,
  HEAD_SEGMENT_FREE,
  HEAD_SEGMENT_TOP,
  HEAD_SET_TOP,
  PREFIX_COUNTER_BLOCKS,
  PREFIX_COUNTER_CLEARED,
  PREFIX_COUNTER_MEMBERSHIPS,
  PREFIX_COUNTER_REPAIRS,
  PREFIX_COUNTER_SEGMENTS,
  PREFIX_COUNTER_SETS,
  setCounter,
} from './counters';
import {
  HEAD,
  MARKS,
  MEMBER_WORDS,
  MEMBERS,
  OVERFLOW_COUNT,
  SEGMENT_BLOCKS,
  SEGMENT_COUNT,
  SEGMENT_MASK,
  SEGMENT_SHIFT,
  SET_COUNT,
  SET_WORDS,
  SLOT_LIMIT,
} from './layout';
import {
  childrenOf,
  contentOf,
  depthOf,
  giveOverflow,
  giveSegment,
  INLINE_SPANS,
  lengthOf,
  markMember,
  neededOf,
  parentOf,
  registeredOf,
  segmentAt,
  spanEnd,
  spanList,
  spanSet,
  spansOf,
  trim,
} from './segments';
import { setBits, setKeep, setsForget, setsRelink } from './sets';
import { tableClear, tableEnter } from './table';

/** Give a segment up: even version again, no content, nobody holds anything. */
function giveUp(at: usize): void {
  const version = load<u32>(at) | 1;
  atomic.store<u32>(at, version);
  store<u8>(at, 0, 4);
  store<u8>(at, 0, 5);
  store<u8>(at, 0, 6);
  store<u8>(at, 0, 7);
  atomic.store<u32>(at, version + 1);
}

function isWhole(at: usize): bool {
  const length = lengthOf(at);
  return (
    (load<u32>(at) & 1) == 0 && length <= SEGMENT_BLOCKS && (depthOf(at) & SEGMENT_MASK) + length <= SEGMENT_BLOCKS
  );
}

/** Whether the way to the root is whole. Depths fall on the way, so it ends. */
function isRooted(at: usize): bool {
  for (let parent = parentOf(at); parent != 0; parent = parentOf(at)) {
    if (parent > SEGMENT_COUNT) return false;
    const above = segmentAt(parent);
    if (lengthOf(above) == 0 || depthOf(above) >= depthOf(at)) return false;
    if (depthOf(at) - depthOf(above) > lengthOf(above)) return false;
    at = above;
  }
  return depthOf(at) == 0;
}

/** Mark an overflow list as in use. @returns false when it cannot be one, or is somebody's already */
function markOverflow(list: u32): bool {
  if (list == 0 || list > OVERFLOW_COUNT) return false;
  const at = MARKS + (list >> 3);
  const bit = <u8>((<u32>1) << (list & 7));
  if ((load<u8>(at) & bit) != 0) return false;
  store<u8>(at, load<u8>(at) | bit);
  return true;
}

function spansStand(at: usize): bool {
  const spans = spansOf(at);
  if (spans > SEGMENT_BLOCKS) return false;
  if (spans > INLINE_SPANS && !markOverflow(load<u32>(at, 40))) return false;
  let from: u32 = 0;
  for (let i: u32 = 0; i < spans; i++) {
    const span = load<u32>(spanList(at) + ((<usize>i) << 2));
    if (spanEnd(span) <= from || spanSet(span) > load<u32>(HEAD + HEAD_SET_TOP)) return false;
    from = spanEnd(span);
  }
  return from <= registeredOf(at);
}

/** Enter the blocks that stood in the table. @returns false when not even the first one can be entered */
function enterBlocks(segment: u32, at: usize): bool {
  const registered = min(registeredOf(at), lengthOf(at));
  for (let i: u32 = 0; i < registered; i++) {
    const hash = load<u64>(contentOf(at) + ((<usize>i) << 3));
    if (tableEnter(hash, (segment << SEGMENT_SHIFT) | i) == 0) continue;
    store<u8>(at, <u8>i, 6);
    return i != 0;
  }
  return registered != 0;
}

/** Count the holders of one span and note the segment in their rows. */
function countHolders(segment: u32, set: u32, blocks: u32): void {
  const bits = setBits(set);
  for (let word: u32 = 0; word < SET_WORDS; word++) {
    let rest = load<u64>(bits + ((<usize>word) << 3));
    while (rest != 0) {
      const slot = (word << 6) + <u32>ctz(rest);
      const held = cell(COLUMN_PREFIX_BLOCKS, slot);
      store<u32>(held, load<u32>(held) + blocks);
      count(PREFIX_COUNTER_MEMBERSHIPS, blocks);
      markMember(slot, segment);
      rest &= rest - 1;
    }
  }
}

function restoreSegment(segment: u32): void {
  const at = segmentAt(segment);
  if (lengthOf(at) == 0) return;
  if (!enterBlocks(segment, at)) {
    giveUp(at);
    return;
  }
  if (!spansStand(at)) {
    // Readers between must not see half of it: change it as a writer would.
    atomic.add<u32>(at, 1);
    store<u8>(at, 0, 5);
    atomic.add<u32>(at, 1);
  }
  let from: u32 = 0;
  for (let i: u32 = 0; i < spansOf(at); i++) {
    const span = load<u32>(spanList(at) + ((<usize>i) << 2));
    setKeep(spanSet(span));
    countHolders(segment, spanSet(span), spanEnd(span) - from);
    from = spanEnd(span);
  }
  count(PREFIX_COUNTER_BLOCKS, lengthOf(at));
  count(PREFIX_COUNTER_SEGMENTS, 1);
}

function hangOnParent(at: usize): void {
  const parent = parentOf(at);
  if (parent == 0) return;
  const above = segmentAt(parent);
  const fork = depthOf(at) - depthOf(above);
  store<u32>(above, childrenOf(above) + 1, 12);
  if (neededOf(above) < fork) store<u8>(above, <u8>fork, 7);
}

function forgetDerived(): void {
  tableClear();
  setsForget();
  memory.fill(MEMBERS, 0, (<usize>SLOT_LIMIT * MEMBER_WORDS) << 3);
  memory.fill(MARKS, 0, (<usize>OVERFLOW_COUNT >> 3) + 1);
  for (let slot: u32 = 0; slot < SLOT_LIMIT; slot++) store<u32>(cell(COLUMN_PREFIX_BLOCKS, slot), 0);
  store<u32>(HEAD + HEAD_SEGMENT_FREE, 0);
  store<u32>(HEAD + HEAD_OVERFLOW_FREE, 0);
  setCounter(PREFIX_COUNTER_BLOCKS, 0);
  setCounter(PREFIX_COUNTER_SEGMENTS, 0);
  setCounter(PREFIX_COUNTER_MEMBERSHIPS, 0);
}

/** Something outside the segments is beyond belief: begin with an empty index. */
function clearAll(): void {
  count(PREFIX_COUNTER_CLEARED, 1);
  for (let segment: u32 = 1; segment <= SEGMENT_COUNT; segment++) giveUp(segmentAt(segment));
  store<u32>(HEAD + HEAD_SEGMENT_TOP, 0);
  store<u32>(HEAD + HEAD_OVERFLOW_TOP, 0);
  store<u32>(HEAD + HEAD_SET_TOP, 0);
}

function giveFreeOverflow(): void {
  const top = load<u32>(HEAD + HEAD_OVERFLOW_TOP);
  for (let list: u32 = 1; list <= top; list++) {
    if ((load<u8>(MARKS + (list >> 3)) & <u8>((<u32>1) << (list & 7))) == 0) giveOverflow(list);
  }
}

/**
 * Make everything but the segments anew. Pins are gone afterwards: the caller charges the live requests again and then
 * calls prefixRepairRest.
 */
export function prefixRepair(): void {
  count(PREFIX_COUNTER_REPAIRS, 1);
  if (
    load<u32>(HEAD + HEAD_SEGMENT_TOP) > SEGMENT_COUNT ||
    load<u32>(HEAD + HEAD_OVERFLOW_TOP) > OVERFLOW_COUNT ||
    load<u32>(HEAD + HEAD_SET_TOP) > SET_COUNT
  ) {
    clearAll();
  }
  while (!rebuild()) {}
}

/** @returns false when a segment had to be given up on the way, so that what hung on it must go too: do it again */
function rebuild(): bool {
  const top = load<u32>(HEAD + HEAD_SEGMENT_TOP);
  forgetDerived();
  for (let segment: u32 = 1; segment <= top; segment++) {
    const at = segmentAt(segment);
    store<u8>(at, 0, 7);
    store<u32>(at, 0, 12);
    store<u32>(at, 0, 36);
    if (!isWhole(at)) giveUp(at);
  }
  dropUnrooted(top);
  for (let segment: u32 = 1; segment <= top; segment++) restoreSegment(segment);
  if (dropUnrooted(top)) return false;
  for (let segment: u32 = 1; segment <= top; segment++) {
    const at = segmentAt(segment);
    if (lengthOf(at) == 0) giveSegment(segment);
    else hangOnParent(at);
  }
  giveFreeOverflow();
  setCounter(PREFIX_COUNTER_SETS, setsRelink());
  return true;
}

/** Give up the segments whose way to the root is broken. @returns whether there were any */
function dropUnrooted(top: u32): bool {
  let dropped = false;
  for (let segment: u32 = 1; segment <= top; segment++) {
    const at = segmentAt(segment);
    if (lengthOf(at) == 0 || isRooted(at)) continue;
    giveUp(at);
    dropped = true;
  }
  return dropped;
}

/** Last step: give up the content that nobody holds and no live request needs. */
export function prefixRepairRest(): void {
  const top = load<u32>(HEAD + HEAD_SEGMENT_TOP);
  for (let segment: u32 = 1; segment <= top; segment++) if (lengthOf(segmentAt(segment)) != 0) trim(segment);
}
