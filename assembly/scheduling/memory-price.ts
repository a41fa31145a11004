// Price of scarce KV memory: of a miss by the mean usage of the candidates, and of what fills an endpoint's own cache.
//
// Owns: nothing. Reads columns of endpoints under the commit lock, but isPressed.
import { slotOffset } from '../columns/column';
import {
  COLUMN_ACTIVE_BLOCKS,
  COLUMN_BLOCK_COUNT,
  COLUMN_BLOCK_TOKENS,
  COLUMN_INFLIGHT,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_PREFILL_TOKENS,
  columnAddress,
  SIGNAL_KV_USAGE,
} from '../endpoints';
import { MATCH, OVERLAP } from '../memory';
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

/** 1/C of the KV caches of four slots, of C tokens; 0 where C is unknown. */
function perCapacityOf(at: usize): v128 {
  const blocks = f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_BLOCK_COUNT) + at));
  const capacity = f32x4.mul(blocks, f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_BLOCK_TOKENS) + at)));
  return v128.and(f32x4.div(f32x4.splat(1), capacity), f32x4.gt(capacity, f32x4.splat(0)));
}

/** How full the KV caches of four slots are, as shares: by the last scrape or by what is charged, whichever is more. */
function fillOf(at: usize, usage: v128, n: v128, pending: v128, block: v128, output: v128, perCapacity: v128): v128 {
  const active = f32x4.mul(block, f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_ACTIVE_BLOCKS) + at)));
  const grown = f32x4.mul(n, f32x4.mul(output, f32x4.splat(0.5)));
  const charged = f32x4.mul(f32x4.add(active, grown), perCapacity);
  const untold = f32x4.pmin(f32x4.splat(UNTOLD_MAX), f32x4.mul(pending, perCapacity));
  return f32x4.pmax(f32x4.add(usage, untold), charged);
}

/**
 * Whether the prompt would fill the KV cache of an endpoint that holds a part of it so far that its own memory counts.
 * Only there it matters what running requests use of the prompt already. Columns are read without a lock: a value of
 * before or after a change is as good.
 */
export function isPressed(used: u32, promptTokens: f32, blockTokens: f32, outputTokens: f32): bool {
  const block = f32x4.splat(blockTokens);
  const output = f32x4.splat(outputTokens);
  const prompt = f32x4.splat(promptTokens);
  const bit = i32x4.splat(<i32>SIGNAL_KV_USAGE);
  const none = i32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const holds = i32x4.gt_s(v128.load(MATCH + at), none);
    const shares = v128.and(holds, i32x4.gt_s(v128.load(columnAddress(COLUMN_ACTIVE_BLOCKS) + at), none));
    if (!v128.any_true(shares)) continue;
    const known = i32x4.eq(v128.and(v128.load(columnAddress(COLUMN_KNOWN) + at), bit), bit);
    const usage = v128.bitselect(v128.load(columnAddress(COLUMN_KV_USAGE) + at), f32x4.splat(1), known);
    const n = f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_INFLIGHT) + at));
    const pending = f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_PREFILL_TOKENS) + at));
    const perCapacity = perCapacityOf(at);
    const fill = f32x4.add(fillOf(at, usage, n, pending, block, output, perCapacity), f32x4.mul(prompt, perCapacity));
    if (v128.any_true(v128.and(shares, f32x4.gt(fill, f32x4.splat(FILL_FROM))))) return true;
  }
  return false;
}

/**
 * Turns of output, O step, that the request and others lose on four slots because their KV caches are full. What
 * running requests use of the prompt already takes no further memory.
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
  const perCapacity = perCapacityOf(at);
  const known = f32x4.gt(perCapacity, zero);
  const shared = f32x4.mul(block, f32x4.convert_i32x4_s(v128.load(OVERLAP + at)));
  const added = f32x4.mul(f32x4.pmax(zero, f32x4.sub(prompt, shared)), perCapacity);
  const fill = f32x4.add(fillOf(at, usage, n, pending, block, output, perCapacity), added);
  const beyond = f32x4.pmax(zero, f32x4.sub(fill, f32x4.splat(FILL_FROM)));
  const above = f32x4.mul(f32x4.sub(usage, f32x4.splat(MEMORY_FULL_FROM)), f32x4.splat(<f32>1 / FULL_WIDTH));
  const full = f32x4.pmin(one, f32x4.pmax(zero, above));
  const oneOfAll = f32x4.div(one, f32x4.pmax(one, n));
  const taken = v128.bitselect(f32x4.mul(f32x4.add(fresh, output), perCapacity), oneOfAll, known);
  const ahead = f32x4.mul(f32x4.mul(f32x4.add(one, waiting), full), taken);
  const evicted = f32x4.mul(f32x4.splat(FILL_PRICE), f32x4.mul(beyond, beyond));
  return f32x4.add(evicted, f32x4.mul(f32x4.splat(AHEAD_PRICE), ahead));
}
