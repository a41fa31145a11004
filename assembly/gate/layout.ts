// Where everything of the gate lies: what may go on to an endpoint now, and who waits.
//
// Owns: REGION_GATE. In this order: the head, GATE_COLUMNS columns of SLOTS cells, REQUESTS ledger notes, then per thread its rings
// and its wait slots. The commit lock guards the bands, the columns and the notes unless the line says otherwise; settings
// are written by the control thread under it. A ring has one writer and one reader and needs no lock.
//
//   columns  one array per field, a 32-bit cell per endpoint slot (a 64-bit column takes two)
//   notes    what the gate knows about a ledger entry beside the ledger, 32 bytes, same number
//   thread   enqueue ring (shard → control thread), return ring (control thread → shard), S wait slots, S sets of slots
import { REQUESTS, SCANS, SLOTS } from '../memory';

// Head.
export const GATE_MODE: usize = 0; // u32: GATE_*; settings: control thread, commit lock
export const GATE_BLOCK_TOKENS: usize = 4; // u32: tokens of a block
export const GATE_SHARE: usize = 8; // f32: part of every endpoint that this replica may fill, 0 .. 1
export const GATE_QUEUE_THRESHOLD: usize = 12; // f32: utilization: waiting requests
export const GATE_USAGE_THRESHOLD: usize = 16; // f32: utilization: share of the KV cache
export const GATE_STALENESS: usize = 20; // f32: utilization: milliseconds until a signal is unknown
export const GATE_REQUESTS: usize = 24; // f32: concurrency: requests
export const GATE_TOKENS: usize = 28; // f32: concurrency: tokens
export const GATE_BANDS: usize = 64; // u32: bands in the table
export const GATE_WAIT_MASK: usize = 68; // u32: a bit for every rank with waiting requests
export const GATE_RESERVE: usize = 72; // f32: tokens that a request is expected to generate at least
export const GATE_OUT_TOKENS: usize = 80; // f64: generated tokens, decayed
export const GATE_OUT_ENDS: usize = 88; // f64: completions, decayed
export const GATE_OUT_TIME: usize = 96; // f64: when both were decayed last, pool clock
export const GATE_FOOT: usize = 104; // f32: largest request of the highest band, decaying
export const GATE_POOL_STEP: usize = 108; // f32: EWMA of every endpoint's step time, 0 = no sample
export const GATE_POOL_TOKEN_MS: usize = 112; // f32: EWMA of every endpoint's time per uncached token, 0 = no sample
export const GATE_FOREIGN: usize = 116; // u32: 1 while every endpoint queues requests that are not ours
export const GATE_FOOT_TIME: usize = 120; // f64
export const GATE_BELL: usize = 128; // u32, atomic: counts what the control thread has to look at
export const GATE_ASLEEP: usize = 192; // u32, atomic: the control thread waits for the bell
export const GATE_PRIORITIES: usize = 256; // i32 × GATE_RANKS: the bands' priorities, highest first
export const GATE_WAITING: usize = 384; // u32 × GATE_RANKS: waiting requests
export const GATE_CEILINGS: usize = 512; // f32 × GATE_RANKS: part of the room that the band may take
export const GATE_DRAINS: usize = 640; // f32 × GATE_RANKS: seconds until what waits has left, as the control thread reckons; 0 = unknown
export const GATE_USED: usize = 768; // u32 × GATE_RANKS: pool clock of the last request, in seconds
export const GATE_HEAD_BYTES: usize = 1024;

export const GATE_RANKS: u32 = 32;

export const GATE_OFF: u32 = 0;
export const GATE_LEARNED: u32 = 1;
export const GATE_UTILIZATION: u32 = 2;
export const GATE_CONCURRENCY_REQUESTS: u32 = 3;
export const GATE_CONCURRENCY_TOKENS: u32 = 4;
export const GATE_CONCURRENCY_HYBRID: u32 = 5;

// Columns; f32 unless said otherwise, all under the commit lock.
export const ROOM_WINDOW: u32 = 0; // tokens that may be pending
export const ROOM_STEP: u32 = 1; // engine step time in ms, 0 = no sample; written without a lock, a lost sample does no harm
export const ROOM_TOKEN_MS: u32 = 2; // ms per uncached token, 0 = no sample
export const ROOM_LIMIT: u32 = 3; // requests in flight at most: the learned limit, or 0 while all engines queue others' requests
export const ROOM_CAPACITY: u32 = 4; // tokens that the KV cache holds, 0 = unknown
export const ROOM_KV_NOW: u32 = 5; // u32: tokens in flight outside of whole prompt blocks: prompt ends and output so far
export const ROOM_KV_RESERVED: u32 = 6; // u32: the same with every output counted at its reserve at least
export const ROOM_FULL_LOOKS: u32 = 7; // u32: looks in a row that found it full
export const ROOM_OCCUPANCY: u32 = 8; // requests that ran when the limit was cut last
export const ROOM_HOLD: u32 = 9; // ms that the limit rests after a cut
export const ROOM_BLOCKED: u32 = 10; // u32: the limit alone kept a request out since the last look
export const ROOM_BASE: u32 = 11; // ms until the first token of a request alone on the endpoint, without its tokens' time, 0 = no sample
export const ROOM_CUT_AT: u32 = 12; // f64 (12, 13): pool clock
export const ROOM_STRETCH: u32 = 14; // factor on the window where first tokens cannot be seen
export const ROOM_OVERDUE: u32 = 15; // u32: pending requests that took too long, of the control thread's last look
export const ROOM_PENDING: u32 = 16; // u32 × GATE_RANKS: uncached tokens without a first token, of this band and higher ones
export const ROOM_PENDING_COUNT: u32 = 48; // u32 × GATE_RANKS: their requests
export const ROOM_LEARNED_LIMIT: u32 = 80; // infinite until the first cut
export const ROOM_PEAK: u32 = 81; // u32: most requests that were pending at a time, of this stretch of seconds
export const ROOM_PEAK_AT: u32 = 82; // f64 (82, 83): when it began, pool clock
export const ROOM_PEAK_BEFORE: u32 = 84; // u32: the same of the stretch before
export const ROOM_FOREIGN: u32 = 85; // u32: scrapes in a row that showed a queue that is not ours
export const ROOM_REMOTE_REQUESTS: u32 = 86; // u32: requests in flight from other pickers; this and the next: control thread, commit lock
export const ROOM_REMOTE_TOKENS: u32 = 87; // u32: their uncached tokens without a first token
export const ROOM_REMOTE_COUNT: u32 = 88; // u32: their requests without a first token
export const ROOM_REMOTE_KV: u32 = 89; // u32: their tokens in the KV cache
export const GATE_COLUMNS: u32 = 90;

// Notes, u32 unless said otherwise.
export const NOTE_STATE: usize = 0; // NOTE_* bits, 0 = the gate does not count the entry
export const NOTE_UNCACHED: usize = 4; // uncached prompt tokens at the charge
export const NOTE_AHEAD: usize = 8; // tokens that were pending on the endpoint then
export const NOTE_PLAIN: usize = 12; // prompt tokens outside of whole blocks
export const NOTE_OUTPUT: usize = 16; // tokens generated so far
export const NOTE_RESERVE: usize = 20; // tokens counted at least
export const NOTE_BYTES: usize = 32;

export const NOTE_COUNTED: u32 = 1;
export const NOTE_PENDING: u32 = 2; // no first token yet
export const NOTE_ALONE: u32 = 4; // nothing else was on the endpoint at the charge
export const NOTE_BLIND: u32 = 8; // the first token cannot be seen
export const NOTE_EVICTED: u32 = 16; // to be ended for a request of a higher band: never chosen again
export const NOTE_LOST: u32 = 32; // it has not ended in time: its room is not counted on

// Rings: +0 written (u32, atomic), +64 read (u32, atomic), +128 bell of the reader, +192 asleep, +256 numbers.
export const RING_WRITTEN: usize = 0;
export const RING_READ: usize = 64;
export const RING_BELL: usize = 128;
export const RING_ASLEEP: usize = 192;
export const RING_HEAD_BYTES: usize = 256;

// A wait slot. Shard: the thread that waiting the request; everything but the state is written by it before the number
// goes into its ring, or by the control thread before it comes back.
export const WAIT_SLOT_STATE: usize = 0; // u32: WAIT_SLOT_*, changed under the commit lock
export const WAIT_SLOT_RANKED: usize = 4; // i32: priority of its band in the table
export const WAIT_SLOT_PRIORITY: usize = 8; // i32
export const WAIT_SLOT_PROMPT: usize = 12; // u32: prompt tokens
export const WAIT_SLOT_UNCACHED: usize = 16; // u32: those that the best endpoint does not hold
export const WAIT_SLOT_OUTPUT: usize = 20; // u32: output tokens that are charged as load
export const WAIT_SLOT_FLAGS: usize = 24; // u32: WAIT_FLAG_* bits
export const WAIT_SLOT_ENDPOINT: usize = 28; // u32: slot that a dispatch charged
export const WAIT_SLOT_TICKET: usize = 32; // u32: ledger entry + 1 of a dispatch, 0 = the ledger was full
export const WAIT_SLOT_TICKET_GENERATION: usize = 36; // u32
export const WAIT_SLOT_SINCE: usize = 40; // f64: pool clock when it was waiting first
export const WAIT_SLOT_TTL: usize = 48; // f64: ms that it may wait, NaN = as configured
export const WAIT_SLOT_DEADLINE: usize = 56; // f64: pool clock of the first token that it asks for, NaN = none
export const WAIT_SLOT_MOST_OUTPUT: usize = 64; // u32: output tokens that the client allows, 0 = not said
export const WAIT_SLOT_BODY: usize = 68; // u32: bytes of the body
export const WAIT_SLOT_OUTCOME: usize = 72; // u32: why it was turned away, or its position when it was queued
export const WAIT_SLOT_RETRY: usize = 76; // f32: seconds after which it may come again
export const WAIT_SLOT_POSITION: usize = 80; // u32: requests ahead of it when it was queued
export const WAIT_SLOT_EXPECTED: usize = 84; // f32: ms that it was expected to wait then
export const WAIT_SLOT_FLOW_LENGTH: usize = 88; // u32: bytes of the flow's name that are kept
export const WAIT_SLOT_HANDLE: usize = 92; // u32: the queue's number for it (control thread)
export const WAIT_SLOT_STICKY: usize = 96; // i32: endpoint slot that holds its prefix and is worth a short wait, -1 = none (decision)
export const WAIT_SLOT_FLOW: usize = 104; // the flow's name
export const WAIT_SLOT_FLOW_BYTES: u32 = 256;
export const WAIT_SLOT_BYTES: usize = 384;

export const WAIT_SLOT_FREE: u32 = 0;
export const WAIT_SLOT_WAITING: u32 = 1;
export const WAIT_SLOT_DISPATCHED: u32 = 2;
export const WAIT_SLOT_REJECTED: u32 = 3;
export const WAIT_SLOT_CANCELLED: u32 = 4;

export const WAIT_FLAG_ANYWHERE: u32 = 1; // any endpoint will do, also one that comes later
export const WAIT_FLAG_BLIND: u32 = 2; // its first token will not be seen
export const WAIT_FLAG_BEFORE: u32 = 4; // it had a dispatch that it could not use
export const WAIT_FLAG_ASKS: u32 = 8; // it wants to know where it stands
export const WAIT_FLAG_ASIDE: u32 = 16; // it waits, or has waited, for WAIT_SLOT_STICKY although another endpoint was open

/** Addresses of this instance; set by gateBind(), constant afterwards. */
export let GATE: usize = 0;
let columns: usize = 0;
let notes: usize = 0;
let threads: usize = 0;

function ringBytes(numbers: u32): u64 {
  return RING_HEAD_BYTES + ((<u64>numbers * 4 + 63) & ~(<u64>63));
}

function threadGateBytes(p: u32, s: u32): u64 {
  return ringBytes(2 * s) + ringBytes(s) + <u64>s * (WAIT_SLOT_BYTES + (p >> 3));
}

export function gateRegionBytes(p: u32, r: u32, k: u32, s: u32): u64 {
  return GATE_HEAD_BYTES + <u64>p * 4 * GATE_COLUMNS + <u64>r * NOTE_BYTES + <u64>k * threadGateBytes(p, s);
}

/** Take the sizes of the attached memory. */
export function gateBind(gate: usize): void {
  GATE = gate;
  columns = gate + GATE_HEAD_BYTES;
  notes = columns + <usize>SLOTS * 4 * GATE_COLUMNS;
  threads = notes + <usize>REQUESTS * NOTE_BYTES;
}

export function gateAddress(): usize {
  return GATE;
}

/** Address of a column's first cell. */
export function roomColumn(column: u32): usize {
  return columns + ((<usize>column * SLOTS) << 2);
}

/** Address of an endpoint slot's cell in a column; a 64-bit column has its cells in the place of two columns. */
export function room(column: u32, slot: u32): usize {
  return roomColumn(column) + ((<usize>slot) << 2);
}

export function wideRoom(column: u32, slot: u32): usize {
  return roomColumn(column) + ((<usize>slot) << 3);
}

/** Address of the note of ledger entry `index`. */
export function noteAt(index: u32): usize {
  return notes + <usize>index * NOTE_BYTES;
}

function threadAt(thread: u32): usize {
  return threads + <usize>(<u64>thread * threadGateBytes(SLOTS, SCANS));
}

/** The ring in which a shard tells what it waiting and gave up. */
export function waitSlotRing(thread: u32): usize {
  return threadAt(thread);
}

/** The ring in which a shard gets its wait slots back. */
export function returnRing(thread: u32): usize {
  return threadAt(thread) + <usize>ringBytes(2 * SCANS);
}

/** Address of a wait slot. */
export function waitSlotAddress(thread: u32, slot: u32): usize {
  return returnRing(thread) + <usize>ringBytes(SCANS) + <usize>slot * WAIT_SLOT_BYTES;
}

/** The endpoints that a waiting request may use: a bit per endpoint slot. */
export function waitSlotMaskAddress(thread: u32, slot: u32): usize {
  return waitSlotAddress(thread, SCANS) + <usize>slot * (SLOTS >> 3);
}

/** Whether anything is gated at all. */
export function gateOn(): bool {
  return load<u32>(GATE, GATE_MODE) != GATE_OFF;
}
