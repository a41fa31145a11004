// Shares of the terms of marginal cost in the differences between candidates, from sampled decisions.
//
// Owns: per thread 64 bytes behind the coefficients in REGION_COEFFICIENTS, added to by that thread under the commit
// lock and read by any thread, and the last columns of EXPLAIN while a sampled decision is scored.
import { ASSERTIONS } from '../assertions';
import { slotOffset } from '../columns/column';
import { laneMax, laneMin } from '../columns/lanes';
import {
  CANDIDATES,
  COEFFICIENT_BYTES,
  COEFFICIENTS,
  EXPLAIN,
  EXPLAIN_COLUMNS,
  PROJECTION_BYTES,
  SHARE_BYTES,
  SLOTS,
  THREAD,
} from '../memory';
import { isThread } from '../preconditions';
import { NEVER } from './score-column';

/** Sampled decisions of a thread, and how much each term had to say in them; any thread reads it. */
@unmanaged
class Shares {
  /** Sampled decisions · its thread · commit lock. */
  samples: f64;
  /**
   * Sum of the shares of the term context in the range of all terms; the other terms follow in the order of
   * termColumn() · its thread · commit lock.
   */
  firstTerm: f64;
  private otherTerms0: f64;
  private otherTerms1: f64;
  private otherTerms2: f64;
  private otherTerms3: f64;
  private gap: f64;
  /** Decisions so far, to take every SAMPLE_EVERYth · its thread · commit lock. */
  calls: u32;
}

export const SHARE_FIRST_TERM: usize = offsetof<Shares>('firstTerm');
export const SHARE_TERMS: u32 = 5; // context, queue, waiting, decode, capacity
const SAMPLE_EVERY: u32 = 16;

/** Column of a term's costs in a sampled decision. */
export function termColumn(index: u32): usize {
  return EXPLAIN + <usize>(EXPLAIN_COLUMNS - SHARE_TERMS + index) * SLOTS * 4;
}

/** Address of a thread's shares. */
export function sharesAddress(thread: u32): usize {
  if (ASSERTIONS) assert(isThread(thread), 'the thread is one of the pool');
  return COEFFICIENTS + COEFFICIENT_BYTES + <usize>thread * (SHARE_BYTES + PROJECTION_BYTES);
}

function ownShares(): Shares {
  return changetype<Shares>(sharesAddress(THREAD));
}

/** Returns whether the next decision of this thread that asks for marginal cost is a sampled one. */
export function nextIsSampled(): bool {
  return ownShares().calls % SAMPLE_EVERY == 0;
}

/** Counts a decision of this thread that asks for marginal cost. */
export function noteDecision(): void {
  ownShares().calls += 1;
}

/** Range of a column over the candidates. */
export function range(used: u32, column: usize): f32 {
  const never = f32x4.splat(NEVER);
  const lowest = f32x4.neg(never);
  let low = never;
  let high = lowest;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const value = v128.load(column + at);
    const lanes = v128.load(CANDIDATES + at);
    low = f32x4.pmin(low, v128.bitselect(value, never, lanes));
    high = f32x4.pmax(high, v128.bitselect(value, lowest, lanes));
  }
  return laneMax(high) - laneMin(low);
}

/** Adds each term's range, as a share of the sum of the ranges. Candidates with equal figures are left out. */
export function noteShares(used: u32): void {
  const shares = ownShares();
  let sum: f32 = 0;
  for (let i: u32 = 0; i < SHARE_TERMS; i++) sum += range(used, termColumn(i));
  if (!(sum > 0)) return;
  shares.samples += 1;
  for (let i: u32 = 0; i < SHARE_TERMS; i++) {
    const at = changetype<usize>(shares) + offsetof<Shares>('firstTerm') + ((<usize>i) << 3);
    store<f64>(at, load<f64>(at) + <f64>(range(used, termColumn(i)) / sum));
  }
}
