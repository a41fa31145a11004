// Filters over numbers: each keeps some of the candidates.
//
// Owns: the thread's CANDIDATES and KEPT columns, written by its own thread; KEYS is scratch. Reads the endpoint
// columns under the commit lock. Formulas are llm-d-router's (docs/compatibility.md) unless said.

import { filterByMask } from '../columns/candidates';
import { slotOffset } from '../columns/column';
import { laneMin, laneSumOfIntegers } from '../columns/lanes';
import { promptTokens, valueKeys, waitingKeys } from '../columns/values';
import {
  COLUMN_INFLIGHT,
  COLUMN_INFLIGHT_TOKENS,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_RUNNING,
  COLUMN_SIGNAL_TIME,
  columnAddress,
  SIGNAL_KV_USAGE,
  SIGNAL_RUNNING,
  SIGNAL_WAITING,
} from '../endpoints';
import { CANDIDATES, HOST, KEPT, KEYS, MATCH, SLOTS } from '../memory';
import { randomFloat } from '../random';
import {
  FILTER_EMPTY,
  FILTER_EXPLORATION,
  FILTER_FALLBACK,
  FILTER_LISTED,
  FILTER_LOAD_OVERRIDE,
  FILTER_NO_MATCH,
  FILTER_NOT_APPLICABLE,
  FILTER_STICKY,
  FILTER_UNLISTED,
  noteFilter,
  request,
} from '../request-area';
import { labelAddress, RANGE_ABSENT } from './labels';
import { filterTier } from './latency';
import { keepNotOverloaded } from './overload';
import { PREDICTED_TTFT, predictedColumn } from './predictions';
import {
  OP_FILTER_CONCURRENCY,
  OP_FILTER_CONTEXT_LENGTH,
  OP_FILTER_LOWEST,
  OP_FILTER_MASK,
  OP_FILTER_OVERLOAD,
  OP_FILTER_PREFIX_AFFINITY,
  OP_FILTER_RANGE,
  OP_FILTER_SERVED_MODEL,
  OP_FILTER_STICKY,
  OP_FILTER_THRESHOLD,
  OP_FILTER_TIER,
  OP_FILTER_TOPOLOGY,
  OP_FILTER_UNSATURATED,
  OP_FILTER_UTILIZATION,
  OP_FILTER_WARM_UP,
  Operation,
} from './program';
import { NEVER } from './score-column';
import { keepNear } from './topology';
import { keepWarmedUp } from './warm-up';

export const COMPARE_LESS: u32 = 0;
export const COMPARE_LESS_OR_EQUAL: u32 = 1;
export const COMPARE_GREATER: u32 = 2;
export const COMPARE_GREATER_OR_EQUAL: u32 = 3;
export const COMPARE_EQUAL: u32 = 4;
export const COMPARE_NOT_EQUAL: u32 = 5;

function compare(operator: u32, value: v128, limit: v128): v128 {
  if (operator == COMPARE_LESS) return f32x4.lt(value, limit);
  if (operator == COMPARE_LESS_OR_EQUAL) return f32x4.le(value, limit);
  if (operator == COMPARE_GREATER) return f32x4.gt(value, limit);
  if (operator == COMPARE_GREATER_OR_EQUAL) return f32x4.ge(value, limit);
  return operator == COMPARE_EQUAL ? f32x4.eq(value, limit) : f32x4.ne(value, limit);
}

/**
 * Makes what KEPT marks the candidates.
 * @param all leave the candidates as they are when KEPT marks none of them
 * @returns how many are left
 */
function take(used: u32, candidates: u32, all: bool): u32 {
  const end = slotOffset(used);
  let total = i32x4.splat(0);
  for (let at: usize = 0; at < end; at += 16) {
    const kept = v128.and(v128.load(KEPT + at), v128.load(CANDIDATES + at));
    v128.store(KEPT + at, kept);
    total = i32x4.sub(total, kept);
  }
  const count = <u32>laneSumOfIntegers(total);
  if (count == 0 && all) return candidates;
  if (count != candidates) memory.copy(CANDIDATES, KEPT, end);
  return count;
}

/** Marks the endpoints whose value in KEYS compares with the limit; those without a value as `missing` says. */
function keepCompared(used: u32, operator: u32, limit: f32, missing: bool): void {
  const bound = f32x4.splat(limit);
  const absent = i32x4.splat(missing ? -1 : 0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const value = v128.load(KEYS + at);
    v128.store(KEPT + at, v128.bitselect(compare(operator, value, bound), absent, f32x4.eq(value, value)));
  }
}

function keepRange(used: u32, lower: f32, upper: f32, missing: bool): void {
  const low = f32x4.splat(lower);
  const high = f32x4.splat(upper);
  const absent = i32x4.splat(missing ? -1 : 0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const value = v128.load(KEYS + at);
    const inside = v128.and(f32x4.ge(value, low), f32x4.le(value, high));
    v128.store(KEPT + at, v128.bitselect(inside, absent, f32x4.eq(value, value)));
  }
}

/** Candidates with a value in KEYS whose order-preserving integer is at most `bound`. */
function countUpTo(used: u32, bound: i32): u32 {
  const limit = i32x4.splat(bound);
  const magnitude = i32x4.splat(0x7fffffff);
  let total = i32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const value = v128.load(KEYS + at);
    const ordered = v128.xor(value, v128.and(i32x4.shr_s(value, 31), magnitude));
    const lanes = v128.and(v128.load(CANDIDATES + at), f32x4.eq(value, value));
    total = i32x4.sub(total, v128.and(lanes, i32x4.le_s(ordered, limit)));
  }
  return <u32>laneSumOfIntegers(total);
}

/**
 * The wanted-th smallest value in KEYS among the candidates, by bisection over the bits of the floats (whose order is
 * that of integers once the negative ones are turned round): 32 counts, no scratch, no branch per endpoint.
 */
function rankedValue(used: u32, wanted: u32): f32 {
  let low: i64 = i32.MIN_VALUE;
  let high: i64 = i32.MAX_VALUE;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (countUpTo(used, <i32>middle) >= wanted) high = middle;
    else low = middle + 1;
  }
  const ordered = <i32>low;
  return reinterpret<f32>(ordered ^ ((ordered >> 31) & 0x7fffffff));
}

/** Keeps the `count` lowest values (or a share of them, rounded up), and those equal to the last of them. */
function keepLowest(used: u32, sign: f32, count: f32, share: f32, missing: bool): void {
  const turn = f32x4.splat(sign);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    v128.store(KEYS + at, f32x4.mul(v128.load(KEYS + at), turn));
  }
  const present = countUpTo(used, i32.MAX_VALUE);
  // A share like 0.1 is a little more in f32 than it says; without the slack 10 % of 10 would be 2.
  const wanted = max<u32>(count > 0 ? <u32>count : <u32>ceil<f32>(share * <f32>present - <f32>1e-4), 1);
  const limit = present == 0 ? <f32>0 : rankedValue(used, min(wanted, present));
  keepCompared(used, COMPARE_LESS_OR_EQUAL, limit, missing);
}

/** Every named value at most its limit; what is unknown counts as 0. */
function keepUtilized(used: u32, op: Operation): void {
  const active = columnAddress(COLUMN_INFLIGHT);
  const running = columnAddress(COLUMN_RUNNING);
  const usage = columnAddress(COLUMN_KV_USAGE);
  const known = columnAddress(COLUMN_KNOWN);
  const waits = i32x4.splat(SIGNAL_WAITING);
  const runs = i32x4.splat(SIGNAL_RUNNING);
  const uses = i32x4.splat(SIGNAL_KV_USAGE);
  const activeMax = f32x4.splat(op.p0);
  const runningMax = f32x4.splat(op.p1);
  const waitingMax = f32x4.splat(op.p2);
  const usageMax = f32x4.splat(op.p3);
  waitingKeys(used);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const bits = v128.load(known + at);
    const waiting = v128.and(v128.load(KEYS + at), i32x4.eq(v128.and(bits, waits), waits));
    const run = v128.and(v128.load(running + at), i32x4.eq(v128.and(bits, runs), runs));
    const use = v128.and(v128.load(usage + at), i32x4.eq(v128.and(bits, uses), uses));
    const requests = f32x4.convert_i32x4_s(v128.load(active + at));
    const own = v128.and(f32x4.le(requests, activeMax), f32x4.le(run, runningMax));
    v128.store(KEPT + at, v128.and(own, v128.and(f32x4.le(waiting, waitingMax), f32x4.le(use, usageMax))));
  }
}

/** utilization-detector as a filter: fresh signals, and both below their limits. */
function keepUnsaturated(used: u32, waitingLimit: f32, usageLimit: f32, stalenessMs: f32): void {
  const usage = columnAddress(COLUMN_KV_USAGE);
  const known = columnAddress(COLUMN_KNOWN);
  const times = columnAddress(COLUMN_SIGNAL_TIME);
  const oldest = f64x2.splat(request().now - <f64>stalenessMs);
  const both = i32x4.splat(SIGNAL_WAITING | SIGNAL_KV_USAGE);
  const waitingMax = f32x4.splat(waitingLimit);
  const usageMax = f32x4.splat(usageLimit);
  waitingKeys(used);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const early = f64x2.ge(v128.load(times + at * 2), oldest);
    const late = f64x2.ge(v128.load(times + at * 2, 16), oldest);
    const fresh = v128.shuffle<i32>(early, late, 0, 2, 4, 6);
    const calm = v128.and(f32x4.lt(v128.load(KEYS + at), waitingMax), f32x4.lt(v128.load(usage + at), usageMax));
    const seen = i32x4.eq(v128.and(v128.load(known + at), both), both);
    v128.store(KEPT + at, v128.and(fresh, v128.and(seen, calm)));
  }
}

function keepConcurrency(used: u32, requestsMax: f32, tokensMax: f32): void {
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const tokens = columnAddress(COLUMN_INFLIGHT_TOKENS);
  const requests = f32x4.splat(requestsMax);
  const limit = f32x4.splat(tokensMax);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const few = f32x4.lt(f32x4.convert_i32x4_s(v128.load(inflight + at)), requests);
    v128.store(KEPT + at, v128.and(few, f32x4.lt(f32x4.convert_i32x4_s(v128.load(tokens + at)), limit)));
  }
}

/** Keeps the endpoints whose label holds the length of the prompt, or that have no label. */
function keepContextLength(used: u32, column: u32): void {
  const first = labelAddress(column);
  const second = first + slotOffset(SLOTS);
  const length = f32x4.splat(promptTokens());
  const absent = f32x4.splat(RANGE_ABSENT);
  const zero = f32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const least = v128.load(first + at);
    const above = v128.and(f32x4.ge(least, zero), f32x4.le(least, length));
    const inside = v128.and(above, f32x4.le(length, v128.load(second + at)));
    v128.store(KEPT + at, v128.or(inside, f32x4.eq(least, absent)));
  }
}

/** Blocks from which on an endpoint holds a share of the prompt. */
function holdersFrom(total: u32, threshold: f32): f32 {
  // The ratio is compared in blocks: matched ≥ threshold × total. The slack makes 0.8 × 5 blocks 4 and not 4.0000001.
  return threshold * <f32>total - <f32>1e-3;
}

/** Notes the outcome of a filter that keeps all candidates. @returns how many they are */
function keepAll(number: u32, outcome: u32, candidates: u32): u32 {
  noteFilter(number, outcome, candidates, 0);
  return candidates;
}

/**
 * Keeps the endpoints that hold the prefix. Keeps all when none holds it, when a random draw says so, or when the time
 * to first token of the holders is longer than elsewhere by more than the penalty (0 = no limit). The time is that of
 * the tokens in flight, or the predicted one; without a prediction for either side all stay.
 */
function filterPrefixAffinity(op: Operation, used: u32, total: u32, candidates: u32, number: u32): u32 {
  if (candidates <= 1 || !(op.p0 > 0)) return keepAll(number, FILTER_NOT_APPLICABLE, candidates);
  if (total == 0) return keepAll(number, FILTER_NO_MATCH, candidates);
  const exploration = op.p1;
  if (exploration > 0 && randomFloat() < exploration) return keepAll(number, FILTER_EXPLORATION, candidates);
  const threshold = f32x4.splat(holdersFrom(total, op.p0));
  const byPrediction = op.p4 != 0;
  const tokens = columnAddress(COLUMN_INFLIGHT_TOKENS);
  const times = predictedColumn(PREDICTED_TTFT);
  const scale = f32x4.splat(<f32>1000 / op.p3);
  const never = f32x4.splat(NEVER);
  let there = never;
  let elsewhere = never;
  let holders: u32 = 0;
  let others: u32 = 0;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const holds = f32x4.ge(f32x4.convert_i32x4_s(v128.load(MATCH + at)), threshold);
    const some = v128.load(CANDIDATES + at);
    const busy = f32x4.mul(f32x4.convert_i32x4_s(v128.load(tokens + at)), scale);
    const time = byPrediction ? v128.load(times + at) : busy;
    // pmin leaves its first operand when the second is NaN: an endpoint without a prediction says nothing.
    there = f32x4.pmin(there, v128.bitselect(time, never, v128.and(some, holds)));
    elsewhere = f32x4.pmin(elsewhere, v128.bitselect(time, never, v128.andnot(some, holds)));
    holders |= <u32>i32x4.bitmask(v128.and(some, holds));
    others |= <u32>i32x4.bitmask(v128.andnot(some, holds));
    v128.store(KEPT + at, holds);
  }
  if (holders == 0) return keepAll(number, FILTER_NO_MATCH, candidates);
  const penaltyMax = op.p2;
  if (penaltyMax > 0 && others != 0) {
    const best = laneMin(there);
    const isKnown = best != NEVER && laneMin(elsewhere) != NEVER;
    if (!isKnown || best - laneMin(elsewhere) > penaltyMax) {
      return keepAll(number, FILTER_LOAD_OVERRIDE, candidates);
    }
  }
  noteFilter(number, FILTER_STICKY, candidates, 0);
  return take(used, candidates, true);
}

// What an endpoint's list says of the model of the request, in a host column.
export const SERVES_OTHERS: f32 = 0; // it has a list without the model
export const SERVES_ANY: f32 = 1; // the request names no model
export const SERVES_MODEL: f32 = 2; // the list has the model
export const SERVES_ADAPTER: f32 = 3; // the list has it as an adapter of another model
export const SERVES_UNKNOWN: f32 = 4; // there is no list

/**
 * Keeps the endpoints whose lists have the model, and beside them those without a list, unless the model is an adapter:
 * an endpoint that has told nothing probably lacks one that others have. Without an endpoint that lists it, those
 * without a list are left.
 */
function filterServedModel(op: Operation, used: u32, candidates: u32, number: u32): u32 {
  const values = HOST + <usize>(<u32>op.p0) * SLOTS * 4;
  let listed: u32 = 0;
  let adapters: u32 = 0;
  let unknown: u32 = 0;
  for (let slot: u32 = 0; slot < used; slot++) {
    if (load<i32>(CANDIDATES + slotOffset(slot)) == 0) continue;
    const value = load<f32>(values + slotOffset(slot));
    if (value == SERVES_ANY) return keepAll(number, FILTER_NOT_APPLICABLE, candidates);
    listed += u32(value == SERVES_MODEL || value == SERVES_ADAPTER);
    adapters += u32(value == SERVES_ADAPTER);
    unknown += u32(value == SERVES_UNKNOWN);
  }
  const passes = op.p1 != 0 && adapters == 0;
  const outcome = listed != 0 ? FILTER_LISTED : passes && unknown != 0 ? FILTER_UNLISTED : FILTER_FALLBACK;
  const isEmpty = outcome == FILTER_FALLBACK && op.p2 == 0;
  noteFilter(number, isEmpty ? FILTER_EMPTY : outcome, candidates, unknown);
  for (let slot: u32 = 0; slot < used; slot++) {
    const value = load<f32>(values + slotOffset(slot));
    const kept = value == SERVES_MODEL || value == SERVES_ADAPTER || (passes && value == SERVES_UNKNOWN);
    store<i32>(KEPT + slotOffset(slot), kept ? -1 : 0);
  }
  return take(used, candidates, op.p2 != 0);
}

/**
 * Sticky until saturated (llm-d, token-aware routing, August 2026): the holders of the prefix whose tokens in flight
 * are at most the limit; without any, every candidate below the limit; without any, every candidate.
 */
function filterSticky(op: Operation, used: u32, total: u32, candidates: u32): u32 {
  const threshold = f32x4.splat(total == 0 ? NEVER : max<f32>(holdersFrom(total, op.p0), 1));
  const limit = f32x4.splat(op.p1);
  const tokens = columnAddress(COLUMN_INFLIGHT_TOKENS);
  let holders = i32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const free = f32x4.le(f32x4.convert_i32x4_s(v128.load(tokens + at)), limit);
    const holds = f32x4.ge(f32x4.convert_i32x4_s(v128.load(MATCH + at)), threshold);
    const some = v128.and(v128.load(CANDIDATES + at), free);
    holders = v128.or(holders, v128.and(some, holds));
    v128.store(KEPT + at, v128.and(some, holds));
    v128.store(KEYS + at, some);
  }
  if (!v128.any_true(holders)) memory.copy(KEPT, KEYS, slotOffset(used));
  return take(used, candidates, true);
}

/**
 * Runs filter operation `op` (code and parameters as in program.ts).
 * @param total blocks of the prompt
 * @param candidates how many there are
 * @param number of the filter, from 1 in the order of the program
 * @returns how many are left
 */
export function filter(op: Operation, code: u32, used: u32, total: u32, candidates: u32, number: u32): u32 {
  if (code == OP_FILTER_MASK) return filterByMask(used, <u32>op.p0);
  if (code == OP_FILTER_PREFIX_AFFINITY) return filterPrefixAffinity(op, used, total, candidates, number);
  if (code == OP_FILTER_SERVED_MODEL) return filterServedModel(op, used, candidates, number);
  if (code == OP_FILTER_STICKY) return filterSticky(op, used, total, candidates);
  if (code == OP_FILTER_TIER) return filterTier(used, op.p0, candidates);
  let all = false;
  if (code == OP_FILTER_THRESHOLD) {
    valueKeys(<u32>op.p0, used);
    keepCompared(used, <u32>op.p1, op.p2, op.p3 != 0);
    all = op.p4 != 0;
  } else if (code == OP_FILTER_RANGE) {
    valueKeys(<u32>op.p0, used);
    keepRange(used, op.p1, op.p2, op.p3 != 0);
    all = op.p4 != 0;
  } else if (code == OP_FILTER_LOWEST) {
    valueKeys(<u32>op.p0, used);
    keepLowest(used, op.p1, op.p2, op.p3, op.p4 != 0);
    all = op.p5 != 0;
  } else if (code == OP_FILTER_UTILIZATION) {
    keepUtilized(used, op);
    all = op.p4 != 0;
  } else if (code == OP_FILTER_CONTEXT_LENGTH) keepContextLength(used, <u32>op.p0);
  else if (code == OP_FILTER_UNSATURATED) {
    keepUnsaturated(used, op.p0, op.p1, op.p2);
    all = true;
  } else if (code == OP_FILTER_TOPOLOGY) {
    if (!keepNear(op, used)) return candidates;
    all = true;
  } else if (code == OP_FILTER_CONCURRENCY) {
    keepConcurrency(used, op.p0, op.p1);
    all = op.p2 > 0;
  } else if (code == OP_FILTER_WARM_UP) {
    if (!keepWarmedUp(op, used)) return candidates;
    all = true;
  } else if (code == OP_FILTER_OVERLOAD) {
    keepNotOverloaded(op, used);
    all = op.p3 != 0;
  } else return candidates;
  return take(used, candidates, all);
}
