// The marginal cost of one more request on every endpoint: its own waiting and output time there, and the time that it
// adds for others, each as a share of its target. The coefficients are learned elsewhere.
//
// Owns: REGION_COEFFICIENTS (256 bytes of coefficients, written by the control thread under the commit lock, then per
// thread 64 bytes of shares, added to by that thread under the commit lock and read by any thread, and what
// projection.ts owns), the columns SPEED, HIT_RELIABILITY and COST_BASE .. COST_GROWTH (control thread, commit lock),
// and the thread's KEYS column while it scores.
//
//   u  = (P - reliability × cached)/1000, thousands of tokens to prefill
//   q  = the same of requests without first output
//   O  = usual output tokens · n = requests in flight
//   K  = (their prompts + n (O/2 + 130))/1e5 · ΔK = (P + O/2 + 130)/1e5
//   ρ  = min(0.5, r/r'), how busy the endpoint is with prefill: r uncached tokens per ms sent there, r' the most that
//        any candidate has been sent · a = 1 + clamp((mean KV usage - 0.7)/0.2, 0, 1)
//   m  = μ / (1 - ρ) / (1 - min(0.8, mean KV usage))^a · step = s (d + g (K + ΔK))
//   f  = max(own KV usage, (active blocks + n O/2)/C) + P/C, how full its KV cache of C tokens will be; the usage where
//        C is unknown
//   v  = 6 max(0, f - 0.7)² + 4 W/max(1, n) clamp((own KV usage - 0.85)/0.1, 0, 1)
//   cost = s (θ0 + c (q + u m) + w W)/T      own first output, and the queue and evictions that it causes
//        + s n c u/(O P')                    stall of n running outputs by its prefill
//        + step/P' + s n g ΔK/P'             own output, slower steps of the n others
//        + (max(0, n + 1 - slots)/slots + v) O step/T        beyond what runs at once, or what the KV cache holds
//
// θ0, c, w, d and g are those of the endpoint's hardware class where it has its own, and s is its slowness in that
// class. T and P' are the targets for the first output and per output token, the request's own if it has any; 130
// tokens stand for the cost of one running request to a step besides its KV cache. ρ is no product with c: the learned
// c holds queueing, and s c r reached its bound at half load. Scarce memory makes every miss dear by the mean KV usage
// of the candidates. An endpoint's own memory counts in v, in units of O step: the time after which a running request
// frees its blocks. A request that finds none waits for it; one that takes the last preempts another. 6, 0.7, 4 and
// 0.8 are from docs/internals/learning.md.
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { laneMax, laneMin, laneSum } from '../columns/lanes';
import { blockTokens, promptTokens } from '../columns/values';
import {
  COLUMN_ACTIVE_BLOCKS,
  COLUMN_BLOCK_COUNT,
  COLUMN_BLOCK_TOKENS,
  COLUMN_COST_BASE,
  COLUMN_COST_GROWTH,
  COLUMN_COST_PREFILL,
  COLUMN_COST_STEP,
  COLUMN_COST_WAITING,
  COLUMN_GENERATION,
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
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import {
  attached,
  CANDIDATES,
  COEFFICIENT_BYTES,
  COEFFICIENTS,
  EXPLAIN,
  EXPLAIN_COLUMNS,
  KEYS,
  MATCH,
  PROJECTION_BYTES,
  REGION_COEFFICIENTS,
  regionAddress,
  SHARE_BYTES,
  SLOTS,
  THREAD,
} from '../memory';
import { isAmount, isMapped, isSlot, isThread } from '../preconditions';
import { answer, request, wantedTimes } from '../request-area';
import { exponential2, power } from './exponential';
import { Operation } from './program';
import { noteProjection } from './projection';
import { addKeys, NEVER, scoreCosts } from './score-column';

/** Coefficients of the cost model. */
@unmanaged
class Coefficients {
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

/** Sampled decisions of a thread, and how much each term had to say in them; any thread reads it. */
@unmanaged
class Shares {
  /** Sampled decisions · its thread · commit lock. */
  samples: f64;
  /**
   * Sum of the shares of the term context in the range of all terms; the other terms follow in the order of terms() ·
   * its thread · commit lock.
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

/** KV-equivalent tokens of a running request besides its own. */
export const SLOT_TOKENS: f32 = 130;
/** Unit of K. */
export const KV_TOKENS: f32 = 1e5;
const BUSY_MAX: f32 = 0.5;
const KV_MAX: f32 = 0.8;
const RAMP_FROM: f32 = 0.7;
const RAMP_WIDTH: f32 = 0.2;
/** KV cache, as a share, from which on an endpoint's own memory counts, and the price beyond it. */
const FILL_FROM: f32 = 0.7;
const FILL_PRICE: f32 = 6;
/** KV usage from which on, and at which in full, waiting requests wait for memory; price of one ahead. */
const FULL_FROM: f32 = 0.85;
const FULL_WIDTH: f32 = 0.1;
const AHEAD_PRICE: f32 = 4;

function coefficients(): Coefficients {
  return changetype<Coefficients>(COEFFICIENTS);
}

/** Means of the known waiting counts and KV usages of the candidates, 0 when none is known. */
let meanWaiting: f32 = 0;
let meanUsage: f32 = 0;

function knownMean(used: u32, column: u32, signal: u32): f32 {
  const values = columnAddress(column);
  const known = columnAddress(COLUMN_KNOWN);
  const bit = i32x4.splat(<i32>signal);
  const one = f32x4.splat(1);
  let sum = f32x4.splat(0);
  let count = f32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const lanes = v128.and(v128.load(CANDIDATES + at), i32x4.eq(v128.and(v128.load(known + at), bit), bit));
    sum = f32x4.add(sum, v128.and(v128.load(values + at), lanes));
    count = f32x4.add(count, v128.and(one, lanes));
  }
  const number = laneSum(count);
  return number == 0 ? 0 : laneSum(sum) / number;
}

/** Largest value of a column of the candidates, 0 when it is negative or there is no candidate. */
function largest(used: u32, column: u32): f32 {
  const values = columnAddress(column);
  let highest = f32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    highest = f32x4.pmax(highest, v128.and(v128.load(values + at), v128.load(CANDIDATES + at)));
  }
  return laneMax(highest);
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

/** A column of four slots whose unknown values are the mean. */
function signalOr(values: usize, at: usize, known: v128, signal: u32, mean: f32): v128 {
  const bit = i32x4.splat(<i32>signal);
  return v128.bitselect(v128.load(values + at), f32x4.splat(mean), i32x4.eq(v128.and(known, bit), bit));
}

/** A column of factors of four slots, where 0 stands for 1. */
function factor(column: u32, at: usize): v128 {
  const value = v128.load(columnAddress(column) + at);
  const zero = f32x4.splat(0);
  return v128.bitselect(value, f32x4.splat(1), f32x4.gt(value, zero));
}

/**
 * Turns of output, O step, that the request and others lose on four slots because their KV caches are full.
 * @param known SIGNAL_* bits of the slots
 * @param n requests in flight
 * @param grown usual tokens of output that a running request holds
 */
function lackingMemory(at: usize, known: v128, n: v128, waiting: v128, prompt: v128, block: v128, grown: v128): v128 {
  const zero = f32x4.splat(0);
  const one = f32x4.splat(1);
  const usage = signalOr(columnAddress(COLUMN_KV_USAGE), at, known, SIGNAL_KV_USAGE, meanUsage);
  const blocks = f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_BLOCK_COUNT) + at));
  const capacity = f32x4.mul(blocks, f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_BLOCK_TOKENS) + at)));
  const isKnown = f32x4.gt(capacity, zero);
  const active = f32x4.mul(block, f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_ACTIVE_BLOCKS) + at)));
  const charged = v128.and(f32x4.div(f32x4.add(active, f32x4.mul(n, grown)), capacity), isKnown);
  const fill = f32x4.add(f32x4.pmax(usage, charged), v128.and(f32x4.div(prompt, capacity), isKnown));
  const beyond = f32x4.pmax(zero, f32x4.sub(fill, f32x4.splat(FILL_FROM)));
  const above = f32x4.mul(f32x4.sub(usage, f32x4.splat(FULL_FROM)), f32x4.splat(<f32>1 / FULL_WIDTH));
  const full = f32x4.pmin(one, f32x4.pmax(zero, above));
  const ahead = f32x4.div(f32x4.mul(waiting, full), f32x4.pmax(one, n));
  const evicted = f32x4.mul(f32x4.splat(FILL_PRICE), f32x4.mul(beyond, beyond));
  return f32x4.add(evicted, f32x4.mul(f32x4.splat(AHEAD_PRICE), ahead));
}

function terms(index: u32): usize {
  return EXPLAIN + <usize>(EXPLAIN_COLUMNS - SHARE_TERMS + index) * SLOTS * 4;
}

/**
 * Fills KEYS with the costs; with `sampled` also the columns terms(0 .. SHARE_TERMS - 1), which an explanation of a
 * program as long as it may be would need.
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
  const ownFirst = wantedTimes().ttft;
  const ownToken = wantedTimes().tpot;
  const perFirst = f32x4.splat(<f32>1 / (ownFirst > 0 ? ownFirst : coefficients().firstOutputTarget));
  const perToken = f32x4.splat(<f32>1 / (ownToken > 0 ? ownToken : coefficients().perTokenTarget));
  const leastSlots = f32x4.splat(max<f32>(coefficients().slots, 1));
  const prompt = f32x4.splat(promptTokens());
  const block = f32x4.splat(blockTokens());
  const perRequest = outputs / 2 + SLOT_TOKENS;
  const requestTokens = f32x4.splat(perRequest / KV_TOKENS);
  const grown = f32x4.splat(outputs / 2);
  const perKv = f32x4.splat(<f32>1 / KV_TOKENS);
  const added = f32x4.splat((promptTokens() + perRequest) / KV_TOKENS);
  const now = f64x2.splat(request().now);
  meanWaiting = knownMean(used, COLUMN_WAITING, SIGNAL_WAITING);
  meanUsage = knownMean(used, COLUMN_KV_USAGE, SIGNAL_KV_USAGE);
  const exponent = <f32>1 + min<f32>(max<f32>((meanUsage - RAMP_FROM) / RAMP_WIDTH, 0), 1);
  const tightness = power(f32x4.splat(<f32>1 - min<f32>(KV_MAX, max<f32>(meanUsage, 0))), exponent);
  const dear = f32x4.div(miss, tightness);
  const peak = largest(used, COLUMN_PREFILL_RATE_PEAK);
  const perPeak = f32x4.splat(peak > 0 ? <f32>1 / peak : 0);
  const waitings = columnAddress(COLUMN_WAITING);
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
    const q = f32x4.mul(f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_PREFILL_TOKENS) + at)), thousandth);
    const waiting = signalOr(waitings, at, known, SIGNAL_WAITING, meanWaiting);
    const held = f32x4.pmin(prompt, f32x4.mul(f32x4.convert_i32x4_s(v128.load(MATCH + at)), block));
    const cached = f32x4.mul(held, factor(COLUMN_HIT_RELIABILITY, at));
    const u = f32x4.mul(f32x4.pmax(zero, f32x4.sub(prompt, cached)), thousandth);
    const busy = f32x4.pmin(f32x4.splat(BUSY_MAX), f32x4.mul(rates(at, now), perPeak));
    const m = f32x4.div(dear, f32x4.sub(one, busy));
    const inPrompts = f32x4.mul(f32x4.convert_i32x4_s(v128.load(columnAddress(COLUMN_PROMPT_TOKENS) + at)), perKv);
    const tokens = f32x4.add(inPrompts, f32x4.mul(n, requestTokens));
    const step = f32x4.mul(speed, f32x4.add(perStep, f32x4.mul(growth, f32x4.add(tokens, added))));

    const work = f32x4.mul(speed, f32x4.mul(prefill, u));
    const stall = f32x4.mul(f32x4.div(f32x4.mul(n, work), output), perToken);
    const context = f32x4.add(f32x4.mul(f32x4.mul(work, m), perFirst), stall);
    const fixed = f32x4.mul(f32x4.mul(speed, base), perFirst);
    const queue = f32x4.mul(f32x4.mul(f32x4.mul(speed, prefill), q), perFirst);
    const wait = f32x4.mul(f32x4.mul(f32x4.mul(speed, perWaiting), waiting), perFirst);
    const slower = f32x4.mul(f32x4.mul(f32x4.mul(speed, n), growth), added);
    const decode = f32x4.mul(f32x4.add(step, slower), perToken);

    const slots = f32x4.pmax(leastSlots, v128.load(columnAddress(COLUMN_SLOTS_SEEN) + at));
    const over = f32x4.pmax(zero, f32x4.sub(f32x4.add(n, one), slots));
    const lacking = lackingMemory(at, known, n, waiting, prompt, block, grown);
    const turns = f32x4.mul(f32x4.add(f32x4.div(over, slots), lacking), output);
    const capacity = f32x4.mul(f32x4.mul(turns, step), perFirst);
    const social = f32x4.add(f32x4.add(context, queue), f32x4.add(wait, decode));
    v128.store(KEYS + at, f32x4.add(f32x4.add(fixed, social), capacity));
    if (!sampled) continue;
    v128.store(terms(0) + at, context);
    v128.store(terms(1) + at, queue);
    v128.store(terms(2) + at, wait);
    v128.store(terms(3) + at, decode);
    v128.store(terms(4) + at, capacity);
  }
}

/** Returns whether the next decision of this thread that asks for marginal cost is a sampled one. */
export function nextIsSampled(): bool {
  return sharesOf(THREAD).calls % SAMPLE_EVERY == 0;
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
  if (quiet) {
    costs(used, false);
    return false;
  }
  const sampled = nextIsSampled();
  const shares = sharesOf(THREAD);
  shares.calls += 1;
  costs(used, sampled);
  if (sampled) noteShares(used, shares);
  return sampled;
}

/** Range of a column over the candidates. */
function range(used: u32, column: usize): f32 {
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
function noteShares(used: u32, shares: Shares): void {
  let sum: f32 = 0;
  for (let i: u32 = 0; i < SHARE_TERMS; i++) sum += range(used, terms(i));
  if (!(sum > 0)) return;
  shares.samples += 1;
  for (let i: u32 = 0; i < SHARE_TERMS; i++) {
    const at = changetype<usize>(shares) + offsetof<Shares>('firstTerm') + ((<usize>i) << 3);
    store<f64>(at, load<f64>(at) + <f64>(range(used, terms(i)) / sum));
  }
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
}

export function coefficientsAddress(): usize {
  return attached(COEFFICIENTS);
}

/** Address of a thread's shares. */
export function sharesAddress(thread: u32): usize {
  if (ASSERTIONS) assert(isThread(thread), 'the thread is one of the pool');
  return COEFFICIENTS + COEFFICIENT_BYTES + <usize>thread * (SHARE_BYTES + PROJECTION_BYTES);
}

function sharesOf(thread: u32): Shares {
  return changetype<Shares>(sharesAddress(thread));
}

/**
 * Writes all coefficients at once; the control thread has put them, in the order above, at `from`.
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function coefficientsWrite(from: usize): u32 {
  if (ASSERTIONS) assert(isMapped(from, offsetof<Coefficients>()), 'the coefficients are in the memory');
  if (!lockAcquire(COMMIT_LOCK, 20)) return 1;
  memory.copy(COEFFICIENTS, from, offsetof<Coefficients>());
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
