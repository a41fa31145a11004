// Scorers that add up the work of an endpoint into one cost: the cheapest scores 1, the dearest 0.
//
// Owns: the thread's KEYS and SCORE columns, written by its own thread. Reads the endpoint columns under the commit
// lock. Sources are named at each.
import { slotOffset } from '../columns/column';
import { laneMin } from '../columns/lanes';
import { blockTokens, promptTokens, uncachedTokens } from '../columns/values';
import {
  COLUMN_ACTIVE_BLOCKS,
  COLUMN_INFLIGHT,
  COLUMN_INFLIGHT_TOKENS,
  COLUMN_OUTPUT_BLOCKS,
  columnAddress,
} from '../endpoints';
import { CANDIDATES, KEYS, MATCH, OVERLAP } from '../memory';
import { randomFloat } from '../random';
import { naturalLog } from './logarithm';
import { Operation } from './program';
import { addKeys, NEVER, oneValue, scoreCosts, zeroValue } from './score-column';

/** Fewest tokens in flight among the candidates. */
function fewestTokens(used: u32): f32 {
  const tokens = columnAddress(COLUMN_INFLIGHT_TOKENS);
  const never = f32x4.splat(NEVER);
  let least = never;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const count = f32x4.convert_i32x4_s(v128.load(tokens + at));
    least = f32x4.pmin(least, v128.bitselect(count, never, v128.load(CANDIDATES + at)));
  }
  return laneMin(least);
}

/**
 * Dynamo's KV router cost (ai-dynamo/dynamo, pull requests 1731, 10574 and 11714), in blocks:
 *   prefill = max(total [+ tokens in flight / block] - credit × decay × matched, 0)
 *   decay   = 1 / (1 + creditDecay × (tokens in flight - fewest) / block / total)
 *   cost    = overlapWeight × prefill + blocks active if placed here, each shared block once
 * A temperature adds Gumbel noise to the normalised cost, so that the arg max is a draw from the softmax of
 * -cost/temperature (Gumbel-max trick).
 */
export function scoreActiveBlocks(op: Operation, used: u32, total: u32): void {
  const temperature = op.p1;
  const decay = op.p3;
  const active = columnAddress(COLUMN_ACTIVE_BLOCKS);
  const output = columnAddress(COLUMN_OUTPUT_BLOCKS);
  const tokens = columnAddress(COLUMN_INFLIGHT_TOKENS);
  const zero = f32x4.splat(zeroValue);
  const one = f32x4.splat(oneValue);
  const all = f32x4.splat(<f32>total);
  const share = f32x4.splat(op.p0);
  const credit = f32x4.splat(op.p2);
  const block = max<f32>(blockTokens(), 1);
  const queued = f32x4.splat(op.p4 != 0 ? <f32>1 / block : <f32>0);
  const fading = f32x4.splat(decay / (block * <f32>max<u32>(total, 1)));
  const fewest = f32x4.splat(decay > 0 ? fewestTokens(used) : <f32>0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const busy = f32x4.convert_i32x4_s(v128.load(tokens + at));
    const faded = f32x4.div(credit, f32x4.add(one, f32x4.mul(fading, f32x4.sub(busy, fewest))));
    const matched = f32x4.mul(faded, f32x4.convert_i32x4_s(v128.load(MATCH + at)));
    const prefill = f32x4.pmax(zero, f32x4.sub(f32x4.add(all, f32x4.mul(busy, queued)), matched));
    const overlap = f32x4.convert_i32x4_s(v128.load(OVERLAP + at));
    const grown = i32x4.add(v128.load(active + at), v128.load(output + at));
    const potential = f32x4.add(f32x4.convert_i32x4_s(grown), f32x4.sub(all, overlap));
    v128.store(KEYS + at, f32x4.add(f32x4.mul(share, prefill), potential));
  }
  scoreCosts(used);
  if (temperature > 0) soften(used, temperature);
  addKeys(used);
}

/**
 * Adds Gumbel noise to the normalised scores, mapped into (0, 1) by a monotone function so that the clamp cuts nothing
 * off.
 */
function soften(used: u32, temperature: f32): void {
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 4) {
    const uniform = min(<f64>randomFloat() + 1e-9, 1 - 1e-9);
    const gumbel = -naturalLog(-naturalLog(uniform));
    const logit = <f64>load<f32>(KEYS + at) / <f64>temperature + gumbel;
    store<f32>(KEYS + at, <f32>(0.5 + 0.5 * (logit / (1 + abs<f64>(logit)))));
  }
}

/** LMetric (arXiv 2603.15202): (queued tokens + uncached tokens of the request) × (requests + 1). */
export function scoreLMetric(used: u32): void {
  const tokens = columnAddress(COLUMN_INFLIGHT_TOKENS);
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const zero = f32x4.splat(zeroValue);
  const one = f32x4.splat(oneValue);
  const prompt = f32x4.splat(promptTokens());
  const block = f32x4.splat(blockTokens());
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const uncached = uncachedTokens(at, prompt, block, zero);
    const work = f32x4.add(f32x4.convert_i32x4_s(v128.load(tokens + at)), uncached);
    const requests = f32x4.add(f32x4.convert_i32x4_s(v128.load(inflight + at)), one);
    v128.store(KEYS + at, f32x4.mul(work, requests));
  }
  scoreCosts(used);
  addKeys(used);
}
