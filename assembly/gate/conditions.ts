// Endpoints that a request may go to now.
//
// Owns: nothing but the thread's KEPT and KEYS columns and, of REGION_GATE, the BLOCKED column. Commit lock held
// throughout: what is open here is charged before any other thread looks, so that no two requests take the last place.
//
// The rule of GATE_LEARNED, per endpoint (the ledger leads, scraped metrics only correct what it learns): A picker that
// is one of several fills its share of window, limit and capacity, and counts what the others have told of theirs; one
// request of its own may always be there. (1) nothing pending of this band or higher ones, or pending + uncached ≤
// window: the engine takes new work between steps only, so one step's worth of prefill is the least that never starves
// it (2) requests in flight + 1 ≤ learned limit (higher bands a little more): an engine out of slots; the limit is 0
// while all engines queue requests that this picker did not send (3) nothing in flight, or tokens in the KV cache with
// this request ≤ capacity, every output at its reserve at least, less room for the highest band's next request Between
// the lowest and the highest band the bounds are interpolated by rank. Ceilings scale what a band may take. The
// detectors close an endpoint at its own saturation: one with room is open, however full the others are.
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { laneSumOfIntegers } from '../columns/lanes';
import { waitingKeys } from '../columns/values';
import {
  COLUMN_ACTIVE_BLOCKS,
  COLUMN_INFLIGHT,
  COLUMN_INFLIGHT_TOKENS,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_PEER_PREFILL,
  COLUMN_SIGNAL_TIME,
  columnAddress,
  SIGNAL_KV_USAGE,
  SIGNAL_WAITING,
  wideCell,
} from '../endpoints';
import { CANDIDATES, KEPT, KEYS, MATCH } from '../memory';
import { ceilingOf } from './bands';
import {
  GATE_CONCURRENCY_REQUESTS,
  GATE_CONCURRENCY_TOKENS,
  GATE_LEARNED,
  GATE_UTILIZATION,
  GATE_WORST,
  gateHead,
  ROOM_BLOCKED,
  ROOM_CAPACITY,
  ROOM_KV_NOW,
  ROOM_KV_RESERVED,
  ROOM_LIMIT,
  ROOM_PENDING,
  ROOM_PENDING_COUNT,
  ROOM_REMOTE_COUNT,
  ROOM_REMOTE_KV,
  ROOM_REMOTE_REQUESTS,
  ROOM_REMOTE_TOKENS,
  ROOM_STRETCH,
  ROOM_UNANSWERED,
  ROOM_WINDOW,
  roomColumn,
} from './layout';
import * as room from './room';
import { shareOf, worst } from './stages';

/**
 * Shares of a KV cache that the lowest and the highest band may fill; the rest is for the next request of the highest.
 */
export const LOW_SHARE: f32 = 0.95;
export const HIGH_SHARE: f32 = 0.99;
/** Factor on the largest prompt of the highest band: the tokens that lower bands leave free for its next request. */
export const FOOT_ROOM: f32 = 1.2;
/** Room of the highest band beyond the learned limit: a share of it, and requests on top. */
export const HIGH_FACTOR: f32 = 0.06;
export const HIGH_MORE: f32 = 2;

/** 0 for the highest band, 1 for the lowest; a band alone is a lowest one. */
export function depth(rank: u32): f32 {
  const bands = gateHead().bands;
  return bands <= 1 ? 1 : <f32>rank / <f32>(bands - 1);
}

// The three conditions of the learned rule, one loop each: together they need more vector constants than there are
// registers, and one loop would load them again in every turn.

/** (1): marks in KEPT the candidates with nothing pending, or with room in the window. */
function keepByWindow(used: u32, rank: u32, prefill: u32, ceiling: f32): void {
  const zero = f32x4.splat(0);
  const prompt = f32x4.splat(<f32>prefill);
  const block = f32x4.splat(<f32>gateHead().blockTokens);
  const part = f32x4.splat(ceiling);
  const window = roomColumn(ROOM_WINDOW);
  const stretch = roomColumn(ROOM_STRETCH);
  const pending = roomColumn(ROOM_PENDING + rank);
  const pendingCount = roomColumn(ROOM_PENDING_COUNT + rank);
  const others = roomColumn(ROOM_REMOTE_TOKENS);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    let first = i32x4.eq(v128.load(pendingCount + at), zero);
    if (!i32x4.all_true(first)) {
      const held = f32x4.mul(f32x4.convert_i32x4_s(v128.load(MATCH + at)), block);
      const uncached = f32x4.pmax(zero, f32x4.sub(prompt, held));
      const ahead = i32x4.add(v128.load(pending + at), v128.load(others + at));
      const work = f32x4.add(f32x4.convert_i32x4_s(ahead), uncached);
      const wide = f32x4.mul(f32x4.mul(v128.load(window + at), v128.load(stretch + at)), part);
      first = v128.or(first, f32x4.le(work, wide));
    }
    v128.store(KEPT + at, v128.and(v128.load(CANDIDATES + at), first));
  }
}

/** (3): keeps in KEPT the endpoints with nothing in flight, with room in the cache, or with a cache of unknown size. */
function keepByCache(used: u32, rank: u32, promptTokens: u32, ceiling: f32): void {
  const deep = depth(rank);
  const foot = rank == 0 ? <f32>0 : gateHead().foot * FOOT_ROOM * deep;
  const zero = f32x4.splat(0);
  const block = f32x4.splat(<f32>gateHead().blockTokens);
  const weight = f32x4.splat(deep);
  const need = f32x4.splat(<f32>promptTokens + deep * gateHead().reserve);
  const share = f32x4.splat((HIGH_SHARE - (HIGH_SHARE - LOW_SHARE) * deep) * ceiling);
  const left = f32x4.splat(foot);
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const active = columnAddress(COLUMN_ACTIVE_BLOCKS);
  const capacity = roomColumn(ROOM_CAPACITY);
  const now = roomColumn(ROOM_KV_NOW);
  const later = roomColumn(ROOM_KV_RESERVED);
  const others = roomColumn(ROOM_REMOTE_KV);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const all = v128.load(capacity + at);
    const anyway = v128.or(f32x4.le(all, zero), i32x4.eq(v128.load(inflight + at), zero));
    if (i32x4.all_true(anyway)) continue;
    const kvNow = f32x4.convert_i32x4_s(v128.load(now + at));
    const kvLater = f32x4.convert_i32x4_s(v128.load(later + at));
    const prompts = f32x4.mul(f32x4.convert_i32x4_s(v128.load(active + at)), block);
    const held = f32x4.add(prompts, f32x4.convert_i32x4_s(v128.load(others + at)));
    const used4 = f32x4.add(f32x4.add(held, kvNow), f32x4.mul(weight, f32x4.sub(kvLater, kvNow)));
    const bound = f32x4.pmin(f32x4.mul(all, share), f32x4.sub(all, left));
    const third = v128.or(anyway, f32x4.le(f32x4.add(used4, need), bound));
    v128.store(KEPT + at, v128.and(v128.load(KEPT + at), third));
  }
}

/**
 * (2): keeps in KEPT the endpoints below their limit, and notes those that it alone closes.
 * @returns how many are kept
 */
function keepByLimit(used: u32, rank: u32, ceiling: f32): u32 {
  const deep = depth(rank);
  const one = f32x4.splat(1);
  const factor = f32x4.splat((1 + HIGH_FACTOR * (1 - deep)) * ceiling);
  const more = f32x4.splat(HIGH_MORE * (1 - deep));
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const limit = roomColumn(ROOM_LIMIT);
  const blocked = roomColumn(ROOM_BLOCKED);
  const remote = roomColumn(ROOM_REMOTE_REQUESTS);
  const zero = i32x4.splat(0);
  let count = zero;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const others = v128.load(KEPT + at);
    const own = v128.load(inflight + at);
    const limits = v128.load(limit + at);
    const n = f32x4.convert_i32x4_s(i32x4.add(own, v128.load(remote + at)));
    const below = f32x4.le(f32x4.add(n, one), f32x4.add(f32x4.mul(limits, factor), more));
    // A band's share of a small limit can be below one: one request may run all the same, unless the limit is 0.
    const second = v128.or(below, v128.and(i32x4.eq(own, zero), f32x4.gt(limits, zero)));
    const limited = v128.andnot(others, second);
    if (v128.any_true(limited)) v128.store(blocked + at, v128.or(v128.load(blocked + at), limited));
    const kept = v128.and(others, second);
    v128.store(KEPT + at, kept);
    count = i32x4.sub(count, kept);
  }
  return <u32>laneSumOfIntegers(count);
}

/**
 * Marks in KEPT the candidates that the learned rule leaves open.
 * @param window whether pending prefill closes an endpoint: condition (1)
 * @returns how many
 */
function keepLearned(used: u32, rank: u32, prefill: u32, promptTokens: u32, window: bool): u32 {
  const ceiling = ceilingOf(rank) * gateHead().share;
  if (window) keepByWindow(used, rank, prefill, ceiling);
  else memory.copy(KEPT, CANDIDATES, slotOffset(used));
  keepByCache(used, rank, promptTokens, ceiling);
  return keepByLimit(used, rank, ceiling);
}

/**
 * max(waiting / threshold, usage / threshold); without fresh signals every request that is not answered yet counts as
 * waiting.
 */
function utilization(used: u32, now: f64): void {
  const both = i32x4.splat(SIGNAL_WAITING | SIGNAL_KV_USAGE);
  const queue = f32x4.splat(gateHead().queueThreshold);
  const usage = f32x4.splat(gateHead().usageThreshold);
  const oldest = f64x2.splat(now - <f64>gateHead().staleness);
  const unanswered = roomColumn(ROOM_UNANSWERED);
  const others = roomColumn(ROOM_REMOTE_COUNT);
  const known = columnAddress(COLUMN_KNOWN);
  const full = columnAddress(COLUMN_KV_USAGE);
  const times = wideCell(COLUMN_SIGNAL_TIME, 0);
  waitingKeys(used);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const early = f64x2.ge(v128.load(times + 2 * at), oldest);
    const late = f64x2.ge(v128.load(times + 2 * at + 16), oldest);
    const young = v128.shuffle<i32>(early, late, 0, 2, 4, 6);
    const fresh = v128.and(young, i32x4.eq(v128.and(v128.load(known + at), both), both));
    const sent = f32x4.convert_i32x4_s(i32x4.add(v128.load(unanswered + at), v128.load(others + at)));
    const waiting = f32x4.div(v128.bitselect(v128.load(KEYS + at), sent, fresh), queue);
    v128.store(KEYS + at, f32x4.max(waiting, v128.and(f32x4.div(v128.load(full + at), usage), fresh)));
  }
}

/** In flight over what may be: requests, tokens, or the larger of both. */
function concurrency(used: u32, mode: u32): void {
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const tokens = columnAddress(COLUMN_INFLIGHT_TOKENS);
  // Divided, not multiplied by an inverse: n of n must be exactly 1.
  const requestsMax = f32x4.splat(mode == GATE_CONCURRENCY_TOKENS ? Infinity : shareOf(gateHead().requests));
  const tokensMax = f32x4.splat(mode == GATE_CONCURRENCY_REQUESTS ? Infinity : shareOf(gateHead().tokens));
  const others = roomColumn(ROOM_REMOTE_REQUESTS);
  const othersTokens = roomColumn(ROOM_REMOTE_TOKENS);
  const counted = columnAddress(COLUMN_PEER_PREFILL);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const n = i32x4.add(v128.load(inflight + at), v128.load(others + at));
    // The column already includes the load that replicas report.
    const uncounted = i32x4.sub(v128.load(othersTokens + at), v128.load(counted + at));
    const work = i32x4.add(v128.load(tokens + at), uncounted);
    const requests = f32x4.div(f32x4.convert_i32x4_s(n), requestsMax);
    v128.store(KEYS + at, f32x4.pmax(requests, f32x4.div(f32x4.convert_i32x4_s(work), tokensMax)));
  }
}

/**
 * The learned rule as one number: the fullest of window, limit and cache, of this picker's share, as the lowest band
 * sees them.
 */
function learnedSaturation(slot: u32): f32 {
  const bands = gateHead().bands;
  const lowest = bands == 0 ? 0 : bands - 1;
  const window = room.f32(ROOM_WINDOW, slot) * room.f32(ROOM_STRETCH, slot);
  const pending = room.u32(ROOM_PENDING + lowest, slot) + room.u32(ROOM_REMOTE_TOKENS, slot);
  const requests = column.u32(COLUMN_INFLIGHT, slot) + room.u32(ROOM_REMOTE_REQUESTS, slot);
  const share = gateHead().share;
  const limit = room.f32(ROOM_LIMIT, slot);
  let fullest = max(<f32>pending / window, limit > 0 ? <f32>requests / limit : share);
  const capacity = room.f32(ROOM_CAPACITY, slot) * LOW_SHARE;
  if (capacity > 0) {
    const prompts = column.u32(COLUMN_ACTIVE_BLOCKS, slot) * gateHead().blockTokens;
    const held = prompts + room.u32(ROOM_KV_RESERVED, slot) + room.u32(ROOM_REMOTE_KV, slot);
    fullest = max(fullest, <f32>held / capacity);
  }
  return fullest / share;
}

/** Fills KEYS with the saturation of every endpoint: 1 or more = full. */
export function saturationKeys(used: u32, now: f64): void {
  const mode = gateHead().mode;
  if (mode == GATE_UTILIZATION) return utilization(used, now);
  if (mode == GATE_WORST) return worst(used, now);
  if (mode != GATE_LEARNED) return concurrency(used, mode);
  for (let slot: u32 = 0; slot < used; slot++) store<f32>(KEYS + slotOffset(slot), learnedSaturation(slot));
}

/** Marks in KEPT the candidates whose saturation is below the band's ceiling. @returns how many */
function keepBelowCeiling(used: u32, rank: u32, now: f64): u32 {
  saturationKeys(used, now);
  const ceiling = f32x4.splat(ceilingOf(rank));
  let count = i32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const kept = v128.and(v128.load(CANDIDATES + at), f32x4.lt(v128.load(KEYS + at), ceiling));
    v128.store(KEPT + at, kept);
    count = i32x4.sub(count, kept);
  }
  return <u32>laneSumOfIntegers(count);
}

/**
 * Marks in KEPT the candidates that have room for a request of this rank. CANDIDATES stays as it is.
 * @param prefill prompt tokens, of which an endpoint need not compute what MATCH says that it holds
 * @param prompt all of them
 * @param held slot + 1 that stays open, because the request has just left it; 0 = none
 * @param window whether pending prefill closes an endpoint
 * @returns how many have
 */
export function markOpen(used: u32, rank: u32, prefill: u32, prompt: u32, held: u32, window: bool, now: f64): u32 {
  let count: u32 = 0;
  // A band whose ceiling is 0 may take nothing, not even an idle endpoint.
  if (ceilingOf(rank) <= 0) memory.fill(KEPT, 0, slotOffset(used));
  else if (gateHead().mode == GATE_LEARNED) count = keepLearned(used, rank, prefill, prompt, window);
  else count = keepBelowCeiling(used, rank, now);
  if (held == 0) return count;
  const at = slotOffset(held - 1);
  if (load<i32>(CANDIDATES + at) == 0 || load<i32>(KEPT + at) != 0) return count;
  store<i32>(KEPT + at, -1);
  return count + 1;
}

/** Whether the room of an endpoint is nothing but what was learned: no configured bound and no ceiling of the band. */
export function isLearnedOnly(rank: u32): bool {
  return gateHead().mode == GATE_LEARNED && ceilingOf(rank) >= 1;
}

/** Takes the endpoints that markOpen() marks as the candidates. @returns how many are left */
export function keepOpen(used: u32, rank: u32, prefill: u32, prompt: u32, window: bool, now: f64): u32 {
  const count = markOpen(used, rank, prefill, prompt, 0, window, now);
  memory.copy(CANDIDATES, KEPT, slotOffset(used));
  return count;
}
