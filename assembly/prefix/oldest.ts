// The oldest segments of each endpoint, kept from one pass over what it holds for later evictions.
//
// Owns: the oldest part of REGION_PREFIX, a row for each endpoint: how many entries it has, how many of them are used
// up, and VICTIMS × (u32 segment, u32 stamp), oldest first. Index lock held throughout. Pages of endpoints without a
// capacity are never touched.
//
// A row stays right while the index changes. Whatever is sent to the endpoint gets a newer stamp than all that was
// there during the pass, so nothing outside the row becomes older than what is left in it. An entry whose stamp has
// changed since, or whose blocks have gone, is passed over. So a full endpoint pays for one pass in VICTIMS evictions.
import { OLDEST, OLDEST_ROW, VICTIMS } from './layout';
import { sentTick } from './recency';
import { victimAt, victims } from './victims';

/** Head of an endpoint's row; its entries follow. */
@unmanaged
class OldestRow {
  /** Entries · any thread · index lock. */
  length: u32;
  /** Entries used up · any thread · index lock. */
  next: u32;
}

/** A segment of a row. */
@unmanaged
class OldestEntry {
  /** Number of a segment · any thread · index lock. */
  segment: u32;
  /** Tick at which the endpoint had last been sent it · any thread · index lock. */
  stamp: u32;
}

function rowOf(slot: u32): OldestRow {
  return changetype<OldestRow>(OLDEST + <usize>slot * OLDEST_ROW);
}

function entryAt(slot: u32, i: u32): OldestEntry {
  const entries = changetype<usize>(rowOf(slot)) + offsetof<OldestRow>();
  return changetype<OldestEntry>(entries + <usize>i * offsetof<OldestEntry>());
}

/** Keeps the victims of the pass that has just ended. */
export function keepOldest(slot: u32): void {
  const row = rowOf(slot);
  row.next = 0;
  row.length = victims;
  for (let i: u32 = 0; i < victims; i++) {
    const segment = victimAt(i);
    const entry = entryAt(slot, i);
    entry.segment = segment;
    entry.stamp = sentTick(slot, segment);
  }
}

/**
 * Returns the segment that the endpoint was longest not sent, 0 when a pass has to find it. It may hold nothing there
 * any more.
 */
export function oldestKept(slot: u32): u32 {
  const row = rowOf(slot);
  for (; row.next < min(row.length, VICTIMS); row.next++) {
    const entry = entryAt(slot, row.next);
    if (sentTick(slot, entry.segment) == entry.stamp) return entry.segment;
  }
  return 0;
}

/** The entry that was returned last is used up. */
export function dropOldest(slot: u32): void {
  rowOf(slot).next += 1;
}
