// Segments: chains of blocks, each stored once, and the spans that say who holds which of their blocks.
//
// Owns: the segment, overflow and members parts of REGION_PREFIX. Written under the index lock; read by anyone between
// two equal even versions. Header, 64 bytes, then SEGMENT_BLOCKS hashes:
//   +0  u32 version, odd while the segment changes     +4  u8 length      +5 u8 spans
//   +6  u8 registered: leading blocks in the table     +7  u8 needed: leading blocks that children hang on
//   +8  u16 depth of the first block                   +12 u32 children   +16 u64 first hash   +24 u64 last hash
//   +32 u32 parent (next free one, when free)          +36 u32 pins: live requests whose prompt ends here
//   +40 u32 × 6 spans, or the number of an overflow list when there are more
// A span is `end << 24 | set`: the blocks from the end of the span before it up to `end` are held by `set`; behind the
// last span nobody holds anything. A segment never crosses a multiple of SEGMENT_BLOCKS and is never split, moved or
// merged; a fork begins a new one; content is appended at the end only, and taken away from the end only when nobody
// holds it and neither a child nor a live request needs it. So a chain is stored once, which is what makes counts exact.
import { COLUMN_PREFIX_BLOCKS, cell } from '../endpoints';
import {
  count,
  HEAD_OVERFLOW_FREE,
  HEAD_OVERFLOW_TOP,
  HEAD_SEGMENT_FREE,
  HEAD_SEGMENT_TOP,
  PREFIX_COUNTER_BLOCKS,
  PREFIX_COUNTER_DROPPED,
  PREFIX_COUNTER_EVICTED,
  PREFIX_COUNTER_MEMBERSHIPS,
  PREFIX_COUNTER_SEGMENTS,
} from './counters';
import {
  GROUP_SHIFT,
  HEAD,
  MEMBER_WORDS,
  MEMBERS,
  OVERFLOW,
  OVERFLOW_COUNT,
  SCRATCH,
  SEGMENT_BLOCKS,
  SEGMENT_BYTES,
  SEGMENT_COUNT,
  SEGMENT_SHIFT,
  SEGMENTS,
  SET_WORDS,
} from './layout';
import { NO_SET, setBits, setHolds, setKeep, setLetGo, setWith, setWithout } from './sets';
import { tableEnter, tableLeave } from './table';

export const INLINE_SPANS: u32 = 6;
const SET_MASK: u32 = 0xffffff;
const SPAN_LIST_BYTES: usize = (<usize>SEGMENT_BLOCKS) << 2;

export function segmentAt(segment: u32): usize {
  return SEGMENTS + <usize>segment * SEGMENT_BYTES;
}
export function lengthOf(at: usize): u32 {
  return load<u8>(at, 4);
}
export function spansOf(at: usize): u32 {
  return load<u8>(at, 5);
}
export function registeredOf(at: usize): u32 {
  return load<u8>(at, 6);
}
export function neededOf(at: usize): u32 {
  return load<u8>(at, 7);
}
export function depthOf(at: usize): u32 {
  return load<u16>(at, 8);
}
export function childrenOf(at: usize): u32 {
  return load<u32>(at, 12);
}
export function firstOf(at: usize): u64 {
  return load<u64>(at, 16);
}
export function lastOf(at: usize): u64 {
  return load<u64>(at, 24);
}
export function parentOf(at: usize): u32 {
  return load<u32>(at, 32);
}
export function pinsOf(at: usize): u32 {
  return load<u32>(at, 36);
}
export function contentOf(at: usize): usize {
  return at + 64;
}
export function spanEnd(span: u32): u32 {
  return span >> 24;
}
export function spanSet(span: u32): u32 {
  return span & SET_MASK;
}

/** Address of an overflow list. */
export function overflowList(list: u32): usize {
  return OVERFLOW + <usize>list * SPAN_LIST_BYTES;
}

/** Address of a segment's spans. */
export function spanList(at: usize): usize {
  return spansOf(at) <= INLINE_SPANS ? at + 40 : overflowList(load<u32>(at, 40));
}

/** The segment is about to change: readers turn away from it. An atomic addition is a full barrier everywhere. */
function begin(at: usize): void {
  atomic.add<u32>(at, 1);
}

function end(at: usize): void {
  atomic.store<u32>(at, load<u32>(at) + 1);
}

export function pin(segment: u32): void {
  const at = segmentAt(segment);
  store<u32>(at, pinsOf(at) + 1, 36);
}

/** Take a pin away; what nobody needs any more is the caller's to trim. */
export function unpin(segment: u32): void {
  const at = segmentAt(segment);
  store<u32>(at, pinsOf(at) - 1, 36);
}

/** How many blocks from the first one somebody holds, ending with a held one. */
function heldEnd(at: usize): u32 {
  const spans = spansOf(at);
  return spans == 0 ? 0 : spanEnd(load<u32>(spanList(at) + ((<usize>(spans - 1)) << 2)));
}

// ---- members: where an endpoint may hold something

function memberWord(slot: u32, segment: u32): usize {
  return MEMBERS + ((<usize>slot * MEMBER_WORDS + ((segment >> GROUP_SHIFT) >> 6)) << 3);
}

/** Note that `slot` may hold something in a segment. */
export function markMember(slot: u32, segment: u32): void {
  const at = memberWord(slot, segment);
  const bit = (<u64>1) << (segment >> GROUP_SHIFT);
  const word = load<u64>(at);
  if ((word & bit) == 0) store<u64>(at, word | bit);
}

// ---- spans

// Lists in SCRATCH. One under construction has up to two spans more than there are blocks.
const NEW_SPANS: usize = 0;
const OLD_SPANS: usize = 512;
let made: u32 = 0; // spans in it

function pushSpan(spanEndAt: u32, set: u32): void {
  const last = SCRATCH + NEW_SPANS + ((<usize>made) << 2);
  if (made != 0 && spanSet(load<u32>(last - 4)) == set) {
    store<u32>(last - 4, (spanEndAt << 24) | set);
    return;
  }
  store<u32>(last, (spanEndAt << 24) | set);
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
  const free = load<u32>(HEAD + HEAD_OVERFLOW_FREE);
  if (free != 0) {
    store<u32>(HEAD + HEAD_OVERFLOW_FREE, load<u32>(overflowList(free)));
    return free;
  }
  const top = load<u32>(HEAD + HEAD_OVERFLOW_TOP);
  if (top == OVERFLOW_COUNT) return 0;
  store<u32>(HEAD + HEAD_OVERFLOW_TOP, top + 1);
  return top + 1;
}

export function giveOverflow(list: u32): void {
  store<u32>(overflowList(list), load<u32>(HEAD + HEAD_OVERFLOW_FREE));
  store<u32>(HEAD + HEAD_OVERFLOW_FREE, list);
}

/** No overflow list is free: keep what fits inline; what stands behind counts as held by nobody. */
function cutToInline(): void {
  const list = SCRATCH + NEW_SPANS;
  let from = spanEnd(load<u32>(list + ((<usize>(INLINE_SPANS - 1)) << 2)));
  for (let i = INLINE_SPANS; i < made; i++) {
    const span = load<u32>(list + ((<usize>i) << 2));
    count(PREFIX_COUNTER_DROPPED, discount(spanSet(span), spanEnd(span) - from));
    setLetGo(spanSet(span));
    from = spanEnd(span);
  }
  made = INLINE_SPANS;
  stripEmpty();
}

function stripEmpty(): void {
  while (made != 0 && spanSet(load<u32>(SCRATCH + NEW_SPANS + ((<usize>(made - 1)) << 2))) == 0) made--;
}

/**
 * Put the list under construction in the place of a segment's spans and cut the segment to `length` blocks. New sets get
 * their references first and old ones lose theirs last, so a thread that dies between leaves no span without its set.
 */
function writeSpans(at: usize, length: u32): void {
  const list = SCRATCH + NEW_SPANS;
  const old = SCRATCH + OLD_SPANS;
  const before = spansOf(at);
  const had: u32 = before > INLINE_SPANS ? load<u32>(at, 40) : 0;
  let overflow = had;
  stripEmpty();
  for (let i: u32 = 0; i < made; i++) setKeep(spanSet(load<u32>(list + ((<usize>i) << 2))));
  if (made > INLINE_SPANS && had == 0) {
    overflow = takeOverflow();
    if (overflow == 0) cutToInline();
  }
  memory.copy(old, spanList(at), (<usize>before) << 2);
  begin(at);
  store<u8>(at, <u8>made, 5);
  if (made > INLINE_SPANS) store<u32>(at, overflow, 40);
  memory.copy(spanList(at), list, (<usize>made) << 2);
  if (length < lengthOf(at)) cutContent(at, length);
  end(at);
  for (let i: u32 = 0; i < before; i++) setLetGo(spanSet(load<u32>(old + ((<usize>i) << 2))));
  if (made <= INLINE_SPANS && had != 0) giveOverflow(had);
}

/** Whether `slot` holds all of the blocks [from, to). */
export function holdsRange(at: usize, from: u32, to: u32, slot: u32): bool {
  const list = spanList(at);
  const spans = spansOf(at);
  let start: u32 = 0;
  for (let i: u32 = 0; i < spans; i++) {
    const span = load<u32>(list + ((<usize>i) << 2));
    if (spanEnd(span) > from && start < to && !setHolds(spanSet(span), slot)) return false;
    start = spanEnd(span);
    if (start >= to) return true;
  }
  return from >= to;
}

/** How many blocks from the first one lie before the end of the last that `slot` holds; 0 when it holds none. */
export function heldEndBy(at: usize, slot: u32): u32 {
  const list = spanList(at);
  for (let i = spansOf(at); i != 0; i--) {
    const span = load<u32>(list + ((<usize>(i - 1)) << 2));
    if (setHolds(spanSet(span), slot)) return spanEnd(span);
  }
  return 0;
}

/** One piece [start, to) of a span, all inside the range that changes. @returns blocks whose holder changed */
function changePiece(start: u32, to: u32, set: u32, slot: u32, add: bool): u32 {
  const next = add ? setWith(set, slot) : setWithout(set, slot);
  if (next != NO_SET) {
    pushSpan(to, next);
    return next == set ? 0 : to - start;
  }
  if (add) {
    pushSpan(to, set);
    return 0;
  }
  // No number is free for the smaller set: better that nobody holds these blocks than one who does not.
  count(PREFIX_COUNTER_DROPPED, discount(set, to - start) - (to - start));
  const held = cell(COLUMN_PREFIX_BLOCKS, slot);
  store<u32>(held, load<u32>(held) + (to - start));
  count(PREFIX_COUNTER_MEMBERSHIPS, to - start);
  pushSpan(to, 0);
  return to - start;
}

/** Build the spans with [from, to) changed for `slot`. @returns blocks whose holder changed */
function buildChanged(at: usize, from: u32, to: u32, slot: u32, add: bool): u32 {
  const list = spanList(at);
  const spans = spansOf(at);
  let changed: u32 = 0;
  let start: u32 = 0;
  made = 0;
  for (let i: u32 = 0; i <= spans; i++) {
    // The last piece stands for the blocks that nobody holds behind the spans.
    const span = i < spans ? load<u32>(list + ((<usize>i) << 2)) : to << 24;
    const stop = spanEnd(span);
    const set = spanSet(span);
    if (stop <= start) break;
    if (start < from) pushSpan(min(stop, from), set);
    const inside = max(start, from);
    if (inside < min(stop, to)) changed += changePiece(inside, min(stop, to), set, slot, add);
    if (stop > to) pushSpan(stop, set);
    start = stop;
  }
  return changed;
}

/**
 * `slot` holds the blocks [from, to) of a segment from now on (add), or no more.
 * @returns blocks for which this is new
 */
export function changeRange(segment: u32, from: u32, to: u32, slot: u32, add: bool): u32 {
  const at = segmentAt(segment);
  if (add) markMember(slot, segment);
  const changed = buildChanged(at, from, to, slot, add);
  if (changed == 0) return 0;
  const held = cell(COLUMN_PREFIX_BLOCKS, slot);
  const pairs: i64 = add ? <i64>changed : -(<i64>changed);
  store<u32>(held, load<u32>(held) + <u32>pairs);
  count(PREFIX_COUNTER_MEMBERSHIPS, pairs);
  writeSpans(at, lengthOf(at));
  return changed;
}

/** Forget the holders of all blocks from `from` on. Leaves the shortened list under construction. */
function buildCut(at: usize, from: u32): u32 {
  const list = spanList(at);
  const spans = spansOf(at);
  let start: u32 = 0;
  let pairs: u32 = 0;
  made = 0;
  for (let i: u32 = 0; i < spans; i++) {
    const span = load<u32>(list + ((<usize>i) << 2));
    const stop = spanEnd(span);
    if (start < from) pushSpan(min(stop, from), spanSet(span));
    if (stop > from) pairs += discount(spanSet(span), stop - max(start, from));
    start = stop;
  }
  return pairs;
}

// ---- content

/** Shorten the content. The segment is odd. */
function cutContent(at: usize, length: u32): void {
  const segment = <u32>((at - SEGMENTS) / SEGMENT_BYTES);
  const content = contentOf(at);
  const was = lengthOf(at);
  for (let i = length; i < registeredOf(at); i++) {
    tableLeave(load<u64>(content + ((<usize>i) << 3)), (segment << SEGMENT_SHIFT) | i);
  }
  if (registeredOf(at) > length) store<u8>(at, <u8>length, 6);
  store<u8>(at, <u8>length, 4);
  if (length != 0) store<u64>(at, load<u64>(content + ((<usize>(length - 1)) << 3)), 24);
  count(PREFIX_COUNTER_BLOCKS, <i64>length - <i64>was);
}

/** Append blocks to a segment that has room for them. */
export function append(segment: u32, hashes: usize, blocks: u32): void {
  const at = segmentAt(segment);
  const length = lengthOf(at);
  begin(at);
  memory.copy(contentOf(at) + ((<usize>length) << 3), hashes, (<usize>blocks) << 3);
  store<u64>(at, load<u64>(hashes + ((<usize>(blocks - 1)) << 3)), 24);
  store<u8>(at, <u8>(length + blocks), 4);
  end(at);
  count(PREFIX_COUNTER_BLOCKS, blocks);
}

/** Enter the blocks before `to` into the table. @returns how many of them stand there now */
export function register(segment: u32, to: u32): u32 {
  const at = segmentAt(segment);
  let registered = registeredOf(at);
  while (registered < to) {
    const hash = load<u64>(contentOf(at) + ((<usize>registered) << 3));
    if (tableEnter(hash, (segment << SEGMENT_SHIFT) | registered) != 0) break;
    registered++;
  }
  // Readers do not look at this byte, so the version stays.
  if (registered > registeredOf(at)) store<u8>(at, <u8>registered, 6);
  return registered;
}

export function segmentsFree(): bool {
  return load<u32>(HEAD + HEAD_SEGMENT_FREE) != 0 || load<u32>(HEAD + HEAD_SEGMENT_TOP) < SEGMENT_COUNT;
}

function takeSegment(): u32 {
  const free = load<u32>(HEAD + HEAD_SEGMENT_FREE);
  if (free != 0) {
    store<u32>(HEAD + HEAD_SEGMENT_FREE, parentOf(segmentAt(free)));
    return free;
  }
  const top = load<u32>(HEAD + HEAD_SEGMENT_TOP) + 1;
  store<u32>(HEAD + HEAD_SEGMENT_TOP, top);
  return top;
}

/** Put an empty segment on the free list. */
export function giveSegment(segment: u32): void {
  store<u32>(segmentAt(segment), load<u32>(HEAD + HEAD_SEGMENT_FREE), 32);
  store<u32>(HEAD + HEAD_SEGMENT_FREE, segment);
}

/**
 * Begin a segment behind the first `fork` blocks of `parent` (0 = none), at `depth`. There must be a free segment.
 * @returns its number, or 0 when the first hash cannot be entered into the table
 */
export function createSegment(parent: u32, fork: u32, depth: u32, hashes: usize, blocks: u32): u32 {
  const segment = takeSegment();
  const at = segmentAt(segment);
  begin(at);
  store<u8>(at, 0, 5);
  store<u8>(at, 0, 6);
  store<u8>(at, 0, 7);
  store<u16>(at, <u16>depth, 8);
  store<u32>(at, 0, 12);
  store<u64>(at, load<u64>(hashes), 16);
  store<u32>(at, parent, 32);
  store<u32>(at, 0, 36);
  memory.copy(contentOf(at), hashes, (<usize>blocks) << 3);
  store<u64>(at, load<u64>(hashes + ((<usize>(blocks - 1)) << 3)), 24);
  if (tableEnter(load<u64>(hashes), segment << SEGMENT_SHIFT) != 0) {
    store<u8>(at, 0, 4);
    end(at);
    giveSegment(segment);
    return 0;
  }
  store<u8>(at, 1, 6);
  store<u8>(at, <u8>blocks, 4);
  end(at);
  if (parent != 0) {
    const above = segmentAt(parent);
    store<u32>(above, childrenOf(above) + 1, 12);
    if (neededOf(above) < fork) store<u8>(above, <u8>fork, 7);
  }
  count(PREFIX_COUNTER_BLOCKS, blocks);
  count(PREFIX_COUNTER_SEGMENTS, 1);
  return segment;
}

function leaveParent(at: usize): u32 {
  const parent = parentOf(at);
  if (parent != 0) {
    const above = segmentAt(parent);
    const children = childrenOf(above) - 1;
    store<u32>(above, children, 12);
    if (children == 0) store<u8>(above, 0, 7);
  }
  return parent;
}

/**
 * Give up the content that nobody holds and nothing needs, here and up the chain.
 */
export function trim(segment: u32): void {
  while (segment != 0) {
    const at = segmentAt(segment);
    const keep = pinsOf(at) != 0 ? lengthOf(at) : max(heldEnd(at), neededOf(at));
    if (keep >= lengthOf(at)) return;
    begin(at);
    cutContent(at, keep);
    end(at);
    if (keep != 0) return;
    const parent = leaveParent(at);
    giveSegment(segment);
    count(PREFIX_COUNTER_SEGMENTS, -1);
    segment = parent;
  }
}

export function isLeaf(at: usize): bool {
  return childrenOf(at) == 0 && pinsOf(at) == 0;
}

/** Evict the last `blocks` blocks of a segment that is a leaf, and what nothing needs then. */
export function evictTail(segment: u32, blocks: u32): void {
  const at = segmentAt(segment);
  const keep = blocks >= lengthOf(at) ? 0 : lengthOf(at) - blocks;
  count(PREFIX_COUNTER_EVICTED, buildCut(at, keep));
  writeSpans(at, keep == 0 ? lengthOf(at) : keep);
  trim(segment);
}
