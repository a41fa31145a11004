// The rule of GATE_WORST: several detectors at once, each with the stages that it looks at.
//
// Owns: the limits of the stages in the head of REGION_GATE, and its ROOM_STAGES column. The control thread writes both
// under the commit lock; the keys are filled under it too.
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { waitingKeys } from '../columns/values';
import {
  COLUMN_INFLIGHT,
  COLUMN_INFLIGHT_SCRAPED,
  COLUMN_INFLIGHT_TOKENS,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_PEER_PREFILL,
  COLUMN_RUNNING,
  COLUMN_SIGNAL_TIME,
  COLUMN_WAITING,
  SIGNAL_KV_USAGE,
  SIGNAL_RUNNING,
  SIGNAL_WAITING,
} from '../endpoints';
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import { KEYS, SLOTS } from '../memory';
import {
  gateHead,
  IN_DECODE,
  IN_PREFILL,
  ROOM_REMOTE_COUNT,
  ROOM_REMOTE_REQUESTS,
  ROOM_REMOTE_TOKENS,
  ROOM_STAGES,
  ROOM_UNANSWERED,
  STAGE_QUEUE,
  STAGE_REQUESTS,
  STAGE_SCRAPED,
  STAGE_SCRAPED_STALENESS,
  STAGE_STALENESS,
  STAGE_TOKENS,
  STAGE_USAGE,
  stageLimits,
} from './layout';
import * as room from './room';

/** Milliseconds that the control thread waits for the lock before it tries again. */
const SHORT: u32 = 20;

/** Share of this picker in the `bound` requests of an endpoint: at least one. */
export function shareOf(bound: f32): f32 {
  const share = gateHead().share;
  return share == 1 ? bound : max<f32>(1, floor<f32>(bound * share));
}

/** Whether the signals of these bits are known and no older than `staleness` milliseconds. */
function isFresh(slot: u32, signals: u32, staleness: f32, now: f64): bool {
  if ((column.u32(COLUMN_KNOWN, slot) & signals) != signals) return false;
  return column.f64(COLUMN_SIGNAL_TIME, slot) >= now - <f64>staleness;
}

/**
 * Requests that run or wait on an endpoint, by its last scrape and what this picker has sent since; without a fresh
 * scrape those that are in flight from here and from replicas.
 */
function requestsThere(slot: u32, staleness: f32, now: f64): f32 {
  const own = column.u32(COLUMN_INFLIGHT, slot);
  if (!isFresh(slot, SIGNAL_WAITING | SIGNAL_RUNNING, staleness, now)) {
    return <f32>(own + room.u32(ROOM_REMOTE_REQUESTS, slot));
  }
  const scraped = column.f32(COLUMN_WAITING, slot) + column.f32(COLUMN_RUNNING, slot);
  const counted = column.u32(COLUMN_INFLIGHT_SCRAPED, slot);
  return own > counted ? scraped + <f32>(own - counted) : scraped;
}

/**
 * The fullest of what the limits of one stage look at, each as its detector has it alone.
 * @param stage 0 = prefill, 1 = decode
 * @param waiting requests waiting, as predicted
 */
function stageSaturation(slot: u32, stage: u32, waiting: f32, now: f64): f32 {
  const limits = stageLimits(stage);
  const fresh = isFresh(slot, SIGNAL_WAITING | SIGNAL_KV_USAGE, load<f32>(limits, STAGE_STALENESS), now);
  const queue = fresh ? waiting : <f32>(room.u32(ROOM_UNANSWERED, slot) + room.u32(ROOM_REMOTE_COUNT, slot));
  let fullest = queue / load<f32>(limits, STAGE_QUEUE);
  if (fresh) fullest = max<f32>(fullest, column.f32(COLUMN_KV_USAGE, slot) / load<f32>(limits, STAGE_USAGE));
  const requests = column.u32(COLUMN_INFLIGHT, slot) + room.u32(ROOM_REMOTE_REQUESTS, slot);
  fullest = max<f32>(fullest, <f32>requests / shareOf(load<f32>(limits, STAGE_REQUESTS)));
  const uncounted = room.u32(ROOM_REMOTE_TOKENS, slot) - column.u32(COLUMN_PEER_PREFILL, slot);
  const tokens = column.u32(COLUMN_INFLIGHT_TOKENS, slot) + uncounted;
  fullest = max<f32>(fullest, <f32>tokens / shareOf(load<f32>(limits, STAGE_TOKENS)));
  const there = requestsThere(slot, load<f32>(limits, STAGE_SCRAPED_STALENESS), now);
  return max<f32>(fullest, there / load<f32>(limits, STAGE_SCRAPED));
}

/** The fuller of an endpoint's stages; one that takes part in none is never full. */
export function worst(used: u32, now: f64): void {
  waitingKeys(used);
  for (let slot: u32 = 0; slot < used; slot++) {
    const at = KEYS + slotOffset(slot);
    const waiting = load<f32>(at);
    const stages = room.u32(ROOM_STAGES, slot);
    let fullest: f32 = 0;
    if ((stages & IN_PREFILL) != 0) fullest = stageSaturation(slot, 0, waiting, now);
    if ((stages & IN_DECODE) != 0) fullest = max<f32>(fullest, stageSaturation(slot, 1, waiting, now));
    store<f32>(at, fullest);
  }
}

/**
 * Sets the limits of a stage for GATE_WORST; Infinity = none. Takes the commit lock.
 * @param stage 0 = prefill, 1 = decode
 * @returns false when the lock could not be had: call again
 */
export function gateStageLimits(
  stage: u32,
  queue: f32,
  usage: f32,
  staleness: f32,
  requests: f32,
  tokens: f32,
  scraped: f32,
  scrapedStaleness: f32,
): bool {
  if (ASSERTIONS) assert(stage < 2, 'there are two stages');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return false;
  const limits = stageLimits(stage);
  store<f32>(limits, queue, STAGE_QUEUE);
  store<f32>(limits, usage, STAGE_USAGE);
  store<f32>(limits, staleness, STAGE_STALENESS);
  store<f32>(limits, requests, STAGE_REQUESTS);
  store<f32>(limits, tokens, STAGE_TOKENS);
  store<f32>(limits, scraped, STAGE_SCRAPED);
  store<f32>(limits, scrapedStaleness, STAGE_SCRAPED_STALENESS);
  lockRelease(COMMIT_LOCK);
  return true;
}

/**
 * Notes the stages that an endpoint takes part in, IN_* bits. Takes the commit lock.
 * @returns false when the lock could not be had: call again
 */
export function gateStagesOf(slot: u32, stages: u32): bool {
  if (ASSERTIONS) assert(slot < SLOTS, 'the slot is one of the pool');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return false;
  room.setU32(ROOM_STAGES, slot, stages);
  lockRelease(COMMIT_LOCK);
  return true;
}
