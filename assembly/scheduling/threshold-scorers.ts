// Scorers that go for the cache up to a threshold and for the load beyond it.
//
// Owns: the thread's KEYS and SCORE columns, written by its own thread. Reads the endpoint columns under the commit
// lock. Sources are named at each.
import { slotOffset } from '../columns/column';
import { laneMax, laneMin, laneSum } from '../columns/lanes';
import { blockTokens, promptTokens, uncachedTokens } from '../columns/values';
import { COLUMN_INFLIGHT, COLUMN_INFLIGHT_TOKENS, columnAddress } from '../endpoints';
import { CANDIDATES, KEYS, MATCH } from '../memory';
import { addKeys, NEVER, oneValue, scoreCosts, zeroValue } from './score-column';

/** Scores below this go to endpoints that affinity does not speak for. */
const HALF: f32 = 0.5;

/**
 * AIBrix's prefix-cache routing (vllm-project/aibrix, routing algorithm prefix-cache): when the busiest and the idlest
 * differ by more than `imbalance` requests, the fewest requests win. Else the longest match wins among endpoints with
 * at most mean + `deviations` × standard deviation requests: 0.5 + 0.5 × match / total; the others, and those without a
 * match, score at most 0.5, fewer requests higher.
 */
export function scorePrefixBalance(used: u32, total: u32, imbalance: f32, deviations: f32): void {
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const end = slotOffset(used);
  const one = f32x4.splat(oneValue);
  const zero = f32x4.splat(zeroValue);
  let count = zero;
  let sum = zero;
  let squares = zero;
  let highest = zero;
  let least = f32x4.splat(NEVER);
  for (let at: usize = 0; at < end; at += 16) {
    const lanes = v128.load(CANDIDATES + at);
    const busy = f32x4.convert_i32x4_s(v128.load(inflight + at));
    const own = v128.and(busy, lanes);
    count = f32x4.add(count, v128.and(one, lanes));
    sum = f32x4.add(sum, own);
    squares = f32x4.add(squares, f32x4.mul(own, own));
    highest = f32x4.pmax(highest, own);
    least = f32x4.pmin(least, v128.bitselect(busy, f32x4.splat(NEVER), lanes));
    v128.store(KEYS + at, busy);
  }
  const high = laneMax(highest);
  if (high - laneMin(least) > imbalance) {
    scoreCosts(used);
    addKeys(used);
    return;
  }
  const number = laneSum(count);
  const mean = laneSum(sum) / number;
  const variance = max<f32>(laneSum(squares) / number - mean * mean, 0);
  const limit = f32x4.splat(mean + deviations * sqrt<f32>(variance));
  const half = f32x4.splat(HALF);
  const perBlock = f32x4.splat(HALF / <f32>max<u32>(total, 1));
  const perRequest = f32x4.splat(HALF / (high + 1));
  for (let at: usize = 0; at < end; at += 16) {
    const busy = v128.load(KEYS + at);
    const match = f32x4.convert_i32x4_s(v128.load(MATCH + at));
    const kept = v128.and(f32x4.gt(match, zero), f32x4.le(busy, limit));
    const affine = f32x4.add(half, f32x4.mul(match, perBlock));
    const others = f32x4.sub(half, f32x4.mul(busy, perRequest));
    v128.store(KEYS + at, v128.bitselect(affine, others, kept));
  }
  addKeys(used);
}

/** Tokens in flight plus `decode` for each request in flight, of four slots. */
function loadOf(at: usize, tokens: usize, inflight: usize, decode: v128): v128 {
  const requests = f32x4.convert_i32x4_s(v128.load(inflight + at));
  return f32x4.add(f32x4.convert_i32x4_s(v128.load(tokens + at)), f32x4.mul(requests, decode));
}

/**
 * Preble's E2 (ICLR 2025, arXiv 2407.00023), with what is in flight in the place of the last three minutes: when more
 * of the prompt is cached than not, exploit: the least loaded of the endpoints with the longest match scores highest,
 * all holders above 0.5, the others below. Else explore: the lowest load + uncached tokens of the request scores 1.
 */
export function scoreExploitExplore(used: u32, decodeTokens: f32): void {
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const tokens = columnAddress(COLUMN_INFLIGHT_TOKENS);
  const end = slotOffset(used);
  const zero = f32x4.splat(zeroValue);
  const decode = f32x4.splat(decodeTokens);
  const prompt = f32x4.splat(promptTokens());
  const block = f32x4.splat(blockTokens());
  let longest = zero;
  let highest = zero;
  for (let at: usize = 0; at < end; at += 16) {
    const lanes = v128.load(CANDIDATES + at);
    longest = f32x4.pmax(longest, v128.and(f32x4.convert_i32x4_s(v128.load(MATCH + at)), lanes));
    highest = f32x4.pmax(highest, v128.and(loadOf(at, tokens, inflight, decode), lanes));
  }
  const match = laneMax(longest);
  if (<f32>2 * match * blockTokens() <= promptTokens()) {
    for (let at: usize = 0; at < end; at += 16) {
      const own = uncachedTokens(at, prompt, block, zero);
      v128.store(KEYS + at, f32x4.add(loadOf(at, tokens, inflight, decode), own));
    }
    scoreCosts(used);
    addKeys(used);
    return;
  }
  const held = f32x4.splat(match);
  const half = f32x4.splat(HALF);
  const scale = f32x4.splat(HALF / (laneMax(highest) + 1));
  for (let at: usize = 0; at < end; at += 16) {
    const holds = f32x4.ge(f32x4.convert_i32x4_s(v128.load(MATCH + at)), held);
    const idle = f32x4.sub(half, f32x4.mul(loadOf(at, tokens, inflight, decode), scale));
    v128.store(KEYS + at, f32x4.add(idle, v128.and(half, holds)));
  }
  addKeys(used);
}
