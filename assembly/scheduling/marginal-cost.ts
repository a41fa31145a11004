// The marginal cost of one more request on every endpoint: its own waiting and output time there, and the time that it
// adds for others, each as a share of its target. The coefficients are learned elsewhere.
//
// Owns: the thread's KEYS column while it scores. Reads, under the commit lock, the columns of endpoints and what
// coefficients.ts owns.
//
//   u  = (P - reliability × cached)/1000, thousands of tokens to prefill
//   q  = the same of requests without first output
//   O  = usual output tokens · n = requests in flight
//   K  = (their prompts + n (O/2 + 130))/1e5 · ΔK = (P + O/2 + 130)/1e5
//   ρ  = min(0.5, r/r') + r/1000r', how busy the endpoint is with prefill: r uncached tokens per ms sent there, r' the
//        most that any candidate has been sent · a = 1 + clamp((mean KV usage - 0.7)/0.2, 0, 1)
//   σ  = 1/(1 - min(0.8, mean KV usage))^a + ε - 1, scarcity of memory · step = s (d + g (K + ΔK))
//   ε  = tokens that are computed for a missed one, with those that it evicts and that return
//   f  = max(own KV usage + min(0.02, 1000 q/C), (active blocks + n O/2)/C) + (P - A)/C, how full its KV cache of C
//        tokens will be, A of the prompt being in use there already; the usage where C is unknown
//   x  = (1000 u + O)/C, what the request takes of it; 1/max(1, n) where C is unknown
//   v  = 6 max(0, f - 0.7)² + (1 + W) x/2 clamp((own KV usage - 0.85)/0.1, 0, 1)
//   b  = s c (q + u), ms of prefill before the endpoint then · λ = n/(O step), requests that come there per ms
//   cost = s (θ0 + 2 c q + w W)/T           own first output
//        + c u (s + σ - 1) μ/(1 - ρ)/T      its prefill, the queue and the evictions that it causes
//        + 2 λ b s c u/T                    the wait of requests that come while that prefill goes on
//        + s n c u/(O P')                   stall of n running outputs by its prefill
//        + step/P' + s n g ΔK/P'            own output, slower steps of the n others
//        + (max(0, n + 1 - slots)/slots + v) O step/T        beyond what runs at once, or what the KV cache holds
//
// θ0, c, w, d and g are those of the endpoint's hardware class where it has its own, and s is its slowness in that
// class. T and P' are the targets for the first output and per output token, the request's own if it has any; 130
// tokens stand for the cost of one running request to a step besides its KV cache. ρ is no product with c: the learned
// c holds queueing, and s c r reached its bound at half load. Scarce memory makes every miss dear by the mean KV usage
// of the candidates, and by the odds that what it evicts returns (ε, learned), alike on fast and slow ones: a copy of a
// prompt takes the same memory everywhere, and σ - 1 goes with the pool's c. An endpoint's own memory counts in v, in
// units of O step: the time after which a running request frees its blocks. A request that finds none waits for it
// behind W others; one that takes the last preempts another. A wait behind prefill counts twice, the own one (2 c q)
// and that of others (2 λ b): an endpoint whose outputs end together looks cheap, and requests that gather there are
// the slowest first outputs of the pool.
// The thousandth in ρ decides between endpoints that differ in nothing else: of those above the bound, the one that was
// sent less. 2, 6, 0.7, 1/2 and 0.8 are from docs/internals/learning.md.
import { slotOffset } from '../columns/column';
import { laneMax, laneSum } from '../columns/lanes';
import { blockTokens, promptTokens } from '../columns/values';
import {
  COLUMN_COST_BASE,
  COLUMN_COST_GROWTH,
  COLUMN_COST_PREFILL,
  COLUMN_COST_STEP,
  COLUMN_COST_WAITING,
  COLUMN_HIT_RELIABILITY,
  COLUMN_INFLIGHT,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_PREFILL_RATE,
  COLUMN_PREFILL_RATE_PEAK,
  COLUMN_PREFILL_RATE_TIME,
  COLUMN_PREFILL_TOKENS,
  COLUMN_PROMPT_TOKENS,
  COLUMN_SLOTS_SEEN,
  COLUMN_SPEED,
  COLUMN_WAITING,
  columnAddress,
  SIGNAL_KV_USAGE,
  SIGNAL_WAITING,
} from '../endpoints';
import { PREFILL_RATE_MS } from '../load/features';
import { CANDIDATES, KEYS, MATCH, SHARE_BYTES, THREAD } from '../memory';
import { answer, request, wantedTimes } from '../request-area';
import { coefficients } from './cost-coefficients';
import { nextIsSampled, noteDecision, noteShares, range, sharesAddress, termColumn } from './cost-shares';
import { exponential2 } from './exponential';
import { scarcity, turnsForMemory } from './memory-price';
import { Operation } from './program';
import { noteProjection } from './projection';
import { addKeys, NEVER, scoreCosts } from './score-column';

/** KV-equivalent tokens of a running request besides its own. */
export const SLOT_TOKENS: f32 = 130;
/** Unit of K. */
export const KV_TOKENS: f32 = 1e5;
const BUSY_MAX: f32 = 0.5;
/** Part of r/r' that counts above the bound, too. */
const BUSY_SLOPE: f32 = 0.001;
/** Price of a wait behind prefill, in its time. */
const WAIT_PRICE: f32 = 2;
/** Lower bound of the time that a request's output takes, ms. */
const OUTPUT_MS_MIN: f32 = 1;

/** Means of the known waiting counts and KV usages of the candidates, 0 when none is known. */
let meanWaiting: f32 = 0;
let meanUsage: f32 = 0;
/** Highest prefill rate that any candidate has been sent, uncached tokens per millisecond; 0 = none. */
let peakRate: f32 = 0;

/** Looks at all candidates once: their means and their peak. */
function lookAtPool(used: u32): void {
  const waitings = columnAddress(COLUMN_WAITING);
  const usages = columnAddress(COLUMN_KV_USAGE);
  const peaks = columnAddress(COLUMN_PREFILL_RATE_PEAK);
  const one = f32x4.splat(1);
  let waitingSum = f32x4.splat(0);
  let waitingCount = f32x4.splat(0);
  let usageSum = f32x4.splat(0);
  let usageCount = f32x4.splat(0);
  let peak = f32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const lanes = v128.load(CANDIDATES + at);
    const known = v128.load(columnAddress(COLUMN_KNOWN) + at);
    const withWaiting = v128.and(lanes, isKnown(known, SIGNAL_WAITING));
    const withUsage = v128.and(lanes, isKnown(known, SIGNAL_KV_USAGE));
    waitingSum = f32x4.add(waitingSum, v128.and(v128.load(waitings + at), withWaiting));
    waitingCount = f32x4.add(waitingCount, v128.and(one, withWaiting));
    usageSum = f32x4.add(usageSum, v128.and(v128.load(usages + at), withUsage));
    usageCount = f32x4.add(usageCount, v128.and(one, withUsage));
    peak = f32x4.pmax(peak, v128.and(v128.load(peaks + at), lanes));
  }
  meanWaiting = quotient(laneSum(waitingSum), laneSum(waitingCount));
  meanUsage = quotient(laneSum(usageSum), laneSum(usageCount));
  peakRate = laneMax(peak);
}

function quotient(sum: f32, count: f32): f32 {
  return count == 0 ? 0 : sum / count;
}

/** Lanes of the slots whose signal is known. */
function isKnown(known: v128, signal: u32): v128 {
  const bit = i32x4.splat(<i32>signal);
  return i32x4.eq(v128.and(known, bit), bit);
}

/** A column of four slots whose unknown values are the mean. */
function signalOr(column: u32, at: usize, known: v128, signal: u32, mean: f32): v128 {
  return v128.bitselect(v128.load(columnAddress(column) + at), f32x4.splat(mean), isKnown(known, signal));
}

/** Prefill rates of four slots now, uncached tokens per millisecond. */
function rates(at: usize, now: v128): v128 {
  const times = columnAddress(COLUMN_PREFILL_RATE_TIME) + (at << 1);
  const scale = f64x2.splat(-1.4426950408889634 / PREFILL_RATE_MS);
  const first = f32x4.demote_f64x2_zero(f64x2.mul(f64x2.sub(now, v128.load(times)), scale));
  const second = f32x4.demote_f64x2_zero(f64x2.mul(f64x2.sub(now, v128.load(times, 16)), scale));
  const exponents = v128.shuffle<f32>(first, second, 0, 1, 4, 5);
  return f32x4.mul(v128.load(columnAddress(COLUMN_PREFILL_RATE) + at), exponential2(exponents));
}

/** A column of factors of four slots, where 0 stands for 1. */
function factor(column: u32, at: usize): v128 {
  const value = v128.load(columnAddress(column) + at);
  const zero = f32x4.splat(0);
  return v128.bitselect(value, f32x4.splat(1), f32x4.gt(value, zero));
}

/**
 * Fills KEYS with the costs; with `sampled` also the columns of the terms, which an explanation of a program as long
 * as it may be would need.
 */
function costs(used: u32, sampled: bool): void {
  const zero = f32x4.splat(0);
  const one = f32x4.splat(1);
  const thousandth = f32x4.splat(0.001);
  const poolBase = f32x4.splat(coefficients().base);
  const poolPrefill = f32x4.splat(coefficients().prefill);
  const poolWaiting = f32x4.splat(coefficients().waiting);
  const poolStep = f32x4.splat(coefficients().step);
  const poolGrowth = f32x4.splat(coefficients().growth);
  const miss = f32x4.splat(coefficients().missPrice);
  const outputs = max<f32>(coefficients().output, 1);
  const output = f32x4.splat(outputs);
  const perOutput = f32x4.splat(<f32>1 / outputs);
  const ownFirst = wantedTimes().ttft;
  const ownToken = wantedTimes().tpot;
  const perFirst = f32x4.splat(<f32>1 / (ownFirst > 0 ? ownFirst : coefficients().firstOutputTarget));
  const perToken = f32x4.splat(<f32>1 / (ownToken > 0 ? ownToken : coefficients().perTokenTarget));
  const waitPrice = f32x4.splat(WAIT_PRICE);
  const leastOutput = f32x4.splat(OUTPUT_MS_MIN);
  const leastSlots = f32x4.splat(max<f32>(coefficients().slots, 1));
  const prompt = f32x4.splat(promptTokens());
  const block = f32x4.splat(blockTokens());
  const perRequest = outputs / 2 + SLOT_TOKENS;
  const requestTokens = f32x4.splat(perRequest / KV_TOKENS);
  const perKv = f32x4.splat(<f32>1 / KV_TOKENS);
  const added = f32x4.splat((promptTokens() + perRequest) / KV_TOKENS);
  const now = f64x2.splat(request().now);
  lookAtPool(used);
  const scarce = f32x4.mul(poolPrefill, scarcity(meanUsage, coefficients().evictionPrice));
  const perPeak = f32x4.splat(peakRate > 0 ? <f32>1 / peakRate : 0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const known = v128.load(columnAddress(COLUMN_KNOWN) + at);
    const speed = factor(COLUMN_SPEED, at);
    const classPrefill = v128.load(columnAddress(COLUMN_COST_PREFILL) + at);
    const classed = f32x4.gt(classPrefill, zero);
    const prefill = v128.bitselect(classPrefill, poolPrefill, classed);
    const base = v128.bitselect(v128.load(columnAddress(COLUMN_COST_BASE) + at), poolBase, classed);
    const perWaiting = v128.bitselect(v128.load(columnAddress(COLUMN_COST_WAITING) + at), poolWaiting, classed);
    const perStep = v128.bitselect(v128.load(columnAddress(COLUMN_COST_STEP) + at), poolStep, classed);
    const growth = v128.bitselect(v128.load(columnAddress(COLUMN_COST_GROWTH) + at), poolGrowth, classed);
    const n = f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_INFLIGHT) + at));
    const pending = f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_PREFILL_TOKENS) + at));
    const q = f32x4.mul(pending, thousandth);
    const waiting = signalOr(COLUMN_WAITING, at, known, SIGNAL_WAITING, meanWaiting);
    const held = f32x4.pmin(prompt, f32x4.mul(f32x4.convert_i32x4_s(v128.load(MATCH + at)), block));
    const cached = f32x4.mul(held, factor(COLUMN_HIT_RELIABILITY, at));
    const fresh = f32x4.pmax(zero, f32x4.sub(prompt, cached));
    const u = f32x4.mul(fresh, thousandth);
    const share = f32x4.mul(rates(at, now), perPeak);
    const busy = f32x4.add(f32x4.pmin(f32x4.splat(BUSY_MAX), share), f32x4.mul(f32x4.splat(BUSY_SLOPE), share));
    const m = f32x4.div(miss, f32x4.sub(one, busy));
    const inPrompts = f32x4.mul(f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_PROMPT_TOKENS) + at)), perKv);
    const tokens = f32x4.add(inPrompts, f32x4.mul(n, requestTokens));
    const step = f32x4.mul(speed, f32x4.add(perStep, f32x4.mul(growth, f32x4.add(tokens, added))));

    const work = f32x4.mul(speed, f32x4.mul(prefill, u));
    const stall = f32x4.mul(f32x4.mul(f32x4.mul(n, work), perOutput), perToken);
    const missed = f32x4.mul(f32x4.add(work, f32x4.mul(scarce, u)), m);
    const ahead = f32x4.mul(waitPrice, f32x4.mul(f32x4.mul(speed, prefill), q));
    const arrivals = f32x4.div(n, f32x4.pmax(leastOutput, f32x4.mul(output, step)));
    const followers = f32x4.mul(arrivals, f32x4.add(ahead, f32x4.mul(waitPrice, work)));
    const context = f32x4.add(f32x4.mul(f32x4.add(missed, f32x4.mul(followers, work)), perFirst), stall);
    const fixed = f32x4.mul(f32x4.mul(speed, base), perFirst);
    const queue = f32x4.mul(ahead, perFirst);
    const wait = f32x4.mul(f32x4.mul(f32x4.mul(speed, perWaiting), waiting), perFirst);
    const slower = f32x4.mul(f32x4.mul(f32x4.mul(speed, n), growth), added);
    const decode = f32x4.mul(f32x4.add(step, slower), perToken);

    const slots = f32x4.pmax(leastSlots, v128.load(columnAddress(COLUMN_SLOTS_SEEN) + at));
    const over = f32x4.pmax(zero, f32x4.sub(f32x4.add(n, one), slots));
    const usage = signalOr(COLUMN_KV_USAGE, at, known, SIGNAL_KV_USAGE, meanUsage);
    const lacking = turnsForMemory(at, usage, n, waiting, prompt, fresh, pending, block, output);
    const turns = f32x4.mul(f32x4.add(f32x4.div(over, slots), lacking), output);
    const capacity = f32x4.mul(f32x4.mul(turns, step), perFirst);
    const social = f32x4.add(f32x4.add(context, queue), f32x4.add(wait, decode));
    v128.store(KEYS + at, f32x4.add(f32x4.add(fixed, social), capacity));
    if (!sampled) continue;
    v128.store(termColumn(0) + at, context);
    v128.store(termColumn(1) + at, queue);
    v128.store(termColumn(2) + at, wait);
    v128.store(termColumn(3) + at, decode);
    v128.store(termColumn(4) + at, capacity);
  }
}

/** Whether a shadow program runs: its decisions are no samples. */
let quiet: bool = false;

/** Turns the samples of later decisions on or off. */
export function takeSamples(on: bool): void {
  quiet = !on;
}

/**
 * Fills `column` with the predicted cost of the request on every endpoint, in targets. Scratch: KEYS. Commit lock held.
 */
export function predictCosts(used: u32, column: usize): void {
  costs(used, false);
  memory.copy(column, KEYS, slotOffset(used));
}

/** Fills KEYS with the costs; notes the share of each term in a sampled decision. @returns whether it was sampled */
function weigh(used: u32): bool {
  const sampled = !quiet && nextIsSampled();
  if (!quiet) noteDecision();
  costs(used, sampled);
  if (sampled) noteShares(used);
  return sampled;
}

/** marginal-cost-scorer: the cheapest candidate scores 1, the dearest 0. */
export function scoreMarginalCost(used: u32): void {
  weigh(used);
  scoreCosts(used);
  addKeys(used);
}

/** Says in the answer which candidate would be the cheapest; nothing else changes. Commit lock held. */
export function wouldPick(op: Operation, used: u32): void {
  const sampled = weigh(used);
  if (sampled && op.p0 > 0) noteProjection(op, used, sharesAddress(THREAD) + SHARE_BYTES, range(used, KEYS));
  let best: f32 = NEVER;
  let slot: u32 = 0;
  for (let i: u32 = 0; i < used; i++) {
    const at = slotOffset(i);
    if (load<i32>(CANDIDATES + at) == 0 || !(load<f32>(KEYS + at) < best)) continue;
    best = load<f32>(KEYS + at);
    slot = i + 1;
  }
  answer().wouldPick = slot;
}
