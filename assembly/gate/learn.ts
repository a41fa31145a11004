// Values that the gate learns instead of reading them from settings: step time, time per token, limit of requests in
// flight, size of a KV cache, usual output.
//
// Owns: the columns WINDOW, STEP, TOKEN_MS, LIMIT, LEARNED_LIMIT, CAPACITY, FULL_LOOKS, OCCUPANCY, HOLD, BASE, CUT_AT,
// STRETCH and OVERDUE of REGION_GATE and the learned words of its head. Commit lock held, but for learnStep(). All of
// it is clamped: no signal of an engine, however wrong, makes a number that is not finite or out of its range.
//
// The rules and constants come from our simulations of five engines under seven loads, and the reasons are in
// docs/flow-control.md.
import * as column from '../columns/column';
import {
  COLUMN_ACTIVE_BLOCKS,
  COLUMN_BLOCK_COUNT,
  COLUMN_BLOCK_TOKENS,
  COLUMN_INFLIGHT,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_RUNNING,
  COLUMN_SIGNAL_TIME,
  COLUMN_STATE,
  COLUMN_WAITING,
  SIGNAL_KV_USAGE,
  SIGNAL_RUNNING,
  SIGNAL_WAITING,
  STATE_FREE,
} from '../endpoints';
import { decayed } from '../load/features';
import { SLOTS } from '../memory';
import { hold } from '../request-area';
import { allForeign, foreignChanged, foreignForget, foreignScraped, foreignStale } from './foreign-queues';
import {
  GATE,
  GATE_POOL_STEP,
  GATE_POOL_TOKEN_MS,
  gateChargeAt,
  gateHead,
  ROOM_BASE,
  ROOM_BLOCKED,
  ROOM_CAPACITY,
  ROOM_CUT_AT,
  ROOM_FULL_LOOKS,
  ROOM_HOLD,
  ROOM_KV_NOW,
  ROOM_LEARNED_LIMIT,
  ROOM_LIMIT,
  ROOM_OCCUPANCY,
  ROOM_OVERDUE,
  ROOM_PENDING_COUNT,
  ROOM_REMOTE_COUNT,
  ROOM_REMOTE_KV,
  ROOM_REMOTE_REQUESTS,
  ROOM_STEP,
  ROOM_STRETCH,
  ROOM_TOKEN_MS,
  ROOM_WINDOW,
  roomCell,
  wideRoomCell,
} from './layout';
import * as room from './room';

const STEP_WEIGHT: f32 = 0.05;
const STEP_UNKNOWN: f32 = 20; // ms
const STEP_MIN: f32 = 0.1;
const STEP_MAX: f32 = 10_000;
const TOKEN_UNKNOWN: f32 = 0.05; // ms
const TOKEN_MIN: f32 = 0.03;
const TOKEN_MAX: f32 = 1_000;
const TOKEN_FIRST_WEIGHT: f32 = 0.5;
const TOKEN_WEIGHT: f32 = 0.1;
/** A shorter prefill says more about the step than about its tokens. */
const TOKEN_PREFILL: u32 = 300;
const BASE_WEIGHT: f32 = 0.2;
const BASE_MAX: f32 = 60_000;
const WINDOW_MIN: f32 = 40; // ms
const WINDOW_MAX: f32 = 400;
const OUT_TIME: f64 = 60_000; // ms
const OUT_PRIOR_ENDS: f64 = 4;
const OUT_PRIOR_TOKENS: f64 = 200;
const RESERVE_PART: f64 = 0.6;
const FOOT_HALF_LIFE: f64 = 70_000; // ms
const LN2: f64 = 0.6931471805599453;
const CAPACITY_WEIGHT: f32 = 0.1;
const CAPACITY_USAGE: f32 = 0.3;
const CAPACITY_MAX: f32 = 1e9;
const FRESH: f64 = 1_000; // ms: older signals say nothing about now
const CUT_PAUSE: f64 = 1_000; // ms
const CUT_FACTOR: f32 = 0.97;
const LIMIT_MIN: f32 = 4;
const LIMIT_MAX: f32 = 1e6;
const HOLD_FIRST: f32 = 10_000; // ms
const HOLD_MAX: f32 = 80_000;
const SAME_WALL: f32 = 0.03;
const GROWTH: f32 = 0.01; // of the limit, per second
const STRETCH_MIN: f32 = 0.5;
const STRETCH_MAX: f32 = 4;

function known(value: f32, otherwise: f32): f32 {
  return value > 0 ? value : otherwise;
}

function clamp(value: f32, lower: f32, upper: f32): f32 {
  // NaN compares false with everything: it becomes the lower bound.
  return value >= lower ? (value <= upper ? value : upper) : lower;
}

/** The engine's step time: its own, the pool's, or a guess. */
function stepOf(slot: u32): f32 {
  return known(room.f32(ROOM_STEP, slot), known(gateHead().poolStep, STEP_UNKNOWN));
}

function tokenMsOf(slot: u32): f32 {
  return known(room.f32(ROOM_TOKEN_MS, slot), known(gateHead().poolTokenMs, TOKEN_UNKNOWN));
}

/** One step's worth of prefill. */
function updateWindow(slot: u32): void {
  room.setF32(ROOM_WINDOW, slot, clamp(stepOf(slot), WINDOW_MIN, WINDOW_MAX) / tokenMsOf(slot));
}

/** Forgets what is known about the endpoint of a slot. */
export function learnForget(slot: u32): void {
  for (let column: u32 = ROOM_WINDOW; column <= ROOM_OVERDUE; column++) {
    // ROOM_KV_NOW counts the tokens of charges (charges.ts): it is not learned.
    if (column != ROOM_KV_NOW && column != ROOM_KV_NOW + 1) room.setU32(column, slot, 0);
  }
  for (let column: u32 = ROOM_REMOTE_REQUESTS; column <= ROOM_REMOTE_KV; column++) room.setU32(column, slot, 0);
  room.setF32(ROOM_LIMIT, slot, Infinity);
  room.setF32(ROOM_LEARNED_LIMIT, slot, Infinity);
  foreignForget(slot);
  room.setF32(ROOM_STRETCH, slot, 1);
  room.setF32(ROOM_HOLD, slot, HOLD_FIRST);
  updateWindow(slot);
}

/** Forgets everything. */
export function learnBegin(now: f64): void {
  gateHead().outTokens = 0;
  gateHead().outEnds = 0;
  gateHead().outTime = now;
  gateHead().foot = 0;
  gateHead().poolStep = 0;
  gateHead().poolTokenMs = 0;
  gateHead().foreign = 0;
  updateReserve();
  for (let slot: u32 = 0; slot < SLOTS; slot++) learnForget(slot);
}

function mix(at: usize, sample: f32, weight: f32): void {
  const before = load<f32>(at);
  store<f32>(at, before > 0 ? before + weight * (sample - before) : sample);
}

/** Time between two pieces of output. Without a lock: two threads that write at once lose one of many samples. */
export function learnStep(slot: u32, ms: f32): void {
  if (!(ms > 0)) return;
  const sample = clamp(ms, STEP_MIN, STEP_MAX);
  mix(roomCell(ROOM_STEP, slot), sample, STEP_WEIGHT);
  mix(GATE + GATE_POOL_STEP, sample, STEP_WEIGHT);
  updateWindow(slot);
}

/** A sample moves the value by no more than a factor of 2. */
function mixToken(at: usize, sample: f32): void {
  const before = load<f32>(at);
  const from = known(before, TOKEN_UNKNOWN);
  const weight = before > 0 ? TOKEN_WEIGHT : TOKEN_FIRST_WEIGHT;
  const near = clamp(sample, from / 2, from * 2);
  store<f32>(at, clamp(from + weight * (near - from), TOKEN_MIN, TOKEN_MAX));
}

/** A first token came that nothing was ahead of. @param alone nothing at all was on the endpoint then */
export function learnFirstToken(index: u32, slot: u32, ttft: f64, alone: bool): void {
  const charge = gateChargeAt(index);
  const uncached = charge.uncached;
  if (!(ttft > 0) || charge.ahead != 0) return;
  const time = <f32>min(ttft, <f64>BASE_MAX);
  if (uncached > TOKEN_PREFILL) {
    const sample = (time - stepOf(slot)) / <f32>uncached;
    if (room.f32(ROOM_TOKEN_MS, slot) <= 0) {
      room.setF32(ROOM_TOKEN_MS, slot, known(gateHead().poolTokenMs, 0));
    }
    mixToken(roomCell(ROOM_TOKEN_MS, slot), sample);
    mixToken(GATE + GATE_POOL_TOKEN_MS, sample);
    updateWindow(slot);
  }
  if (alone) mix(roomCell(ROOM_BASE, slot), max<f32>(1, time - tokenMsOf(slot) * <f32>uncached), BASE_WEIGHT);
}

function updateReserve(): void {
  const tokens = gateHead().outTokens + OUT_PRIOR_ENDS * OUT_PRIOR_TOKENS;
  const mean = tokens / (gateHead().outEnds + OUT_PRIOR_ENDS);
  gateHead().reserve = <f32>(RESERVE_PART * mean);
}

/** Decays the sums of earlier answers. @param now pool clock, ms */
function decayOutput(now: f64): void {
  const passed = now - gateHead().outTime;
  if (!(passed >= 1_000)) return;
  const factor = decayed(passed / OUT_TIME);
  gateHead().outTokens = gateHead().outTokens * factor;
  gateHead().outEnds = gateHead().outEnds * factor;
  gateHead().outTime = now;
}

/**
 * Tokens were generated: those of unfinished requests count too, so that the short ones, which end first, do not
 * mislead.
 */
export function learnOutput(tokens: u32): void {
  gateHead().outTokens = gateHead().outTokens + <f64>tokens;
  updateReserve();
}

/** A request that generated something is complete. */
export function learnEnd(now: f64): void {
  decayOutput(now);
  gateHead().outEnds = gateHead().outEnds + 1;
  updateReserve();
}

/** Takes a charge of a request of the highest band: lower bands leave room for the next one. */
export function learnFoot(rank: u32, prompt: u32, now: f64): void {
  if (rank != 0) return;
  const passed = now - gateHead().footTime;
  // Within a second it fades by one percent at most: that is not worth an exponential function for every request.
  if (passed < 1_000 && gateHead().foot >= <f32>prompt + gateHead().reserve) return;
  const faded = <f32>(<f64>gateHead().foot * decayed((passed * LN2) / FOOT_HALF_LIFE));
  gateHead().foot = max(faded, <f32>prompt + gateHead().reserve);
  gateHead().footTime = now;
}

/**
 * Load of all pickers on an endpoint: own load divided by the share of this picker, plus the load that peers report.
 */
function ofAll(own: f32, told: u32): f32 {
  return own / gateHead().share + <f32>told;
}

/** Takes the size of the KV cache from a scrape, as the engine tells it or worked out from its usage. */
export function learnCapacity(slot: u32): void {
  const told = <f32>column.u32(COLUMN_BLOCK_TOKENS, slot) * <f32>column.u32(COLUMN_BLOCK_COUNT, slot);
  const at = roomCell(ROOM_CAPACITY, slot);
  if (told > 0) {
    store<f32>(at, min(told, CAPACITY_MAX));
    return;
  }
  const usage = column.f32(COLUMN_KV_USAGE, slot);
  if ((column.u32(COLUMN_KNOWN, slot) & SIGNAL_KV_USAGE) == 0 || !(usage > CAPACITY_USAGE && usage <= 1)) return;
  const held = column.u32(COLUMN_ACTIVE_BLOCKS, slot) * gateHead().blockTokens;
  const own = <f32>(held + room.u32(ROOM_KV_NOW, slot));
  const sample = ofAll(own, room.u32(ROOM_REMOTE_KV, slot)) / usage;
  if (sample > 0) mix(at, min(sample, CAPACITY_MAX), CAPACITY_WEIGHT);
}

// ------------------------------------------------------------------------------------ the look, every 50 ms while
// something waits

function freshSignals(slot: u32, now: f64): bool {
  const at = column.f64(COLUMN_SIGNAL_TIME, slot);
  return at > 0 && now - at <= FRESH;
}

/** Expected time of the first token, in ms after the charge. */
export function expectedFirstToken(index: u32, slot: u32): f32 {
  const charge = gateChargeAt(index);
  const tokens = <f32>charge.uncached + <f32>charge.ahead;
  return 2 * stepOf(slot) + tokenMsOf(slot) * tokens;
}

/** Whether a pending request is late, since its engine has no slot for it. */
export function isOverdue(index: u32, slot: u32, age: f64, now: f64): bool {
  const least = room.f32(ROOM_BASE, slot);
  const slack: f32 = freshSignals(slot, now) ? 1 : 1.75;
  return age > <f64>((2 * max(expectedFirstToken(index, slot), least) + 20) * slack);
}

/** Requests without a first token, of all bands. */
export function lowestPendingCount(slot: u32): u32 {
  const bands = gateHead().bands;
  return bands == 0 ? 0 : room.u32(ROOM_PENDING_COUNT + bands - 1, slot);
}

/**
 * Whether the engine queues: a request of this picker is late, or more requests wait there than this picker has sent.
 */
function looksFull(slot: u32, now: f64): bool {
  const overdue = room.u32(ROOM_OVERDUE, slot) != 0;
  if (!freshSignals(slot, now) || (column.u32(COLUMN_KNOWN, slot) & SIGNAL_WAITING) == 0) return overdue;
  const waiting = column.f32(COLUMN_WAITING, slot);
  const pending = ofAll(<f32>lowestPendingCount(slot), room.u32(ROOM_REMOTE_COUNT, slot));
  return (overdue && waiting > 0) || waiting > pending + 1;
}

/** Cuts to what runs now, less a little: one cut is right, and a wall that is found again is believed for longer. */
function cut(slot: u32, now: f64): void {
  const at = wideRoomCell(ROOM_CUT_AT, slot);
  if (load<f64>(at) > 0 && now - load<f64>(at) < CUT_PAUSE) return;
  const scraped = freshSignals(slot, now) && (column.u32(COLUMN_KNOWN, slot) & SIGNAL_RUNNING) != 0;
  const inflight = column.u32(COLUMN_INFLIGHT, slot);
  const started = inflight - min(inflight, lowestPendingCount(slot));
  const others = room.u32(ROOM_REMOTE_REQUESTS, slot);
  const told = others - min(others, room.u32(ROOM_REMOTE_COUNT, slot));
  const unseen = ofAll(<f32>started, told);
  const running = clamp(scraped ? column.f32(COLUMN_RUNNING, slot) : unseen, 0, LIMIT_MAX);
  const before = room.f32(ROOM_OCCUPANCY, slot);
  const same = before > 0 && abs(running - before) <= before * SAME_WALL;
  const hold = roomCell(ROOM_HOLD, slot);
  store<f32>(hold, same ? min(HOLD_MAX, 2 * load<f32>(hold)) : HOLD_FIRST);
  room.setF32(ROOM_OCCUPANCY, slot, running);
  room.setF32(ROOM_LEARNED_LIMIT, slot, max(LIMIT_MIN, CUT_FACTOR * running));
  store<f64>(at, now);
}

/** After its rest a limit that was what blocked grows by a percent a second. */
function grow(slot: u32, now: f64, passed: f64): void {
  const limit = room.f32(ROOM_LEARNED_LIMIT, slot);
  const rested = now - room.f64(ROOM_CUT_AT, slot) >= <f64>room.f32(ROOM_HOLD, slot);
  if (limit > LIMIT_MAX || !rested || room.u32(ROOM_BLOCKED, slot) == 0) return;
  const more = max<f32>(1, GROWTH * limit) * <f32>(clamp(<f32>passed, 0, 1_000) / 1_000);
  room.setF32(ROOM_LEARNED_LIMIT, slot, min(LIMIT_MAX, limit + more));
}

/** Moves the window by the engine's own queue where first tokens are not visible. */
export function stretch(slot: u32, now: f64): void {
  if (!freshSignals(slot, now) || (column.u32(COLUMN_KNOWN, slot) & SIGNAL_WAITING) == 0) return;
  const at = roomCell(ROOM_STRETCH, slot);
  const waiting = column.f32(COLUMN_WAITING, slot);
  if (waiting > 1) store<f32>(at, clamp(load<f32>(at) * 0.95, STRETCH_MIN, STRETCH_MAX));
  else if (waiting == 0) store<f32>(at, clamp(load<f32>(at) * 1.02, STRETCH_MIN, STRETCH_MAX));
}

/** Sets the limit of an endpoint: 0 while all queue requests of others, since nothing goes behind those. */
function updateLimit(slot: u32): void {
  room.setF32(ROOM_LIMIT, slot, allForeign() ? 0 : room.f32(ROOM_LEARNED_LIMIT, slot));
}

function updateLimits(slot: u32): void {
  if (!foreignChanged(slot)) return updateLimit(slot);
  for (let i: u32 = 0; i < SLOTS; i++) updateLimit(i);
}

/** A scrape came: what it says about the KV cache, and about requests that are not ours. */
export function learnScrape(slot: u32): void {
  learnCapacity(slot);
  foreignScraped(slot, lowestPendingCount(slot));
  updateLimits(slot);
}

/** Looks at one endpoint. @param passed ms since the last look */
export function learnLook(slot: u32, now: f64, passed: f64): void {
  if (column.u32(COLUMN_STATE, slot) == STATE_FREE) return;
  const looks = roomCell(ROOM_FULL_LOOKS, slot);
  const full = looksFull(slot, now);
  store<u32>(looks, full ? min<u32>(load<u32>(looks) + 1, 2) : 0);
  if (!freshSignals(slot, now)) foreignStale(slot);
  if (load<u32>(looks) >= 2) cut(slot, now);
  else if (!allForeign()) grow(slot, now, passed);
  updateLimits(slot);
  room.setU32(ROOM_BLOCKED, slot, 0);
}
