// Scorers: one column of scores in [0, 1] per operation, weighted and added to SCORE.
//
// Owns: the thread's SCORE and KEYS columns, written by its own thread. Reads the endpoint columns under the commit
// lock. Formulas are llm-d-router's (docs/compatibility.md) unless said. An endpoint whose signal is unknown gets the
// mean of the known ones: neither idle nor full, and never the best. Scorers by affinity, by cost and by history have
// files of their own; scorer-table.ts names them all.
import { slotOffset } from '../columns/column';
import { laneMax, laneMin, laneSum } from '../columns/lanes';
import { blockTokens, promptTokens, uncachedTokens, waitingKeys } from '../columns/values';
import {
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
import { CANDIDATES, HOST, KEYS, MATCH, SCORE, SLOTS } from '../memory';
import { request } from '../request-area';
import { addConstant, addKeys, addScores, NEVER, noteSignal, oneValue, weight, zeroValue } from './score-column';

/** Candidates of four slots whose signal is known, as a lane mask. */
function knownLanes(candidates: v128, known: v128, signal: v128): v128 {
  return v128.and(candidates, i32x4.eq(v128.and(known, signal), signal));
}

/** Range, sum and number of the known values of the candidates. */
let low: f32 = 0;
let high: f32 = 0;
let sum: f32 = 0;
let count: f32 = 0;

/** Gathers the range of a column's known values. */
function gather(used: u32, values: usize, signal: u32): void {
  const candidates = CANDIDATES;
  const known = columnAddress(COLUMN_KNOWN);
  const bit = i32x4.splat(<i32>signal);
  const never = f32x4.splat(NEVER);
  const zero = f32x4.splat(zeroValue);
  const one = f32x4.splat(oneValue);
  const lowest = f32x4.neg(never);
  let least = never;
  let highest = lowest;
  let total = zero;
  let number = zero;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const value = v128.load(values + at);
    const lanes = knownLanes(v128.load(candidates + at), v128.load(known + at), bit);
    least = f32x4.pmin(least, v128.bitselect(value, never, lanes));
    highest = f32x4.pmax(highest, v128.bitselect(value, lowest, lanes));
    total = f32x4.add(total, v128.and(value, lanes));
    number = f32x4.add(number, v128.and(one, lanes));
  }
  low = laneMin(least);
  high = laneMax(highest);
  sum = laneSum(total);
  count = laneSum(number);
}

/** Notes that the scorer reads a signal. One of weight 0 is evaluated only to be shown, and settles no tie by it. */
function readSignal(signal: u32): void {
  if (weight != 0) noteSignal(signal);
}

/**
 * (max - value) / (max - min) over the known candidates; all equal = 1 (queue-scorer, running-requests-size-scorer).
 * @param values column of f32
 */
function scoreFewest(used: u32, values: usize, signal: u32): void {
  readSignal(signal);
  gather(used, values, signal);
  const range = high - low;
  if (count == 0 || range <= 0) return addConstant(used, 1);
  const candidates = CANDIDATES;
  const known = columnAddress(COLUMN_KNOWN);
  const scores = SCORE;
  const bit = i32x4.splat(<i32>signal);
  const zero = f32x4.splat(zeroValue);
  const one = f32x4.splat(oneValue);
  const factor = f32x4.splat(weight);
  const scale = f32x4.splat(<f32>1 / range);
  const best = f32x4.splat(high);
  const neutral = f32x4.splat((high - sum / count) / range);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const lanes = knownLanes(v128.load(candidates + at), v128.load(known + at), bit);
    const raw = f32x4.mul(f32x4.sub(best, v128.load(values + at)), scale);
    addScores(scores + at, v128.bitselect(raw, neutral, lanes), zero, one, factor);
  }
}

export function scoreQueue(used: u32): void {
  waitingKeys(used);
  scoreFewest(used, KEYS, SIGNAL_WAITING);
}

export function scoreRunning(used: u32): void {
  scoreFewest(used, columnAddress(COLUMN_RUNNING), SIGNAL_RUNNING);
}

/**
 * Adds the scores in KEYS; an endpoint whose signal is unknown gets the mean of the others, `alone` when none is known.
 */
function addKnown(used: u32, signal: u32, alone: f32): void {
  readSignal(signal);
  const candidates = CANDIDATES;
  const known = columnAddress(COLUMN_KNOWN);
  const keys = KEYS;
  const scores = SCORE;
  const bit = i32x4.splat(<i32>signal);
  const zero = f32x4.splat(zeroValue);
  const one = f32x4.splat(oneValue);
  const factor = f32x4.splat(weight);
  let total = zero;
  let number = zero;
  let highest = zero;
  let unknown = i32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const some = v128.load(candidates + at);
    const lanes = knownLanes(some, v128.load(known + at), bit);
    const raw = v128.and(f32x4.pmin(f32x4.pmax(v128.load(keys + at), zero), one), lanes);
    v128.store(scores + at, f32x4.add(v128.load(scores + at), f32x4.mul(raw, factor)));
    total = f32x4.add(total, raw);
    highest = f32x4.pmax(highest, raw);
    number = f32x4.add(number, v128.and(one, lanes));
    unknown = v128.or(unknown, v128.andnot(some, lanes));
  }
  if (!v128.any_true(unknown)) return;
  const n = laneSum(number);
  // A mean of equal scores may round to more than each of them, which would put the unknown first.
  const neutral = f32x4.splat((n == 0 ? alone : min<f32>(laneSum(total) / n, laneMax(highest))) * weight);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const some = v128.load(candidates + at);
    const lanes = v128.andnot(some, knownLanes(some, v128.load(known + at), bit));
    v128.store(scores + at, f32x4.add(v128.load(scores + at), v128.and(neutral, lanes)));
  }
}

/** 1 - usage; unknown = mean of the known, 1 when none is known. */
export function scoreKvUsage(used: u32): void {
  const usage = columnAddress(COLUMN_KV_USAGE);
  const keys = KEYS;
  const one = f32x4.splat(oneValue);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    v128.store(keys + at, f32x4.sub(one, v128.load(usage + at)));
  }
  addKnown(used, SIGNAL_KV_USAGE, 1);
}

/** (1 - w) · match/total + w · min(1, match·block/scale)² */
export function scorePrefix(used: u32, total: u32, lengthWeight: f32, scaleTokens: f32, blockTokens: f32): void {
  if (total == 0) return;
  const ratio = f32x4.splat((<f32>1 - lengthWeight) / <f32>total);
  const scores = SCORE;
  const zero = f32x4.splat(zeroValue);
  const one = f32x4.splat(oneValue);
  const factor = f32x4.splat(weight);
  const length = f32x4.splat(scaleTokens > 0 ? blockTokens / scaleTokens : 0);
  const share = f32x4.splat(lengthWeight);
  const matches = MATCH;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const match = f32x4.convert_i32x4_s(v128.load(matches + at));
    const reach = f32x4.pmin(one, f32x4.mul(match, length));
    const raw = f32x4.add(f32x4.mul(match, ratio), f32x4.mul(share, f32x4.mul(reach, reach)));
    addScores(scores + at, raw, zero, one, factor);
  }
}

/** count ≤ idle → 1, else (max - count)/max × busy. */
export function scoreActiveRequest(used: u32, idle: f32, busy: f32): void {
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const candidates = CANDIDATES;
  const end = slotOffset(used);
  let high = f32x4.splat(0);
  for (let at: usize = 0; at < end; at += 16) {
    const count = f32x4.convert_i32x4_s(v128.load(inflight + at));
    high = f32x4.pmax(high, v128.and(count, v128.load(candidates + at)));
  }
  const highest = laneMax(high);
  const top = f32x4.splat(highest);
  const scale = f32x4.splat(highest > 0 ? busy / highest : 0);
  const scores = SCORE;
  const zero = f32x4.splat(zeroValue);
  const one = f32x4.splat(oneValue);
  const factor = f32x4.splat(weight);
  const limit = f32x4.splat(idle);
  for (let at: usize = 0; at < end; at += 16) {
    const count = f32x4.convert_i32x4_s(v128.load(inflight + at));
    const score = f32x4.mul(f32x4.sub(top, count), scale);
    addScores(scores + at, v128.bitselect(one, score, f32x4.le(count, limit)), zero, one, factor);
  }
}

/** 1 - min(tokens in flight + own uncached (and estimated output) tokens, T)/T */
export function scoreTokenLoad(used: u32, threshold: f32): void {
  const inflight = columnAddress(COLUMN_INFLIGHT_TOKENS);
  const scores = SCORE;
  const zero = f32x4.splat(zeroValue);
  const one = f32x4.splat(oneValue);
  const factor = f32x4.splat(weight);
  const prompt = f32x4.splat(promptTokens());
  const block = f32x4.splat(blockTokens());
  const output = f32x4.splat(<f32>request().outputTokens);
  const scale = f32x4.splat(<f32>1 / threshold);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const own = f32x4.add(uncachedTokens(at, prompt, block, zero), output);
    const tokens = f32x4.add(f32x4.convert_i32x4_s(v128.load(inflight + at)), own);
    addScores(scores + at, f32x4.sub(one, f32x4.pmin(one, f32x4.mul(tokens, scale))), zero, one, factor);
  }
}

/** Nothing waiting → 0.5, else 0.5 · (1 - min(waiting, T)/T); unknown = mean of the known. */
export function scoreLoadAware(used: u32, threshold: f32): void {
  const half = f32x4.splat(0.5);
  const one = f32x4.splat(1);
  const scale = f32x4.splat(<f32>1 / threshold);
  waitingKeys(used);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const share = f32x4.pmin(one, f32x4.mul(v128.load(KEYS + at), scale));
    v128.store(KEYS + at, f32x4.mul(half, f32x4.sub(one, share)));
  }
  addKnown(used, SIGNAL_WAITING, 0.5);
}

export function scoreHookColumn(used: u32, column: u32): void {
  memory.copy(KEYS, HOST + <usize>column * SLOTS * 4, slotOffset(used));
  addKeys(used);
}
