// Recency: when an endpoint was last sent a prompt with the blocks of a segment.
//
// Owns: the recency part of REGION_PREFIX, a row for each endpoint with one u32 for each group of 2^RECENCY_SHIFT
// segments. Index lock held throughout. Pages of endpoints and segments that are not in use are never touched.
//
// An engine evicts by what was sent to it, so lookups and what other endpoints are sent do not count here; the stamps
// of layout.ts, which count both, order the eviction of the whole index. A stamp is the index's tick of the last change
// that confirmed blocks of the group, or blocks behind them, on this endpoint: so no segment looks older than its
// child. Stamps say something only where the endpoint holds blocks: a new holder writes them before it is one. They
// need no repair: a wrong one costs a cache hit.
import { indexHead } from './head';
import { RECENCY, RECENCY_SHIFT, RECENCY_WORDS } from './layout';
import { segmentAt } from './segment';

function stampOf(slot: u32, segment: u32): usize {
  return RECENCY + ((<usize>slot * RECENCY_WORDS + (segment >> RECENCY_SHIFT)) << 2);
}

/** The endpoint is sent blocks of the segment, or blocks behind them. */
export function markSent(slot: u32, segment: u32): void {
  store<u32>(stampOf(slot, segment), indexHead().tick);
}

/** Marks every segment above one. */
export function markSentAbove(slot: u32, segment: u32): void {
  for (let above = segmentAt(segment).parent; above != 0; above = segmentAt(above).parent) markSent(slot, above);
}

/** Tick at which the endpoint was last sent blocks of the segment. */
export function sentTick(slot: u32, segment: u32): u32 {
  return load<u32>(stampOf(slot, segment));
}
