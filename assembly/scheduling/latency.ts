// Filter, scorer and admitter that look at predicted latency.
//
// Owns: the thread's CANDIDATES, KEPT, KEYS and SCORE columns, written by its own thread. Reads the PREDICTED columns,
// which OP_PREDICT has filled, and the endpoint columns under the commit lock. The rules are those of llm-d-router's
// slo-headroom-tier-filter, latency-scorer and latency-slo-admitter; what differs stands in docs/compatibility.md.
import { slotOffset } from '../columns/column';
import { laneMax, laneMin } from '../columns/lanes';
import { waitingKeys } from '../columns/values';
import {
  COLUMN_INFLIGHT,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_RUNNING,
  columnAddress,
  SIGNAL_KV_USAGE,
  SIGNAL_RUNNING,
  SIGNAL_WAITING,
} from '../endpoints';
import { CANDIDATES, KEPT, KEYS, MATCH } from '../memory';
import { randomFloat } from '../random';
import { request, wantedTimes } from '../request-area';
import { HEADROOM_TPOT, HEADROOM_TTFT, meanOfKnown, predictedColumn } from './predictions';
import { Operation } from './program';
import { addKeys, NEVER } from './score-column';

/** Ranges below this are no ranges (latency-scorer). Milliseconds. */
const SAME: f64 = 1e-9;
/** KV usage below which an endpoint is cold: what is predicted for it is not to be relied on (latency-slo-admitter). */
const COLD_KV_USAGE: f32 = 0.02;

const POSITIVE: u32 = 0; // both wishes kept
const IDLE: u32 = 1; // a wish broken, nothing in flight
const LATE_TPOT: u32 = 2; // only that wish broken
const LATE_TTFT: u32 = 3;
const LATE_BOTH: u32 = 4;
const BUCKETS: u32 = 5;

function count(lanes: v128): u32 {
  return <u32>popcnt<i32>(i32x4.bitmask(lanes));
}

/** Candidates of four slots that something is predicted for. */
function predictedLanes(at: usize): v128 {
  const left = v128.load(predictedColumn(HEADROOM_TTFT) + at);
  return v128.and(v128.load(CANDIDATES + at), f32x4.eq(left, left));
}

/** Of four slots those in a bucket, among the candidates with a prediction. */
function bucketLanes(bucket: u32, at: usize): v128 {
  const zero = f32x4.splat(0);
  const some = predictedLanes(at);
  const lateFirst = f32x4.lt(v128.load(predictedColumn(HEADROOM_TTFT) + at), zero);
  const lateEach = f32x4.lt(v128.load(predictedColumn(HEADROOM_TPOT) + at), zero);
  if (bucket == POSITIVE) return v128.andnot(some, v128.or(lateFirst, lateEach));
  if (bucket == IDLE) return v128.and(some, i32x4.eq(v128.load(columnAddress(COLUMN_INFLIGHT) + at), i32x4.splat(0)));
  if (bucket == LATE_TPOT) return v128.andnot(v128.and(some, lateEach), lateFirst);
  if (bucket == LATE_TTFT) return v128.andnot(v128.and(some, lateFirst), lateEach);
  return v128.and(some, v128.and(lateFirst, lateEach));
}

/** Marks the slots of a bucket in KEPT. @returns how many */
function markBucket(bucket: u32, used: u32): u32 {
  let number: u32 = 0;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const lanes = bucketLanes(bucket, at);
    v128.store(KEPT + at, lanes);
    number += count(lanes);
  }
  return number;
}

function countPredicted(used: u32): u32 {
  let number: u32 = 0;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) number += count(predictedLanes(at));
  return number;
}

/**
 * Keeps the endpoints that keep both wishes, and with probability `exploration` the others, so that they can recover.
 * Without any of one kind the other stays, and without predictions all do.
 * @returns how many are left
 */
export function filterTier(used: u32, exploration: f32, candidates: u32): u32 {
  if (candidates <= 1 || countPredicted(used) == 0) return candidates;
  const positive = markBucket(POSITIVE, used);
  if (positive == 0 || positive == candidates) return candidates;
  const explores = randomFloat() < exploration;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const some = v128.load(CANDIDATES + at);
    const kept = v128.load(KEPT + at);
    v128.store(CANDIDATES + at, explores ? v128.andnot(some, kept) : kept);
  }
  return explores ? candidates - positive : positive;
}

// Least and largest headroom, without its sign, of the slots that KEPT marks.
let least: f64 = 0;
let range: f64 = 0;

function measure(column: u32, used: u32): void {
  const never = f32x4.splat(NEVER);
  const values = predictedColumn(column);
  let low = never;
  let high = f32x4.neg(never);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const lanes = v128.load(KEPT + at);
    const size = f32x4.abs(v128.load(values + at));
    low = f32x4.pmin(low, v128.bitselect(size, never, lanes));
    high = f32x4.pmax(high, v128.bitselect(size, f32x4.neg(never), lanes));
  }
  least = <f64>laneMin(low);
  range = <f64>laneMax(high) - least;
}

/** Two headrooms, normalised over the bucket; 0.5 when all are equal. */
function normalised(size: v128, low: f64, width: f64): v128 {
  if (width <= SAME) return f64x2.splat(0.5);
  return f64x2.div(f64x2.sub(size, f64x2.splat(low)), f64x2.splat(width));
}

/** int(x · 100) + 1, in hundredths; the sum of a hundred and one is cut to 1 with all scores. */
function inHundredths(share: v128): v128 {
  const whole = f64x2.add(f64x2.trunc(f64x2.mul(share, f64x2.splat(100))), f64x2.splat(1));
  return f64x2.div(whole, f64x2.splat(100));
}

/**
 * Score the slots that KEPT marks by their headrooms into KEYS, 0 for the rest. The arithmetic is in 64 bits, because
 * the rounding down to hundredths shows the last bit.
 * @param first weight of the time to first token
 * @param second weight of the time per output token
 * @param isWide prefer what is left over instead of what fits tightly
 */
function scoreBucket(used: u32, first: f64, second: f64, isWide: bool): void {
  measure(HEADROOM_TTFT, used);
  const lowFirst = least;
  const rangeFirst = range;
  measure(HEADROOM_TPOT, used);
  const lowEach = least;
  const rangeEach = range;
  const sum = first + second;
  let share = sum > 0 ? first / sum : 1;
  let rest = sum > 0 ? second / sum : 0;
  if (rangeFirst <= SAME && rangeEach > SAME) {
    share = 0;
    rest = 1;
  } else if (rangeEach <= SAME && rangeFirst > SAME) {
    share = 1;
    rest = 0;
  }
  const one = f64x2.splat(1);
  const ttft = predictedColumn(HEADROOM_TTFT);
  const tpot = predictedColumn(HEADROOM_TPOT);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 8) {
    const left = f64x2.promote_low_f32x4(f32x4.abs(v128.load64_zero(ttft + at)));
    const each = f64x2.promote_low_f32x4(f32x4.abs(v128.load64_zero(tpot + at)));
    const a = f64x2.mul(f64x2.splat(share), normalised(left, lowFirst, rangeFirst));
    const b = f64x2.mul(f64x2.splat(rest), normalised(each, lowEach, rangeEach));
    const combined = f64x2.add(a, b);
    const score = f32x4.demote_f64x2_zero(inHundredths(isWide ? combined : f64x2.sub(one, combined)));
    v128.store64_lane(KEYS + at, v128.and(score, v128.load64_zero(KEPT + at)), 0);
  }
}

/** Endpoints without a prediction get the mean of the scored ones: neither the best nor out of the race. */
function scoreUnpredicted(used: u32, scored: u32): void {
  const one = f32x4.splat(1);
  let total: f32 = 0;
  for (let slot: u32 = 0; slot < used; slot++) total += min<f32>(load<f32>(KEYS + slotOffset(slot)), 1);
  const mean = f32x4.splat(total / <f32>scored);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const lanes = v128.andnot(v128.load(CANDIDATES + at), predictedLanes(at));
    v128.store(KEYS + at, v128.bitselect(mean, f32x4.pmin(v128.load(KEYS + at), one), lanes));
  }
}

/** A weight as the configuration wrote it: programs carry 32 bits, in which 0.8 is a little more. Six decimals hold. */
function written(weight: f32): f64 {
  return nearest<f64>(<f64>weight * 1e6) / 1e6;
}

/** A known signal as it is, an unknown one as the mean of the known. */
function signalOf(slot: u32, values: usize, signal: i32, mean: f32): f32 {
  const known = load<i32>(columnAddress(COLUMN_KNOWN) + slotOffset(slot));
  return (known & signal) != 0 ? load<f32>(values + slotOffset(slot)) : mean;
}

/** Without predictions: free KV cache, relative queue and share of the prompt held, weighted, in whole hundredths. */
function scoreComposite(op: Operation, used: u32, total: u32): void {
  const usage = columnAddress(COLUMN_KV_USAGE);
  waitingKeys(used);
  const meanUsage = meanOfKnown(used, usage, SIGNAL_KV_USAGE);
  const meanWaiting = meanOfKnown(used, KEYS, SIGNAL_WAITING);
  const weights = written(op.p3) + written(op.p4) + written(op.p5);
  const cacheShare = weights > 0 ? written(op.p3) / weights : 1;
  const queueShare = weights > 0 ? written(op.p4) / weights : 0;
  const prefixShare = weights > 0 ? written(op.p5) / weights : 0;
  let longest: f64 = 0;
  for (let slot: u32 = 0; slot < used; slot++) {
    const candidate = load<i32>(CANDIDATES + slotOffset(slot)) != 0;
    if (candidate) longest = max<f64>(longest, <f64>signalOf(slot, KEYS, SIGNAL_WAITING, meanWaiting));
  }
  for (let slot: u32 = 0; slot < used; slot++) {
    const waiting = <f64>signalOf(slot, KEYS, SIGNAL_WAITING, meanWaiting);
    const queue = longest > 0 ? (longest - waiting) / longest : 1;
    const free = 1 - <f64>signalOf(slot, usage, SIGNAL_KV_USAGE, meanUsage);
    const held = total == 0 ? <f64>0 : <f64>load<u32>(MATCH + slotOffset(slot)) / <f64>total;
    const sum = cacheShare * free + queueShare * queue + prefixShare * held;
    store<f32>(KEYS + slotOffset(slot), <f32>(floor<f64>(100 * sum + 0.5) / 100));
  }
}

/**
 * Score by what is left of the wanted times: only endpoints that keep both wishes, else only idle ones, else only the
 * mildest failures (a late token before a late beginning).
 * @param op parameters as in program.ts
 */
export function scoreLatency(op: Operation, used: u32, total: u32): void {
  if (countPredicted(used) == 0) {
    scoreComposite(op, used, total);
    return addKeys(used);
  }
  let bucket = POSITIVE;
  let scored = markBucket(bucket, used);
  while (scored == 0 && ++bucket < BUCKETS) scored = markBucket(bucket, used);
  // Among missed targets the smallest miss is the best, with either strategy.
  const isWide = bucket == POSITIVE && op.p2 != 0;
  scoreBucket(used, written(op.p0), written(op.p1), isWide);
  scoreUnpredicted(used, scored);
  addKeys(used);
}

/** A wish that was not made is not broken. */
function keptLanes(at: usize): v128 {
  const zero = f32x4.splat(0);
  const all = i32x4.splat(-1);
  const noFirst = !(wantedTimes().ttft > 0);
  const noEach = !(wantedTimes().tpot > 0);
  const first = noFirst ? all : f32x4.gt(v128.load(predictedColumn(HEADROOM_TTFT) + at), zero);
  const each = noEach ? all : f32x4.ge(v128.load(predictedColumn(HEADROOM_TPOT) + at), zero);
  return v128.and(first, each);
}

/**
 * Returns the lanes of endpoints without a known running request, or with a cache too empty for reliable predictions.
 */
function freeLanes(at: usize): v128 {
  const known = v128.load(columnAddress(COLUMN_KNOWN) + at);
  const runs = i32x4.splat(SIGNAL_RUNNING);
  const uses = i32x4.splat(SIGNAL_KV_USAGE);
  const zero = f32x4.splat(0);
  const running = v128.and(v128.load(columnAddress(COLUMN_RUNNING) + at), i32x4.eq(v128.and(known, runs), runs));
  const usage = v128.and(v128.load(columnAddress(COLUMN_KV_USAGE) + at), i32x4.eq(v128.and(known, uses), uses));
  const idle = i32x4.eq(v128.load(columnAddress(COLUMN_INFLIGHT) + at), i32x4.splat(0));
  return v128.or(v128.and(idle, f32x4.eq(running, zero)), f32x4.lt(usage, f32x4.splat(COLD_KV_USAGE)));
}

/**
 * Whether a request may go on (latency-slo-admitter): only a sheddable one with wishes is turned away, and only when
 * there are predictions, all of them break a wish, and no endpoint is idle or cold.
 */
export function admitByLatency(used: u32): bool {
  if (request().priority >= 0) return true;
  if (!(wantedTimes().ttft > 0 || wantedTimes().tpot > 0)) return true;
  let predicted: u32 = 0;
  let fit = i32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const some = predictedLanes(at);
    predicted += count(some);
    fit = v128.or(fit, v128.and(some, keptLanes(at)));
    fit = v128.or(fit, v128.and(v128.load(CANDIDATES + at), freeLanes(at)));
  }
  return predicted == 0 || v128.any_true(fit);
}
