// The highest key among the candidates, and the picks of the answer: what all pickers share.
//
// Owns: the picks in the thread's answer. Called under the commit lock by the thread itself.
import { slotOffset } from '../columns/column';
import { laneMax, laneMinOfIntegers } from '../columns/lanes';
import { COLUMN_INFLIGHT, COLUMN_KNOWN, columnAddress } from '../endpoints';
import { CANDIDATES } from '../memory';
import { randomBelow } from '../random';
import { signalsRead } from './score-column';

const LOWEST: f32 = <f32>-3.4e38;

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

/** Candidates of four slots with the highest key, of which every signal in `signals` is known. */
function tied(at: usize, keys: usize, best: v128, signals: v128): v128 {
  const hits = v128.and(f32x4.eq(v128.load(keys + at), best), v128.load(CANDIDATES + at));
  const known = v128.load(columnAddress(COLUMN_KNOWN) + at);
  return v128.and(hits, i32x4.eq(v128.and(known, signals), signals));
}

/** The signals that the tied candidates must have: those that the scorers read, none where no tied one has them all. */
function signalsOfTied(used: u32, keys: usize, best: v128): v128 {
  const signals = i32x4.splat(<i32>signalsRead);
  let some = i32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    some = v128.or(some, tied(at, keys, best, signals));
  }
  return v128.any_true(some) ? signals : i32x4.splat(0);
}

/** Fewest requests in flight among the tied candidates. */
function fewestInflight(used: u32, keys: usize, best: v128, signals: v128): u32 {
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const many = i32x4.splat(i32.MAX_VALUE);
  let fewest = many;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    fewest = i32x4.min_s(fewest, v128.bitselect(v128.load(inflight + at), many, tied(at, keys, best, signals)));
  }
  return <u32>laneMinOfIntegers(fewest);
}

/** Tied candidates of four slots with the fewest requests in flight, one bit each. */
function tiedBits(at: usize, keys: usize, best: v128, signals: v128, inflight: usize, fewest: v128): u32 {
  return <u32>i32x4.bitmask(v128.and(tied(at, keys, best, signals), i32x4.eq(v128.load(inflight + at), fewest)));
}

/**
 * The candidate with the highest key. Ties go to those whose signals are known, then to the fewest requests in flight
 * here, then by lot.
 */
export function pickHighest(used: u32, keys: usize): u32 {
  const best = f32x4.splat(highest(used, keys));
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const signals = signalsRead == 0 ? i32x4.splat(0) : signalsOfTied(used, keys, best);
  const fewest = i32x4.splat(<i32>fewestInflight(used, keys, best, signals));
  const end = slotOffset(used);
  let ties: u32 = 0;
  let last: usize = 0;
  for (let at: usize = 0; at < end; at += 16) {
    const bits = tiedBits(at, keys, best, signals, inflight, fewest);
    if (bits != 0) last = at;
    ties += popcnt<u32>(bits);
  }
  if (ties == 0) return u32.MAX_VALUE;
  let left: u32 = ties == 1 ? 0 : randomBelow(ties);
  for (let at: usize = ties == 1 ? last : 0; at < end; at += 16) {
    let bits = tiedBits(at, keys, best, signals, inflight, fewest);
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
