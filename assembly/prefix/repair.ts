// Repair after a thread died while it held the index lock.
//
// Owns nothing; runs under the seized index lock. Segments are the truth: each that is not left half changed says by
// itself what it holds, who holds it and where it hangs. Everything else (table, set references, free lists, members,
// per-endpoint counts) is made anew from them. A half-changed segment is given up with everything behind it: a miss,
// never a wrong answer. Readers go on meanwhile and find less.
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { COLUMN_PREFIX_BLOCKS, cell } from '../endpoints';
import { INDEX_LOCK, lockHeld } from '../lock';
import {
  count,
  PREFIX_COUNTER_BLOCKS,
  PREFIX_COUNTER_CLEARED,
  PREFIX_COUNTER_MEMBERSHIPS,
  PREFIX_COUNTER_REPAIRS,
  PREFIX_COUNTER_SEGMENTS,
  PREFIX_COUNTER_SETS,
  setCounter,
} from './counters';
import { giveOverflow, markMember } from './extents';
import { indexHead } from './head';
import {
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
import { extentAt, extentEnd, extentList, extentSet, INLINE_EXTENTS, Segment, segmentAt } from './segment';
import { giveSegment, trim } from './segments';
import { setBits, setKeep, setsForget, setsRelink } from './sets';
import { tableClear, tableEnter } from './table';

/** Empties a segment: even version again, no content, no holders. */
function giveUp(at: Segment): void {
  const version = at.version | 1;
  at.setVersion(version);
  at.length = 0;
  at.extents = 0;
  at.registered = 0;
  at.needed = 0;
  at.setVersion(version + 1);
}

function isWhole(at: Segment): bool {
  const length = <u32>at.length;
  return (at.version & 1) == 0 && length <= SEGMENT_BLOCKS && (<u32>at.depth & SEGMENT_MASK) + length <= SEGMENT_BLOCKS;
}

/** Returns whether the way to the root is whole. Depths fall on the way, so it ends. */
function isRooted(at: Segment): bool {
  for (let parent = at.parent; parent != 0; parent = at.parent) {
    if (parent > SEGMENT_COUNT) return false;
    const above = segmentAt(parent);
    if (above.length == 0 || above.depth >= at.depth) return false;
    if (<u32>at.depth - above.depth > above.length) return false;
    at = above;
  }
  return at.depth == 0;
}

/** Marks an overflow list as in use. @returns false when it is no list, or another segment has it already */
function markOverflow(list: u32): bool {
  if (list == 0 || list > OVERFLOW_COUNT) return false;
  const at = MARKS + (list >> 3);
  const bit = <u8>((<u32>1) << (list & 7));
  if ((load<u8>(at) & bit) != 0) return false;
  store<u8>(at, load<u8>(at) | bit);
  return true;
}

function extentsStand(at: Segment): bool {
  const extents = <u32>at.extents;
  if (extents > SEGMENT_BLOCKS) return false;
  if (extents > INLINE_EXTENTS && !markOverflow(at.extent0)) return false;
  let from: u32 = 0;
  for (let i: u32 = 0; i < extents; i++) {
    const extent = extentAt(extentList(at), i);
    if (extentEnd(extent) <= from || extentSet(extent) > indexHead().setTop) return false;
    from = extentEnd(extent);
  }
  return from <= at.registered;
}

/** Enters the blocks that stood in the table. @returns false when not even the first one can be entered */
function enterBlocks(segment: u32, at: Segment): bool {
  const registered = min(<u32>at.registered, <u32>at.length);
  for (let i: u32 = 0; i < registered; i++) {
    const hash = load<u64>(at.content + ((<usize>i) << 3));
    if (tableEnter(hash, (segment << SEGMENT_SHIFT) | i) == 0) continue;
    at.registered = <u8>i;
    return i != 0;
  }
  return registered != 0;
}

/** Counts the holders of one extent and notes the segment in their rows. */
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
  if (at.length == 0) return;
  if (!enterBlocks(segment, at)) {
    giveUp(at);
    return;
  }
  if (!extentsStand(at)) {
    // Readers between must not see half of it: change it as a writer would.
    at.begin();
    at.extents = 0;
    at.end();
  }
  let from: u32 = 0;
  for (let i: u32 = 0; i < at.extents; i++) {
    const extent = extentAt(extentList(at), i);
    setKeep(extentSet(extent));
    countHolders(segment, extentSet(extent), extentEnd(extent) - from);
    from = extentEnd(extent);
  }
  count(PREFIX_COUNTER_BLOCKS, <u32>at.length);
  count(PREFIX_COUNTER_SEGMENTS, 1);
}

function hangOnParent(at: Segment): void {
  const parent = at.parent;
  if (parent == 0) return;
  const above = segmentAt(parent);
  const fork = <u32>at.depth - <u32>above.depth;
  above.children += 1;
  if (above.needed < fork) above.needed = <u8>fork;
}

function forgetDerived(): void {
  tableClear();
  setsForget();
  memory.fill(MEMBERS, 0, (<usize>SLOT_LIMIT * MEMBER_WORDS) << 3);
  memory.fill(MARKS, 0, (<usize>OVERFLOW_COUNT >> 3) + 1);
  for (let slot: u32 = 0; slot < SLOT_LIMIT; slot++) column.setU32(COLUMN_PREFIX_BLOCKS, slot, 0);
  indexHead().segmentFree = 0;
  indexHead().overflowFree = 0;
  setCounter(PREFIX_COUNTER_BLOCKS, 0);
  setCounter(PREFIX_COUNTER_SEGMENTS, 0);
  setCounter(PREFIX_COUNTER_MEMBERSHIPS, 0);
}

/** Something outside the segments is beyond belief: begin with an empty index. */
function clearAll(): void {
  count(PREFIX_COUNTER_CLEARED, 1);
  for (let segment: u32 = 1; segment <= SEGMENT_COUNT; segment++) giveUp(segmentAt(segment));
  indexHead().segmentTop = 0;
  indexHead().overflowTop = 0;
  indexHead().setTop = 0;
}

function giveFreeOverflow(): void {
  const top = indexHead().overflowTop;
  for (let list: u32 = 1; list <= top; list++) {
    if ((load<u8>(MARKS + (list >> 3)) & <u8>((<u32>1) << (list & 7))) == 0) giveOverflow(list);
  }
}

/**
 * Makes everything but the segments anew. Pins are gone afterwards: the caller charges the live requests again and then
 * calls prefixRepairRest.
 */
export function prefixRepair(): void {
  count(PREFIX_COUNTER_REPAIRS, 1);
  if (
    indexHead().segmentTop > SEGMENT_COUNT ||
    indexHead().overflowTop > OVERFLOW_COUNT ||
    indexHead().setTop > SET_COUNT
  ) {
    clearAll();
  }
  while (!rebuild()) {}
}

/** @returns false when a segment had to be given up on the way, so that what hung on it must go too: do it again */
function rebuild(): bool {
  const top = indexHead().segmentTop;
  forgetDerived();
  for (let segment: u32 = 1; segment <= top; segment++) {
    const at = segmentAt(segment);
    at.needed = 0;
    at.children = 0;
    at.pins = 0;
    if (!isWhole(at)) giveUp(at);
  }
  dropUnrooted(top);
  for (let segment: u32 = 1; segment <= top; segment++) restoreSegment(segment);
  if (dropUnrooted(top)) return false;
  for (let segment: u32 = 1; segment <= top; segment++) {
    const at = segmentAt(segment);
    if (at.length == 0) giveSegment(segment);
    else hangOnParent(at);
  }
  giveFreeOverflow();
  setCounter(PREFIX_COUNTER_SETS, setsRelink());
  return true;
}

/** Gives up the segments whose way to the root is broken. @returns whether there were any */
function dropUnrooted(top: u32): bool {
  let dropped = false;
  for (let segment: u32 = 1; segment <= top; segment++) {
    const at = segmentAt(segment);
    if (at.length == 0 || isRooted(at)) continue;
    giveUp(at);
    dropped = true;
  }
  return dropped;
}

/** Last step: drops the content that no endpoint holds and no live request needs. */
export function prefixRepairRest(): void {
  if (ASSERTIONS) assert(lockHeld(INDEX_LOCK), 'the index is repaired under its lock');
  const top = indexHead().segmentTop;
  for (let segment: u32 = 1; segment <= top; segment++) if (segmentAt(segment).length != 0) trim(segment);
}
