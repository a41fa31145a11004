// The coefficients of the latency model.
//
// Owns: REGION_PREDICTION, written by the control thread and read by decide, both under the commit lock.
//
//   head     PredictionHead · +64 f32 × 14: coefficients of an unknown endpoint
//   columns  f32 × SLOTS for each coefficient: 7 of the time to first token, then 7 of the time per output token
//            u32 × SLOTS: 1 = learned from the endpoint's own requests
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { COLUMN_GENERATION } from '../endpoints';
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import {
  INPUT,
  PREDICTION,
  PREDICTION_COEFFICIENTS,
  PREDICTION_FEATURES,
  PREDICTION_HEAD_BYTES,
  SLOTS,
} from '../memory';
import { isSlot } from '../preconditions';

/** Head of REGION_PREDICTION. */
@unmanaged
class PredictionHead {
  /** 1 = the coefficients of an unknown endpoint have been written · control thread · commit lock. */
  ready: u32;
}

/** Offset of the coefficients of an unknown endpoint. */
const HEAD_UNKNOWN: usize = 64;

function head(): PredictionHead {
  return changetype<PredictionHead>(PREDICTION);
}

/** The control thread must not stop for long: it is the one that repairs. */
const SHORT: u32 = 20;

/** Address of the column of one coefficient. @param target 0 time to first token, 1 time per output token */
export function coefficientAddress(target: u32, feature: u32): usize {
  return PREDICTION + PREDICTION_HEAD_BYTES + ((<usize>(target * PREDICTION_FEATURES + feature) * SLOTS) << 2);
}

export function predictionReady(): bool {
  return head().ready != 0;
}

function learnedAt(slot: u32): usize {
  return coefficientAddress(0, PREDICTION_COEFFICIENTS) + slotOffset(slot);
}

function write(slot: u32, from: usize): void {
  for (let i: u32 = 0; i < PREDICTION_COEFFICIENTS; i++) {
    store<f32>(coefficientAddress(0, i) + slotOffset(slot), load<f32>(from + ((<usize>i) << 2)));
  }
}

/** Forgets what was learned about the endpoint that had the slot before. Commit lock held. */
export function coefficientsForget(slot: u32): void {
  store<u32>(learnedAt(slot), 0);
  write(slot, PREDICTION + HEAD_UNKNOWN);
}

/**
 * Takes the coefficients in INPUT (f32 × 14) for every endpoint that nothing has been learned about.
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function predictionPrior(): u32 {
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  memory.copy(PREDICTION + HEAD_UNKNOWN, INPUT, (<usize>PREDICTION_COEFFICIENTS) << 2);
  for (let slot: u32 = 0; slot < SLOTS; slot++) if (load<u32>(learnedAt(slot)) == 0) write(slot, INPUT);
  head().ready = 1;
  lockRelease(COMMIT_LOCK);
  return 0;
}

/**
 * Takes the coefficients in INPUT for the endpoint in a slot; nothing happens when the slot has changed hands.
 * @returns as predictionPrior
 */
export function predictionLearned(slot: u32, generation: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (slot >= SLOTS || column.u32(COLUMN_GENERATION, slot) != generation) return 0;
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  write(slot, INPUT);
  store<u32>(learnedAt(slot), 1);
  lockRelease(COMMIT_LOCK);
  return 0;
}
