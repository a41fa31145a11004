// Ends of live requests in each segment, per endpoint: a multiset of ends for every (segment, slot) in use.
//
// Owns: REGION_ACTIVE, all of it, under the index lock. A request that uses the first `end` blocks of a segment adds
// its end; the blocks active there are those before the largest end, each once however many requests share it. So a
// request of 1,560 blocks costs 25 entries, not 1,560.
import { count, PREFIX_COUNTER_ACTIVE_ENTRIES, setCounter } from '../prefix/counters';
import { ACTIVE_HEAD, COUNTS, COUNTS_BYTES, COUNTS_COUNT, ENTRIES, ENTRY_BYTES, ENTRY_COUNT } from './layout';

/** Counts of the region, 64 bytes. */
@unmanaged
class ActiveHead {
  /** Entries in use · any thread · index lock. */
  used: u32;
  /** First free list of counts, 0 = none · any thread · index lock. */
  countsFree: u32;
  /** Lists of counts handed out for the first time so far · any thread · index lock. */
  countsTop: u32;
  /** Lists of counts in use · any thread · index lock. */
  countsUsed: u32;
  /** Requests whose blocks are accounted · any thread · index lock. */
  requests: u32;
}

/** An entry of 64 bytes; PAIRS pairs of u32, `count << 8 | end`, follow its words. */
@unmanaged
export class ActiveEntry {
  /** Segment in the low half, 0 = free, and slot in the high half · any thread · index lock. */
  key: u64;
  /** Ends present, bit end - 1 · any thread · index lock. */
  ends: u64;
  /** Number of a list of counts, 0 = none · any thread · index lock. */
  counts: u32;
  /** Pairs in use · any thread · index lock. */
  pairs: u32;

  get segment(): u32 {
    return <u32>this.key;
  }

  get slot(): u32 {
    return <u32>(this.key >> 32);
  }
}

function head(): ActiveHead {
  return changetype<ActiveHead>(ACTIVE_HEAD);
}

const PAIRS: u32 = 10;

function keyOf(segment: u32, slot: u32): u64 {
  return <u64>segment | ((<u64>slot) << 32);
}

function homeOf(key: u64): u32 {
  return <u32>((key * 0x9e3779b97f4a7c15) >> 32) & (ENTRY_COUNT - 1);
}

function entryAt(index: u32): ActiveEntry {
  return changetype<ActiveEntry>(ENTRIES + <usize>index * ENTRY_BYTES);
}

/** The entry of (segment, slot), or null. */
export function entryFind(segment: u32, slot: u32): ActiveEntry | null {
  const key = keyOf(segment, slot);
  let i = homeOf(key);
  let at = entryAt(i);
  // The table is never full (entriesFit), so a free entry ends the search.
  while (at.key != key) {
    if (at.key == 0) return null;
    i = (i + 1) & (ENTRY_COUNT - 1);
    at = entryAt(i);
  }
  return at;
}

/** Whether there is room for so many more entries. */
export function entriesFit(more: u32): bool {
  return head().used + more <= ENTRY_COUNT - (ENTRY_COUNT >> 2);
}

/** Whether there is room for so many more lists of counts. */
export function countsFit(more: u32): bool {
  return head().countsUsed + more <= COUNTS_COUNT;
}

/** Returns whether one more end at (segment, slot) would need a list of counts. */
export function wouldSpill(segment: u32, slot: u32, end: u32): bool {
  const at = entryFind(segment, slot);
  if (at == null || at.counts != 0 || at.pairs < PAIRS) return false;
  return (at.ends & ((<u64>1) << (end - 1))) == 0;
}

/** The entry of (segment, slot), made when there is none. There must be room. */
function entryMake(segment: u32, slot: u32): ActiveEntry {
  const key = keyOf(segment, slot);
  let i = homeOf(key);
  let at = entryAt(i);
  for (; at.key != 0; at = entryAt(i)) {
    if (at.key == key) return at;
    i = (i + 1) & (ENTRY_COUNT - 1);
  }
  at.key = key;
  at.ends = 0;
  at.counts = 0;
  at.pairs = 0;
  head().used += 1;
  count(PREFIX_COUNTER_ACTIVE_ENTRIES, 1);
  return at;
}

/** Takes an entry out and closes the gap, so that no search has to pass over the dead. */
function entryDrop(at: ActiveEntry): void {
  let gap = <u32>((changetype<usize>(at) - ENTRIES) / ENTRY_BYTES);
  let i = gap;
  for (;;) {
    i = (i + 1) & (ENTRY_COUNT - 1);
    const next = entryAt(i);
    const key = next.key;
    if (key == 0) break;
    const distance = (i - homeOf(key)) & (ENTRY_COUNT - 1);
    if (distance < ((i - gap) & (ENTRY_COUNT - 1))) continue;
    memory.copy(changetype<usize>(entryAt(gap)), changetype<usize>(next), ENTRY_BYTES);
    gap = i;
  }
  entryAt(gap).key = 0;
  head().used -= 1;
  count(PREFIX_COUNTER_ACTIVE_ENTRIES, -1);
}

// ---- lists of counts

function countsList(list: u32): usize {
  return COUNTS + <usize>list * COUNTS_BYTES;
}

function takeCounts(): u32 {
  let list = head().countsFree;
  if (list != 0) {
    head().countsFree = load<u32>(countsList(list));
  } else {
    list = head().countsTop + 1;
    head().countsTop = list;
  }
  head().countsUsed += 1;
  memory.fill(countsList(list), 0, COUNTS_BYTES);
  return list;
}

function giveCounts(list: u32): void {
  store<u32>(countsList(list), head().countsFree);
  head().countsFree = list;
  head().countsUsed -= 1;
}

function pairAt(at: ActiveEntry, i: u32): usize {
  return changetype<usize>(at) + offsetof<ActiveEntry>() + ((<usize>i) << 2);
}

/** Moves an entry's pairs into a list of counts. */
function spill(at: ActiveEntry): u32 {
  const list = takeCounts();
  for (let i: u32 = 0; i < PAIRS; i++) {
    const pair = load<u32>(pairAt(at, i));
    store<u32>(countsList(list) + ((<usize>((pair & 0xff) - 1)) << 2), pair >> 8);
  }
  at.counts = list;
  at.pairs = 0;
  return list;
}

// ---- ends

/** The largest end: so many leading blocks of the segment are active. */
export function activeEnd(at: ActiveEntry): u32 {
  return 64 - <u32>clz(at.ends);
}

function countEnd(at: ActiveEntry, end: u32): void {
  let list = at.counts;
  if (list == 0) {
    const pairs = at.pairs;
    for (let i: u32 = 0; i < pairs; i++) {
      const pair = load<u32>(pairAt(at, i));
      if ((pair & 0xff) != end) continue;
      store<u32>(pairAt(at, i), pair + 256);
      return;
    }
    if (pairs < PAIRS) {
      store<u32>(pairAt(at, pairs), 256 | end);
      at.pairs = pairs + 1;
      return;
    }
    list = spill(at);
  }
  const cell = countsList(list) + ((<usize>(end - 1)) << 2);
  store<u32>(cell, load<u32>(cell) + 1);
}

/** @returns true when no entry has this end any more */
function discountEnd(at: ActiveEntry, end: u32): bool {
  const list = at.counts;
  if (list != 0) {
    const cell = countsList(list) + ((<usize>(end - 1)) << 2);
    store<u32>(cell, load<u32>(cell) - 1);
    return load<u32>(cell) == 0;
  }
  const pairs = at.pairs;
  for (let i: u32 = 0; i < pairs; i++) {
    const pair = load<u32>(pairAt(at, i));
    if ((pair & 0xff) != end) continue;
    if (pair >> 8 > 1) {
      store<u32>(pairAt(at, i), pair - 256);
      return false;
    }
    store<u32>(pairAt(at, i), load<u32>(pairAt(at, pairs - 1)));
    at.pairs = pairs - 1;
    return true;
  }
  return false;
}

/** A request uses the first `end` blocks of a segment on a slot. @returns blocks that were not active before */
export function addEnd(segment: u32, slot: u32, end: u32): u32 {
  const at = entryMake(segment, slot);
  const before = activeEnd(at);
  countEnd(at, end);
  at.ends = at.ends | ((<u64>1) << (end - 1));
  return end > before ? end - before : 0;
}

/** The opposite of addEnd. @returns blocks that are active no more */
export function removeEnd(segment: u32, slot: u32, end: u32): u32 {
  const at = entryFind(segment, slot);
  const bit = (<u64>1) << (end - 1);
  if (at == null || (at.ends & bit) == 0) return 0;
  const before = activeEnd(at);
  if (!discountEnd(at, end)) return 0;
  const left = at.ends & ~bit;
  at.ends = left;
  if (left != 0) return before - activeEnd(at);
  if (at.counts != 0) giveCounts(at.counts);
  entryDrop(at);
  return before;
}

// ---- all of them

export function countRequest(by: i32): void {
  head().requests += <u32>by;
}

/** Requests whose blocks are accounted. */
export function activeRequests(): u32 {
  return head().requests;
}

/** Forgets every entry. */
export function entriesClear(): void {
  memory.fill(ACTIVE_HEAD, 0, 64);
  memory.fill(ENTRIES, 0, (<usize>ENTRY_COUNT) << 6);
  setCounter(PREFIX_COUNTER_ACTIVE_ENTRIES, 0);
}

/** Blocks active on a slot, counted anew over all entries: for checks. */
export function activeRecount(slot: u32): u32 {
  let blocks: u32 = 0;
  for (let i: u32 = 0; i < ENTRY_COUNT; i++) {
    const at = entryAt(i);
    if (at.segment != 0 && at.slot == slot) blocks += activeEnd(at);
  }
  return blocks;
}

/** Entries in use, counted anew, or u32.MAX_VALUE when one cannot be found or is not one: for checks. */
export function entriesRecount(): u32 {
  let used: u32 = 0;
  for (let i: u32 = 0; i < ENTRY_COUNT; i++) {
    const at = entryAt(i);
    if (at.key == 0) continue;
    if (at.ends == 0 || entryFind(at.segment, at.slot) != at) return u32.MAX_VALUE;
    used++;
  }
  return used == head().used ? used : u32.MAX_VALUE;
}
