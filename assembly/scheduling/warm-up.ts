// Warm-up: a share of the requests for an endpoint whose cache is still empty.
//
// Owns: the thread's KEPT and KEYS columns, written by its own thread. Reads the endpoint columns under the commit
// lock.
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { laneMaxOfIntegers } from '../columns/lanes';
import { blockTokens, VALUE_WAITING, valueKeys } from '../columns/values';
import { COLUMN_CHARGED, COLUMN_HIT_SHARE, COLUMN_INFLIGHT, COLUMN_WARMING_SINCE, columnAddress } from '../endpoints';
import { CANDIDATES, KEPT, KEYS, MATCH } from '../memory';
import { noteWarm, noteWarming } from './held-back';
import { Operation } from './program';
import { noteReachable } from './score-column';

/** Added to both hit shares before they are compared: without hits anywhere an endpoint is warm at once. */
const HIT_FLOOR: f32 = 0.05;
/** Requests after which the hit share of an endpoint says something: twice the requests that it is a mean of. */
const COMPARED: u32 = 64;
/** Part of the hit share of the others from which on an endpoint is warm. */
const WARM: f32 = 0.9;

// Effect on a candidate.
const LEAVE: i32 = 0; // it has its share, and others hold more of the prompt
const KEEP: i32 = 1;
const WANT: i32 = 2; // it gets the request alone

/** Means of the candidates that new ones are compared with. */
let hits: f32 = 0;
let busy: f32 = 0;
let queued: f32 = 0;
/** Most blocks of the prompt that a candidate holds. */
let longest: u32 = 0;

/**
 * Looks over the candidates: takes the most blocks of the prompt that one holds.
 * @returns whether one was charged fewer requests than make it warm, or was new before
 */
function isSomeNew(used: u32, requests: u32): bool {
  const charged = columnAddress(COLUMN_CHARGED);
  const warming = columnAddress(COLUMN_WARMING_SINCE);
  const limit = i32x4.splat(<i32>requests);
  let some = i32x4.splat(0);
  let held = i32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const count = v128.load(charged + at);
    const candidates = v128.load(CANDIDATES + at);
    // The larger of two unsigned numbers is another one than the count: the count is below the limit.
    const isNew = i32x4.ne(i32x4.max_u(count, limit), count);
    some = v128.or(some, v128.and(v128.or(isNew, v128.load(warming + at)), candidates));
    held = i32x4.max_s(held, v128.and(v128.load(MATCH + at), candidates));
  }
  longest = <u32>laneMaxOfIntegers(held);
  return v128.any_true(some);
}

/** Takes the means of the candidates that were charged `least` requests. @returns false without any */
function compare(used: u32, least: u32): bool {
  let count: f32 = 0;
  hits = 0;
  busy = 0;
  queued = 0;
  valueKeys(VALUE_WAITING, used);
  for (let slot: u32 = 0; slot < used; slot++) {
    const at = slotOffset(slot);
    if (load<i32>(CANDIDATES + at) == 0) continue;
    if (column.u32(COLUMN_CHARGED, slot) < least) continue;
    const waiting = load<f32>(KEYS + at);
    count += 1;
    hits += column.f32(COLUMN_HIT_SHARE, slot);
    busy += <f32>column.u32(COLUMN_INFLIGHT, slot);
    if (waiting > 0) queued += waiting;
  }
  if (count == 0) return false;
  hits /= count;
  busy /= count;
  queued /= count;
  return true;
}

/** Effect on a candidate that was charged fewer requests than make it warm. */
function fateOf(op: Operation, slot: u32): i32 {
  const found = (column.f32(COLUMN_HIT_SHARE, slot) + HIT_FLOOR) / (hits + HIT_FLOOR);
  if (found >= WARM) {
    noteWarm(slot);
    return KEEP;
  }
  const share = max(found, op.p0);
  noteWarming(slot, share);
  const own = <f32>column.u32(COLUMN_INFLIGHT, slot);
  const match = load<u32>(MATCH + slotOffset(slot));
  if (busy >= 1 && own < op.p0 * busy && <f32>(longest - match) * blockTokens() <= op.p2) return WANT;
  if (match == longest || queued >= 1) return KEEP;
  return own >= max<f32>(1, share * busy) ? LEAVE : KEEP;
}

/**
 * Marks the candidates that take the request. An endpoint is new until `p1` requests were charged to it, or until its
 * share, the quotient of its hit share and that of the others, is WARM. While it has its share of their mean requests
 * in flight, `p0` at least, it is left out of requests of which others hold more. Where the others queue, it is not.
 * With less than `p0` of them it gets the request alone, if no more than `p2` cached tokens are lost by that.
 * @returns false when all candidates stay, since none is new, or all are
 */
export function keepWarmedUp(op: Operation, used: u32): bool {
  const requests = <u32>op.p1;
  const some = isSomeNew(used, requests);
  noteReachable(longest);
  if (!some || !compare(used, min(requests, COMPARED))) return false;
  let isWanted = false;
  for (let slot: u32 = 0; slot < used; slot++) {
    const at = slotOffset(slot);
    if (load<i32>(CANDIDATES + at) == 0) continue;
    let fate = KEEP;
    if (column.u32(COLUMN_CHARGED, slot) < requests) fate = fateOf(op, slot);
    else noteWarm(slot);
    if (fate == WANT) isWanted = true;
    store<i32>(KEPT + at, fate);
  }
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const fate = v128.load(KEPT + at);
    const kept = isWanted ? i32x4.eq(fate, i32x4.splat(WANT)) : i32x4.ne(fate, i32x4.splat(LEAVE));
    v128.store(KEPT + at, kept);
  }
  return true;
}
