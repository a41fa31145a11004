// The highest key among the candidates, and the picks of the answer: what all pickers share.
//
// Owns: the picks in the thread's answer. Called under the commit lock by the thread itself.
import { slotOffset } from '../columns/column';
import { laneMax, laneMaxOfIntegers, laneMinOfIntegers, laneSumOfIntegers } from '../columns/lanes';
import { COLUMN_INFLIGHT, COLUMN_KNOWN, columnAddress } from '../endpoints';
import { CANDIDATES, PEAK_SLOTS, PEAKS, SCORE } from '../memory';
import { randomBelow } from '../random';
import { signalsRead, takeHighest } from './score-column';

/** Bytes of a group of PEAKS in a column. */
const GROUP_BYTES: usize = PEAK_SLOTS * 4;

/** Key of what is not picked. */
export const LOWEST: f32 = <f32>-3.4e38;
/** Added to the requests in flight of a candidate that lacks a signal; the ledger has fewer entries. */
const LACKING: i32 = 0x40000000;

/** Highest key among the candidates. */
function highest(used: u32, keys: usize): f32 {
  const candidates = CANDIDATES;
  const lowest = f32x4.splat(LOWEST);
  let best = lowest;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    best = f32x4.pmax(best, v128.bitselect(v128.load(keys + at), lowest, v128.load(candidates + at)));
  }
  return laneMax(best);
}

/**
 * The candidates with the highest key: their lowest rank, how many have it, and the last four slots with one of them.
 */
let best: v128 = i32x4.splat(0);
let lowestRank: i32 = 0;
let ties: u32 = 0;
let place: usize = 0;
/** Whether a single candidate has the highest key, whatever its rank. */
let alone: bool = false;

/**
 * Ranks of four slots, of which the lowest wins: requests in flight, and any slot with all signals before one without.
 */
function ranks(at: usize, inflight: usize, known: usize, signals: v128): v128 {
  const full = i32x4.eq(v128.and(v128.load(known + at), signals), signals);
  return v128.or(v128.load(inflight + at), v128.andnot(i32x4.splat(LACKING), full));
}

/** Candidates of four slots with the highest key. */
function tied(at: usize, keys: usize): v128 {
  return v128.and(f32x4.eq(v128.load(keys + at), best), v128.load(CANDIDATES + at));
}

/** End of the slots that hold no highest key from byte `at` of the columns on, by the peaks of their groups. */
function withoutPeak(at: usize, end: usize): usize {
  let from = at;
  while (from < end && !v128.any_true(f32x4.eq(v128.load(PEAKS + ((from / GROUP_BYTES) << 4)), best))) {
    from += GROUP_BYTES;
  }
  return min(from, end);
}

/**
 * Goes through the candidates with the highest key. Four slots without one cost a load and a comparison.
 * @param peaked whether PEAKS holds the highest keys of groups: a group without one costs that much as a whole
 */
function gatherTies(used: u32, keys: usize, peaked: bool): void {
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const known = columnAddress(COLUMN_KNOWN);
  const signals = i32x4.splat(<i32>signalsRead);
  const none = i32x4.splat(i32.MAX_VALUE);
  const key = best;
  let lowest = none;
  let counts = i32x4.splat(0);
  let places = i32x4.splat(0);
  let all = counts;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    if (peaked && (at & (GROUP_BYTES - 1)) == 0) {
      at = withoutPeak(at, end);
      if (at == end) break;
    }
    if (!v128.any_true(f32x4.eq(v128.load(keys + at), key))) continue;
    const lanes = tied(at, keys);
    all = i32x4.sub(all, lanes);
    const rank = v128.bitselect(ranks(at, inflight, known, signals), none, lanes);
    const lower = i32x4.lt_s(rank, lowest);
    const counted = v128.and(lanes, v128.or(lower, i32x4.eq(rank, lowest)));
    // A true lane is -1, so its subtraction adds 1.
    counts = i32x4.sub(v128.andnot(counts, lower), counted);
    places = v128.bitselect(i32x4.splat(<i32>at), places, lower);
    lowest = i32x4.min_s(lowest, rank);
  }
  alone = laneSumOfIntegers(all) == 1;
  lowestRank = laneMinOfIntegers(lowest);
  const winners = i32x4.eq(lowest, i32x4.splat(lowestRank));
  ties = <u32>laneSumOfIntegers(v128.and(counts, winners));
  place = <usize>laneMaxOfIntegers(v128.and(places, winners));
}

/** Rank of the slot that was picked last. */
export function pickedRank(): i32 {
  return lowestRank;
}

/** Whether no other candidate had the highest key of the last pick. */
export function pickedAlone(): bool {
  return alone;
}

/** Rank of a slot now. */
export function rankOf(slot: u32): i32 {
  const at = slotOffset(slot);
  const full = (load<u32>(columnAddress(COLUMN_KNOWN) + at) & signalsRead) == signalsRead;
  return load<i32>(columnAddress(COLUMN_INFLIGHT) + at) | (full ? 0 : LACKING);
}

/** Slots among four with the highest key and the lowest rank, one bit each. */
function winnerBits(at: usize, keys: usize): u32 {
  const rank = ranks(at, columnAddress(COLUMN_INFLIGHT), columnAddress(COLUMN_KNOWN), i32x4.splat(<i32>signalsRead));
  return <u32>i32x4.bitmask(v128.and(tied(at, keys), i32x4.eq(rank, i32x4.splat(lowestRank))));
}

/**
 * The candidate with the highest key. Ties go to those whose signals are known, then to the fewest requests in flight
 * here, then by lot.
 */
export function pickHighest(used: u32, keys: usize): u32 {
  const noted: f32 = keys == SCORE ? takeHighest() : NaN;
  const peaked = !isNaN<f32>(noted);
  best = f32x4.splat(peaked ? noted : highest(used, keys));
  gatherTies(used, keys, peaked && used > PEAK_SLOTS);
  if (ties == 0) return u32.MAX_VALUE;
  let left: u32 = ties == 1 ? 0 : randomBelow(ties);
  for (let at: usize = ties == 1 ? place : 0, end = slotOffset(used); at < end; at += 16) {
    let bits = winnerBits(at, keys);
    const here = popcnt<u32>(bits);
    if (left >= here) {
      left -= here;
      continue;
    }
    for (; left > 0; left--) bits &= bits - 1;
    return <u32>(at >> 2) + <u32>ctz<u32>(bits);
  }
  return u32.MAX_VALUE;
}
