// Named values: one number per endpoint, for the filters and scorers that refer to a value by its name.
//
// Owns: nothing; fills the thread's KEYS column from the endpoint columns, which it reads under the commit lock.

import {
  ATTRIBUTE_COLUMNS,
  COLUMN_ATTRIBUTES,
  COLUMN_INFLIGHT,
  COLUMN_INFLIGHT_SCRAPED,
  COLUMN_INFLIGHT_TOKENS,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_RUNNING,
  COLUMN_SLOTS_FULL,
  COLUMN_STARTS,
  COLUMN_WAITING,
  columnAddress,
  SIGNAL_KV_USAGE,
  SIGNAL_RUNNING,
  SIGNAL_WAITING,
} from '../endpoints';
import { KEYS, MATCH } from '../memory';
import { request } from '../request-area';
import { slotOffset } from './column';

export const VALUE_NONE: u32 = 0; // no endpoint has the value
export const VALUE_ACTIVE_REQUESTS: u32 = 1; // requests in flight from here
export const VALUE_ACTIVE_TOKENS: u32 = 2; // uncached prompt tokens in flight from here
export const VALUE_WAITING: u32 = 3; // requests waiting in the engine, as predicted for now
export const VALUE_RUNNING: u32 = 4; // requests running in the engine
export const VALUE_KV_USAGE: u32 = 5; // share of the KV cache in use
export const VALUE_ATTRIBUTE: u32 = 8; // and up: attribute columns

/**
 * Steps of a waiting count that nothing but the number of requests sent since the last scrape speaks for. One request
 * more on one endpoint than on another is no reason to leave a cache; a step of four keeps bursts even to within four.
 */
const GUESS_STEP: f32 = 4;

/**
 * Waiting requests as predicted for now (architecture §6), from the scraped counts and the change of what is in flight
 * since: what was sent less what has ended. Where something waited, what was sent waits behind it, and what ended let
 * others start. Where nothing waited, what is above `full` waits if that is known, and what is above `starts` is taken
 * to, in steps (scheduling/slots.ts).
 */
export function predictWaiting(waiting: v128, running: v128, change: v128, starts: v128, full: v128): v128 {
  const zero = f32x4.splat(0);
  const total = f32x4.add(running, change);
  const over = v128.and(f32x4.sub(total, full), f32x4.gt(full, zero));
  const steps = f32x4.ceil(f32x4.mul(f32x4.sub(total, starts), f32x4.splat(<f32>1 / GUESS_STEP)));
  const none = f32x4.pmax(over, f32x4.mul(steps, f32x4.splat(GUESS_STEP)));
  return f32x4.pmax(zero, v128.bitselect(f32x4.add(waiting, change), none, f32x4.gt(waiting, zero)));
}

/** The predicted waiting counts of four endpoints, at byte `at` of the columns. */
export function waitingAt(at: usize): v128 {
  const inflight = v128.load(columnAddress(COLUMN_INFLIGHT) + at);
  return predictWaiting(
    v128.load(columnAddress(COLUMN_WAITING) + at),
    v128.load(columnAddress(COLUMN_RUNNING) + at),
    f32x4.convert_i32x4_s(i32x4.sub(inflight, v128.load(columnAddress(COLUMN_INFLIGHT_SCRAPED) + at))),
    v128.load(columnAddress(COLUMN_STARTS) + at),
    v128.load(columnAddress(COLUMN_SLOTS_FULL) + at),
  );
}

/** Fills KEYS with the predicted waiting counts. */
export function waitingKeys(used: u32): void {
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) v128.store(KEYS + at, waitingAt(at));
}

/** The predicted waiting count of one endpoint. */
export function predictedWaiting(slot: u32): f32 {
  const at = slotOffset(slot & ~3);
  const four = waitingAt(at);
  const lane = slot & 3;
  if (lane == 0) return f32x4.extract_lane(four, 0);
  if (lane == 1) return f32x4.extract_lane(four, 1);
  if (lane == 2) return f32x4.extract_lane(four, 2);
  return f32x4.extract_lane(four, 3);
}

/** Writes NaN for every endpoint whose signal is unknown. */
function blankUnknown(used: u32, signal: u32): void {
  const known = columnAddress(COLUMN_KNOWN);
  const keys = KEYS;
  const bit = i32x4.splat(<i32>signal);
  const unknown = f32x4.splat(NaN);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const lanes = i32x4.eq(v128.and(v128.load(known + at), bit), bit);
    v128.store(keys + at, v128.bitselect(v128.load(keys + at), unknown, lanes));
  }
}

function countKeys(used: u32, column: u32): void {
  const counts = columnAddress(column);
  const keys = KEYS;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    v128.store(keys + at, f32x4.convert_i32x4_s(v128.load(counts + at)));
  }
}

/** Fills KEYS with a VALUE_* of every endpoint; NaN where it is unknown. */
export function valueKeys(source: u32, used: u32): void {
  const bytes = slotOffset(used);
  if (source == VALUE_ACTIVE_REQUESTS) countKeys(used, COLUMN_INFLIGHT);
  else if (source == VALUE_ACTIVE_TOKENS) countKeys(used, COLUMN_INFLIGHT_TOKENS);
  else if (source == VALUE_WAITING) {
    waitingKeys(used);
    blankUnknown(used, SIGNAL_WAITING);
  } else if (source == VALUE_RUNNING) {
    memory.copy(KEYS, columnAddress(COLUMN_RUNNING), bytes);
    blankUnknown(used, SIGNAL_RUNNING);
  } else if (source == VALUE_KV_USAGE) {
    memory.copy(KEYS, columnAddress(COLUMN_KV_USAGE), bytes);
    blankUnknown(used, SIGNAL_KV_USAGE);
  } else if (source >= VALUE_ATTRIBUTE && source < VALUE_ATTRIBUTE + ATTRIBUTE_COLUMNS) {
    memory.copy(KEYS, columnAddress(COLUMN_ATTRIBUTES + source - VALUE_ATTRIBUTE), bytes);
  } else {
    const unknown = f32x4.splat(NaN);
    for (let at: usize = 0; at < bytes; at += 16) v128.store(KEYS + at, unknown);
  }
}

/** Prompt tokens of the request that four endpoints do not hold. */
export function uncachedTokens(at: usize, prompt: v128, block: v128, zero: v128): v128 {
  const cached = f32x4.mul(f32x4.convert_i32x4_s(v128.load(MATCH + at)), block);
  return f32x4.pmax(zero, f32x4.sub(prompt, cached));
}

export function promptTokens(): f32 {
  return <f32>request().promptTokens;
}

export function blockTokens(): f32 {
  return <f32>request().blockTokens;
}
