// Scorers that tie a request to some endpoints: by labels, by hashing, by held blocks.
//
// Owns: the thread's KEYS and SCORE columns, written by its own thread. Reads the endpoint and label columns under the
// commit lock. Formulas are llm-d-router's (docs/compatibility.md) unless said.
import { slotOffset } from '../columns/column';
import { laneMax, laneSum } from '../columns/lanes';
import { promptTokens, valueKeys } from '../columns/values';
import { COLUMN_INFLIGHT, columnAddress } from '../endpoints';
import { CANDIDATES, KEYS, MATCH, SLOTS } from '../memory';
import { labelAddress, MIX_FIRST, MIX_SECOND, mixLanes, RANGE_ABSENT, requestKey } from './labels';
import { Operation } from './program';
import { addConstant, addKeys, NEVER, oneValue, zeroValue } from './score-column';

/** 1 where the label has the value of the header, else 0. */
export function scoreHeaderLabel(used: u32, key: u32, column: u32): void {
  const wanted = requestKey(key);
  if (wanted == 0) return;
  const first = labelAddress(column);
  const second = first + slotOffset(SLOTS);
  const low = i32x4.splat(<i32>wanted);
  const high = i32x4.splat(<i32>(wanted >> 32));
  const one = f32x4.splat(oneValue);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const same = v128.and(i32x4.eq(v128.load(first + at), low), i32x4.eq(v128.load(second + at), high));
    v128.store(KEYS + at, v128.and(same, one));
  }
  addKeys(used);
}

/** A value on a linear scale, fixed or that of the candidates (all equal = 1); an endpoint without a value gets 0. */
export function scoreAttribute(op: Operation, used: u32): void {
  const lower = op.p1 != 0;
  let lowest = op.p3;
  let highest = op.p4;
  valueKeys(<u32>op.p0, used);
  if (op.p2 != 0) {
    highest = highestKey(used, 1);
    lowest = -highestKey(used, -1);
  }
  const range = highest - lowest;
  // score = base + slope × value
  const slope = range > 0 ? (lower ? <f32>-1 : <f32>1) / range : <f32>0;
  const origin = f32x4.splat(lower ? highest : lowest);
  const base = f32x4.splat(range > 0 ? <f32>0 : <f32>1);
  const scale = f32x4.splat(slope);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const value = v128.load(KEYS + at);
    const score = f32x4.add(base, f32x4.mul(f32x4.sub(value, origin), scale));
    v128.store(KEYS + at, v128.and(score, f32x4.eq(value, value)));
  }
  addKeys(used);
}

/** Highest sign × value in KEYS among the candidates that have one. */
function highestKey(used: u32, sign: f32): f32 {
  const turn = f32x4.splat(sign);
  const lowest = f32x4.splat(-NEVER);
  let best = lowest;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const value = f32x4.mul(v128.load(KEYS + at), turn);
    const lanes = v128.and(v128.load(CANDIDATES + at), f32x4.eq(value, value));
    best = f32x4.pmax(best, v128.bitselect(value, lowest, lanes));
  }
  return laneMax(best);
}

/**
 * Prompt length inside the label's range: 0.3 + 0.7 × (0.7 / (1 + width / 10000) + 0.3 × (max - length) / width), 1
 * when the width is 0; outside: 0.3 / (1 + distance / 1000); no label 0.5; a label that is no range 0.
 */
export function scoreContextLength(used: u32, column: u32): void {
  const first = labelAddress(column);
  const second = first + slotOffset(SLOTS);
  const length = f32x4.splat(promptTokens());
  const zero = f32x4.splat(zeroValue);
  const one = f32x4.splat(oneValue);
  const part = f32x4.splat(0.3);
  const rest = f32x4.splat(0.7);
  const half = f32x4.splat(0.5);
  const absent = f32x4.splat(RANGE_ABSENT);
  const perWidth = f32x4.splat(1e-4);
  const perDistance = f32x4.splat(1e-3);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const from = v128.load(first + at);
    const to = v128.load(second + at);
    const width = f32x4.sub(to, from);
    const tight = f32x4.div(rest, f32x4.add(one, f32x4.mul(width, perWidth)));
    const room = f32x4.div(f32x4.mul(part, f32x4.sub(to, length)), width);
    const fit = f32x4.add(part, f32x4.mul(rest, f32x4.add(tight, room)));
    const inside = v128.bitselect(fit, one, f32x4.gt(width, zero));
    const distance = f32x4.pmax(f32x4.sub(from, length), f32x4.sub(length, to));
    const outside = f32x4.div(part, f32x4.add(one, f32x4.mul(distance, perDistance)));
    const ranged = v128.bitselect(outside, inside, f32x4.gt(distance, zero));
    const unranged = v128.and(half, f32x4.eq(from, absent));
    v128.store(KEYS + at, v128.bitselect(ranged, unranged, f32x4.ge(from, zero)));
  }
  addKeys(used);
}

/**
 * Requests in flight from which on an endpoint is full: factor × mean, this request included, rounded up (consistent
 * hashing with bounded loads: Mirrokni, Thorup, Zadimoghaddam 2016). Without a factor no endpoint is full.
 */
function boundOf(used: u32, factor: f32): f32 {
  if (factor <= 0) return NEVER;
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const one = f32x4.splat(oneValue);
  let total = f32x4.splat(0);
  let count = f32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const lanes = v128.load(CANDIDATES + at);
    total = f32x4.add(total, v128.and(f32x4.convert_i32x4_s(v128.load(inflight + at)), lanes));
    count = f32x4.add(count, v128.and(one, lanes));
  }
  return ceil<f32>((factor * (laneSum(total) + 1)) / laneSum(count));
}

/** Neutral for a request without the header: 0.5 for every candidate. */
function keyless(used: u32): void {
  addConstant(used, 0.5);
}

/**
 * Rendezvous hashing (Thaler and Ravishankar 1998): a random number in (0, 1] for each pair of key and endpoint, the
 * same every time; the highest wins. Endpoints that are full score 0.
 */
export function scoreRendezvous(used: u32, key: u32, column: u32, factor: f32): void {
  const wanted = requestKey(key);
  if (wanted == 0) return keyless(used);
  const bound = f32x4.splat(boundOf(used, factor));
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const first = labelAddress(column);
  const second = first + slotOffset(SLOTS);
  const low = i32x4.splat(<i32>wanted);
  const high = i32x4.splat(<i32>(wanted >> 32));
  const mixOne = i32x4.splat(MIX_FIRST);
  const mixTwo = i32x4.splat(MIX_SECOND);
  const unit = f32x4.splat(<f32>(1.0 / 16777216.0));
  const least = i32x4.splat(1);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const met = mixLanes(v128.xor(v128.load(first + at), low), mixOne, mixTwo);
    const drawn = mixLanes(v128.xor(i32x4.add(met, v128.load(second + at)), high), mixOne, mixTwo);
    // f32 holds 24 bits exactly. The 1 is added so that only full endpoints have 0.
    const number = f32x4.convert_i32x4_s(i32x4.add(i32x4.shr_u(drawn, 8), least));
    const free = f32x4.lt(f32x4.convert_i32x4_s(v128.load(inflight + at)), bound);
    v128.store(KEYS + at, v128.and(f32x4.mul(number, unit), free));
  }
  addKeys(used);
}

/**
 * Consistent hashing on a ring (Karger and others 1997) with bounded loads: every endpoint stands on the ring at
 * `nodes` places; the first one after the key wins. Score: 1 / (1 + distance × places on the ring). Full endpoints are
 * passed over: they score 0.
 */
export function scoreRing(used: u32, key: u32, column: u32, factor: f32, nodes: u32): void {
  const wanted = requestKey(key);
  if (wanted == 0) return keyless(used);
  const bound = f32x4.splat(boundOf(used, factor));
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const first = labelAddress(column);
  const second = first + slotOffset(SLOTS);
  const place = i32x4.splat(<i32>(wanted ^ (wanted >> 32)));
  const mixOne = i32x4.splat(MIX_FIRST);
  const mixTwo = i32x4.splat(MIX_SECOND);
  const one = f32x4.splat(oneValue);
  const scale = f32x4.splat((<f32>nodes * <f32>used) / <f32>4294967296.0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    let node = v128.load(first + at);
    const step = v128.or(v128.load(second + at), i32x4.splat(1));
    let nearest = i32x4.splat(-1);
    for (let i: u32 = 0; i < nodes; i++) {
      nearest = i32x4.min_u(nearest, i32x4.sub(mixLanes(node, mixOne, mixTwo), place));
      node = i32x4.add(node, step);
    }
    const distance = f32x4.mul(f32x4.convert_i32x4_u(nearest), scale);
    const free = f32x4.lt(f32x4.convert_i32x4_s(v128.load(inflight + at)), bound);
    v128.store(KEYS + at, v128.and(f32x4.div(one, f32x4.add(one, distance)), free));
  }
  addKeys(used);
}

/**
 * Cache-aware routing (SGLang Model Gateway, cache_aware of August 2026): the endpoints with the longest match, when it
 * is more than `threshold` of the prompt and they are not overloaded (load above the mean by more than `absolute` and
 * above `relative` × mean), score in (0.5, 1], all others in (0, 0.5]; among each, fewer requests in flight score
 * higher.
 */
export function scoreCacheAware(used: u32, total: u32, threshold: f32, absolute: f32, relative: f32): void {
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const zero = f32x4.splat(zeroValue);
  const one = f32x4.splat(oneValue);
  const end = slotOffset(used);
  let sum = zero;
  let count = zero;
  let highest = zero;
  let longest = zero;
  for (let at: usize = 0; at < end; at += 16) {
    const lanes = v128.load(CANDIDATES + at);
    const busy = v128.and(f32x4.convert_i32x4_s(v128.load(inflight + at)), lanes);
    sum = f32x4.add(sum, busy);
    count = f32x4.add(count, v128.and(one, lanes));
    highest = f32x4.pmax(highest, busy);
    longest = f32x4.pmax(longest, v128.and(f32x4.convert_i32x4_s(v128.load(MATCH + at)), lanes));
  }
  const mean = laneSum(sum) / laneSum(count);
  const limit = f32x4.splat(max<f32>(mean + absolute, mean * relative));
  const match = laneMax(longest);
  const holders = f32x4.splat(match > threshold * <f32>total ? match : NEVER);
  const half = f32x4.splat(0.5);
  const scale = f32x4.splat(<f32>0.5 / (laneMax(highest) + 1));
  for (let at: usize = 0; at < end; at += 16) {
    const busy = f32x4.convert_i32x4_s(v128.load(inflight + at));
    const holds = f32x4.ge(f32x4.convert_i32x4_s(v128.load(MATCH + at)), holders);
    const kept = v128.and(half, v128.and(holds, f32x4.le(busy, limit)));
    v128.store(KEYS + at, f32x4.add(kept, f32x4.sub(half, f32x4.mul(busy, scale))));
  }
  addKeys(used);
}
