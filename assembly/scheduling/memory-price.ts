// Price of scarce KV memory: of a miss by the mean usage of the candidates, and of what fills an endpoint's own cache.
//
// Owns: nothing. Reads columns of endpoints under the commit lock.
import { COLUMN_ACTIVE_BLOCKS, COLUMN_BLOCK_COUNT, COLUMN_BLOCK_TOKENS, columnAddress } from '../endpoints';
import { power } from './exponential';

const KV_MAX: f32 = 0.8;
const RAMP_FROM: f32 = 0.7;
const RAMP_WIDTH: f32 = 0.2;
/** KV cache, as a share, from which on an endpoint's own memory counts, and the price beyond it. */
const FILL_FROM: f32 = 0.7;
const FILL_PRICE: f32 = 6;
/** Most of a cache that prompts without first output take before a scrape tells of it. */
const UNTOLD_MAX: f32 = 0.02;
/** KV usage from which on requests that wait in an engine wait for memory, and say nothing of prefill. */
export const MEMORY_FULL_FROM: f32 = 0.85;
/** Further usage at which they do in full; price of a cache of tokens ahead. */
const FULL_WIDTH: f32 = 0.1;
const AHEAD_PRICE: f32 = 0.5;

/**
 * Price of a miss beside its own prefill, in prefills: 1/(1 - min(0.8, usage))^a - 1 by the mean KV usage of the
 * candidates, and what is computed again of the idle prompts that it evicts.
 * @param evictionPrice tokens that are computed for a missed one, with those that it evicts
 */
export function scarcity(usage: f32, evictionPrice: f32): v128 {
  const exponent = <f32>1 + min<f32>(max<f32>((usage - RAMP_FROM) / RAMP_WIDTH, 0), 1);
  const byUsage = power(f32x4.splat(<f32>1 - min<f32>(KV_MAX, max<f32>(usage, 0))), -exponent);
  const others = max<f32>(evictionPrice, 1) - 1;
  return f32x4.add(byUsage, f32x4.splat(others - 1));
}

/**
 * Turns of output, O step, that the request and others lose on four slots because their KV caches are full.
 * @param usage KV usage, or the mean where it is unknown
 * @param n requests in flight
 * @param fresh tokens of the prompt that the endpoint does not hold
 * @param pending the same of requests without first output: no scrape has them all
 * @param output usual output tokens
 */
export function turnsForMemory(
  at: usize,
  usage: v128,
  n: v128,
  waiting: v128,
  prompt: v128,
  fresh: v128,
  pending: v128,
  block: v128,
  output: v128,
): v128 {
  const zero = f32x4.splat(0);
  const one = f32x4.splat(1);
  const blocks = f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_BLOCK_COUNT) + at));
  const capacity = f32x4.mul(blocks, f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_BLOCK_TOKENS) + at)));
  const known = f32x4.gt(capacity, zero);
  const perCapacity = v128.and(f32x4.div(one, capacity), known);
  const active = f32x4.mul(block, f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_ACTIVE_BLOCKS) + at)));
  const grown = f32x4.mul(n, f32x4.mul(output, f32x4.splat(0.5)));
  const charged = f32x4.mul(f32x4.add(active, grown), perCapacity);
  const untold = f32x4.pmin(f32x4.splat(UNTOLD_MAX), f32x4.mul(pending, perCapacity));
  const scraped = f32x4.add(usage, untold);
  const fill = f32x4.add(f32x4.pmax(scraped, charged), f32x4.mul(prompt, perCapacity));
  const beyond = f32x4.pmax(zero, f32x4.sub(fill, f32x4.splat(FILL_FROM)));
  const above = f32x4.mul(f32x4.sub(usage, f32x4.splat(MEMORY_FULL_FROM)), f32x4.splat(<f32>1 / FULL_WIDTH));
  const full = f32x4.pmin(one, f32x4.pmax(zero, above));
  const oneOfAll = f32x4.div(one, f32x4.pmax(one, n));
  const taken = v128.bitselect(f32x4.mul(f32x4.add(fresh, output), perCapacity), oneOfAll, known);
  const ahead = f32x4.mul(f32x4.mul(f32x4.add(one, waiting), full), taken);
  const evicted = f32x4.mul(f32x4.splat(FILL_PRICE), f32x4.mul(beyond, beyond));
  return f32x4.add(evicted, f32x4.mul(f32x4.splat(AHEAD_PRICE), ahead));
}
