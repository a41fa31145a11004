// Named values: one number per endpoint, for the filters and scorers that refer to a value by its name.
//
// Owns: nothing; fills the thread's KEYS column from the endpoint columns, which it reads under the commit lock.

import {
  ATTRIBUTE_COLUMNS,
  COLUMN_ATTRIBUTES,
  COLUMN_INFLIGHT,
  COLUMN_INFLIGHT_TOKENS,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_RUNNING,
  columnAddress,
  SIGNAL_KV_USAGE,
  SIGNAL_RUNNING,
  SIGNAL_WAITING,
} from '../endpoints';
import { KEYS, MATCH } from '../memory';
import { request } from '../request-area';
import { slotOffset } from './column';
import { waitingAt } from './waiting';

export const VALUE_NONE: u32 = 0; // no endpoint has the value
export const VALUE_ACTIVE_REQUESTS: u32 = 1; // requests in flight from here
export const VALUE_ACTIVE_TOKENS: u32 = 2; // uncached prompt tokens in flight from here
export const VALUE_WAITING: u32 = 3; // requests waiting in the engine, as predicted for now
export const VALUE_RUNNING: u32 = 4; // requests running in the engine
export const VALUE_KV_USAGE: u32 = 5; // share of the KV cache in use
export const VALUE_ATTRIBUTE: u32 = 8; // and up: attribute columns

/** Fills KEYS with the predicted waiting counts. */
export function waitingKeys(used: u32): void {
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) v128.store(KEYS + at, waitingAt(at));
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
