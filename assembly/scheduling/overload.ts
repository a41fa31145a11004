// Overload: a veto on endpoints that queue more, or have fuller caches, than a request gains from.
//
// Owns: the thread's KEPT and KEYS columns, written by its own thread. Reads the endpoint columns under the commit
// lock.
import { slotOffset } from '../columns/column';
import { blockTokens, promptTokens, uncachedTokens, waitingKeys } from '../columns/values';
import {
  COLUMN_BLOCK_COUNT,
  COLUMN_BLOCK_TOKENS,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_SLOTS_FULL,
  columnAddress,
  SIGNAL_KV_USAGE,
  SIGNAL_WAITING,
} from '../endpoints';
import { KEPT, KEYS } from '../memory';
import { noteVetoes } from './held-back';
import { Operation } from './program';

/**
 * Marks the endpoints that are not overloaded. Overloaded is an endpoint on which as many requests wait as the limit
 * says, or whose KV cache is so full. A learned limit of the waiting requests is `p2` times the requests that the
 * engine was found to run at most; that of the KV cache is the usage at which the uncached part of the prompt has no
 * room in it, by the size that the engine told. An unknown signal, or a limit that is not learned yet, forbids nothing.
 */
export function keepNotOverloaded(op: Operation, used: u32): void {
  const known = columnAddress(COLUMN_KNOWN);
  const full = columnAddress(COLUMN_SLOTS_FULL);
  const usage = columnAddress(COLUMN_KV_USAGE);
  const blocks = columnAddress(COLUMN_BLOCK_COUNT);
  const sizes = columnAddress(COLUMN_BLOCK_TOKENS);
  const waits = i32x4.splat(SIGNAL_WAITING);
  const uses = i32x4.splat(SIGNAL_KV_USAGE);
  const zero = f32x4.splat(0);
  const batches = f32x4.splat(op.p2);
  const waitingMax = f32x4.splat(op.p0);
  const usageMax = f32x4.splat(op.p1);
  const prompt = f32x4.splat(promptTokens());
  const block = f32x4.splat(blockTokens());
  waitingKeys(used);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const bits = v128.load(known + at);
    const slots = v128.load(full + at);
    const limit = op.p0 < 0 ? f32x4.mul(slots, batches) : waitingMax;
    const limited = op.p0 < 0 ? f32x4.gt(slots, zero) : i32x4.splat(-1);
    const long = v128.and(f32x4.ge(v128.load(KEYS + at), limit), limited);
    const queues = v128.and(long, i32x4.eq(v128.and(bits, waits), waits));
    const size = f32x4.mul(f32x4.convert_i32x4_s(v128.load(blocks + at)), f32x4.convert_i32x4_s(v128.load(sizes + at)));
    const share = v128.load(usage + at);
    const uncached = uncachedTokens(at, prompt, block, zero);
    const needed = f32x4.add(f32x4.mul(share, size), uncached);
    const crowded = v128.and(f32x4.gt(needed, size), f32x4.gt(size, zero));
    const tight = op.p1 < 0 ? v128.and(crowded, f32x4.gt(share, zero)) : f32x4.ge(share, usageMax);
    const fills = v128.and(tight, i32x4.eq(v128.and(bits, uses), uses));
    v128.store(KEPT + at, v128.not(v128.or(queues, fills)));
    const usageLimit = op.p1 < 0 ? f32x4.div(f32x4.sub(size, uncached), size) : usageMax;
    v128.store(KEYS + at, v128.bitselect(limit, f32x4.neg(usageLimit), queues));
  }
  noteVetoes(used, KEYS);
}
