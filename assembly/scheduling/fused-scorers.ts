// A group of scorers in one pass: what their formulas share is read once, and their sum is stored once.
//
// Owns: the thread's SCORE and VALUES columns and what is noted of groups of slots (PEAKS, LOWS, HIGHS, and in MARKS
// whether they hold blocks), written by its own thread. Reads the endpoint columns under the commit lock, or in a
// judgement without it.
//
// A program names its group (Program.fused): one scorer each of the queue or the running requests, of the KV usage and
// of the prefix, in any order, with weights other than 0. The group is fused while all candidates have known signals.
// Otherwise, and in explained decisions, its scorers run one by one (scorers.ts), to the same bits: each term comes
// from the same operations, and in a sum of three only the place of the last one matters.
import { ASSERTIONS } from '../assertions';
import { slotOffset } from '../columns/column';
import { laneMax, laneMaxOfIntegers, laneMin } from '../columns/lanes';
import { predictedWaiting, waitingStands } from '../columns/waiting';
import {
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_RUNNING,
  columnAddress,
  SIGNAL_KV_USAGE,
  SIGNAL_RUNNING,
  SIGNAL_WAITING,
} from '../endpoints';
import { COMMIT_LOCK, lockHeld } from '../lock';
import { CANDIDATES, HIGHS, LOWS, MARKS, MATCH, PEAK_SLOTS, PEAKS, SCORE, VALUES, WAITING_COUNTS } from '../memory';
import { OP_SCORE_KV_USAGE, OP_SCORE_PREFIX, OP_SCORE_QUEUE, Program } from './program';
import { NEVER, noteBestMatch, noteHighest, noteLongestMatch, noteSignal } from './score-column';

/** Position of a term in the sum: its place among the terms in their usual order. */
const FEWEST: u32 = 0;
const USAGE: u32 = 1;
const PREFIX: u32 = 2;

/** Bytes of a group of PEAKS in a column. */
export const GROUP_BYTES: usize = PEAK_SLOTS * 4;

/** The terms of the group that is evaluated now. Scratch of one decision. */
let signals: u32 = 0;
let fewestFactor: f32 = 0;
let usageFactor: f32 = 0;
let prefixFactor: f32 = 0;
/** Parameters of the prefix term. */
let lengthWeight: f32 = 0;
let reachScale: f32 = 0;
let last: u32 = 0;
/** Values of the fewest term, and the range of the candidates' values. */
let values: usize = 0;
let low: f32 = 0;
let high: f32 = 0;

// Vector constants that V8 would load again in every turn of a loop; as variables they stay in registers.
let never32: f32 = 0;
let zeroValue: f32 = 1;
let oneValue: f32 = 0;

/** Most blocks that a candidate, and any endpoint, holds, of the slots scored since the group has begun. */
let bestBlocks: i32 = 0;
let longestBlocks: i32 = 0;

/**
 * Begins the group of scorers that begins at operation `first`: reads its terms.
 * @returns whether they are those of the group before
 */
export function fusedBegin(program: Program, first: u32): bool {
  never32 = NEVER;
  zeroValue = 0;
  oneValue = 1;
  bestBlocks = 0;
  longestBlocks = 0;
  const before = values;
  const places = last;
  const fewest = fewestFactor;
  const ofUsage = usageFactor;
  const ofPrefix = prefixFactor;
  const share = lengthWeight;
  const scale = reachScale;
  const wanted = signals;
  readTerms(program, first);
  if (before != values || places != last || wanted != signals || fewest != fewestFactor) return false;
  return ofUsage == usageFactor && ofPrefix == prefixFactor && share == lengthWeight && scale == reachScale;
}

/** Reads the terms of the group. */
function readTerms(program: Program, first: u32): void {
  signals = 0;
  fewestFactor = 0;
  usageFactor = 0;
  prefixFactor = 0;
  lengthWeight = 0;
  reachScale = 0;
  // A group without a fewest term: usage in its place, with factor 0.
  values = columnAddress(COLUMN_KV_USAGE);
  for (let i = first, end = first + program.fused; i < end; i++) {
    const op = program.operation(i);
    if (op.code == OP_SCORE_PREFIX) {
      last = PREFIX;
      prefixFactor = op.weight;
      lengthWeight = op.p0;
      reachScale = op.p1 > 0 ? op.p2 / op.p1 : 0;
    } else if (op.code == OP_SCORE_KV_USAGE) {
      last = USAGE;
      usageFactor = op.weight;
      signals |= SIGNAL_KV_USAGE;
    } else {
      last = FEWEST;
      fewestFactor = op.weight;
      const queue = op.code == OP_SCORE_QUEUE;
      values = queue ? VALUES : columnAddress(COLUMN_RUNNING);
      signals |= queue ? SIGNAL_WAITING : SIGNAL_RUNNING;
    }
  }
}

/** The values of candidates, and NaN for others: pmin and pmax pass over a NaN that is their second operand. */
function ofCandidates(value: v128, lanes: v128): v128 {
  return v128.or(value, v128.not(lanes));
}

/** Lanes of candidates that lack a signal. */
function lacking(candidates: v128, known: v128, wanted: v128): v128 {
  return v128.andnot(candidates, i32x4.eq(v128.and(known, wanted), wanted));
}

/** Notes the range of the values of the candidates of a group. */
function noteRange(at: usize, least: v128, highest: v128): void {
  const group = (at / GROUP_BYTES) << 4;
  v128.store(LOWS + group, least);
  v128.store(HIGHS + group, highest);
}

/**
 * Copies the predicted waiting counts to VALUES, since others may change them meanwhile, and notes their range. One
 * loop for this and gather(), with a branch, makes a decision among up to 64 endpoints take 2 to 4 % longer.
 * @returns as gather
 */
function gatherWaiting(from: usize, end: usize): bool {
  const candidates = CANDIDATES;
  const copies = VALUES;
  const known = columnAddress(COLUMN_KNOWN);
  const waiting = WAITING_COUNTS;
  const wanted = i32x4.splat(<i32>signals);
  const never = f32x4.splat(never32);
  const lowest = f32x4.neg(never);
  let lack = i32x4.splat(0);
  for (let at = from; at < end; ) {
    const stop = min(end, at + GROUP_BYTES);
    let least = never;
    let highest = lowest;
    for (; at < stop; at += 16) {
      const lanes = v128.load(candidates + at);
      lack = v128.or(lack, lacking(lanes, v128.load(known + at), wanted));
      if (ASSERTIONS) assert(!lockHeld(COMMIT_LOCK) || waitingStands(at), 'predicted waiting counts are up to date');
      const value = v128.load(waiting + at);
      v128.store(copies + at, value);
      const some = ofCandidates(value, lanes);
      least = f32x4.pmin(least, some);
      highest = f32x4.pmax(highest, some);
    }
    noteRange(stop - 16, least, highest);
  }
  return !v128.any_true(lack);
}

/**
 * Notes the range of the fewest term's values of each group of slots at the bytes `from`, where one begins, to `end`.
 * @returns whether all their candidates show all signals of the group of scorers
 */
export function gather(from: usize, end: usize): bool {
  if (values == VALUES) return gatherWaiting(from, end);
  const candidates = CANDIDATES;
  const known = columnAddress(COLUMN_KNOWN);
  const column = values;
  const wanted = i32x4.splat(<i32>signals);
  const never = f32x4.splat(never32);
  const lowest = f32x4.neg(never);
  let lack = i32x4.splat(0);
  for (let at = from; at < end; ) {
    const stop = min(end, at + GROUP_BYTES);
    let least = never;
    let highest = lowest;
    for (; at < stop; at += 16) {
      const lanes = v128.load(candidates + at);
      lack = v128.or(lack, lacking(lanes, v128.load(known + at), wanted));
      const some = ofCandidates(v128.load(column + at), lanes);
      least = f32x4.pmin(least, some);
      highest = f32x4.pmax(highest, some);
    }
    noteRange(stop - 16, least, highest);
  }
  return !v128.any_true(lack);
}

/** Takes the range of all groups up to byte `end`. @returns whether it is the one of before */
export function rangeTaken(end: usize): bool {
  let least = f32x4.splat(never32);
  let highest = f32x4.neg(least);
  for (let at: usize = 0, groups = groupsBytes(end); at < groups; at += 16) {
    least = f32x4.pmin(least, v128.load(LOWS + at));
    highest = f32x4.pmax(highest, v128.load(HIGHS + at));
  }
  const lowBefore = low;
  const highBefore = high;
  low = laneMin(least);
  high = laneMax(highest);
  return low == lowBefore && high == highBefore;
}

/** Bytes of a row of 16 bytes a group, for the slots up to byte `end` of the columns. */
function groupsBytes(end: usize): usize {
  return ((end + GROUP_BYTES - 1) / GROUP_BYTES) << 4;
}

/** Notes the highest scores of all groups up to byte `end`, and the most blocks held. */
export function noteScored(end: usize): void {
  let best = f32x4.neg(f32x4.splat(never32));
  for (let at: usize = 0, groups = groupsBytes(end); at < groups; at += 16)
    best = f32x4.pmax(best, v128.load(PEAKS + at));
  noteHighest(laneMax(best));
  noteBestMatch(<u32>bestBlocks);
  noteLongestMatch(<u32>longestBlocks);
  noteSignal(signals);
}

/**
 * Stores the sum of the terms of the slots at the bytes `from` to `end` of the columns, the highest one of the
 * candidates of each group, and whether an endpoint of it holds a block.
 * @param lastTerm the term that is added last, a constant of each call
 * @param long whether the prefix term has its second part, a constant of each call
 */
function addTerms(from: usize, end: usize, total: u32, lastTerm: u32, long: bool): void {
  const candidates = CANDIDATES;
  const scores = SCORE;
  const matches = MATCH;
  const usage = columnAddress(COLUMN_KV_USAGE);
  const column = values;
  const range = high - low;
  // All equal: 1 for each, as in scoreFewest.
  const top = f32x4.splat(high);
  const scale = f32x4.splat(range > 0 ? <f32>1 / range : <f32>0);
  const base = f32x4.splat(range > 0 ? zeroValue : oneValue);
  const ratio = f32x4.splat(total == 0 ? zeroValue : (<f32>1 - lengthWeight) / <f32>total);
  const share = f32x4.splat(lengthWeight);
  const length = f32x4.splat(reachScale);
  const ofFewest = f32x4.splat(fewestFactor);
  const ofUsage = f32x4.splat(usageFactor);
  const ofPrefix = f32x4.splat(total == 0 ? zeroValue : prefixFactor);
  const zero = f32x4.splat(zeroValue);
  const one = f32x4.splat(oneValue);
  const lowest = f32x4.neg(f32x4.splat(never32));
  let bestMatch = i32x4.splat(0);
  let longest = bestMatch;
  for (let at = from; at < end; ) {
    const stop = min(end, at + GROUP_BYTES);
    let peak = lowest;
    let held4 = i32x4.splat(0);
    for (; at < stop; at += 16) {
      const away = f32x4.add(base, f32x4.mul(f32x4.sub(top, v128.load(column + at)), scale));
      const fewest = f32x4.mul(f32x4.pmin(f32x4.pmax(away, zero), one), ofFewest);
      const free = f32x4.sub(one, v128.load(usage + at));
      const unused = f32x4.mul(f32x4.pmin(f32x4.pmax(free, zero), one), ofUsage);
      const blocks = v128.load(matches + at);
      const match = f32x4.convert_i32x4_s(blocks);
      let held = f32x4.mul(match, ratio);
      if (long) {
        const reach = f32x4.pmin(one, f32x4.mul(match, length));
        held = f32x4.add(held, f32x4.mul(share, f32x4.mul(reach, reach)));
      }
      const prefix = f32x4.mul(f32x4.pmin(f32x4.pmax(held, zero), one), ofPrefix);
      let score: v128;
      if (lastTerm == PREFIX) score = f32x4.add(f32x4.add(fewest, unused), prefix);
      else if (lastTerm == USAGE) score = f32x4.add(f32x4.add(fewest, prefix), unused);
      else score = f32x4.add(f32x4.add(unused, prefix), fewest);
      v128.store(scores + at, score);
      const lanes = v128.load(candidates + at);
      peak = f32x4.pmax(peak, ofCandidates(score, lanes));
      bestMatch = i32x4.max_s(bestMatch, v128.and(blocks, lanes));
      held4 = i32x4.max_s(held4, blocks);
    }
    const group = (stop - 16) / GROUP_BYTES;
    v128.store(PEAKS + (group << 4), peak);
    store<u32>(MARKS + (group << 2), u32(v128.any_true(held4)));
    longest = i32x4.max_s(longest, held4);
  }
  bestBlocks = max(bestBlocks, laneMaxOfIntegers(bestMatch));
  longestBlocks = max(longestBlocks, laneMaxOfIntegers(longest));
}

/** Scores the slots at the bytes `from` to `end` with the range that was taken. */
export function scoreSlots(from: usize, end: usize, total: u32): void {
  const long = lengthWeight != 0;
  if (last == PREFIX && !long) addTerms(from, end, total, PREFIX, false);
  else if (last == PREFIX) addTerms(from, end, total, PREFIX, true);
  else if (last == USAGE) addTerms(from, end, total, USAGE, true);
  else addTerms(from, end, total, FEWEST, true);
}

/**
 * Score the group of scorers that begins at operation `first`.
 * @param total blocks of the prompt
 * @returns false = nothing was scored, and the scorers have to run one by one
 */
export function fusedScores(program: Program, first: u32, used: u32, total: u32): bool {
  const end = slotOffset(used);
  fusedBegin(program, first);
  if (!gather(0, end)) return false;
  rangeTaken(end);
  scoreSlots(0, end, total);
  noteScored(end);
  return true;
}

// The group once more, for slots of which requests in flight, and no signals, have changed since (judgement.ts). Of
// its values only the predicted waiting counts depend on them.

/** Result of valueAgain(): the value of the slot is the same, another one, or at an end of the range before or now. */
export const VALUE_SAME: u32 = 0;
export const VALUE_INSIDE: u32 = 1;
export const VALUE_AT_END: u32 = 2;

/** Takes the value of a candidate once more. Commit lock held. @returns VALUE_* */
export function valueAgain(slot: u32): u32 {
  if (values != VALUES) return VALUE_SAME;
  const at = VALUES + slotOffset(slot);
  const before = load<f32>(at);
  const value = predictedWaiting(slot);
  if (value == before) return VALUE_SAME;
  store<f32>(at, value);
  return before > low && before < high && value > low && value < high ? VALUE_INSIDE : VALUE_AT_END;
}

/** Whether a candidate has a value. */
function isTaken(used: u32, value: f32): bool {
  const four = f32x4.splat(value);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    if (v128.any_true(v128.and(f32x4.eq(v128.load(VALUES + at), four), v128.load(CANDIDATES + at)))) return true;
  }
  return false;
}

/** Whether the value of a slot lies in the range that the scores were made with. */
export function isInRange(slot: u32): bool {
  const value = load<f32>(VALUES + slotOffset(slot));
  return value >= low && value <= high;
}

/** Whether both ends of that range are still values of candidates; isInRange() holds for all of them. */
export function rangeStays(used: u32): bool {
  return isTaken(used, low) && isTaken(used, high);
}

/** Scores a slot and its three neighbours once more, with the values in VALUES and the range as it was. */
export function scoreAgain(slot: u32, total: u32): void {
  const at = slotOffset(slot & ~3);
  scoreSlots(at, at + 16, total);
  noteHighest(NaN);
}
