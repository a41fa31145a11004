// How the columns of a profile's scorers go together with marginal cost, summed over sampled decisions: what is needed
// to find the weights that come nearest to it.
//
// Owns: the thread's projection sums behind its shares in REGION_COEFFICIENTS (768 bytes), added to by the thread under
// the commit lock, read by any thread.
//
//   ProjectionHead · +8 f64 × 8 × 8 sums of products of the columns i and j, each without its mean over the candidates
//   · +520 f64 × 8 sums of the products of column i and cost A decision whose costs range over more than 1 counts by
//   1/range², so that a moment with many endpoints does not outweigh all others.
import { slotOffset } from '../columns/column';
import { laneSum } from '../columns/lanes';
import { CANDIDATES, EXPLAIN, KEYS, PROJECTION_SCORERS, SLOTS } from '../memory';
import { Operation } from './program';

/** Columns in a row of the products. */
export const PROJECTION_ROW: u32 = 8;

/** Head of a thread's projection sums; any thread reads it. */
@unmanaged
class ProjectionHead {
  /** Sampled decisions · its thread · commit lock. */
  decisions: f64;
}

export const PROJECTION_PRODUCTS: usize = offsetof<ProjectionHead>();
export const PROJECTION_COSTS: usize = PROJECTION_PRODUCTS + <usize>(PROJECTION_ROW * PROJECTION_ROW) * sizeof<f64>();

/** Sum over the candidates of the product of two columns, less what their means make of it. */
function product(used: u32, first: usize, second: usize): f32 {
  let both = f32x4.splat(0);
  let sumOfFirst = f32x4.splat(0);
  let sumOfSecond = f32x4.splat(0);
  let count = f32x4.splat(0);
  const one = f32x4.splat(1);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const lanes = v128.load(CANDIDATES + at);
    const a = v128.and(v128.load(first + at), lanes);
    const b = v128.and(v128.load(second + at), lanes);
    both = f32x4.add(both, f32x4.mul(a, b));
    sumOfFirst = f32x4.add(sumOfFirst, a);
    sumOfSecond = f32x4.add(sumOfSecond, b);
    count = f32x4.add(count, v128.and(one, lanes));
  }
  const number = laneSum(count);
  return number == 0 ? 0 : laneSum(both) - (laneSum(sumOfFirst) * laneSum(sumOfSecond)) / number;
}

/** Explained column of the scorer that parameter `index` of operation `op` names. */
function columnOf(op: Operation, index: u32): usize {
  return EXPLAIN + <usize>load<f32>(op.parameters(1 + index)) * SLOTS * 4;
}

function add(sum: usize, value: f64): void {
  store<f64>(sum, load<f64>(sum) + value);
}

/**
 * Adds one decision, whose costs stand in KEYS and whose scorers' columns in EXPLAIN.
 * @param op OP_WOULD_PICK [scorers, number of the operation of each]
 * @param range of the costs over the candidates
 */
export function noteProjection(op: Operation, used: u32, sums: usize, range: f32): void {
  const scorers = min(<u32>op.p0, PROJECTION_SCORERS);
  if (!(range > 0)) return;
  const scale = <f64>1 / <f64>max<f32>(range * range, 1);
  changetype<ProjectionHead>(sums).decisions += 1;
  for (let i: u32 = 0; i < scorers; i++) {
    const column = columnOf(op, i);
    for (let j: u32 = 0; j < scorers; j++) {
      const at = sums + PROJECTION_PRODUCTS + ((<usize>(i * PROJECTION_ROW + j)) << 3);
      add(at, scale * <f64>product(used, column, columnOf(op, j)));
    }
    add(sums + PROJECTION_COSTS + ((<usize>i) << 3), scale * <f64>product(used, column, KEYS));
  }
}
