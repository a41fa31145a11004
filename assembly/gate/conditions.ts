// Which endpoints a request may go to now.
//
// Owns: nothing but the thread's CANDIDATES column and, of REGION_GATE, the BLOCKED column. Commit lock held throughout: what is
// open here is charged before anybody else looks, so that no two requests take the last place.
//
// The rule of GATE_LEARNED, per endpoint (the ledger leads, scraped metrics only correct what it learns):
//   (1) nothing pending of this band or higher ones, or pending + uncached ≤ window: the engine takes new work between
//       steps only, so one step's worth of prefill is the least that never starves it
//   (2) requests in flight + 1 ≤ learned limit (higher bands a little more): an engine out of slots; the limit is 0 while the
//       engine queues requests that this picker did not send
//   (3) nothing in flight, or tokens in the KV cache with this request ≤ capacity, every output at its reserve at least, less
//       room for the highest band's next request
// Between the lowest and the highest band the bounds are interpolated by rank. Ceilings scale what a band may take.
// The detectors close an endpoint at its own saturation: one with room is open, however full the others are.
import {
  COLUMN_ACTIVE_BLOCKS,
  COLUMN_INFLIGHT,
  COLUMN_INFLIGHT_TOKENS,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_SIGNAL_TIME,
  cell,
  columnAddress,
  SIGNAL_KV_USAGE,
  SIGNAL_WAITING,
  wideCell,
} from '../endpoints';
import { CANDIDATES, KEYS, MATCH } from '../memory';
import { waitingKeys } from '../scheduling/values';
import {
  GATE,
  GATE_BANDS,
  GATE_BLOCK_TOKENS,
  GATE_CEILINGS,
  GATE_CONCURRENCY_REQUESTS,
  GATE_CONCURRENCY_TOKENS,
  GATE_FOOT,
  GATE_LEARNED,
  GATE_MODE,
  GATE_QUEUE_THRESHOLD,
  GATE_REQUESTS,
  GATE_RESERVE,
  GATE_SHARE,
  GATE_STALENESS,
  GATE_TOKENS,
  GATE_USAGE_THRESHOLD,
  GATE_UTILIZATION,
  ROOM_BLOCKED,
  ROOM_CAPACITY,
  ROOM_KV_NOW,
  ROOM_KV_RESERVED,
  ROOM_LIMIT,
  ROOM_PENDING,
  ROOM_PENDING_COUNT,
  ROOM_STRETCH,
  ROOM_WINDOW,
  room,
  roomColumn,
} from './layout';

/** Part of a KV cache that the lowest and the highest band may fill, and what they leave for the highest's next. */
const LOW_SHARE: f32 = 0.95;
const HIGH_SHARE: f32 = 0.99;
const FOOT_ROOM: f32 = 1.2;
/** What the highest band may have beyond the learned limit. */
const HIGH_FACTOR: f32 = 0.06;
const HIGH_MORE: f32 = 2;

/** 0 for the highest band, 1 for the lowest; a band alone is a lowest one. */
function depth(rank: u32): f32 {
  const bands = load<u32>(GATE, GATE_BANDS);
  return bands <= 1 ? 1 : <f32>rank / <f32>(bands - 1);
}

export function ceilingOf(rank: u32): f32 {
  return load<f32>(GATE + ((<usize>rank) << 2), GATE_CEILINGS) * load<f32>(GATE, GATE_SHARE);
}

/** Uncached tokens of the request on four endpoints. */
function uncached(at: usize, prompt: v128, block: v128): v128 {
  const held = f32x4.mul(f32x4.convert_i32x4_s(v128.load(MATCH + at)), block);
  return f32x4.pmax(f32x4.splat(0), f32x4.sub(prompt, held));
}

/** Keep the candidates that the learned rule leaves open. @returns whether any is left */
function keepLearned(used: u32, rank: u32, prefill: u32, promptTokens: u32): bool {
  const deep = depth(rank);
  const ceiling = ceilingOf(rank);
  const reserve = load<f32>(GATE, GATE_RESERVE);
  const foot = rank == 0 ? <f32>0 : load<f32>(GATE, GATE_FOOT) * FOOT_ROOM * deep;
  const zero = f32x4.splat(0);
  const one = f32x4.splat(1);
  const prompt = f32x4.splat(<f32>prefill);
  const block = f32x4.splat(<f32>load<u32>(GATE, GATE_BLOCK_TOKENS));
  const part = f32x4.splat(ceiling);
  const factor = f32x4.splat((1 + HIGH_FACTOR * (1 - deep)) * ceiling);
  const more = f32x4.splat(HIGH_MORE * (1 - deep));
  const weight = f32x4.splat(deep);
  const need = f32x4.splat(<f32>promptTokens + deep * reserve);
  const share = f32x4.splat((HIGH_SHARE - (HIGH_SHARE - LOW_SHARE) * deep) * ceiling);
  const left = f32x4.splat(foot);
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const active = columnAddress(COLUMN_ACTIVE_BLOCKS);
  const window = roomColumn(ROOM_WINDOW);
  const stretch = roomColumn(ROOM_STRETCH);
  const limit = roomColumn(ROOM_LIMIT);
  const capacity = roomColumn(ROOM_CAPACITY);
  const now = roomColumn(ROOM_KV_NOW);
  const later = roomColumn(ROOM_KV_RESERVED);
  const pending = roomColumn(ROOM_PENDING + rank);
  const pendingCount = roomColumn(ROOM_PENDING_COUNT + rank);
  const blocked = roomColumn(ROOM_BLOCKED);
  let left4 = zero;
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16) {
    const some = v128.load(CANDIDATES + at);
    const n = f32x4.convert_i32x4_s(v128.load(inflight + at));
    const work = f32x4.add(f32x4.convert_i32x4_s(v128.load(pending + at)), uncached(at, prompt, block));
    const wide = f32x4.mul(f32x4.mul(v128.load(window + at), v128.load(stretch + at)), part);
    const first = v128.or(i32x4.eq(v128.load(pendingCount + at), i32x4.splat(0)), f32x4.le(work, wide));
    const second = f32x4.le(f32x4.add(n, one), f32x4.add(f32x4.mul(v128.load(limit + at), factor), more));
    const kvNow = f32x4.convert_i32x4_s(v128.load(now + at));
    const kvLater = f32x4.convert_i32x4_s(v128.load(later + at));
    const held = f32x4.mul(f32x4.convert_i32x4_s(v128.load(active + at)), block);
    const used4 = f32x4.add(f32x4.add(held, kvNow), f32x4.mul(weight, f32x4.sub(kvLater, kvNow)));
    const all = v128.load(capacity + at);
    const bound = f32x4.pmin(f32x4.mul(all, share), f32x4.sub(all, left));
    const fits = f32x4.le(f32x4.add(used4, need), bound);
    const third = v128.or(fits, v128.or(f32x4.le(all, zero), f32x4.eq(n, zero)));
    const others = v128.and(some, v128.and(first, third));
    v128.store(blocked + at, v128.or(v128.load(blocked + at), v128.andnot(others, second)));
    const kept = v128.and(others, second);
    v128.store(CANDIDATES + at, kept);
    left4 = v128.or(left4, kept);
  }
  return v128.any_true(left4);
}

/** max(waiting / threshold, usage / threshold); without fresh signals what the ledger has pending stands for waiting. */
function utilization(used: u32, now: f64): void {
  const both = SIGNAL_WAITING | SIGNAL_KV_USAGE;
  const queue = load<f32>(GATE, GATE_QUEUE_THRESHOLD);
  const usage = load<f32>(GATE, GATE_USAGE_THRESHOLD);
  const oldest = now - <f64>load<f32>(GATE, GATE_STALENESS);
  const bands = load<u32>(GATE, GATE_BANDS);
  const lowest = ROOM_PENDING_COUNT + (bands == 0 ? 0 : bands - 1);
  waitingKeys(used);
  for (let slot: u32 = 0; slot < used; slot++) {
    const at = KEYS + ((<usize>slot) << 2);
    const known = (load<u32>(cell(COLUMN_KNOWN, slot)) & both) == both;
    const fresh = known && load<f64>(wideCell(COLUMN_SIGNAL_TIME, slot)) >= oldest;
    const waiting = fresh ? load<f32>(at) : <f32>load<u32>(room(lowest, slot));
    const full = fresh ? load<f32>(cell(COLUMN_KV_USAGE, slot)) / usage : <f32>0;
    store<f32>(at, max(waiting / queue, full));
  }
}

/** In flight over what may be: requests, tokens, or the larger of both. */
function concurrency(used: u32, mode: u32): void {
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const tokens = columnAddress(COLUMN_INFLIGHT_TOKENS);
  // Divided, not multiplied by an inverse: n of n must be exactly 1.
  const mostRequests = f32x4.splat(mode == GATE_CONCURRENCY_TOKENS ? Infinity : load<f32>(GATE, GATE_REQUESTS));
  const mostTokens = f32x4.splat(mode == GATE_CONCURRENCY_REQUESTS ? Infinity : load<f32>(GATE, GATE_TOKENS));
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16) {
    const requests = f32x4.div(f32x4.convert_i32x4_s(v128.load(inflight + at)), mostRequests);
    v128.store(KEYS + at, f32x4.pmax(requests, f32x4.div(f32x4.convert_i32x4_s(v128.load(tokens + at)), mostTokens)));
  }
}

/** The learned rule as one number: the fullest of window, limit and cache, as the lowest band sees them. */
function learnedSaturation(slot: u32): f32 {
  const bands = load<u32>(GATE, GATE_BANDS);
  const lowest = bands == 0 ? 0 : bands - 1;
  const window = load<f32>(room(ROOM_WINDOW, slot)) * load<f32>(room(ROOM_STRETCH, slot));
  let most = <f32>load<u32>(room(ROOM_PENDING + lowest, slot)) / window;
  const limit = load<f32>(room(ROOM_LIMIT, slot));
  most = max(most, limit > 0 ? <f32>load<u32>(cell(COLUMN_INFLIGHT, slot)) / limit : 1);
  const capacity = load<f32>(room(ROOM_CAPACITY, slot)) * LOW_SHARE;
  if (capacity <= 0) return most;
  const held = load<u32>(cell(COLUMN_ACTIVE_BLOCKS, slot)) * load<u32>(GATE, GATE_BLOCK_TOKENS);
  return max(most, <f32>(held + load<u32>(room(ROOM_KV_RESERVED, slot))) / capacity);
}

/** Fill KEYS with the saturation of every endpoint: 1 or more = full. */
export function saturationKeys(used: u32, now: f64): void {
  const mode = load<u32>(GATE, GATE_MODE);
  if (mode == GATE_UTILIZATION) return utilization(used, now);
  if (mode != GATE_LEARNED) return concurrency(used, mode);
  for (let slot: u32 = 0; slot < used; slot++) store<f32>(KEYS + ((<usize>slot) << 2), learnedSaturation(slot));
}

/** Keep the candidates whose saturation is below the band's ceiling. @returns whether any is left */
function keepBelowCeiling(used: u32, rank: u32, now: f64): bool {
  saturationKeys(used, now);
  const ceiling = f32x4.splat(ceilingOf(rank));
  let left = f32x4.splat(0);
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16) {
    const kept = v128.and(v128.load(CANDIDATES + at), f32x4.lt(v128.load(KEYS + at), ceiling));
    v128.store(CANDIDATES + at, kept);
    left = v128.or(left, kept);
  }
  return v128.any_true(left);
}

/**
 * Close the candidates that have no room for a request of this rank.
 * @param prefill prompt tokens, of which an endpoint need not compute what MATCH says that it holds
 * @param prompt all of them
 * @param held slot + 1 that stays open, because the request has just left it; 0 = none
 * @returns how many are left
 */
export function keepOpen(used: u32, rank: u32, prefill: u32, prompt: u32, held: u32, now: f64): u32 {
  const at: usize = held == 0 ? 0 : CANDIDATES + ((<usize>(held - 1)) << 2);
  const mine = at == 0 ? 0 : load<i32>(at);
  let any = false;
  // A band whose ceiling is 0 may take nothing, not even an idle endpoint.
  if (ceilingOf(rank) <= 0) memory.fill(CANDIDATES, 0, (<usize>used) << 2);
  else if (load<u32>(GATE, GATE_MODE) == GATE_LEARNED) any = keepLearned(used, rank, prefill, prompt);
  else any = keepBelowCeiling(used, rank, now);
  if (mine != 0) store<i32>(at, mine);
  else if (!any) return 0;
  let count: u32 = 0;
  for (let i: usize = 0, end = (<usize>used) << 2; i < end; i += 16) {
    count += <u32>popcnt<i32>(i32x4.bitmask(v128.load(CANDIDATES + i)));
  }
  return count;
}
