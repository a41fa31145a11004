// Detection of queues in the engines that this process did not send: requests of other pickers, or of this one before a
// restart.
//
// Owns: the columns PEAK, PEAK_BEFORE, PEAK_AT and FOREIGN of REGION_GATE and the word FOREIGN of its head. Commit lock
// held.
//
// The ledger cannot see such a queue, so scraped metrics must: an engine that reports more waiting requests than were
// pending here at any time of the last seconds has a queue that is not ours, and a request that is sent now would stand
// behind it. What was pending some seconds ago is asked too, because engines report their queue late: then the queue
// reported is our own of then. Only a pool in which every engine queues so is shut. While one does not, the scorers see
// the queues and avoid them, and a request that may go nowhere else is better off in the engine's queue than in ours,
// which others do not stand in.
import { slotsUsed } from '../columns/candidates';
import * as column from '../columns/column';
import {
  COLUMN_KNOWN,
  COLUMN_SIGNAL_TIME,
  COLUMN_STATE,
  COLUMN_WAITING,
  SIGNAL_WAITING,
  STATE_FREE,
} from '../endpoints';
import {
  gateHead,
  ROOM_FOREIGN,
  ROOM_PEAK,
  ROOM_PEAK_AT,
  ROOM_PEAK_BEFORE,
  ROOM_REMOTE_COUNT,
  roomCell,
  wideRoomCell,
} from './layout';
import * as room from './room';

/**
 * Foreign waiting requests from which on they count as a queue; llm-d-router's utilization-detector calls an endpoint
 * full there.
 */
const QUEUE: f32 = 5;
/** Scrapes in a row that must show it: a step of the engine may take in all that waited at one moment. */
export const FOREIGN_SCRAPES: u32 = 2;
/** Shortest time for which the largest pending number is remembered, ms. */
const PEAK_TIME: f64 = 10_000;

/** Forgets what is known about the endpoint of a slot. */
export function foreignForget(slot: u32): void {
  room.setU32(ROOM_PEAK, slot, 0);
  room.setU32(ROOM_PEAK_BEFORE, slot, 0);
  room.setF64(ROOM_PEAK_AT, slot, 0);
  room.setU32(ROOM_FOREIGN, slot, 0);
}

/** Notes the number of pending requests, of which the largest is kept. */
export function foreignPending(slot: u32, count: u32): void {
  const at = roomCell(ROOM_PEAK, slot);
  if (count > load<u32>(at)) store<u32>(at, count);
}

/** Keeps the most of two stretches of time: of this one and the one before. @param count requests pending now */
function turnPeak(slot: u32, count: u32, now: f64): void {
  const since = wideRoomCell(ROOM_PEAK_AT, slot);
  if (now - load<f64>(since) < PEAK_TIME) return;
  store<f64>(since, now);
  room.setU32(ROOM_PEAK_BEFORE, slot, room.u32(ROOM_PEAK, slot));
  room.setU32(ROOM_PEAK, slot, count);
}

/** Takes a scrape. @param count requests pending now */
export function foreignScraped(slot: u32, count: u32): void {
  turnPeak(slot, count, column.f64(COLUMN_SIGNAL_TIME, slot));
  const peak = max(room.u32(ROOM_PEAK, slot), room.u32(ROOM_PEAK_BEFORE, slot));
  const known = (column.u32(COLUMN_KNOWN, slot) & SIGNAL_WAITING) != 0;
  // Replicas that share the endpoint are expected to have as much there, each its share, beside what others have told.
  const told = <f32>room.u32(ROOM_REMOTE_COUNT, slot);
  const expected = <f32>peak / gateHead().share + told + QUEUE;
  const more = known && column.f32(COLUMN_WAITING, slot) >= expected;
  const looks = roomCell(ROOM_FOREIGN, slot);
  store<u32>(looks, more ? min<u32>(load<u32>(looks) + 1, FOREIGN_SCRAPES) : 0);
}

/** Takes signals that are too old to go by. */
export function foreignStale(slot: u32): void {
  room.setU32(ROOM_FOREIGN, slot, 0);
}

/** Whether the engine of a slot queues requests of other origin. */
export function queuesForeign(slot: u32): bool {
  return room.u32(ROOM_FOREIGN, slot) >= FOREIGN_SCRAPES;
}

/** Whether every endpoint of the pool queues requests of other origin. */
export function allForeign(): bool {
  return gateHead().foreign != 0;
}

/** Looks again, after a slot's endpoint or its queue has changed. @returns whether the answer is another one now */
export function foreignChanged(slot: u32): bool {
  const before = allForeign();
  if (!before && !queuesForeign(slot)) return false;
  let all = false;
  for (let i: u32 = 0, used = slotsUsed(); i < used; i++) {
    if (column.u32(COLUMN_STATE, i) == STATE_FREE) continue;
    all = queuesForeign(i);
    if (!all) break;
  }
  gateHead().foreign = u32(all);
  return all != before;
}
