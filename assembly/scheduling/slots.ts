// Slots of an engine: how many requests it runs at once, as far as its scrapes tell.
//
// Owns: the columns SLOTS_SEEN, SLOTS_FULL, QUEUED_SCRAPES, STARTS, UNSEEN and INFLIGHT_SCRAPED of REGION_ENDPOINTS.
// Written by the control thread under the commit lock.
//
// A running count with nothing waiting is a lower bound, and bounds nothing. The running count of a queue that lasts is
// what the engine runs at most (SLOTS_FULL), until a scrape shows more of them and nothing waiting. One scrape with a
// queue is no such count: an engine admits requests step by step, so any request may be seen waiting for the end of a
// step.
//
// Between two scrapes nothing says what has become of the requests sent since, so an engine is trusted to start only
// some of them (STARTS_MIN and STARTS_SHARE). Without this bound, all of a burst would go to the endpoint whose last
// scrape looked best.
//
// A page shows the state of the engine's last step. It leaves out later requests, for hundreds of milliseconds in a
// burst of long prompts. What is in flight and not on the page counts as sent since. What stays off the page
// (answers that a slow client still reads) is forgiven by one request a scrape, or a sixteenth of it (UNSEEN).
import * as column from '../columns/column';
import { renewWaiting } from '../columns/waiting';
import {
  COLUMN_INFLIGHT,
  COLUMN_INFLIGHT_SCRAPED,
  COLUMN_QUEUED_SCRAPES,
  COLUMN_SLOTS_FULL,
  COLUMN_SLOTS_SEEN,
  COLUMN_STARTS,
  COLUMN_UNSEEN,
  SIGNAL_RUNNING,
  SIGNAL_WAITING,
} from '../endpoints';

/** Scrapes in a row that show a queue before the engine counts as full. */
const LASTING: u32 = 3;
/**
 * Requests by which an engine's count may grow between two scrapes without a queue: so many, and a share of those that
 * run. A steady count of R changes by √(2Rt) in a part t of a request's time (both arrivals and ends are Poisson),
 * three times that is 23 for R = 300 and t = 0.1; the bound is 27 there.
 */
const STARTS_MIN: f32 = 8;
const STARTS_SHARE: f32 = 0.0625;

/** Part of the requests off the page that a scrape forgives, and the least number. */
const UNSEEN_SHARE: f32 = 0.0625;
const UNSEEN_MIN: f32 = 1;

/** Forgets what is known of the slots of an endpoint. Commit lock held. */
export function clearSlots(slot: u32): void {
  column.setF32(COLUMN_SLOTS_SEEN, slot, 0);
  column.setF32(COLUMN_SLOTS_FULL, slot, 0);
  column.setU32(COLUMN_QUEUED_SCRAPES, slot, 0);
  column.setF32(COLUMN_STARTS, slot, 0);
  column.setU32(COLUMN_INFLIGHT_SCRAPED, slot, 0);
  column.setF32(COLUMN_UNSEEN, slot, 0);
  renewWaiting(slot);
}

/**
 * Takes what a scrape says about the slots of an engine; its signals are written before. Commit lock held.
 * @param known SIGNAL_* bits of the scrape
 */
export function noteSlots(slot: u32, known: u32, waiting: f32, running: f32): void {
  const both = SIGNAL_WAITING | SIGNAL_RUNNING;
  if ((known & both) == both) {
    noteSeen(slot, waiting, running);
    noteFull(slot, waiting, running);
  }
  column.setU32(COLUMN_INFLIGHT_SCRAPED, slot, accountedFor(slot, (known & both) == both, waiting + running));
  column.setF32(COLUMN_STARTS, slot, running + STARTS_MIN + running * STARTS_SHARE);
  renewWaiting(slot);
}

/**
 * Notes the number that runs while others wait, at least the largest number with nothing waiting: a lower bound for the
 * cost model.
 */
function noteSeen(slot: u32, waiting: f32, running: f32): void {
  if (running > 0 && (waiting > 0 || running > column.f32(COLUMN_SLOTS_SEEN, slot))) {
    column.setF32(COLUMN_SLOTS_SEEN, slot, running);
  }
}

function noteFull(slot: u32, waiting: f32, running: f32): void {
  const queued = waiting > 0 ? column.u32(COLUMN_QUEUED_SCRAPES, slot) + 1 : 0;
  column.setU32(COLUMN_QUEUED_SCRAPES, slot, min(queued, LASTING));
  if (queued >= LASTING && running > 0) column.setF32(COLUMN_SLOTS_FULL, slot, running);
  else if (queued == 0 && running > column.f32(COLUMN_SLOTS_FULL, slot)) column.setF32(COLUMN_SLOTS_FULL, slot, 0);
}

/** Requests in flight on the page, or missing there for so long that they are no work of the engine. */
function accountedFor(slot: u32, known: bool, shown: f32): u32 {
  const inflight = column.u32(COLUMN_INFLIGHT, slot);
  if (!known) return inflight;
  const before = column.f32(COLUMN_UNSEEN, slot);
  const unseen = max<f32>(0, <f32>inflight - shown);
  const forgiven = min(unseen, before + max(UNSEEN_MIN, (unseen - before) * UNSEEN_SHARE));
  column.setF32(COLUMN_UNSEEN, slot, forgiven);
  return min(inflight, <u32>(shown + forgiven));
}
