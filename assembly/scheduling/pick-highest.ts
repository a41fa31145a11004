// The highest key among the candidates, and the picks of the answer: what all pickers share.
//
// Owns: the picks in the thread's answer. Called under the commit lock by the thread itself.
import { laneMax, laneMinOfIntegers } from '../columns/lanes';
import { COLUMN_INFLIGHT, columnAddress } from '../endpoints';
import { CANDIDATES } from '../memory';
import { randomBelow } from '../random';

const LOWEST: f32 = <f32>-3.4e38;

/** Highest key among the candidates. */
function highest(used: u32, keys: usize): f32 {
  const candidates = CANDIDATES;
  const lowest = f32x4.splat(LOWEST);
  let best = lowest;
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16) {
    best = f32x4.pmax(best, v128.bitselect(v128.load(keys + at), lowest, v128.load(candidates + at)));
  }
  return laneMax(best);
}

/** Fewest requests in flight among the candidates with key `best`. */
function fewestInflight(used: u32, keys: usize, best: v128): u32 {
  const candidates = CANDIDATES;
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const many = i32x4.splat(i32.MAX_VALUE);
  let fewest = many;
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16) {
    const hits = v128.and(f32x4.eq(v128.load(keys + at), best), v128.load(candidates + at));
    fewest = i32x4.min_s(fewest, v128.bitselect(v128.load(inflight + at), many, hits));
  }
  return <u32>laneMinOfIntegers(fewest);
}

/** Candidates of four slots that are tied for the pick, one bit each. */
function tiedBits(at: usize, keys: usize, best: v128, inflight: usize, fewest: v128): u32 {
  const hits = v128.and(f32x4.eq(v128.load(keys + at), best), v128.load(CANDIDATES + at));
  return <u32>i32x4.bitmask(v128.and(hits, i32x4.eq(v128.load(inflight + at), fewest)));
}

/**
 * The candidate with the highest key; ties go to the fewest requests in flight here, then by lot (architecture §6).
 */
export function pickHighest(used: u32, keys: usize): u32 {
  const best = f32x4.splat(highest(used, keys));
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const fewest = i32x4.splat(<i32>fewestInflight(used, keys, best));
  const end = (<usize>used) << 2;
  let ties: u32 = 0;
  let last: usize = 0;
  for (let at: usize = 0; at < end; at += 16) {
    const bits = tiedBits(at, keys, best, inflight, fewest);
    if (bits != 0) last = at;
    ties += popcnt<u32>(bits);
  }
  if (ties == 0) return u32.MAX_VALUE;
  let left: u32 = ties == 1 ? 0 : randomBelow(ties);
  for (let at: usize = ties == 1 ? last : 0; at < end; at += 16) {
    let bits = tiedBits(at, keys, best, inflight, fewest);
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
