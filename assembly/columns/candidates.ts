// Endpoints that may serve the request.
//
// Owns: the thread's CANDIDATES column (i32 per slot: -1 = candidate, 0 = not), written by its own thread. Reads the
// columns of states, ejections and deaths and counts the pool's decisions; called under the commit lock.
//
// States change rarely, so most decisions begin with the same candidates as the one before. A decision that narrows its
// candidates says so (candidatesTouched); otherwise the column is kept for the next one.

import { ASSERTIONS } from '../assertions';
import {
  COLUMN_DEATH,
  COLUMN_DEATH_TIME,
  COLUMN_EJECTED_AT,
  COLUMN_EJECTED_UNTIL,
  COLUMN_EJECTION,
  COLUMN_STATE,
  columnAddress,
  DEATH_DEAD,
  DEATH_DOUBTED,
  STATE_LIVE,
} from '../endpoints';
import { CANDIDATES, HOST, MASKS, SLOTS, SUBSET } from '../memory';
import { poolWords } from '../pool-words';
import * as column from './column';
import { slotOffset } from './column';

/** Requests of the pool for each probe of an endpoint that is out. */
export const PROBE_SHARE: u32 = 32;
/** Longest time that a probe which is due waits for them in a pool that decides few requests, in milliseconds. */
export const PROBE_DUE_MS_MAX: f64 = 59200;

/** Longest time of a doubt, and pause until the next one, in milliseconds; the control thread ends it within a few. */
export const DOUBT_MS: f64 = 1000;

/** Returns whether an endpoint is in doubt or dead (load/dead.ts). */
export function deathOf(slot: u32): u32 {
  return column.u32(COLUMN_DEATH, slot);
}

/** Slots in use, rounded up to a multiple of 4 (the width of the column loops). */
export function slotsUsed(): u32 {
  return (poolWords().slotsUsed + 3) & ~3;
}

/**
 * Whether CANDIDATES marks the live endpoints: `keptCount` of the first `keptUsed` slots, as of `keptChanges` changes
 * of states.
 */
let kept: bool = false;
let keptUsed: u32 = 0;
let keptCount: u32 = 0;
let keptChanges: u32 = 0;

/** Notes that CANDIDATES differs from what the next decision would mark. */
export function candidatesTouched(): void {
  kept = false;
}

/** Whether no endpoint is out, in doubt or dead. */
function allIn(): bool {
  return (poolWords().ejected | poolWords().dead) == 0;
}

/** Keeps CANDIDATES for the next decisions, if it marks the live endpoints. */
export function keepCandidates(used: u32, count: u32, subset: bool): void {
  // Whether an endpoint is taken that is out or in doubt depends on the time.
  kept = !subset && allIn();
  keptUsed = used;
  keptCount = count;
  keptChanges = poolWords().stateChanges;
}

/**
 * Candidates of the decision before, if those of the next one are the same.
 * @returns how many they are; u32.MAX_VALUE = they have to be marked
 */
export function candidatesStill(used: u32, subset: bool): u32 {
  if (!kept || subset || used != keptUsed) return u32.MAX_VALUE;
  return keptChanges != poolWords().stateChanges || !allIn() ? u32.MAX_VALUE : keptCount;
}

/**
 * Begins a decision with the candidates of the one before. Commit lock held.
 * @param further as in markCandidates
 * @returns as candidatesStill
 */
export function candidatesKept(used: u32, subset: bool, further: bool): u32 {
  const count = candidatesStill(used, subset);
  if (count == u32.MAX_VALUE) return count;
  if (!further) countDecision();
  if (ASSERTIONS) assert(markLive(used, 0, TAKE_ALL) == keptCount, 'kept candidates are the live endpoints');
  return count;
}

/** Counts a decision of the pool: probes are a share of them. */
function countDecision(): void {
  poolWords().decisions += 1;
}

/** Endpoints that a marking takes, most to least wanted. */
const TAKE_ADMITTED: u32 = 0; // in, or out with their probe due
const TAKE_EJECTED: u32 = 1; // those that are out too: all out means all in
const TAKE_DOUBTED: u32 = 2; // those in doubt too
const TAKE_ALL: u32 = 3;

/** Returns whether a marking takes a live endpoint (load/ejection.ts, load/dead.ts). */
function takes(slot: u32, now: f64, take: u32): bool {
  if (take == TAKE_ALL) return true;
  const death = deathOf(slot);
  if (death == DEATH_DEAD) return false;
  if (death == DEATH_DOUBTED && take < TAKE_DOUBTED && now < column.f64(COLUMN_DEATH_TIME, slot) + DOUBT_MS)
    return false;
  const state = column.u32(COLUMN_EJECTION, slot);
  if (state != 1 || take >= TAKE_EJECTED) return state == 0 || take >= TAKE_EJECTED;
  const until = column.f64(COLUMN_EJECTED_UNTIL, slot);
  if (now < until) return false;
  // The counter wraps around.
  const decisions = poolWords().decisions - column.u32(COLUMN_EJECTED_AT, slot);
  return decisions >= PROBE_SHARE || now >= until + PROBE_DUE_MS_MAX;
}

/** Marks the live endpoints that a marking takes. @returns how many */
function markLive(used: u32, now: f64, take: u32): u32 {
  const states = columnAddress(COLUMN_STATE);
  const ejections = columnAddress(COLUMN_EJECTION);
  const deaths = columnAddress(COLUMN_DEATH);
  const live = i32x4.splat(1);
  let count: u32 = 0;
  for (let i: u32 = 0; i < used; i += 4) {
    const at = slotOffset(i);
    const mask = i32x4.eq(v128.load(states + at), live);
    const out = v128.or(v128.load(ejections + at), v128.load(deaths + at));
    if (take != TAKE_ALL && v128.any_true(out)) {
      for (let j: u32 = i; j < i + 4; j++) {
        const ok = column.u32(COLUMN_STATE, j) == STATE_LIVE && takes(j, now, take);
        store<i32>(CANDIDATES + slotOffset(j), ok ? -1 : 0);
        count += u32(ok);
      }
      continue;
    }
    v128.store(CANDIDATES + at, mask);
    count += <u32>popcnt<i32>(i32x4.bitmask(mask));
  }
  return count;
}

/** Marks the live endpoints of the subset mask that a marking takes. @returns how many */
function markSubset(used: u32, now: f64, take: u32): u32 {
  memory.fill(CANDIDATES, 0, slotOffset(used));
  let count: u32 = 0;
  for (let word: u32 = 0; word < (used + 63) >> 6; word++) {
    let bits = load<u64>(SUBSET + ((<usize>word) << 3));
    while (bits != 0) {
      const slot = (word << 6) + <u32>ctz<u64>(bits);
      bits &= bits - 1;
      if (slot >= used || column.u32(COLUMN_STATE, slot) != STATE_LIVE) continue;
      if (!takes(slot, now, take)) continue;
      store<i32>(CANDIDATES + slotOffset(slot), -1);
      count++;
    }
  }
  return count;
}

/** Of the dead candidates keeps the one whose last try, or death, is longest ago. @returns how many are left: 0 or 1 */
function keepLongestDead(used: u32): u32 {
  let best: u32 = u32.MAX_VALUE;
  let longest: f64 = Infinity;
  for (let slot: u32 = 0; slot < used; slot++) {
    if (load<i32>(CANDIDATES + slotOffset(slot)) == 0) continue;
    const time = column.f64(COLUMN_DEATH_TIME, slot);
    if (time < longest) {
      longest = time;
      best = slot;
    }
  }
  memory.fill(CANDIDATES, 0, slotOffset(used));
  if (best == u32.MAX_VALUE) return 0;
  store<i32>(CANDIDATES + slotOffset(best), -1);
  return 1;
}

/**
 * Fills the CANDIDATES column. When every live endpoint is ejected, all of them are candidates; when all are dead, the
 * one that was tried longest ago is the only one.
 * @param further not the first decision about a request, which alone is counted
 */
export function markCandidates(used: u32, now: f64, subset: bool, further: bool): u32 {
  candidatesTouched();
  if (!further) countDecision();
  const off = poolWords().ejectionOff != 0;
  const last = poolWords().dead == 0 ? TAKE_EJECTED : TAKE_DOUBTED;
  let take = off ? TAKE_ALL : TAKE_ADMITTED;
  for (; ; take++) {
    const count = subset ? markSubset(used, now, take) : markLive(used, now, take);
    if (count != 0 || off) return count;
    if (take == last) break;
  }
  if (poolWords().dead == 0) return 0;
  if (subset) markSubset(used, now, TAKE_ALL);
  else markLive(used, now, TAKE_ALL);
  return keepLongestDead(used);
}

/** Keeps the candidates of a mask. @returns how many are left */
export function filterByMask(used: u32, mask: u32): u32 {
  const words = MASKS + <usize>mask * (SLOTS >> 3);
  let count: u32 = 0;
  for (let i: u32 = 0; i < used; i++) {
    const at = CANDIDATES + slotOffset(i);
    if (load<i32>(at) == 0) continue;
    if ((load<u32>(words + ((<usize>(i >> 5)) << 2)) & (1 << (i & 31))) == 0) store<i32>(at, 0);
    else count++;
  }
  return count;
}

/** Candidates of four slots that a host column keeps: above 0, which NaN is not. */
function keptByHost(values: usize, at: usize, zero: v128): v128 {
  return v128.and(v128.load(CANDIDATES + at), f32x4.gt(v128.load(values + at), zero));
}

/**
 * Keeps the candidates whose cell in a host column is above 0.
 * @param keepAll when none would be left, leave all `before` candidates as they are
 * @returns how many are left
 */
export function filterByHost(used: u32, column: u32, keepAll: bool, before: u32): u32 {
  const values = HOST + <usize>column * SLOTS * 4;
  const end = slotOffset(used);
  const zero = f32x4.splat(0);
  let count: u32 = 0;
  for (let at: usize = 0; at < end; at += 16) {
    count += <u32>popcnt<i32>(i32x4.bitmask(keptByHost(values, at, zero)));
  }
  if (count == 0 && keepAll) return before;
  for (let at: usize = 0; at < end; at += 16) v128.store(CANDIDATES + at, keptByHost(values, at, zero));
  return count;
}
