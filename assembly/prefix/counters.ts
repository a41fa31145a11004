// Gauges and counters of the prefix index, for telemetry.
//
// Owns: the words from byte 512 of REGION_PREFIX on. Written under the index lock, but for the two counters of readers,
// which are added to atomically.
import { ASSERTIONS } from '../assertions';
import { isTruth } from '../preconditions';
import { IndexHead, indexHead } from './head';
import { HEAD } from './layout';

/** Offset in the head, for the host's tests. */
export const HEAD_SEGMENT_TOP: usize = offsetof<IndexHead>('segmentTop');

// Gauges and counters, u64 words.
const COUNTERS: usize = 512;
export const PREFIX_COUNTER_BLOCKS: u32 = 0; // unique blocks kept
export const PREFIX_COUNTER_SEGMENTS: u32 = 1; // segments in use
export const PREFIX_COUNTER_SETS: u32 = 2; // holder sets in use
export const PREFIX_COUNTER_MEMBERSHIPS: u32 = 3; // (block, endpoint) pairs held
export const PREFIX_COUNTER_STORED: u32 = 4; // pairs ever stored
export const PREFIX_COUNTER_REMOVED: u32 = 5; // pairs removed by events or with their endpoint
export const PREFIX_COUNTER_EVICTED: u32 = 6; // pairs evicted for room or for an endpoint's capacity
export const PREFIX_COUNTER_DROPPED: u32 = 7; // pairs lost to a full table of sets or extents, or to a repair
export const PREFIX_COUNTER_ORPHANS: u32 = 8; // blocks of events whose parent is not known
export const PREFIX_COUNTER_CONFLICTS: u32 = 9; // blocks not stored: their hash stands elsewhere already
export const PREFIX_COUNTER_REFUSED: u32 = 10; // blocks not stored: no room
export const PREFIX_COUNTER_GIVE_UPS: u32 = 11; // lookups cut short because writers came between 64 times
export const PREFIX_COUNTER_RETRIES: u32 = 12; // lookups begun again
export const PREFIX_COUNTER_TAILS: u32 = 13; // tails ever stored
export const PREFIX_COUNTER_ACTIVE_ENTRIES: u32 = 14; // (segment, endpoint) pairs in use by live requests
export const PREFIX_COUNTER_ACTIVE_REFUSED: u32 = 15; // requests whose blocks were not accounted
export const PREFIX_COUNTER_REPAIRS: u32 = 16;
export const PREFIX_COUNTER_CLEARED: u32 = 17; // the whole index was given up
export const PREFIX_COUNTER_COUNT: u32 = 18;

function counterAt(counter: u32): usize {
  return HEAD + COUNTERS + ((<usize>counter) << 3);
}

/** Index lock held. */
export function count(counter: u32, by: i64): void {
  const at = counterAt(counter);
  store<i64>(at, load<i64>(at) + by);
}

/** Any thread. */
export function countShared(counter: u32): void {
  atomic.add<i64>(counterAt(counter), 1);
}

export function setCounter(counter: u32, value: i64): void {
  store<i64>(counterAt(counter), value);
}

export function counted(counter: u32): i64 {
  return load<i64>(counterAt(counter));
}

/** A PREFIX_COUNTER_* value, for telemetry; 0 for an unknown one. */
export function prefixCounter(counter: u32): f64 {
  if (ASSERTIONS) assert(counter < PREFIX_COUNTER_COUNT, 'the counter is one of the index');
  return counter < PREFIX_COUNTER_COUNT ? <f64>counted(counter) : 0;
}

/** Makes every lookup compare every hash (1) or trust one chained hash per segment (0, as created). */
export function prefixVerify(on: u32): void {
  if (ASSERTIONS) assert(isTruth(on), '`on` is 0 or 1');
  indexHead().verify = on;
}
