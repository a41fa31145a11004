// What every charge is to the gate: pending prefill work by band, tokens in the KV cache now and to be expected.
//
// Owns: the notes and the columns PENDING, PENDING_COUNT, KV_NOW and KV_RESERVED of REGION_GATE. Commit lock held
// throughout. Invariant (gateCheck): each column is the sum over the notes of the live ledger entries of its slot.
import { SLOTS } from '../memory';
import { rankOf } from './bands';
import { foreignPending } from './foreign';
import {
  GATE,
  GATE_BANDS,
  GATE_BLOCK_TOKENS,
  GATE_RANKS,
  GATE_RESERVE,
  gateOn,
  NOTE_AHEAD,
  NOTE_ALONE,
  NOTE_BLIND,
  NOTE_COUNTED,
  NOTE_OUTPUT,
  NOTE_PENDING,
  NOTE_PLAIN,
  NOTE_RESERVE,
  NOTE_STATE,
  NOTE_UNCACHED,
  noteAt,
  ROOM_KV_NOW,
  ROOM_KV_RESERVED,
  ROOM_PENDING,
  ROOM_PENDING_COUNT,
  room,
} from './layout';

function add(column: u32, slot: u32, by: u32): void {
  const at = room(column, slot);
  store<u32>(at, load<u32>(at) + by);
}

/** Pending work of a request comes (1) or goes (-1): in its own band's columns and those of all lower bands. */
function addPending(slot: u32, priority: i32, tokens: u32, sign: i32): void {
  const bands = load<u32>(GATE, GATE_BANDS);
  for (let rank = rankOf(priority); rank < bands; rank++) {
    add(ROOM_PENDING + rank, slot, tokens * sign);
    add(ROOM_PENDING_COUNT + rank, slot, sign);
  }
  if (sign > 0 && bands != 0) foreignPending(slot, load<u32>(room(ROOM_PENDING_COUNT + bands - 1, slot)));
}

function addTokens(slot: u32, note: usize, sign: i32): void {
  const plain = load<u32>(note, NOTE_PLAIN);
  const output = load<u32>(note, NOTE_OUTPUT);
  add(ROOM_KV_NOW, slot, (plain + output) * sign);
  add(ROOM_KV_RESERVED, slot, (plain + max(output, load<u32>(note, NOTE_RESERVE))) * sign);
}

/** Forget the note of an entry whose load columns were cleared, or that was charged while the gate was off. */
export function noteForget(index: u32): void {
  store<u32>(noteAt(index), 0, NOTE_STATE);
}

/**
 * Count a charge that was just made.
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
  const note = noteAt(index);
  const bands = load<u32>(GATE, GATE_BANDS);
  store<u32>(note, uncached, NOTE_UNCACHED);
  store<u32>(note, bands == 0 ? 0 : load<u32>(room(ROOM_PENDING + bands - 1, slot)), NOTE_AHEAD);
  store<u32>(note, plain, NOTE_PLAIN);
  store<u32>(note, 0, NOTE_OUTPUT);
  store<u32>(note, <u32>load<f32>(GATE, GATE_RESERVE), NOTE_RESERVE);
  const state = NOTE_COUNTED | NOTE_PENDING | (alone ? NOTE_ALONE : 0) | (blind ? NOTE_BLIND : 0);
  // The state comes before the columns: whoever repairs sums them again from the notes.
  store<u32>(note, state, NOTE_STATE);
  addPending(slot, priority, uncached, 1);
  addTokens(slot, note, 1);
}

/** The first token came, or is taken to have come. @returns the note's state before, 0 = nothing was pending */
export function noteFirstToken(index: u32, slot: u32, priority: i32, current: bool): u32 {
  const note = noteAt(index);
  const state = load<u32>(note, NOTE_STATE);
  if ((state & NOTE_PENDING) == 0) return 0;
  store<u32>(note, state & ~NOTE_PENDING, NOTE_STATE);
  if (current) addPending(slot, priority, load<u32>(note, NOTE_UNCACHED), -1);
  return state;
}

/** The output has grown to `tokens`. @returns by how many */
export function noteOutput(index: u32, slot: u32, tokens: u32, current: bool): u32 {
  const note = noteAt(index);
  const before = load<u32>(note, NOTE_OUTPUT);
  if ((load<u32>(note, NOTE_STATE) & NOTE_COUNTED) == 0 || tokens <= before) return 0;
  if (current) addTokens(slot, note, -1);
  store<u32>(note, tokens, NOTE_OUTPUT);
  if (current) addTokens(slot, note, 1);
  return tokens - before;
}

/** The entry is released. */
export function noteRelease(index: u32, slot: u32, priority: i32, current: bool): void {
  const note = noteAt(index);
  if (load<u32>(note, NOTE_STATE) == 0) return;
  noteFirstToken(index, slot, priority, current);
  if (current) addTokens(slot, note, -1);
  store<u32>(note, 0, NOTE_STATE);
}

/** Nothing is pending on a slot and nothing in its cache. */
export function notesClear(slot: u32): void {
  if (!gateOn()) return;
  store<u32>(room(ROOM_KV_NOW, slot), 0);
  store<u32>(room(ROOM_KV_RESERVED, slot), 0);
  for (let rank: u32 = 0; rank < GATE_RANKS; rank++) {
    store<u32>(room(ROOM_PENDING + rank, slot), 0);
    store<u32>(room(ROOM_PENDING_COUNT + rank, slot), 0);
  }
}

/** Count a live entry again after notesClear(). */
export function noteRecount(index: u32, slot: u32, priority: i32): void {
  const note = noteAt(index);
  const state = load<u32>(note, NOTE_STATE);
  if ((state & NOTE_COUNTED) == 0) return;
  if ((state & NOTE_PENDING) != 0) addPending(slot, priority, load<u32>(note, NOTE_UNCACHED), 1);
  addTokens(slot, note, 1);
}

/** Tokens of the prompt that whole active blocks do not stand for. */
export function plainTokens(prompt: u32, blocks: u32): u32 {
  const hashed = blocks * load<u32>(GATE, GATE_BLOCK_TOKENS);
  return prompt > hashed ? prompt - hashed : 0;
}

/** Sum of a u32 column over all slots. */
export function roomSum(column: u32): u64 {
  let sum: u64 = 0;
  for (let slot: u32 = 0; slot < SLOTS; slot++) sum += load<u32>(room(column, slot));
  return sum;
}
