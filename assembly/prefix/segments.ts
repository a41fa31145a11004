// Segments: chains of blocks, each stored once.
//
// Owns: the segment part of REGION_PREFIX, but for the extents (extents.ts). Written under the index lock; read by
// anyone between two equal even versions. The fields are in segment.ts. A segment never crosses a multiple of
// SEGMENT_BLOCKS and is never split, moved or merged. A fork begins a new one. Content is appended at the end only, and
// dropped from the end only when no endpoint holds it and neither a child nor a live request needs it. So a chain is
// stored once, which is what makes counts exact.
import { ASSERTIONS } from '../assertions';
import { INDEX_LOCK, lockHeld } from '../lock';
import { count, counted, PREFIX_COUNTER_BLOCKS, PREFIX_COUNTER_SEGMENTS } from './counters';
import { indexHead } from './head';
import { SEGMENT_COUNT, SEGMENT_SHIFT } from './layout';
import { extentAt, extentEnd, extentList, Segment, segmentAt, segmentOf } from './segment';
import { tableEnter, tableLeave, tableTouch } from './table';

export function pin(segment: u32): void {
  const at = segmentAt(segment);
  if (ASSERTIONS) assert(lockHeld(INDEX_LOCK), 'pins change under the index lock');
  at.pins += 1;
}

/** Removes a pin; the caller trims the segment. */
export function unpin(segment: u32): void {
  const at = segmentAt(segment);
  if (ASSERTIONS) assert(lockHeld(INDEX_LOCK), 'pins change under the index lock');
  if (ASSERTIONS) assert(at.pins > 0, 'an unpinned segment has a pin');
  at.pins -= 1;
}
/** Number of blocks up to and including the last one with a holder. */
function heldEnd(at: Segment): u32 {
  const extents = <u32>at.extents;
  return extents == 0 ? 0 : extentEnd(extentAt(extentList(at), extents - 1));
}
/** Shortens the content. The segment is odd. */
export function cutContent(at: Segment, length: u32): void {
  const segment = segmentOf(at);
  const content = at.content;
  const was = <u32>at.length;
  if (at.registered > length) tableTouch(content + ((<usize>length) << 3), <u32>at.registered - length);
  for (let i = length; i < at.registered; i++) {
    tableLeave(load<u64>(content + ((<usize>i) << 3)), (segment << SEGMENT_SHIFT) | i);
  }
  if (at.registered > length) at.registered = <u8>length;
  at.length = <u8>length;
  if (length != 0) at.last = load<u64>(content + ((<usize>(length - 1)) << 3));
  count(PREFIX_COUNTER_BLOCKS, <i64>length - <i64>was);
}

/** Appends blocks to a segment that has room for them. */
export function append(segment: u32, hashes: usize, blocks: u32): void {
  const at = segmentAt(segment);
  const length = <u32>at.length;
  at.begin();
  memory.copy(at.content + ((<usize>length) << 3), hashes, (<usize>blocks) << 3);
  at.last = load<u64>(hashes + ((<usize>(blocks - 1)) << 3));
  at.length = <u8>(length + blocks);
  at.end();
  count(PREFIX_COUNTER_BLOCKS, blocks);
}

/** Enters the blocks before `to` into the table. @returns how many of them stand there now */
export function register(segment: u32, to: u32): u32 {
  const at = segmentAt(segment);
  let registered = <u32>at.registered;
  tableTouch(at.content + ((<usize>registered) << 3), to - registered);
  while (registered < to) {
    const hash = load<u64>(at.content + ((<usize>registered) << 3));
    if (tableEnter(hash, (segment << SEGMENT_SHIFT) | registered) != 0) break;
    registered++;
  }
  // Readers do not look at this byte, so the version stays.
  if (registered > at.registered) at.registered = <u8>registered;
  return registered;
}

export function segmentsFree(): u32 {
  return SEGMENT_COUNT - <u32>counted(PREFIX_COUNTER_SEGMENTS);
}

function takeSegment(): u32 {
  const free = indexHead().segmentFree;
  if (free != 0) {
    indexHead().segmentFree = segmentAt(free).parent;
    return free;
  }
  const top = indexHead().segmentTop + 1;
  indexHead().segmentTop = top;
  return top;
}

/** Puts an empty segment on the free list. */
export function giveSegment(segment: u32): void {
  if (ASSERTIONS) assert(segmentAt(segment).length == 0, 'a segment on the free list is empty');
  segmentAt(segment).parent = indexHead().segmentFree;
  indexHead().segmentFree = segment;
}

/**
 * Begins a segment behind the first `fork` blocks of `parent` (0 = none), at `depth`. There must be a free segment.
 * @returns its number, or 0 when the first hash cannot be entered into the table
 */
export function createSegment(parent: u32, fork: u32, depth: u32, hashes: usize, blocks: u32): u32 {
  const segment = takeSegment();
  const at = segmentAt(segment);
  at.begin();
  at.extents = 0;
  at.registered = 0;
  at.needed = 0;
  at.depth = <u16>depth;
  at.children = 0;
  at.first = load<u64>(hashes);
  at.parent = parent;
  at.pins = 0;
  memory.copy(at.content, hashes, (<usize>blocks) << 3);
  at.last = load<u64>(hashes + ((<usize>(blocks - 1)) << 3));
  if (tableEnter(load<u64>(hashes), segment << SEGMENT_SHIFT) != 0) {
    at.length = 0;
    at.end();
    giveSegment(segment);
    return 0;
  }
  at.registered = 1;
  at.length = <u8>blocks;
  at.end();
  if (parent != 0) {
    const above = segmentAt(parent);
    above.children += 1;
    if (above.needed < fork) above.needed = <u8>fork;
  }
  count(PREFIX_COUNTER_BLOCKS, blocks);
  count(PREFIX_COUNTER_SEGMENTS, 1);
  return segment;
}

function leaveParent(at: Segment): u32 {
  const parent = at.parent;
  if (parent != 0) {
    const above = segmentAt(parent);
    const children = above.children - 1;
    above.children = children;
    if (children == 0) above.needed = 0;
  }
  return parent;
}

/**
 * Drops the content that no endpoint holds and nothing needs, here and up the chain.
 */
export function trim(segment: u32): void {
  while (segment != 0) {
    const at = segmentAt(segment);
    const keep = at.pins != 0 ? <u32>at.length : max(heldEnd(at), <u32>at.needed);
    if (keep >= at.length) return;
    at.begin();
    cutContent(at, keep);
    at.end();
    if (keep != 0) return;
    const parent = leaveParent(at);
    giveSegment(segment);
    count(PREFIX_COUNTER_SEGMENTS, -1);
    segment = parent;
  }
}

export function isLeaf(at: Segment): bool {
  return at.children == 0 && at.pins == 0;
}
