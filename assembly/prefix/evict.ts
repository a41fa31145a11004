// Eviction: the least recently used blocks go first, and of those the ones at the ends of chains.
//
// Owns nothing by itself; index lock held throughout. One pass over the segments (or over those where one endpoint may
// hold something) finds many victims (victims.ts), so that a full index pays for a pass once in many insertions.
//
// The whole index ages by its stamps: a lookup touches every segment on its way and an insertion every segment of its
// path. One endpoint ages by what was sent there (recency.ts). In both a parent is never older than its child; with the
// depth in the key's low bits the oldest keys are always ends of chains.
import * as column from '../columns/column';
import { COLUMN_PREFIX_BLOCKS, cell } from '../endpoints';
import { count, counted, PREFIX_COUNTER_BLOCKS, PREFIX_COUNTER_EVICTED } from './counters';
import { dropRange, evictTail, heldEndBy } from './extents';
import { indexHead } from './head';
import { BLOCK_LIMIT, GROUP_SHIFT, MEMBER_WORDS, MEMBERS, SEGMENT_COUNT, SET_COUNT, STAMPS, VICTIMS } from './layout';
import { LOSS_CAPACITY } from './losses';
import { dropOldest, keepOldest, oldestKept } from './oldest';
import { sentTick } from './recency';
import { extentAt, extentList, extentSet, Segment, segmentAt } from './segment';
import { isLeaf, segmentsFree, trim } from './segments';
import { setReferences, setsFree } from './sets';
import { ageKey, beginVictims, insertVictim, offerVictim, sortVictims, tooYoung, victimAt, victims } from './victims';

function usedTick(segment: u32): u32 {
  return load<u32>(STAMPS + ((<usize>segment) << 2));
}

/** Returns whether one of the segment's sets is named by it alone, so that evicting it frees a set. */
function ownsSet(at: Segment): bool {
  const list = extentList(at);
  const extents = <u32>at.extents;
  for (let i: u32 = 0; i < extents; i++) {
    const set = extentSet(extentAt(list, i));
    if (set != 0 && setReferences(set) == 1) return true;
  }
  return false;
}

function collectLeaves(owningSets: bool): void {
  const top = indexHead().segmentTop;
  beginVictims();
  for (let segment: u32 = 1; segment <= top; segment++) {
    // Stamps lie side by side, the segments each on a line of their own.
    const stamp = usedTick(segment);
    if (tooYoung(stamp)) continue;
    const at = segmentAt(segment);
    if (at.length == 0 || !isLeaf(at)) continue;
    if (owningSets && !ownsSet(at)) continue;
    offerVictim(ageKey(stamp, at), segment);
  }
  sortVictims();
}

/** A segment lost its last child: it is never older than the child was, so its turn comes later. */
function addBared(segment: u32): void {
  const at = segmentAt(segment);
  if (at.length == 0 || !isLeaf(at)) return;
  insertVictim(ageKey(usedTick(segment), at), segment);
}

/** Evicts leaves until `blocks` fit, and so many segments and sets are free. */
function evictLeaves(blocks: u32, segments: u32, sets: u32): void {
  for (;;) {
    const forSets = setsFree() < sets;
    collectLeaves(forSets);
    if (victims == 0) return;
    for (let i: u32 = 0; i < victims; i++) {
      const used = <u32>counted(PREFIX_COUNTER_BLOCKS);
      const over = used + blocks > BLOCK_LIMIT ? used + blocks - BLOCK_LIMIT : 0;
      const forSegments = segmentsFree() < segments;
      if (over == 0 && !forSegments && setsFree() >= sets) return;
      const segment = victimAt(i);
      const at = segmentAt(segment);
      if (at.length == 0 || !isLeaf(at)) continue;
      const whole = forSets || forSegments;
      const parent = at.parent;
      evictTail(segment, whole ? <u32>at.length : over);
      if (parent != 0 && at.length == 0) addBared(parent);
    }
  }
}

/** A sixty-fourth part of the blocks is evicted at once, so that not every insertion pays for a pass. */
function slack(limit: u32): u32 {
  return limit < 4096 ? 0 : limit >> 6;
}

/** Segments or sets of `all` that are freed beyond those needed, for the same reason: as many as a pass may find. */
function spare(all: u32): u32 {
  return min(all >> 6, VICTIMS);
}

/**
 * Makes room for new content.
 * @returns how many of `blocks` fit; 0 also when a segment is wanted and none can be had
 */
export function makeRoom(blocks: u32, wantSegment: bool): u32 {
  const lacksBlocks = <u32>counted(PREFIX_COUNTER_BLOCKS) + blocks > BLOCK_LIMIT;
  const lacksSegment = wantSegment && segmentsFree() == 0;
  if (!lacksBlocks && !lacksSegment) return blocks;
  // Prompts that own less than three quarters of a segment use up the segments first.
  const segments = lacksSegment ? 1 + spare(SEGMENT_COUNT) : u32(wantSegment);
  evictLeaves(lacksBlocks ? min(blocks + slack(BLOCK_LIMIT), BLOCK_LIMIT) : blocks, segments, 0);
  if (wantSegment && segmentsFree() == 0) return 0;
  return min(blocks, BLOCK_LIMIT - <u32>counted(PREFIX_COUNTER_BLOCKS));
}

/** Free sets that one operation may need at one segment: every extent may split and change. */
const SETS_AT_ONCE: u32 = 72;

/** Sees to it that one segment's change finds its sets, as far as eviction can. The segment must be pinned. */
export function makeSets(): void {
  if (setsFree() < SETS_AT_ONCE) evictLeaves(0, 0, SETS_AT_ONCE + spare(SET_COUNT));
}

/** Changes of the index, counted in twos; wraps around. Any thread, no lock. */
export function prefixTick(): u32 {
  return indexHead().tick;
}

/**
 * Changes of the index since its least recently used segment was looked up or stored, at least 1; 0 = the index is
 * empty. Any thread, no lock: a segment that changes just now may count or not.
 */
export function prefixOldestAge(): u32 {
  const top = min(indexHead().segmentTop, SEGMENT_COUNT);
  const next = indexHead().tick + 1;
  let oldest: u32 = 0;
  for (let segment: u32 = 1; segment <= top; segment++) {
    if (segmentAt(segment).length == 0) continue;
    const age = next - usedTick(segment);
    // A stamp that is written just now is ahead of the tick read above.
    if (age < 0x80000000) oldest = max(oldest, max<u32>(age, 1));
  }
  return oldest;
}

// ---- one endpoint

/** Returns whether `slot` may hold something in a group of segments; those where it does are offered. */
function offerGroup(slot: u32, first: u32): bool {
  const end = min(first + (1 << GROUP_SHIFT), indexHead().segmentTop + 1);
  let holds = false;
  for (let segment = first; segment < end; segment++) {
    const stamp = sentTick(slot, segment);
    if (tooYoung(stamp)) {
      // The segment itself is not looked at: it is on another line of memory.
      holds = true;
      continue;
    }
    const at = segmentAt(segment);
    if (at.length == 0 || heldEndBy(at, slot) == 0) continue;
    holds = true;
    offerVictim(ageKey(stamp, at), segment);
  }
  return holds;
}

/** Visits the segments where `slot` may hold something and keeps its oldest; forgets groups where it holds nothing. */
function collectHeld(slot: u32): void {
  const row = MEMBERS + ((<usize>slot * MEMBER_WORDS) << 3);
  beginVictims();
  for (let word: u32 = 0; word < MEMBER_WORDS; word++) {
    const at = row + ((<usize>word) << 3);
    for (let rest = load<u64>(at); rest != 0; rest &= rest - 1) {
      const bit = <u32>ctz(rest);
      if (!offerGroup(slot, ((word << 6) + bit) << GROUP_SHIFT)) store<u64>(at, load<u64>(at) & ~((<u64>1) << bit));
    }
  }
  sortVictims();
  keepOldest(slot);
}

/** Evicts the blocks that one endpoint was longest not sent until it holds at most `blocksMax`. */
export function evictHeld(slot: u32, blocksMax: u32): void {
  const held = cell(COLUMN_PREFIX_BLOCKS, slot);
  if (load<u32>(held) <= blocksMax) return;
  const target = blocksMax - min(blocksMax, slack(blocksMax));
  while (load<u32>(held) > target) {
    const segment = oldestKept(slot);
    if (segment == 0) {
      collectHeld(slot);
      if (victims == 0) return;
      continue;
    }
    evictFrom(segment, slot, target);
    // At the target the segment may hold more; the next eviction goes on with it.
    if (load<u32>(held) > target) dropOldest(slot);
  }
}

function evictFrom(segment: u32, slot: u32, target: u32): void {
  const held = cell(COLUMN_PREFIX_BLOCKS, slot);
  const at = segmentAt(segment);
  while (load<u32>(held) > target) {
    const end = heldEndBy(at, slot);
    if (end == 0) break;
    const over = load<u32>(held) - target;
    const gone = dropRange(segment, over >= end ? 0 : end - over, end, slot, LOSS_CAPACITY);
    count(PREFIX_COUNTER_EVICTED, gone);
    if (gone == 0) break;
  }
  trim(segment);
}

/**
 * Takes everything from one endpoint, one visit to each segment where it may hold something.
 * @param lost LOSS_* cause
 * @returns blocks that it held
 */
export function dropHeld(slot: u32, lost: u32): u32 {
  const before = column.u32(COLUMN_PREFIX_BLOCKS, slot);
  const top = indexHead().segmentTop;
  const row = MEMBERS + ((<usize>slot * MEMBER_WORDS) << 3);
  for (let word: u32 = 0; word < MEMBER_WORDS; word++) {
    const at = row + ((<usize>word) << 3);
    for (let rest = load<u64>(at); rest != 0; rest &= rest - 1) {
      const first = ((word << 6) + <u32>ctz(rest)) << GROUP_SHIFT;
      for (let segment = first; segment < first + (1 << GROUP_SHIFT) && segment <= top; segment++) {
        if (dropRange(segment, 0, <u32>segmentAt(segment).length, slot, lost) != 0) trim(segment);
      }
    }
    store<u64>(at, 0);
  }
  return before - column.u32(COLUMN_PREFIX_BLOCKS, slot);
}
