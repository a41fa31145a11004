// Extents: which endpoints hold which blocks of a segment.
//
// Owns: the extents of segments, and the overflow and members parts of REGION_PREFIX. Written under the index lock;
// read by anyone between two equal even versions. The fields are in segment.ts. An extent is `end << 24 | set`: the
// blocks from the end of the extent before it up to `end` are held by `set`; behind the last extent there are no
// holders.
import { COLUMN_PREFIX_BLOCKS, cell } from '../endpoints';
import { count, PREFIX_COUNTER_DROPPED, PREFIX_COUNTER_EVICTED, PREFIX_COUNTER_MEMBERSHIPS } from './counters';
import { indexHead } from './head';
import { GROUP_SHIFT, MEMBER_WORDS, MEMBERS, OVERFLOW_COUNT, SCRATCH, SET_WORDS } from './layout';
import { LOSS_INDEX_FULL, noteLoss } from './losses';
import {
  extentAt,
  extentEnd,
  extentList,
  extentSet,
  INLINE_EXTENTS,
  overflowList,
  Segment,
  segmentAt,
} from './segment';
import { cutContent, trim } from './segments';
import { NO_SET, PLACE_NONE, placeIn, setBits, setHolds, setKeep, setLetGo, setPlaced } from './sets';

// ---- members: where an endpoint may hold something

function memberWord(slot: u32, segment: u32): usize {
  return MEMBERS + ((<usize>slot * MEMBER_WORDS + ((segment >> GROUP_SHIFT) >> 6)) << 3);
}

/** Notes that `slot` may hold something in a segment. */
export function markMember(slot: u32, segment: u32): void {
  const at = memberWord(slot, segment);
  const bit = (<u64>1) << (segment >> GROUP_SHIFT);
  const word = load<u64>(at);
  if ((word & bit) == 0) store<u64>(at, word | bit);
}

// ---- extents

// Lists in SCRATCH. One under construction has up to two extents more than there are blocks.
const NEW_EXTENTS: usize = 0;
const OLD_EXTENTS: usize = 512;
let made: u32 = 0; // extents in it

function pushExtent(extentEndAt: u32, set: u32): void {
  const next = SCRATCH + NEW_EXTENTS + ((<usize>made) << 2);
  const last = next - sizeof<u32>();
  const extent = (extentEndAt << 24) | set;
  if (made != 0 && extentSet(load<u32>(last)) == set) return store<u32>(last, extent);
  store<u32>(next, extent);
  made++;
}

/** Blocks [from, end) leave every endpoint of a set. */
function discount(set: u32, blocks: u32): u32 {
  let pairs: u32 = 0;
  const bits = setBits(set);
  for (let word: u32 = 0; word < SET_WORDS; word++) {
    let rest = load<u64>(bits + ((<usize>word) << 3));
    while (rest != 0) {
      const held = cell(COLUMN_PREFIX_BLOCKS, (word << 6) + <u32>ctz(rest));
      store<u32>(held, load<u32>(held) - blocks);
      pairs += blocks;
      rest &= rest - 1;
    }
  }
  count(PREFIX_COUNTER_MEMBERSHIPS, -(<i64>pairs));
  return pairs;
}

function takeOverflow(): u32 {
  const free = indexHead().overflowFree;
  if (free != 0) {
    indexHead().overflowFree = load<u32>(overflowList(free));
    return free;
  }
  const top = indexHead().overflowTop;
  if (top == OVERFLOW_COUNT) return 0;
  indexHead().overflowTop = top + 1;
  return top + 1;
}

export function giveOverflow(list: u32): void {
  store<u32>(overflowList(list), indexHead().overflowFree);
  indexHead().overflowFree = list;
}

/** Keeps the extents that fit inline, as no overflow list is free; the blocks behind them lose their holders. */
function cutToInline(): void {
  const list = SCRATCH + NEW_EXTENTS;
  let from = extentEnd(extentAt(list, INLINE_EXTENTS - 1));
  for (let i = INLINE_EXTENTS; i < made; i++) {
    const extent = extentAt(list, i);
    count(PREFIX_COUNTER_DROPPED, discount(extentSet(extent), extentEnd(extent) - from));
    setLetGo(extentSet(extent));
    from = extentEnd(extent);
  }
  made = INLINE_EXTENTS;
  stripEmpty();
}

function stripEmpty(): void {
  while (made != 0 && extentSet(extentAt(SCRATCH + NEW_EXTENTS, made - 1)) == 0) made--;
}

/**
 * Puts the list under construction in the place of a segment's extents and cuts the segment to `length` blocks. New
 * sets get their references first and old ones lose theirs last, so a thread that dies between leaves no extent without
 * its set.
 */
function writeExtents(at: Segment, length: u32): void {
  const list = SCRATCH + NEW_EXTENTS;
  const old = SCRATCH + OLD_EXTENTS;
  const before = <u32>at.extents;
  const had: u32 = before > INLINE_EXTENTS ? at.extent0 : 0;
  let overflow = had;
  stripEmpty();
  for (let i: u32 = 0; i < made; i++) setKeep(extentSet(extentAt(list, i)));
  if (made > INLINE_EXTENTS && had == 0) {
    overflow = takeOverflow();
    if (overflow == 0) cutToInline();
  }
  memory.copy(old, extentList(at), (<usize>before) << 2);
  at.begin();
  at.extents = <u8>made;
  if (made > INLINE_EXTENTS) at.extent0 = overflow;
  memory.copy(extentList(at), list, (<usize>made) << 2);
  if (length < at.length) cutContent(at, length);
  at.end();
  for (let i: u32 = 0; i < before; i++) setLetGo(extentSet(extentAt(old, i)));
  if (made <= INLINE_EXTENTS && had != 0) giveOverflow(had);
}

/** Returns whether `slot` holds all of the blocks [from, to) at `place`. */
export function holdsRange(at: Segment, from: u32, to: u32, slot: u32, place: u32): bool {
  const list = extentList(at);
  const extents = <u32>at.extents;
  let start: u32 = 0;
  for (let i: u32 = 0; i < extents; i++) {
    const extent = extentAt(list, i);
    if (extentEnd(extent) > from && start < to && placeIn(extentSet(extent), slot) != place) return false;
    start = extentEnd(extent);
    if (start >= to) return true;
  }
  return from >= to;
}

/** Returns the end of the last block that `slot` holds, in blocks from the first one; 0 when it holds none. */
export function heldEndBy(at: Segment, slot: u32): u32 {
  const list = extentList(at);
  for (let i = <u32>at.extents; i != 0; i--) {
    const extent = extentAt(list, i - 1);
    if (setHolds(extentSet(extent), slot)) return extentEnd(extent);
  }
  return 0;
}

/** A change of where an endpoint holds blocks. */
let newPlace: u32 = PLACE_NONE; // of the blocks that change
let heldOnly: bool = false; // blocks that the endpoint does not hold stay so
let lossCause: u32 = 0; // why it holds them no more
let rewritten: bool = false; // an extent changed

/** One piece [start, to) of an extent, all inside the range that changes. @returns blocks whose holder changed */
function changePiece(at: Segment, start: u32, to: u32, set: u32, slot: u32): u32 {
  const before = placeIn(set, slot);
  const place = heldOnly && before == PLACE_NONE ? PLACE_NONE : newPlace;
  const next = setPlaced(set, slot, before, place);
  if (next == set) {
    pushExtent(to, set);
    return 0;
  }
  rewritten = true;
  if (place == PLACE_NONE) noteLoss(at.hash(start), lossCause);
  if (next != NO_SET) {
    pushExtent(to, next);
    return before != PLACE_NONE && place != PLACE_NONE ? 0 : to - start;
  }
  if (place != PLACE_NONE) {
    pushExtent(to, set);
    return 0;
  }
  // No number is free for the smaller set: no holder is better than a wrong one.
  count(PREFIX_COUNTER_DROPPED, discount(set, to - start) - (to - start));
  const held = cell(COLUMN_PREFIX_BLOCKS, slot);
  store<u32>(held, load<u32>(held) + (to - start));
  count(PREFIX_COUNTER_MEMBERSHIPS, to - start);
  pushExtent(to, 0);
  return to - start;
}

/** Builds the extents with [from, to) changed for `slot`. @returns blocks whose holder changed */
function buildChanged(at: Segment, from: u32, to: u32, slot: u32): u32 {
  const list = extentList(at);
  const extents = <u32>at.extents;
  let blocks: u32 = 0;
  let start: u32 = 0;
  made = 0;
  rewritten = false;
  for (let i: u32 = 0; i <= extents; i++) {
    // The last piece stands for the blocks without holders behind the extents.
    const extent = i < extents ? extentAt(list, i) : to << 24;
    const stop = extentEnd(extent);
    const set = extentSet(extent);
    if (stop <= start) break;
    if (start < from) pushExtent(min(stop, from), set);
    const inside = max(start, from);
    if (inside < min(stop, to)) blocks += changePiece(at, inside, min(stop, to), set, slot);
    if (stop > to) pushExtent(stop, set);
    start = stop;
  }
  return blocks;
}

/**
 * `slot` holds the blocks [from, to) of a segment at `place` from now on.
 * @returns blocks for which this is new
 */
export function holdRange(segment: u32, from: u32, to: u32, slot: u32, place: u32): u32 {
  const at = segmentAt(segment);
  markMember(slot, segment);
  newPlace = place;
  heldOnly = false;
  const blocks = buildChanged(at, from, to, slot);
  if (!rewritten) return 0;
  const held = cell(COLUMN_PREFIX_BLOCKS, slot);
  store<u32>(held, load<u32>(held) + blocks);
  count(PREFIX_COUNTER_MEMBERSHIPS, blocks);
  writeExtents(at, <u32>at.length);
  return blocks;
}

/** What `slot` holds of the blocks [from, to) of a segment lies at `place` from now on. */
export function moveRange(segment: u32, from: u32, to: u32, slot: u32, place: u32): void {
  const at = segmentAt(segment);
  newPlace = place;
  heldOnly = true;
  buildChanged(at, from, to, slot);
  if (rewritten) writeExtents(at, <u32>at.length);
}

/**
 * `slot` holds the blocks [from, to) of a segment no more.
 * @param lost LOSS_* cause
 * @returns blocks that it held
 */
export function dropRange(segment: u32, from: u32, to: u32, slot: u32, lost: u32): u32 {
  const at = segmentAt(segment);
  newPlace = PLACE_NONE;
  heldOnly = false;
  lossCause = lost;
  const blocks = buildChanged(at, from, to, slot);
  if (blocks == 0) return 0;
  const held = cell(COLUMN_PREFIX_BLOCKS, slot);
  store<u32>(held, load<u32>(held) - blocks);
  count(PREFIX_COUNTER_MEMBERSHIPS, -(<i64>blocks));
  writeExtents(at, <u32>at.length);
  return blocks;
}

/**
 * Forgets the holders of all blocks from `from` on, as the index is full. Leaves the shortened list under construction.
 */
function buildCut(at: Segment, from: u32): u32 {
  const list = extentList(at);
  const extents = <u32>at.extents;
  let start: u32 = 0;
  let pairs: u32 = 0;
  made = 0;
  for (let i: u32 = 0; i < extents; i++) {
    const extent = extentAt(list, i);
    const stop = extentEnd(extent);
    if (start < from) pushExtent(min(stop, from), extentSet(extent));
    if (stop > from) {
      const cut = max(start, from);
      if (extentSet(extent) != 0) noteLoss(at.hash(cut), LOSS_INDEX_FULL);
      pairs += discount(extentSet(extent), stop - cut);
    }
    start = stop;
  }
  return pairs;
}
/** Evicts the last `blocks` blocks of a segment that is a leaf, and what nothing needs then. */
export function evictTail(segment: u32, blocks: u32): void {
  const at = segmentAt(segment);
  const keep = blocks >= at.length ? 0 : <u32>at.length - blocks;
  count(PREFIX_COUNTER_EVICTED, buildCut(at, keep));
  writeExtents(at, keep == 0 ? <u32>at.length : keep);
  trim(segment);
}
