// Gate charges: pending prefill work by band, and tokens in the KV cache, present and expected.
//
// Owns: the notes and the columns PENDING, PENDING_COUNT, UNANSWERED, KV_NOW and KV_RESERVED of REGION_GATE. Commit
// lock held throughout. Invariant (gateCheck): each column is the sum over the notes of the live ledger entries of its
// slot.
import { SLOTS } from '../memory';
import { rankOf } from './bands';
import { foreignPending } from './foreign-queues';
import {
  GATE_RANKS,
  GateCharge,
  gateChargeAt,
  gateHead,
  gateOn,
  NOTE_ALONE,
  NOTE_BLIND,
  NOTE_COUNTED,
  NOTE_PENDING,
  NOTE_UNANSWERED,
  ROOM_KV_NOW,
  ROOM_KV_RESERVED,
  ROOM_PENDING,
  ROOM_PENDING_COUNT,
  ROOM_UNANSWERED,
  roomCell,
} from './layout';
import * as room from './room';

function add(column: u32, slot: u32, by: u32): void {
  const at = roomCell(column, slot);
  store<u32>(at, load<u32>(at) + by);
}

/** Pending work of a request comes (1) or goes (-1): in its own band's columns and those of all lower bands. */
function addPending(slot: u32, priority: i32, tokens: u32, sign: i32): void {
  const bands = gateHead().bands;
  for (let rank = rankOf(priority); rank < bands; rank++) {
    add(ROOM_PENDING + rank, slot, tokens * sign);
    add(ROOM_PENDING_COUNT + rank, slot, sign);
  }
  if (sign > 0 && bands != 0) foreignPending(slot, room.u32(ROOM_PENDING_COUNT + bands - 1, slot));
}

function addTokens(slot: u32, charge: GateCharge, sign: i32): void {
  const plain = charge.plain;
  const output = charge.output;
  add(ROOM_KV_NOW, slot, (plain + output) * sign);
  add(ROOM_KV_RESERVED, slot, (plain + max(output, charge.reserve)) * sign);
}

/** Forgets the note of an entry whose load columns were cleared, or that was charged while the gate was off. */
export function noteForget(index: u32): void {
  gateChargeAt(index).state = 0;
}

/**
 * Counts a charge that was just made.
 * @param uncached prompt tokens that the endpoint does not hold
 * @param plain prompt tokens outside of the blocks that count as active
 * @param alone nothing else was charged there
 * @param blind its first token will not be seen
 */
export function noteCharge(
  index: u32,
  slot: u32,
  priority: i32,
  uncached: u32,
  plain: u32,
  alone: bool,
  blind: bool,
): void {
  const charge = gateChargeAt(index);
  const bands = gateHead().bands;
  charge.uncached = uncached;
  charge.ahead = bands == 0 ? 0 : room.u32(ROOM_PENDING + bands - 1, slot);
  charge.plain = plain;
  charge.output = 0;
  charge.reserve = <u32>gateHead().reserve;
  const state = NOTE_COUNTED | NOTE_PENDING | NOTE_UNANSWERED | (alone ? NOTE_ALONE : 0) | (blind ? NOTE_BLIND : 0);
  // The state is stored before the columns: a repair sums the columns again from the charges.
  charge.state = state;
  addPending(slot, priority, uncached, 1);
  add(ROOM_UNANSWERED, slot, 1);
  addTokens(slot, charge, 1);
}

/** Takes the first token, seen or supposed. @returns the note's state before, 0 = nothing was pending */
export function noteFirstToken(index: u32, slot: u32, priority: i32, current: bool): u32 {
  const charge = gateChargeAt(index);
  const state = charge.state;
  if ((state & NOTE_PENDING) == 0) return 0;
  charge.state = state & ~NOTE_PENDING;
  if (current) addPending(slot, priority, charge.uncached, -1);
  return state;
}

/** Notes that the request was heard of: its first token, or its end. */
export function noteAnswered(index: u32, slot: u32, current: bool): void {
  const charge = gateChargeAt(index);
  if ((charge.state & NOTE_UNANSWERED) == 0) return;
  charge.state &= ~NOTE_UNANSWERED;
  if (current) add(ROOM_UNANSWERED, slot, -1);
}

/** Notes that the output has grown to `tokens`. @returns by how many */
export function noteOutput(index: u32, slot: u32, tokens: u32, current: bool): u32 {
  const charge = gateChargeAt(index);
  const before = charge.output;
  if ((charge.state & NOTE_COUNTED) == 0 || tokens <= before) return 0;
  if (current) addTokens(slot, charge, -1);
  charge.output = tokens;
  if (current) addTokens(slot, charge, 1);
  return tokens - before;
}

/** Takes the release of the entry. */
export function noteRelease(index: u32, slot: u32, priority: i32, current: bool): void {
  const charge = gateChargeAt(index);
  if (charge.state == 0) return;
  noteFirstToken(index, slot, priority, current);
  noteAnswered(index, slot, current);
  if (current) addTokens(slot, charge, -1);
  charge.state = 0;
}

/**
 * The entry goes from one slot to another: what its note counts goes with it.
 * @param current the first slot is still the same endpoint's
 */
export function noteMove(index: u32, from: u32, to: u32, priority: i32, current: bool): void {
  const charge = gateChargeAt(index);
  if ((charge.state & NOTE_COUNTED) == 0) return;
  // Its first token tells nothing of the second endpoint, which got the request later.
  noteFirstToken(index, from, priority, current);
  if (current) {
    if ((charge.state & NOTE_UNANSWERED) != 0) add(ROOM_UNANSWERED, from, -1);
    addTokens(from, charge, -1);
  }
  noteRecount(index, to, priority);
}

/** Clears what is pending on a slot and in its cache. */
export function notesClear(slot: u32): void {
  if (!gateOn()) return;
  room.setU32(ROOM_KV_NOW, slot, 0);
  room.setU32(ROOM_KV_RESERVED, slot, 0);
  room.setU32(ROOM_UNANSWERED, slot, 0);
  for (let rank: u32 = 0; rank < GATE_RANKS; rank++) {
    room.setU32(ROOM_PENDING + rank, slot, 0);
    room.setU32(ROOM_PENDING_COUNT + rank, slot, 0);
  }
}

/** Counts a live entry again after notesClear(). */
export function noteRecount(index: u32, slot: u32, priority: i32): void {
  const charge = gateChargeAt(index);
  const state = charge.state;
  if ((state & NOTE_COUNTED) == 0) return;
  if ((state & NOTE_PENDING) != 0) addPending(slot, priority, charge.uncached, 1);
  if ((state & NOTE_UNANSWERED) != 0) add(ROOM_UNANSWERED, slot, 1);
  addTokens(slot, charge, 1);
}

/** Tokens of the prompt that whole active blocks do not stand for. */
export function plainTokens(prompt: u32, blocks: u32): u32 {
  const hashed = blocks * gateHead().blockTokens;
  return prompt > hashed ? prompt - hashed : 0;
}

/** Sum of a u32 column over all slots. */
export function roomSum(column: u32): u64 {
  let sum: u64 = 0;
  for (let slot: u32 = 0; slot < SLOTS; slot++) sum += room.u32(column, slot);
  return sum;
}
