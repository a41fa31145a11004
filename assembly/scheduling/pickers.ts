// Pickers: from weighted scores to the endpoints, in order of preference.
//
// Owns: the picks in the thread's answer; uses KEYS and KEPT as scratch. Called under the commit lock by the thread
// itself.
import { candidatesTouched } from '../columns/candidates';
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { laneSumOfIntegers } from '../columns/lanes';
import { COLUMN_EJECTION, columnAddress } from '../endpoints';
import { CANDIDATES, KEPT, KEYS, SCORE, SLOTS } from '../memory';
import { random, randomFloat } from '../random';
import { PICKS_MAX, pickedSlot, setPickedSlot } from '../request-area';
import { labelAddress } from './labels';
import { naturalLog } from './logarithm';
import { pickHighest } from './pick-highest';
import { pickBestOf, pickLeastRequest, pickRoundRobin } from './picker-algorithms';
import {
  OP_PICK_BEST_OF,
  OP_PICK_LEAST_REQUEST,
  OP_PICK_MAX_SCORE,
  OP_PICK_RANDOM,
  OP_PICK_ROUND_ROBIN,
  OP_PICK_WEIGHTED_RANDOM,
  Operation,
} from './program';
import { noteBestMatch } from './score-column';

/** Takes the candidates on the host of a slot out of the race for now: KEPT marks them. */
function setAside(used: u32, slot: u32, hosts: u32): void {
  const first = labelAddress(hosts);
  const second = first + slotOffset(SLOTS);
  const low = i32x4.splat(load<i32>(first + slotOffset(slot)));
  const high = i32x4.splat(load<i32>(second + slotOffset(slot)));
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const same = v128.and(i32x4.eq(v128.load(first + at), low), i32x4.eq(v128.load(second + at), high));
    const candidates = v128.load(CANDIDATES + at);
    v128.store(KEPT + at, v128.or(v128.load(KEPT + at), v128.and(candidates, same)));
    v128.store(CANDIDATES + at, v128.andnot(candidates, same));
  }
}

/** Puts those that were set aside back into the race. */
function putBack(used: u32): void {
  memory.copy(CANDIDATES, KEPT, slotOffset(used));
  memory.fill(KEPT, 0, slotOffset(used));
}

/** Draws a random key for every candidate, uniformly. */
function randomKeys(used: u32): void {
  for (let i: u32 = 0; i < used; i++) {
    const at = slotOffset(i);
    if (load<i32>(CANDIDATES + at) != 0) store<f32>(KEYS + at, randomFloat());
  }
}

/** A-Res (Efraimidis and Spirakis 2006): key = U^(1/score), here as its logarithm; score ≤ 0 comes last, by lot. */
function weightedKeys(used: u32): void {
  for (let i: u32 = 0; i < used; i++) {
    const at = slotOffset(i);
    if (load<i32>(CANDIDATES + at) == 0) continue;
    const weight = load<f32>(SCORE + at);
    const uniform = (<f64>(random() >> 11) + 0.5) * (1.0 / 9007199254740992.0);
    store<f32>(KEYS + at, weight > 0 ? <f32>(naturalLog(uniform) / <f64>weight) : <f32>(-1e37 * (1 + uniform)));
  }
}

/** Candidates that are out: their probes are due, or all that there are is out. */
function countOut(used: u32): u32 {
  const ejections = columnAddress(COLUMN_EJECTION);
  const zero = i32x4.splat(0);
  let count = zero;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const kept = i32x4.eq(v128.load(ejections + at), zero);
    count = i32x4.sub(count, v128.andnot(v128.load(CANDIDATES + at), kept));
  }
  return <u32>laneSumOfIntegers(count);
}

/**
 * Keeps the first of `picked` places, the request's own and perhaps a probe, and behind it endpoints that are in.
 * @returns how many
 */
function withoutOut(picked: u32, wanted: u32): u32 {
  let kept: u32 = min<u32>(picked, 1);
  for (let place: u32 = 1; place < picked && kept < wanted; place++) {
    const slot = pickedSlot(place);
    if (column.u32(COLUMN_EJECTION, slot) == 0) setPickedSlot(kept++, slot);
  }
  return kept;
}

/** One pick of a picker. @param before pick before it, u32.MAX_VALUE = none. @returns u32.MAX_VALUE = none is left */
function next(op: Operation, code: u32, used: u32, before: u32): u32 {
  if (code == OP_PICK_MAX_SCORE) return pickHighest(used, SCORE);
  if (code == OP_PICK_BEST_OF) return pickBestOf(used, max<u32>(<u32>op.p1, 1));
  if (code == OP_PICK_LEAST_REQUEST) return pickLeastRequest(used);
  if (code == OP_PICK_ROUND_ROBIN) return pickRoundRobin(used, before);
  return pickHighest(used, KEYS);
}

/**
 * Makes `count` picks, each removed from the race once picked. Where hosts count, each further pick is on a host that
 * no earlier one is on, as long as there is one, and then again.
 */
function pickInOrder(op: Operation, code: u32, used: u32, count: u32): u32 {
  // Label column of hosts + 1, 0 = hosts do not count.
  const hosts = <u32>(code == OP_PICK_BEST_OF ? op.p2 : op.p1);
  const apart = hosts != 0 && count > 1;
  if (apart) memory.fill(KEPT, 0, slotOffset(used));
  let picked: u32 = 0;
  let before = u32.MAX_VALUE;
  while (picked < count) {
    let slot = next(op, code, used, before);
    if (slot == u32.MAX_VALUE && apart) {
      putBack(used);
      noteBestMatch(u32.MAX_VALUE);
      slot = next(op, code, used, before);
    }
    if (slot == u32.MAX_VALUE) break;
    setPickedSlot(picked++, slot);
    before = slot;
    if (picked == count) break;
    store<i32>(CANDIDATES + slotOffset(slot), 0);
    // Behind the first place one that is out is not listed: it stands for no host.
    if (apart && (picked == 1 || column.u32(COLUMN_EJECTION, slot) == 0)) setAside(used, slot, hosts - 1);
    noteBestMatch(u32.MAX_VALUE);
  }
  return picked;
}

function choose(op: Operation, code: u32, used: u32, wanted: u32): u32 {
  if (code == OP_PICK_RANDOM) randomKeys(used);
  else if (code == OP_PICK_WEIGHTED_RANDOM) weightedKeys(used);
  return pickInOrder(op, code, used, wanted);
}

/**
 * Runs picker operation `op` over the candidates. Behind the first place no endpoint is listed that is out, unless all
 * are.
 * @returns how many endpoints were picked; candidates that were picked before the last may be unmarked
 */
export function pick(op: Operation, code: u32, used: u32, candidates: u32): u32 {
  const wanted = min(min(<u32>max(<i32>op.p0, 1), candidates), PICKS_MAX);
  if (wanted > 1) candidatesTouched();
  const out = wanted > 1 ? countOut(used) : 0;
  if (out == 0 || out == candidates) return choose(op, code, used, wanted);
  return withoutOut(choose(op, code, used, min(min(wanted + out, candidates), PICKS_MAX)), wanted);
}
