// How far live requests reach into each segment, per endpoint: a multiset of ends for every (segment, slot) in use.
//
// Owns: REGION_ACTIVE, all of it, under the index lock. A request that uses the first `end` blocks of a segment adds its
// end; the blocks active there are those before the largest end, each once however many requests share it. So a request
// of 1,560 blocks costs 25 entries, not 1,560. An entry, 64 bytes:
//   +0  u32 segment (0 = free) · +4 u32 slot · +8 u64 ends present, bit end - 1
//   +16 u32 number of a list of counts, 0 = none · +20 u32 pairs in use · +24 u32 × 10 pairs, `count << 8 | end`
import { count, PREFIX_COUNTER_ACTIVE_ENTRIES, setCounter } from '../prefix/counters';
import { ACTIVE_HEAD, COUNTS, COUNTS_BYTES, COUNTS_COUNT, ENTRIES, ENTRY_BYTES, ENTRY_COUNT } from './layout';

// Words of the head.
const USED: usize = 0;
const COUNTS_FREE: usize = 4;
const COUNTS_TOP: usize = 8;
const COUNTS_USED: usize = 12;
const REQUESTS: usize = 16;

const PAIRS: u32 = 10;

function keyOf(segment: u32, slot: u32): u64 {
  return <u64>segment | ((<u64>slot) << 32);
}

function homeOf(key: u64): u32 {
  return <u32>((key * 0x9e3779b97f4a7c15) >> 32) & (ENTRY_COUNT - 1);
}

function entryAt(index: u32): usize {
  return ENTRIES + <usize>index * ENTRY_BYTES;
}

/** The entry of (segment, slot), or 0. */
export function entryFind(segment: u32, slot: u32): usize {
  const key = keyOf(segment, slot);
  let i = homeOf(key);
  let at = entryAt(i);
  // The table is never full (entriesFit), so a free entry ends the search.
  while (load<u64>(at) != key) {
    if (load<u64>(at) == 0) return 0;
    i = (i + 1) & (ENTRY_COUNT - 1);
    at = entryAt(i);
  }
  return at;
}

/** Room for so many more entries. */
export function entriesFit(more: u32): bool {
  return load<u32>(ACTIVE_HEAD + USED) + more <= ENTRY_COUNT - (ENTRY_COUNT >> 2);
}

/** Room for so many more lists of counts. */
export function countsFit(more: u32): bool {
  return load<u32>(ACTIVE_HEAD + COUNTS_USED) + more <= COUNTS_COUNT;
}

/** Whether one more end at (segment, slot) would need a list of counts. */
export function wouldSpill(segment: u32, slot: u32, end: u32): bool {
  const at = entryFind(segment, slot);
  if (at == 0 || load<u32>(at, 16) != 0 || load<u32>(at, 20) < PAIRS) return false;
  return (load<u64>(at, 8) & ((<u64>1) << (end - 1))) == 0;
}

/** The entry of (segment, slot), made when there is none. There must be room. */
function entryMake(segment: u32, slot: u32): usize {
  const key = keyOf(segment, slot);
  let i = homeOf(key);
  let at = entryAt(i);
  for (; load<u64>(at) != 0; at = entryAt(i)) {
    if (load<u64>(at) == key) return at;
    i = (i + 1) & (ENTRY_COUNT - 1);
  }
  store<u64>(at, key);
  store<u64>(at, 0, 8);
  store<u64>(at, 0, 16);
  store<u32>(ACTIVE_HEAD + USED, load<u32>(ACTIVE_HEAD + USED) + 1);
  count(PREFIX_COUNTER_ACTIVE_ENTRIES, 1);
  return at;
}

/** Take an entry out and close the gap, so that no search has to pass over the dead. */
function entryDrop(at: usize): void {
  let gap = <u32>((at - ENTRIES) / ENTRY_BYTES);
  let i = gap;
  for (;;) {
    i = (i + 1) & (ENTRY_COUNT - 1);
    const next = entryAt(i);
    const key = load<u64>(next);
    if (key == 0) break;
    const distance = (i - homeOf(key)) & (ENTRY_COUNT - 1);
    if (distance < ((i - gap) & (ENTRY_COUNT - 1))) continue;
    memory.copy(entryAt(gap), next, ENTRY_BYTES);
    gap = i;
  }
  store<u64>(entryAt(gap), 0);
  store<u32>(ACTIVE_HEAD + USED, load<u32>(ACTIVE_HEAD + USED) - 1);
  count(PREFIX_COUNTER_ACTIVE_ENTRIES, -1);
}

// ---- lists of counts

function countsList(list: u32): usize {
  return COUNTS + <usize>list * COUNTS_BYTES;
}

function takeCounts(): u32 {
  let list = load<u32>(ACTIVE_HEAD + COUNTS_FREE);
  if (list != 0) {
    store<u32>(ACTIVE_HEAD + COUNTS_FREE, load<u32>(countsList(list)));
  } else {
    list = load<u32>(ACTIVE_HEAD + COUNTS_TOP) + 1;
    store<u32>(ACTIVE_HEAD + COUNTS_TOP, list);
  }
  store<u32>(ACTIVE_HEAD + COUNTS_USED, load<u32>(ACTIVE_HEAD + COUNTS_USED) + 1);
  memory.fill(countsList(list), 0, COUNTS_BYTES);
  return list;
}

function giveCounts(list: u32): void {
  store<u32>(countsList(list), load<u32>(ACTIVE_HEAD + COUNTS_FREE));
  store<u32>(ACTIVE_HEAD + COUNTS_FREE, list);
  store<u32>(ACTIVE_HEAD + COUNTS_USED, load<u32>(ACTIVE_HEAD + COUNTS_USED) - 1);
}

function pairAt(at: usize, i: u32): usize {
  return at + 24 + ((<usize>i) << 2);
}

/** Move an entry's pairs into a list of counts. */
function spill(at: usize): u32 {
  const list = takeCounts();
  for (let i: u32 = 0; i < PAIRS; i++) {
    const pair = load<u32>(pairAt(at, i));
    store<u32>(countsList(list) + ((<usize>((pair & 0xff) - 1)) << 2), pair >> 8);
  }
  store<u32>(at, list, 16);
  store<u32>(at, 0, 20);
  return list;
}

// ---- ends

/** The largest end: so many leading blocks of the segment are active. */
export function activeEnd(at: usize): u32 {
  return 64 - <u32>clz(load<u64>(at, 8));
}

function countEnd(at: usize, end: u32): void {
  let list = load<u32>(at, 16);
  if (list == 0) {
    const pairs = load<u32>(at, 20);
    for (let i: u32 = 0; i < pairs; i++) {
      const pair = load<u32>(pairAt(at, i));
      if ((pair & 0xff) != end) continue;
      store<u32>(pairAt(at, i), pair + 256);
      return;
    }
    if (pairs < PAIRS) {
      store<u32>(pairAt(at, pairs), 256 | end);
      store<u32>(at, pairs + 1, 20);
      return;
    }
    list = spill(at);
  }
  const cell = countsList(list) + ((<usize>(end - 1)) << 2);
  store<u32>(cell, load<u32>(cell) + 1);
}

/** @returns true when no entry has this end any more */
function discountEnd(at: usize, end: u32): bool {
  const list = load<u32>(at, 16);
  if (list != 0) {
    const cell = countsList(list) + ((<usize>(end - 1)) << 2);
    store<u32>(cell, load<u32>(cell) - 1);
    return load<u32>(cell) == 0;
  }
  const pairs = load<u32>(at, 20);
  for (let i: u32 = 0; i < pairs; i++) {
    const pair = load<u32>(pairAt(at, i));
    if ((pair & 0xff) != end) continue;
    if (pair >> 8 > 1) {
      store<u32>(pairAt(at, i), pair - 256);
      return false;
    }
    store<u32>(pairAt(at, i), load<u32>(pairAt(at, pairs - 1)));
    store<u32>(at, pairs - 1, 20);
    return true;
  }
  return false;
}

/** A request uses the first `end` blocks of a segment on a slot. @returns blocks that were not active before */
export function addEnd(segment: u32, slot: u32, end: u32): u32 {
  const at = entryMake(segment, slot);
  const before = activeEnd(at);
  countEnd(at, end);
  store<u64>(at, load<u64>(at, 8) | ((<u64>1) << (end - 1)), 8);
  return end > before ? end - before : 0;
}

/** The opposite of addEnd. @returns blocks that are active no more */
export function removeEnd(segment: u32, slot: u32, end: u32): u32 {
  const at = entryFind(segment, slot);
  const bit = (<u64>1) << (end - 1);
  if (at == 0 || (load<u64>(at, 8) & bit) == 0) return 0;
  const before = activeEnd(at);
  if (!discountEnd(at, end)) return 0;
  const left = load<u64>(at, 8) & ~bit;
  store<u64>(at, left, 8);
  if (left != 0) return before - activeEnd(at);
  if (load<u32>(at, 16) != 0) giveCounts(load<u32>(at, 16));
  entryDrop(at);
  return before;
}

// ---- all of them

export function countRequest(by: i32): void {
  store<u32>(ACTIVE_HEAD + REQUESTS, load<u32>(ACTIVE_HEAD + REQUESTS) + <u32>by);
}

/** Requests whose blocks are accounted. */
export function activeRequests(): u32 {
  return load<u32>(ACTIVE_HEAD + REQUESTS);
}

/** Forget every entry. */
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
    if (load<u32>(at) != 0 && load<u32>(at, 4) == slot) blocks += activeEnd(at);
  }
  return blocks;
}

/** Entries in use, counted anew, or u32.MAX_VALUE when one cannot be found or is not one: for checks. */
export function entriesRecount(): u32 {
  let used: u32 = 0;
  for (let i: u32 = 0; i < ENTRY_COUNT; i++) {
    const at = entryAt(i);
    if (load<u64>(at) == 0) continue;
    if (load<u64>(at, 8) == 0 || entryFind(load<u32>(at), load<u32>(at, 4)) != at) return u32.MAX_VALUE;
    used++;
  }
  return used == load<u32>(ACTIVE_HEAD + USED) ? used : u32.MAX_VALUE;
}
