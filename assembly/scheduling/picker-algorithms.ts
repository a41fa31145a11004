// Pickers that choose in another way than by the highest key of all: one pick of each.
//
// Owns: whose turn it is (commit lock); the thread's KEYS are scratch. Called under the commit lock by the thread
// itself.
import { slotOffset } from '../columns/column';
import { laneMinOfIntegers, laneSumOfIntegers } from '../columns/lanes';
import { COLUMN_INFLIGHT, COLUMN_KNOWN, columnAddress } from '../endpoints';
import { CANDIDATES, KEYS, SCORE } from '../memory';
import { shadowTurnWord, turnWord } from '../pool-words';
import { randomBelow } from '../random';
import { DECIDE_UNCHARGED, request } from '../request-area';
import { LOWEST, pickHighest } from './pick-highest';
import { signalsRead } from './score-column';

/** The `number`-th of the slots that a mask column marks. */
function markedSlot(used: u32, marks: usize, number: u32): u32 {
  let left = number;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    let bits = <u32>i32x4.bitmask(v128.load(marks + at));
    const here = popcnt<u32>(bits);
    if (left >= here) {
      left -= here;
      continue;
    }
    for (; left > 0; left--) bits &= bits - 1;
    return <u32>(at >> 2) + <u32>ctz<u32>(bits);
  }
  return u32.MAX_VALUE;
}

function isKnown(slot: u32): bool {
  return (load<u32>(columnAddress(COLUMN_KNOWN) + slotOffset(slot)) & signalsRead) == signalsRead;
}

/** Returns whether slot `a` is better than `b`: by score, then with known signals, then by fewer requests in flight. */
function better(a: u32, b: u32): bool {
  const mine = load<f32>(SCORE + slotOffset(a));
  const others = load<f32>(SCORE + slotOffset(b));
  if (mine != others) return mine > others;
  if (isKnown(a) != isKnown(b)) return isKnown(a);
  const inflight = columnAddress(COLUMN_INFLIGHT);
  return load<u32>(inflight + slotOffset(a)) < load<u32>(inflight + slotOffset(b));
}

/** Slots that CANDIDATES marks. */
function countMarked(used: u32): u32 {
  let count = i32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    count = i32x4.sub(count, v128.load(CANDIDATES + at));
  }
  return <u32>laneSumOfIntegers(count);
}

/**
 * The best of `choices` different candidates drawn by lot (the power of two choices: Mitzenmacher 2001); ties stay with
 * the first one drawn. Draws from KEYS.
 * @returns u32.MAX_VALUE = there is no candidate
 */
export function pickBestOf(used: u32, choices: u32): u32 {
  const left = countMarked(used);
  memory.copy(KEYS, CANDIDATES, slotOffset(used));
  let best = u32.MAX_VALUE;
  for (let i: u32 = 0; i < choices && i < left; i++) {
    const slot = markedSlot(used, KEYS, randomBelow(left - i));
    store<i32>(KEYS + slotOffset(slot), 0);
    if (best == u32.MAX_VALUE || better(slot, best)) best = slot;
  }
  return best;
}

/** Fewest requests in flight among the candidates; i32.MAX_VALUE = there is none. */
function fewestInflight(used: u32, inflight: usize): i32 {
  const many = i32x4.splat(i32.MAX_VALUE);
  let fewest = many;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    fewest = i32x4.min_s(fewest, v128.bitselect(v128.load(inflight + at), many, v128.load(CANDIDATES + at)));
  }
  return laneMinOfIntegers(fewest);
}

/**
 * The fewest requests in flight from here; of those the highest score, then by lot (least request: Envoy, AIBrix).
 * Scores the others as the lowest in KEYS.
 * @returns u32.MAX_VALUE = there is no candidate
 */
export function pickLeastRequest(used: u32): u32 {
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const fewest = i32x4.splat(fewestInflight(used, inflight));
  const lowest = f32x4.splat(LOWEST);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const few = i32x4.eq(v128.load(inflight + at), fewest);
    v128.store(KEYS + at, v128.bitselect(v128.load(SCORE + at), lowest, few));
  }
  return pickHighest(used, KEYS);
}

/** First candidate from a slot on, and after the last slot from the first one on. */
function candidateFrom(used: u32, slot: u32): u32 {
  let wrapped = u32.MAX_VALUE;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const bits = <u32>i32x4.bitmask(v128.load(CANDIDATES + at));
    if (bits == 0) continue;
    const first = <u32>(at >> 2);
    if (wrapped == u32.MAX_VALUE) wrapped = first + <u32>ctz<u32>(bits);
    const after = slot <= first ? bits : slot >= first + 4 ? 0 : (bits >> (slot - first)) << (slot - first);
    if (after != 0) return first + <u32>ctz<u32>(after);
  }
  return wrapped;
}

/** Whether a shadow program picks: it has turns of its own. */
let inShadow: bool = false;

export function pickInShadow(on: bool): void {
  inShadow = on;
}

/** Returns whether a shadow program picks. */
export function isPickedInShadow(): bool {
  return inShadow;
}

/**
 * The next candidate after the one that this profile's picker took last, in the order of the slots; scores do not
 * count. Further picks go on behind the pick before them.
 * @param before pick before this one, u32.MAX_VALUE = this is the first one
 * @returns u32.MAX_VALUE = there is no candidate
 */
export function pickRoundRobin(used: u32, before: u32): u32 {
  if (before != u32.MAX_VALUE) return candidateFrom(used, before + 1);
  const profile = request().profile;
  const turn = inShadow ? shadowTurnWord(profile) : turnWord(profile);
  const slot = candidateFrom(used, load<u32>(turn));
  if (inShadow || (request().flags & DECIDE_UNCHARGED) == 0) store<u32>(turn, slot + 1);
  return slot;
}
