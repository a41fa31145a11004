// Layout of the capacity gate: room on the endpoints, and the requests that wait for it.
//
// Owns: REGION_GATE. In this order: the head, GATE_COLUMNS columns of SLOTS cells, REQUESTS gate charges, then per
// thread its rings and its wait slots. The commit lock guards the bands, the columns and the charges unless the line
// says otherwise; settings are written by the control thread under it. A ring has one writer and one reader and needs
// no lock.
//
//   head     GateHead, the bell of the control thread, the tables of the bands
//   columns  one array per field, a 32-bit cell per endpoint slot (a 64-bit column takes two)
//   charges  one GateCharge per ledger entry, same number
//   thread   enqueue ring (shard → control thread), return ring (control thread → shard), S wait slots, S sets of slots
import { ASSERTIONS } from '../assertions';
import { slotOffset } from '../columns/column';
import { attached, REQUESTS, SCANS, SLOTS } from '../memory';
import { isScan, isSlot, isThread } from '../preconditions';

/** Settings of the capacity gate, and on the next line what it has learned about the pool. */
@unmanaged
export class GateHead {
  /** GATE_* rule · control thread · commit lock. */
  mode: u32;
  /** Tokens of a block · control thread · commit lock. */
  blockTokens: u32;
  /** Part of every endpoint that this replica may fill, 0 .. 1 · control thread · commit lock. */
  share: f32;
  /** Utilization: waiting requests · control thread · commit lock. */
  queueThreshold: f32;
  /** Utilization: share of the KV cache · control thread · commit lock. */
  usageThreshold: f32;
  /** Utilization: milliseconds until a signal is unknown · control thread · commit lock. */
  staleness: f32;
  /** Concurrency: requests · control thread · commit lock. */
  requests: f32;
  /** Concurrency: tokens · control thread · commit lock. */
  tokens: f32;
  private gap0: u64;
  private gap1: u64;
  private gap2: u64;
  private gap3: u64;
  /** Bands in the table · any thread · commit lock. */
  bands: u32;
  /** A bit for every rank with waiting requests · any thread · commit lock, read without it. */
  waitMask: u32;
  /** Tokens that a request is expected to generate at least · any thread · commit lock. */
  reserve: f32;
  private unused: u32;
  /** Generated tokens, decayed · any thread · commit lock. */
  outTokens: f64;
  /** Completions, decayed · any thread · commit lock. */
  outEnds: f64;
  /** Milliseconds of the pool clock at the last decay of both · any thread · commit lock. */
  outTime: f64;
  /** Prompt tokens of the largest request of the highest band, decaying · any thread · commit lock. */
  foot: f32;
  /**
   * Milliseconds: EWMA of every endpoint's step time, 0 = no sample · any thread · none, a lost sample does no harm.
   */
  poolStep: f32;
  /** Milliseconds: EWMA of every endpoint's time per uncached token, 0 = no sample · any thread · commit lock. */
  poolTokenMs: f32;
  /** 1 while every endpoint queues requests of other pickers · any thread · commit lock. */
  foreign: u32;
  /** Milliseconds of the pool clock at the last decay of foot · any thread · commit lock. */
  footTime: f64;
}

export const GATE_WAIT_MASK: usize = offsetof<GateHead>('waitMask');
export const GATE_FOOT: usize = offsetof<GateHead>('foot');
export const GATE_POOL_STEP: usize = offsetof<GateHead>('poolStep');
export const GATE_POOL_TOKEN_MS: usize = offsetof<GateHead>('poolTokenMs');
export const GATE_BELL: usize = 128; // u32, atomic: counts what the control thread has to look at
export const GATE_ASLEEP: usize = 192; // u32, atomic: the control thread waits for the bell
export const GATE_PRIORITIES: usize = 256; // i32 × GATE_RANKS: the bands' priorities, highest first
export const GATE_WAITING: usize = 384; // u32 × GATE_RANKS: waiting requests
export const GATE_CEILINGS: usize = 512; // f32 × GATE_RANKS: part of the room that the band may take
/** f32 × GATE_RANKS: seconds until what waits has left, as the control thread reckons; 0 = unknown */
export const GATE_DRAINS: usize = 640;
export const GATE_USED: usize = 768; // u32 × GATE_RANKS: pool clock of the last request, in seconds
/** f32 × GATE_STAGE_LIMITS × 2: limits of the prefill stage, then of the decode stage; Infinity = none */
export const GATE_STAGES: usize = 896;
export const GATE_HEAD_BYTES: usize = 1024;

export const GATE_RANKS: u32 = 32;

export const GATE_OFF: u32 = 0;
export const GATE_LEARNED: u32 = 1;
export const GATE_UTILIZATION: u32 = 2;
export const GATE_CONCURRENCY_REQUESTS: u32 = 3;
export const GATE_CONCURRENCY_TOKENS: u32 = 4;
export const GATE_CONCURRENCY_HYBRID: u32 = 5;

export const GATE_WORST: u32 = 6; // the fullest of several, with limits for each stage

// Limits of a stage, in the order of GATE_STAGES; settings of the control thread, commit lock.
export const STAGE_QUEUE: usize = 0; // waiting requests
export const STAGE_USAGE: usize = 4; // share of the KV cache
export const STAGE_STALENESS: usize = 8; // milliseconds until both are unknown
export const STAGE_REQUESTS: usize = 12; // requests in flight
export const STAGE_TOKENS: usize = 16; // tokens in flight
export const STAGE_SCRAPED: usize = 20; // requests that run or wait in the engine
export const STAGE_SCRAPED_STALENESS: usize = 24; // milliseconds until these are unknown
export const STAGE_BYTES: usize = 28;

/** Stages that an endpoint takes part in, bits of ROOM_STAGES. */
export const IN_PREFILL: u32 = 1;
export const IN_DECODE: u32 = 2;

// Columns; f32 unless said otherwise, all under the commit lock.
export const ROOM_WINDOW: u32 = 0; // tokens that may be pending
/** engine step time in ms, 0 = no sample; written without a lock, a lost sample does no harm */
export const ROOM_STEP: u32 = 1;
export const ROOM_TOKEN_MS: u32 = 2; // ms per uncached token, 0 = no sample
/** requests in flight at most: the learned limit, or 0 while all engines queue others' requests */
export const ROOM_LIMIT: u32 = 3;
export const ROOM_CAPACITY: u32 = 4; // tokens that the KV cache holds, 0 = unknown
/** u32: tokens in flight outside of whole prompt blocks: prompt ends and output so far */
export const ROOM_KV_NOW: u32 = 5;
export const ROOM_KV_RESERVED: u32 = 6; // u32: the same with every output counted at its reserve at least
export const ROOM_FULL_LOOKS: u32 = 7; // u32: looks in a row that found it full
export const ROOM_OCCUPANCY: u32 = 8; // requests that ran when the limit was cut last
export const ROOM_HOLD: u32 = 9; // ms that the limit rests after a cut
export const ROOM_BLOCKED: u32 = 10; // u32: the limit alone kept a request out since the last look
/** ms until the first token of a request alone on the endpoint, without its tokens' time, 0 = no sample */
export const ROOM_BASE: u32 = 11;
export const ROOM_CUT_AT: u32 = 12; // f64 (12, 13): pool clock
export const ROOM_STRETCH: u32 = 14; // factor on the window where first tokens cannot be seen
export const ROOM_OVERDUE: u32 = 15; // u32: pending requests that took too long, of the control thread's last look
/** u32 × GATE_RANKS: uncached tokens without a first token, of this band and higher ones */
export const ROOM_PENDING: u32 = 16;
export const ROOM_PENDING_COUNT: u32 = 48; // u32 × GATE_RANKS: their requests
export const ROOM_LEARNED_LIMIT: u32 = 80; // infinite until the first cut
export const ROOM_PEAK: u32 = 81; // u32: most requests that were pending at a time, of this stretch of seconds
export const ROOM_PEAK_AT: u32 = 82; // f64 (82, 83): when it began, pool clock
export const ROOM_PEAK_BEFORE: u32 = 84; // u32: the same of the stretch before
export const ROOM_FOREIGN: u32 = 85; // u32: scrapes in a row that showed a queue that is not ours
/** u32: requests in flight from other pickers; this and the next: control thread, commit lock */
export const ROOM_REMOTE_REQUESTS: u32 = 86;
export const ROOM_REMOTE_TOKENS: u32 = 87; // u32: their uncached tokens without a first token
export const ROOM_REMOTE_COUNT: u32 = 88; // u32: their requests without a first token
export const ROOM_REMOTE_KV: u32 = 89; // u32: their tokens in the KV cache
/** u32: requests in flight of which nothing has been heard: no first token, no end */
export const ROOM_UNANSWERED: u32 = 90;
/** u32: IN_* bits of the stages that the endpoint takes part in · control thread */
export const ROOM_STAGES: u32 = 91;
export const GATE_COLUMNS: u32 = 92;

/** Counts of the gate for a ledger entry of the same number; 32 bytes. */
@unmanaged
export class GateCharge {
  /** NOTE_* bits, 0 = the gate does not count the entry · any thread · commit lock. */
  state: u32;
  /** Uncached prompt tokens at the charge · any thread · commit lock. */
  uncached: u32;
  /** Tokens that were pending on the endpoint then · any thread · commit lock. */
  ahead: u32;
  /** Prompt tokens outside of whole blocks · any thread · commit lock. */
  plain: u32;
  /** Tokens generated so far · any thread · commit lock. */
  output: u32;
  /** Tokens of output counted at least · any thread · commit lock. */
  reserve: u32;
}

export const NOTE_BYTES: usize = 32;

export const NOTE_COUNTED: u32 = 1;
export const NOTE_PENDING: u32 = 2; // no first token yet
export const NOTE_ALONE: u32 = 4; // nothing else was on the endpoint at the charge
export const NOTE_BLIND: u32 = 8; // the first token cannot be seen
export const NOTE_EVICTED: u32 = 16; // to be ended for a request of a higher band: never chosen again
export const NOTE_UNANSWERED: u32 = 64; // nothing has been heard of it, also when its first token is taken to have come
export const NOTE_LOST: u32 = 32; // it has not ended in time: its room is not counted on

/** Head of a ring; its numbers follow at RING_HEAD_BYTES. Each word is alone on its cache line. */
@unmanaged
class RingHead {
  /** Numbers written so far, modulo 2^32 · writer of the ring · none, atomic. */
  written: u32;
  private gap0: v128;
  private gap1: v128;
  private gap2: v128;
  /** Numbers read so far, modulo 2^32 · reader of the ring · none, atomic. */
  read: u32;
  private gap3: v128;
  private gap4: v128;
  private gap5: v128;
  /** Count of wake-ups of the reader · writer of the ring · none, atomic. */
  bell: u32;
  private gap6: v128;
  private gap7: v128;
  private gap8: v128;
  /** 1 while the reader waits for the bell · reader of the ring · none, atomic. */
  asleep: u32;
  private gap9: v128;
  private gap10: v128;
  private gap11: v128;
}

export const RING_WRITTEN: usize = offsetof<RingHead>('written');
export const RING_READ: usize = offsetof<RingHead>('read');
export const RING_BELL: usize = offsetof<RingHead>('bell');
export const RING_ASLEEP: usize = offsetof<RingHead>('asleep');
export const RING_HEAD_BYTES: usize = offsetof<RingHead>();

/** A wait slot: one request of a shard in the queues. Its flow name follows, then room up to WAIT_SLOT_BYTES. */
@unmanaged
export class WaitSlot {
  /** WAIT_SLOT_* state · shard and control thread · commit lock; WAIT_SLOT_FREE without. */
  state: u32;
  /** Priority of its band in the table · shard · commit lock. */
  ranked: i32;
  /** Priority of the request · shard · commit lock. */
  priority: i32;
  /** Prompt tokens · shard · commit lock. */
  prompt: u32;
  /** Prompt tokens that the best endpoint does not hold · shard · commit lock. */
  uncached: u32;
  /** Output tokens that are charged as load · shard · commit lock. */
  output: u32;
  /** WAIT_FLAG_* bits · shard and control thread · commit lock. */
  flags: u32;
  /** Endpoint slot that a dispatch charged · control thread · commit lock. */
  endpoint: u32;
  /** Ledger entry + 1 of a dispatch, 0 = the ledger was full · control thread · commit lock. */
  ticket: u32;
  /** Generation of that entry · control thread · commit lock. */
  ticketGeneration: u32;
  /** Milliseconds of the pool clock when it began to wait · shard before it enqueues · none. */
  since: f64;
  /** Milliseconds that it may wait, NaN = as configured · shard before it enqueues · none. */
  ttl: f64;
  /**
   * Milliseconds of the pool clock of the first token that it asks for, NaN = none · shard before it enqueues · none.
   */
  deadline: f64;
  /** Output tokens that the client allows, 0 = not said · shard before it enqueues · none. */
  outputMax: u32;
  /** Bytes of the body · shard before it enqueues · none. */
  body: u32;
  /** Reason of a rejection, or its position when it was queued · control thread before it returns the slot · none. */
  outcome: u32;
  /** Seconds until a client may come again · control thread before it returns the slot · none. */
  retry: f32;
  /** Requests ahead of it when it was queued · control thread before it returns the slot · none. */
  position: u32;
  /** Milliseconds that it was expected to wait then · control thread before it returns the slot · none. */
  expected: f32;
  /** Bytes of the flow's name that are kept · shard before it enqueues · none. */
  flowLength: u32;
  /** The queue's number for it · control thread · none. */
  handle: u32;
  /** Endpoint slot that holds its prefix and is worth a short wait, -1 = none · shard · commit lock. */
  sticky: i32;
  /** Number of the bound that refused it, 0 = none did · control thread before it returns the slot · none. */
  bound: u32;
  /** Use of that bound, NaN = no number · control thread before it returns the slot · none. */
  boundUsed: f32;
  /** Limit of that bound, NaN = no number · control thread before it returns the slot · none. */
  boundLimit: f32;
  /** Anchor word of the session that it goes on with or from, 0 = none · shard · commit lock. */
  session: u64;
  /** Chain hash of the end of the beginning that its session shares with others, 0 = none · shard · commit lock. */
  prefix: u64;
  /** Tokens of a cache that a held turn would fill · shard and control thread · commit lock. */
  claim: u32;
}

export const WAIT_SLOT_STATE: usize = offsetof<WaitSlot>('state');
export const WAIT_SLOT_PRIORITY: usize = offsetof<WaitSlot>('priority');
export const WAIT_SLOT_PROMPT: usize = offsetof<WaitSlot>('prompt');
export const WAIT_SLOT_UNCACHED: usize = offsetof<WaitSlot>('uncached');
export const WAIT_SLOT_FLAGS: usize = offsetof<WaitSlot>('flags');
export const WAIT_SLOT_ENDPOINT: usize = offsetof<WaitSlot>('endpoint');
export const WAIT_SLOT_TICKET: usize = offsetof<WaitSlot>('ticket');
export const WAIT_SLOT_TICKET_GENERATION: usize = offsetof<WaitSlot>('ticketGeneration');
export const WAIT_SLOT_SINCE: usize = offsetof<WaitSlot>('since');
export const WAIT_SLOT_TTL: usize = offsetof<WaitSlot>('ttl');
export const WAIT_SLOT_DEADLINE: usize = offsetof<WaitSlot>('deadline');
export const WAIT_SLOT_OUTPUT_MAX: usize = offsetof<WaitSlot>('outputMax');
export const WAIT_SLOT_BODY: usize = offsetof<WaitSlot>('body');
export const WAIT_SLOT_OUTCOME: usize = offsetof<WaitSlot>('outcome');
export const WAIT_SLOT_RETRY: usize = offsetof<WaitSlot>('retry');
export const WAIT_SLOT_POSITION: usize = offsetof<WaitSlot>('position');
export const WAIT_SLOT_EXPECTED: usize = offsetof<WaitSlot>('expected');
export const WAIT_SLOT_FLOW_LENGTH: usize = offsetof<WaitSlot>('flowLength');
export const WAIT_SLOT_HANDLE: usize = offsetof<WaitSlot>('handle');
export const WAIT_SLOT_STICKY: usize = offsetof<WaitSlot>('sticky');
export const WAIT_SLOT_BOUND: usize = offsetof<WaitSlot>('bound');
export const WAIT_SLOT_BOUND_USED: usize = offsetof<WaitSlot>('boundUsed');
export const WAIT_SLOT_BOUND_LIMIT: usize = offsetof<WaitSlot>('boundLimit');
export const WAIT_SLOT_SESSION: usize = offsetof<WaitSlot>('session');

export const WAIT_SLOT_FLOW: usize = offsetof<WaitSlot>(); // the flow's name
export const WAIT_SLOT_FLOW_BYTES: u32 = 256;
export const WAIT_SLOT_BYTES: usize = 448;

export const WAIT_SLOT_FREE: u32 = 0;
export const WAIT_SLOT_WAITING: u32 = 1;
export const WAIT_SLOT_DISPATCHED: u32 = 2;
export const WAIT_SLOT_REJECTED: u32 = 3;
export const WAIT_SLOT_CANCELLED: u32 = 4;

export const WAIT_FLAG_ANYWHERE: u32 = 1; // any endpoint will do, also one that comes later
export const WAIT_FLAG_BLIND: u32 = 2; // its first token will not be seen
export const WAIT_FLAG_BEFORE: u32 = 4; // it had a dispatch that it could not use
export const WAIT_FLAG_ASKS: u32 = 8; // it wants to know where it stands
/** it waits, or has waited, for WAIT_SLOT_STICKY although another endpoint was open */
export const WAIT_FLAG_ASIDE: u32 = 16;
/** it is a turn of a session: it goes to its home, or to an endpoint with room for it */
export const WAIT_FLAG_TURN: u32 = 32;
export const WAIT_FLAG_HOME: u32 = 64; // its session is protected: it waits for its home, WAIT_SLOT_STICKY
export const WAIT_FLAG_HELD: u32 = 128; // no endpoint has room for its session: it is held

/** Addresses of this instance; set by gateBind(), constant afterwards. */
export let GATE: usize = 0;
let columns: usize = 0;
let charges: usize = 0;
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

/** Takes the sizes of the attached memory. */
export function gateBind(gate: usize): void {
  GATE = gate;
  columns = gate + GATE_HEAD_BYTES;
  charges = columns + <usize>SLOTS * 4 * GATE_COLUMNS;
  threads = charges + <usize>REQUESTS * NOTE_BYTES;
}

export function gateAddress(): usize {
  return attached(GATE);
}

export function gateHead(): GateHead {
  return changetype<GateHead>(GATE);
}

/** Address of a column's first cell. */
export function roomColumn(column: u32): usize {
  return columns + ((<usize>column * SLOTS) << 2);
}

/** Address of an endpoint slot's cell in a column; a 64-bit column has its cells in the place of two columns. */
export function roomCell(column: u32, slot: u32): usize {
  if (ASSERTIONS) assert(column < GATE_COLUMNS, 'the column is one of the gate');
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  return roomColumn(column) + slotOffset(slot);
}

export function wideRoomCell(column: u32, slot: u32): usize {
  return roomColumn(column) + ((<usize>slot) << 3);
}

/** Gate charge of ledger entry `index`. */
export function gateChargeAt(index: u32): GateCharge {
  return changetype<GateCharge>(charges + <usize>index * NOTE_BYTES);
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
  if (ASSERTIONS) assert(isThread(thread), 'the thread is one of the pool');
  if (ASSERTIONS) assert(slot <= SCANS, 'the wait slot is one of the thread, or the end of them');
  return returnRing(thread) + <usize>ringBytes(SCANS) + <usize>slot * WAIT_SLOT_BYTES;
}

/** A wait slot of a thread. */
export function waitSlotAt(thread: u32, slot: u32): WaitSlot {
  return changetype<WaitSlot>(waitSlotAddress(thread, slot));
}

/** The endpoints that a waiting request may use: a bit per endpoint slot. */
export function waitSlotMaskAddress(thread: u32, slot: u32): usize {
  if (ASSERTIONS) assert(isThread(thread), 'the thread is one of the pool');
  if (ASSERTIONS) assert(isScan(slot), 'the wait slot is one of the thread');
  return waitSlotAddress(thread, SCANS) + <usize>slot * (SLOTS >> 3);
}

/** Address of the limits of a stage: 0 = prefill, 1 = decode. */
export function stageLimits(stage: u32): usize {
  return changetype<usize>(gateHead()) + GATE_STAGES + <usize>stage * STAGE_BYTES;
}

/** Returns whether the gate is on. */
export function gateOn(): bool {
  return gateHead().mode != GATE_OFF;
}
