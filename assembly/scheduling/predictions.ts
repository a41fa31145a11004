// Predicted times of a request on each endpoint, and their distance to its targets.
//
// Owns: the thread's PREDICTED columns (f32 per slot, NaN = unknown), written by its own thread: the times in
// milliseconds, and the headrooms (wanted less predicted). Reads the endpoint columns and REGION_PREDICTION under the
// commit lock. The times come from the latency model or from the host, which writes them before decide (prediction
// servers). The features are those of llm-d-router's predictor, in the form of the training sample (load/features.ts),
// so that the model learns from the inputs of its predictions.
import { slotOffset } from '../columns/column';
import { laneSum } from '../columns/lanes';
import { blockTokens, promptTokens, uncachedTokens } from '../columns/values';
import {
  COLUMN_INFLIGHT,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_PREFILL_TOKENS,
  COLUMN_STRICTEST_TPOT,
  COLUMN_WAITING,
  columnAddress,
  SIGNAL_KV_USAGE,
  SIGNAL_WAITING,
} from '../endpoints';
import { coefficientAddress, predictionReady } from '../load/coefficients';
import { CANDIDATES, KEPT, KEYS, MASKS, PREDICTED, SLOTS } from '../memory';
import { predictedTimes, wantedTimes } from '../request-area';
import { Operation, PREDICT_BY_MODEL, PREDICT_NOTHING, PREDICT_ON_HOST_OR_BY_MODEL } from './program';

export const PREDICTED_TTFT: u32 = 0;
export const PREDICTED_TPOT: u32 = 1;
export const HEADROOM_TTFT: u32 = 2;
export const HEADROOM_TPOT: u32 = 3;

// The features of an endpoint, in the order of the coefficients: 1, then
//   1 uncached prompt tokens / 1000 · 2 uncached tokens in flight without first output / 1000 · 3 waiting requests
//   4 requests in flight from here · 5 share of the KV cache in use · 6 prompt tokens / 1000

/** Address of a PREDICTED_* or HEADROOM_* column of this thread. */
export function predictedColumn(column: u32): usize {
  return PREDICTED + ((<usize>column * SLOTS) << 2);
}

/** Mean of a column over the candidates whose signal is known; 0 when it is for none. */
export function meanOfKnown(used: u32, values: usize, signal: i32): f32 {
  const known = columnAddress(COLUMN_KNOWN);
  const bit = i32x4.splat(signal);
  const one = f32x4.splat(1);
  let total = f32x4.splat(0);
  let number = f32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const lanes = v128.and(v128.load(CANDIDATES + at), i32x4.eq(v128.and(v128.load(known + at), bit), bit));
    total = f32x4.add(total, v128.and(v128.load(values + at), lanes));
    number = f32x4.add(number, v128.and(one, lanes));
  }
  const count = laneSum(number);
  return count == 0 ? 0 : laneSum(total) / count;
}

/** Copies a column of signals, with the mean of the known ones in the place of the unknown. */
function fillUnknown(used: u32, values: usize, signal: i32, to: usize): void {
  const known = columnAddress(COLUMN_KNOWN);
  const bit = i32x4.splat(signal);
  const mean = f32x4.splat(meanOfKnown(used, values, signal));
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const lanes = i32x4.eq(v128.and(v128.load(known + at), bit), bit);
    v128.store(to + at, v128.bitselect(v128.load(values + at), mean, lanes));
  }
}

/** Writes waiting requests to KEYS and the KV usage to KEPT, both without gaps. */
function fillSignals(used: u32): void {
  fillUnknown(used, columnAddress(COLUMN_WAITING), SIGNAL_WAITING, KEYS);
  fillUnknown(used, columnAddress(COLUMN_KV_USAGE), SIGNAL_KV_USAGE, KEPT);
}

function weighted(coefficient: usize, feature: v128): v128 {
  return f32x4.mul(v128.load(coefficient), feature);
}

/**
 * Fills the cells that the host left NaN in a predicted column, from the model: Σ coefficient × feature, at least 0.
 */
function predictColumn(used: u32, target: u32): void {
  const first = coefficientAddress(target, 0);
  const column = slotOffset(SLOTS);
  const values = predictedColumn(target);
  const tokens = columnAddress(COLUMN_PREFILL_TOKENS);
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const zero = f32x4.splat(0);
  const thousandth = f32x4.splat(0.001);
  const prompt = f32x4.splat(promptTokens());
  const block = f32x4.splat(blockTokens());
  const length = f32x4.mul(prompt, thousandth);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const c = first + at;
    let sum = v128.load(c);
    sum = f32x4.add(sum, weighted(c + column, f32x4.mul(uncachedTokens(at, prompt, block, zero), thousandth)));
    const busy = f32x4.mul(f32x4.convert_i32x4_s(v128.load(tokens + at)), thousandth);
    sum = f32x4.add(sum, weighted(c + column * 2, busy));
    sum = f32x4.add(sum, weighted(c + column * 3, v128.load(KEYS + at)));
    sum = f32x4.add(sum, weighted(c + column * 4, f32x4.convert_i32x4_s(v128.load(inflight + at))));
    sum = f32x4.add(sum, weighted(c + column * 5, v128.load(KEPT + at)));
    sum = f32x4.add(sum, weighted(c + column * 6, length));
    const predicted = f32x4.max(sum, zero);
    const given = v128.load(values + at);
    v128.store(values + at, v128.bitselect(given, predicted, f32x4.eq(given, given)));
  }
}

function forgetColumn(used: u32, target: u32): void {
  const unknown = f32x4.splat(NaN);
  const values = predictedColumn(target);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) v128.store(values + at, unknown);
}

/** Wanted less predicted time to first token; NaN where nothing is predicted. */
function leaveTtft(used: u32): void {
  const values = predictedColumn(PREDICTED_TTFT);
  const left = predictedColumn(HEADROOM_TTFT);
  const wanted = f32x4.splat(wantedTimes().ttft);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    v128.store(left + at, f32x4.sub(wanted, v128.load(values + at)));
  }
}

/**
 * The same for the time per output token, where the strictest wish on the endpoint counts too, and both times `buffer`;
 * 0 where nothing is predicted.
 * @param streaming false: nothing is known of single tokens, so that they are neither early nor late
 */
function leaveTpot(used: u32, streaming: bool, buffer: f32): void {
  const values = predictedColumn(PREDICTED_TPOT);
  const left = predictedColumn(HEADROOM_TPOT);
  if (!streaming) return memory.fill(left, 0, slotOffset(used));
  const strictest = columnAddress(COLUMN_STRICTEST_TPOT);
  const zero = f32x4.splat(0);
  const own = f32x4.splat(wantedTimes().tpot);
  const factor = f32x4.splat(buffer);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const given = v128.load(values + at);
    const others = v128.load(strictest + at);
    const wanted = v128.bitselect(f32x4.pmin(own, others), own, f32x4.gt(others, zero));
    const rest = f32x4.sub(f32x4.mul(wanted, factor), given);
    v128.store(left + at, v128.and(rest, f32x4.eq(given, given)));
  }
}

/** Gives neutral times to endpoints that only prefill: they make no tokens. */
function excusePrefill(used: u32, mask: u32): void {
  const words = MASKS + <usize>mask * (SLOTS >> 3);
  const left = predictedColumn(HEADROOM_TPOT);
  for (let slot: u32 = 0; slot < used; slot++) {
    if ((load<u32>(words + ((<usize>(slot >> 5)) << 2)) & (1 << (slot & 31))) == 0) continue;
    store<f32>(left + slotOffset(slot), 0);
  }
}

/**
 * Fills the PREDICTED columns for the request (operation OP_PREDICT).
 * @param op parameters as in program.ts
 */
export function predict(op: Operation, used: u32): void {
  const source = <u32>op.p0;
  const mask = <u32>op.p3;
  if (source == PREDICT_NOTHING || source == PREDICT_BY_MODEL) {
    forgetColumn(used, PREDICTED_TTFT);
    forgetColumn(used, PREDICTED_TPOT);
  }
  if ((source == PREDICT_BY_MODEL || source == PREDICT_ON_HOST_OR_BY_MODEL) && predictionReady()) {
    fillSignals(used);
    predictColumn(used, PREDICTED_TTFT);
    predictColumn(used, PREDICTED_TPOT);
  }
  leaveTtft(used);
  leaveTpot(used, op.p1 != 0, op.p2);
  if (mask != 0) excusePrefill(used, mask - 1);
}

/** Clears the prediction of the answer. */
export function clearPrediction(): void {
  predictedTimes().ttft = NaN;
  predictedTimes().tpot = NaN;
}

/** Writes what was predicted for a slot. */
export function answerPrediction(slot: u32): void {
  const at = slotOffset(slot);
  predictedTimes().ttft = load<f32>(predictedColumn(PREDICTED_TTFT) + at);
  predictedTimes().tpot = load<f32>(predictedColumn(PREDICTED_TPOT) + at);
}
