// Pickers that choose in another way than by the highest key of all.
//
// Owns: the picks in the thread's answer and whose turn it is (commit lock); takes picked slots out of the
// thread's CANDIDATES. Called under the commit lock by the thread itself.
import { slotOffset } from '../columns/column';
import { laneMinOfIntegers, laneSumOfIntegers } from '../columns/lanes';
import { COLUMN_INFLIGHT, COLUMN_KNOWN, columnAddress } from '../endpoints';
import { CANDIDATES, KEPT, SCORE } from '../memory';
import { shadowTurnWord, turnWord } from '../pool-words';
import { randomBelow } from '../random';
import { DECIDE_UNCHARGED, request, setPickedSlot } from '../request-area';
import { pickHighest } from './pick-highest';
import { signalsRead } from './score-column';

function unmark(slot: u32): void {
  store<i32>(CANDIDATES + slotOffset(slot), 0);
}

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

/**
 * The best of `choices` different candidates drawn by lot (the power of two choices: Mitzenmacher 2001); ties stay with
 * the first one drawn.
 */
export function pickBestOf(used: u32, candidates: u32, count: u32, choices: u32): u32 {
  let left = candidates;
  for (let picked: u32 = 0; picked < count; picked++) {
    memory.copy(KEPT, CANDIDATES, slotOffset(used));
    let best = u32.MAX_VALUE;
    for (let i: u32 = 0; i < choices && i < left; i++) {
      const slot = markedSlot(used, KEPT, randomBelow(left - i));
      store<i32>(KEPT + slotOffset(slot), 0);
      if (best == u32.MAX_VALUE || better(slot, best)) best = slot;
    }
    setPickedSlot(picked, best);
    if (picked + 1 < count) unmark(best);
    left--;
  }
  return count;
}

/** Fewest requests in flight among the slots that KEPT marks. */
function fewestMarked(used: u32, inflight: usize): i32 {
  const many = i32x4.splat(i32.MAX_VALUE);
  let fewest = many;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    fewest = i32x4.min_s(fewest, v128.bitselect(v128.load(inflight + at), many, v128.load(KEPT + at)));
  }
  return laneMinOfIntegers(fewest);
}

/** The fewest requests in flight from here; of those the highest score, then by lot (least request: Envoy, AIBrix). */
export function pickLeastRequest(used: u32, count: u32): u32 {
  const inflight = columnAddress(COLUMN_INFLIGHT);
  const end = slotOffset(used);
  memory.copy(KEPT, CANDIDATES, end);
  for (let picked: u32 = 0; picked < count; picked++) {
    const fewest = i32x4.splat(fewestMarked(used, inflight));
    for (let at: usize = 0; at < end; at += 16) {
      v128.store(CANDIDATES + at, v128.and(v128.load(KEPT + at), i32x4.eq(v128.load(inflight + at), fewest)));
    }
    const slot = pickHighest(used, SCORE);
    setPickedSlot(picked, slot);
    store<i32>(KEPT + slotOffset(slot), picked + 1 < count ? 0 : -1);
    memory.copy(CANDIDATES, KEPT, end);
  }
  return count;
}

/** Candidates below a slot. */
function candidatesBelow(used: u32, slot: u32): u32 {
  let total = i32x4.splat(0);
  const bound = i32x4.splat(<i32>slot);
  const four = i32x4.splat(4);
  let index = i32x4(0, 1, 2, 3);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    total = i32x4.sub(total, v128.and(v128.load(CANDIDATES + at), i32x4.lt_s(index, bound)));
    index = i32x4.add(index, four);
  }
  return <u32>laneSumOfIntegers(total);
}

/** Whether a shadow program picks: it has turns of its own. */
let inShadow: bool = false;

export function pickInShadow(on: bool): void {
  inShadow = on;
}

/**
 * The next candidate after the one that this profile's picker took last, in the order of the slots; scores do not
 * count.
 */
export function pickRoundRobin(used: u32, candidates: u32, count: u32): u32 {
  const profile = request().profile;
  const turn = inShadow ? shadowTurnWord(profile) : turnWord(profile);
  const after = candidatesBelow(used, load<u32>(turn));
  memory.copy(KEPT, CANDIDATES, slotOffset(used));
  for (let picked: u32 = 0; picked < count; picked++) {
    const slot = markedSlot(used, KEPT, (after + picked) % candidates);
    setPickedSlot(picked, slot);
    if (picked + 1 < count) unmark(slot);
    if (picked == 0 && (inShadow || (request().flags & DECIDE_UNCHARGED) == 0)) store<u32>(turn, slot + 1);
  }
  return count;
}
