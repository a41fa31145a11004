// Common end of all scorers: clamps a column of raw scores, weighs it and adds it.
//
// Owns: the thread's SCORE and KEYS columns (and, when a decision is explained, EXPLAIN), written by its own thread.
import { slotOffset } from '../columns/column';
import { laneMax, laneMin } from '../columns/lanes';
import { CANDIDATES, EXPLAIN, KEYS, SCORE, SLOTS } from '../memory';

export const NEVER: f32 = <f32>3.4e38;

/** Weight of the column, and where its explanation goes (0 = nowhere). */
export let weight: f32 = 0;
let explanation: usize = 0;
/** Signals that the scorers of this decision have read, SIGNAL_* bits. */
export let signalsRead: u32 = 0;

// Vector constants that V8 would load again in every turn of a loop; as variables, set by columnBegin(), they stay in
// registers.
export let zeroValue: f32 = 1;
export let oneValue: f32 = 0;

/** The highest score of a candidate, as far as it is known; f32.NaN = it has to be looked for. */
let highestScore: f32 = NaN;

/** Begins a decision. */
export function scoresBegin(): void {
  signalsRead = 0;
  highestScore = NaN;
  bestMatchNoted = u32.MAX_VALUE;
  reachableNoted = u32.MAX_VALUE;
}

/** Most blocks that a candidate holds, as far as it is known; u32.MAX_VALUE = it has to be looked for. */
export let bestMatchNoted: u32 = u32.MAX_VALUE;

/**
 * Notes the most blocks of the prompt that any candidate holds, found while they were scored; u32.MAX_VALUE when one
 * was unmarked.
 */
export function noteBestMatch(blocks: u32): void {
  bestMatchNoted = blocks;
}

/** Most blocks that an endpoint held which warm-up-filter could keep; u32.MAX_VALUE = no such filter has run. */
export let reachableNoted: u32 = u32.MAX_VALUE;

/** Notes the most blocks of the prompt that the request could find, whatever filters leave. */
export function noteReachable(blocks: u32): void {
  reachableNoted = blocks;
}

/** Most blocks that any endpoint holds, candidate or not, as bestMatchNoted. */
export let longestMatchNoted: u32 = u32.MAX_VALUE;

/** Notes the most blocks of the prompt that any endpoint holds; u32.MAX_VALUE at the beginning of a decision. */
export function noteLongestMatch(blocks: u32): void {
  longestMatchNoted = blocks;
}

/** Notes the highest score of the candidates, found while SCORE was written. */
export function noteHighest(score: f32): void {
  highestScore = score;
}

/**
 * The highest score, if it is still that of all candidates; the caller may unmark some of them.
 * @returns NaN = unknown
 */
export function takeHighest(): f32 {
  const score = highestScore;
  highestScore = NaN;
  return score;
}

/** Notes that a scorer of this decision reads a signal. */
export function noteSignal(signal: u32): void {
  signalsRead |= signal;
}

/**
 * Begins a scorer's column.
 * @param explainColumn column of the explanation, -1 = none
 */
export function columnBegin(factor: f32, used: u32, explainColumn: i32): void {
  weight = factor;
  highestScore = NaN;
  zeroValue = 0;
  oneValue = 1;
  explanation = explainColumn < 0 ? 0 : EXPLAIN + <usize>explainColumn * SLOTS * 4;
  if (explanation != 0) memory.copy(explanation, SCORE, slotOffset(used));
}

/** Ends the column: when the decision is explained, the column is worked out once more from what it added. */
export function columnEnd(used: u32): void {
  if (explanation == 0) return;
  const before = explanation;
  const factor = f32x4.splat(weight == 0 ? <f32>0 : <f32>1 / weight);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const added = f32x4.sub(v128.load(SCORE + at), v128.load(before + at));
    v128.store(before + at, f32x4.mul(added, factor));
  }
}

/** Adds the raw scores of four slots, clamped to [0, 1]. */
export function addScores(scores: usize, raw: v128, zero: v128, one: v128, factor: v128): void {
  const score = f32x4.pmin(f32x4.pmax(raw, zero), one);
  v128.store(scores, f32x4.add(v128.load(scores), f32x4.mul(score, factor)));
}

/** Adds the scores in KEYS. */
export function addKeys(used: u32): void {
  const keys = KEYS;
  const scores = SCORE;
  const zero = f32x4.splat(zeroValue);
  const one = f32x4.splat(oneValue);
  const factor = f32x4.splat(weight);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    addScores(scores + at, v128.load(keys + at), zero, one, factor);
  }
}

/** Adds the same score for every candidate. */
export function addConstant(used: u32, score: f32): void {
  const scores = SCORE;
  const added = f32x4.splat(score * weight);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    v128.store(scores + at, f32x4.add(v128.load(scores + at), added));
  }
}

/** Turns the costs in KEYS into scores there: (max - cost) / (max - min) over the candidates; all equal = 1. */
export function scoreCosts(used: u32): void {
  const keys = KEYS;
  const candidates = CANDIDATES;
  const never = f32x4.splat(NEVER);
  const lowest = f32x4.neg(never);
  const end = slotOffset(used);
  let low = never;
  let high = lowest;
  for (let at: usize = 0; at < end; at += 16) {
    const cost = v128.load(keys + at);
    const lanes = v128.load(candidates + at);
    low = f32x4.pmin(low, v128.bitselect(cost, never, lanes));
    high = f32x4.pmax(high, v128.bitselect(cost, lowest, lanes));
  }
  const top = laneMax(high);
  const range = top - laneMin(low);
  const best = f32x4.splat(range > 0 ? top : <f32>1);
  const scale = f32x4.splat(range > 0 ? <f32>1 / range : <f32>0);
  const base = f32x4.splat(range > 0 ? <f32>0 : <f32>1);
  for (let at: usize = 0; at < end; at += 16) {
    v128.store(keys + at, f32x4.add(base, f32x4.mul(f32x4.sub(best, v128.load(keys + at)), scale)));
  }
}
