// Coefficients of the cost model and the costs of endpoints, as the control thread writes them.
//
// Owns: the first 256 bytes of REGION_COEFFICIENTS and the columns SPEED, HIT_RELIABILITY and COST_BASE .. COST_GROWTH,
// written by the control thread under the commit lock and read by any thread under it; O is also read without it, where
// a value of before or after a change is as good (memory-price.ts: isPressed). The formula that they belong to is in
// marginal-cost.ts.
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import {
  COLUMN_COST_BASE,
  COLUMN_COST_GROWTH,
  COLUMN_COST_PREFILL,
  COLUMN_COST_STEP,
  COLUMN_COST_WAITING,
  COLUMN_GENERATION,
  COLUMN_HIT_RELIABILITY,
  COLUMN_SPEED,
} from '../endpoints';
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import { attached, COEFFICIENTS, REGION_COEFFICIENTS, regionAddress, SLOTS } from '../memory';
import { isAmount, isMapped, isSlot } from '../preconditions';

/** Coefficients of the cost model. */
@unmanaged
export class Coefficients {
  /** θ0, ms · control thread · commit lock. */
  base: f32;
  /** c, ms per 1,000 uncached tokens · control thread · commit lock. */
  prefill: f32;
  /** w, ms per request that the engine has waiting · control thread · commit lock. */
  waiting: f32;
  /** d, ms per output token · control thread · commit lock. */
  step: f32;
  /** g, ms per output token and 100,000 tokens in flight · control thread · commit lock. */
  growth: f32;
  /** μ, factor on the price of a miss · control thread · commit lock. */
  missPrice: f32;
  /** O, tokens · control thread · commit lock. */
  output: f32;
  /** T, ms · control thread · commit lock. */
  firstOutputTarget: f32;
  /** P', ms · control thread · commit lock. */
  perTokenTarget: f32;
  /** Requests that every endpoint runs at once at least · control thread · commit lock. */
  slots: f32;
  /** ε, tokens computed for a missed one, with those that it evicts · control thread · commit lock. */
  evictionPrice: f32;
}

/** Bytes of the coefficients, which lie together. */
export const COEFFICIENTS_BYTES: usize = offsetof<Coefficients>();
export const COEFFICIENT_BASE: usize = offsetof<Coefficients>('base');
export const COEFFICIENT_PREFILL: usize = offsetof<Coefficients>('prefill');
export const COEFFICIENT_WAITING: usize = offsetof<Coefficients>('waiting');
export const COEFFICIENT_STEP: usize = offsetof<Coefficients>('step');
export const COEFFICIENT_GROWTH: usize = offsetof<Coefficients>('growth');
export const COEFFICIENT_MISS_PRICE: usize = offsetof<Coefficients>('missPrice');
export const COEFFICIENT_OUTPUT: usize = offsetof<Coefficients>('output');
export const COEFFICIENT_FIRST_OUTPUT_TARGET: usize = offsetof<Coefficients>('firstOutputTarget');
export const COEFFICIENT_PER_TOKEN_TARGET: usize = offsetof<Coefficients>('perTokenTarget');
export const COEFFICIENT_SLOTS: usize = offsetof<Coefficients>('slots');
export const COEFFICIENT_EVICTION_PRICE: usize = offsetof<Coefficients>('evictionPrice');

/** Coefficients that decisions use; read them under the commit lock. */
export function coefficients(): Coefficients {
  return changetype<Coefficients>(COEFFICIENTS);
}

/** Writes the default coefficients of a pool (defaults of the section adaptation). Creator only. */
export function coefficientsInitialise(): void {
  const given = changetype<Coefficients>(regionAddress(REGION_COEFFICIENTS));
  given.base = 25;
  given.prefill = 55;
  given.waiting = 5;
  given.step = 13;
  given.growth = 4;
  given.missPrice = 1.5;
  given.output = 200;
  given.firstOutputTarget = 2000;
  given.perTokenTarget = 60;
  given.slots = 256;
  given.evictionPrice = 1;
}

export function coefficientsAddress(): usize {
  return attached(COEFFICIENTS);
}

/**
 * Writes all coefficients at once; the control thread has put them, in the order above, at `from`.
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function coefficientsWrite(from: usize): u32 {
  if (ASSERTIONS) assert(isMapped(from, COEFFICIENTS_BYTES), 'the coefficients are in the memory');
  if (!lockAcquire(COMMIT_LOCK, 20)) return 1;
  memory.copy(COEFFICIENTS, from, COEFFICIENTS_BYTES);
  lockRelease(COMMIT_LOCK);
  return 0;
}

/**
 * Writes the costs of an endpoint. Speed: 1 = as the others, 2 = everything takes twice as long, 0 = 1. Reliability:
 * share of the tokens in the prefix index that its cache turns out to hold. Hardware class: its coefficients, with the
 * speed beside other endpoints of the class. Nothing happens when the slot has changed hands.
 * @param prefill 0 = the class has no coefficients of its own
 * @returns as coefficientsWrite
 */
export function endpointCost(
  slot: u32,
  generation: u32,
  speed: f32,
  reliability: f32,
  base: f32,
  prefill: f32,
  waiting: f32,
  step: f32,
  growth: f32,
): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(isAmount(speed), '`speed` is a number from 0 on');
  if (ASSERTIONS) assert(isAmount(reliability), '`reliability` is a number from 0 on');
  if (slot >= SLOTS) return 0;
  if (!lockAcquire(COMMIT_LOCK, 20)) return 1;
  if (column.u32(COLUMN_GENERATION, slot) == generation) {
    column.setF32(COLUMN_SPEED, slot, speed);
    column.setF32(COLUMN_HIT_RELIABILITY, slot, reliability);
    column.setF32(COLUMN_COST_BASE, slot, base);
    column.setF32(COLUMN_COST_PREFILL, slot, prefill);
    column.setF32(COLUMN_COST_WAITING, slot, waiting);
    column.setF32(COLUMN_COST_STEP, slot, step);
    column.setF32(COLUMN_COST_GROWTH, slot, growth);
  }
  lockRelease(COMMIT_LOCK);
  return 0;
}
