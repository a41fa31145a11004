// The ledger: what was charged to endpoints and not released yet.
//
// Owns: REGION_LEDGER and the load columns of REGION_ENDPOINTS (INFLIGHT, INFLIGHT_TOKENS, PREFILL_TOKENS,
// PROMPT_TOKENS, OUTPUT_BLOCKS, STRICTEST_TPOT, STRICTEST_TICKET). All under the commit lock, but for an entry's handle
// of active blocks, which is written under the index lock by the thread that owns the entry.
//
//   head of all   one LedgerHead: the common free list
//   thread heads  one LedgerHead each, 64 bytes apart
//   entries       one LedgerEntry each, with its Features behind it (features.ts)
//   hearings      one Hearing for each entry (hearing.ts)
//
// The list of wanted times: the charged entries of a slot whose requests want a time per output token, strictest first,
// so that a decision sees what a request that joins them must not break.
//
//   slot → ticket of the least wanted time → next → … → 0      in rising order; other requests are not in it
//
// A removal walks the list, an insertion the part below its own time. There are few different times in practice, so an
// insertion ends early, and a list is as long as an engine's batch.
//
// Invariant (ledgerCheck): each load column equals the sum over the live entries of its slot and generation, and the
// load of other replicas (peers.ts).
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import {
  COLUMN_GENERATION,
  COLUMN_INFLIGHT,
  COLUMN_INFLIGHT_TOKENS,
  COLUMN_OUTPUT_BLOCKS,
  COLUMN_PEER_OUTPUT,
  COLUMN_PEER_PREFILL,
  COLUMN_PEER_PROMPT,
  COLUMN_PEER_REQUESTS,
  COLUMN_PEER_TOKENS,
  COLUMN_PREFILL_TOKENS,
  COLUMN_PROMPT_TOKENS,
  COLUMN_STRICTEST_TICKET,
  COLUMN_STRICTEST_TPOT,
  columnAddress,
} from '../endpoints';
import { COMMIT_LOCK, lockHeld } from '../lock';
import { LEDGER, LEDGER_ENTRY_BYTES, REQUESTS, SLOTS, THREAD, THREADS } from '../memory';
import { FEATURES, Features, featuresNote } from './features';
import { hearingReset } from './hearing';
import { addPeers } from './peers';

/** One charge: a request in flight on an endpoint. */
@unmanaged
export class LedgerEntry {
  /** ENTRY_FREE or ENTRY_CHARGED · any thread · commit lock, written last by a charge. */
  state: u32;
  /** Thread that owns the charge · any thread · commit lock. */
  thread: u32;
  /** Endpoint slot that is charged · any thread · commit lock. */
  slot: u32;
  /** Generation of that slot at the charge · any thread · commit lock. */
  slotGeneration: u32;
  /** Count of the charges of this entry, so that an old ticket is known · any thread · commit lock. */
  generation: u32;
  /** Tokens charged as load, estimated output included, until they are released · any thread · commit lock. */
  tokens: u32;
  /** Handle of the active blocks, 0 = none · owner of the charge · index lock. */
  handle: u32;
  /** Blocks behind the handle · owner of the charge · index lock. */
  blocks: u32;
  /** Blocks that the output fills so far · any thread · commit lock. */
  outputBlocks: u32;
  /** ENTRY_PROBE or 0 · any thread · commit lock. */
  flags: u32;
  /** Priority of the request · any thread · commit lock. */
  priority: i32;
  /** Milliseconds of the pool clock at the charge · any thread · commit lock. */
  time: f64;
  /**
   * Next free entry, or next one in the slot's list of wanted times, as entry + 1, 0 = none · any thread · commit lock.
   */
  next: u32;
  /** Milliseconds per output token that the request wants, 0 = none · any thread · commit lock. */
  wantedTpot: f32;
}

/** A free list of entries with the counts of its thread; the common one uses only the list and the top. */
@unmanaged
class LedgerHead {
  /** First free entry + 1, 0 = none · its thread, the common one any thread · commit lock. */
  free: u32;
  /** Entries in the list · its thread · commit lock. */
  length: u32;
  /** Charges less releases made by the thread, modulo 2^32 · its thread · commit lock. */
  used: u32;
  /** Charges refused because the ledger was full · its thread · commit lock. */
  refused: u32;
  /**
   * Entries handed out for the first time so far, in the common head; the others were never written · any thread ·
   * commit lock.
   */
  top: u32;
}

/** Bytes from one head to the next: a cache line each. */
const HEAD_BYTES: usize = 64;

const ENTRY_FREE: u32 = 0;
const ENTRY_CHARGED: u32 = 1;

/** Flag of an entry: the request probes an ejected endpoint. */
export const ENTRY_PROBE: u32 = 1;

/** Entries that a thread keeps for itself at most, so that its charges touch no other thread's cache lines. */
const OWN_ENTRIES: u32 = 64;

function headOf(thread: u32): LedgerHead {
  return changetype<LedgerHead>(LEDGER + HEAD_BYTES + <usize>thread * HEAD_BYTES);
}

function commonHead(): LedgerHead {
  return changetype<LedgerHead>(LEDGER);
}

/** Entries that were ever handed out. Read without a lock: entries above it are new. */
export function ledgerTop(): u32 {
  return commonHead().top;
}

/** Requests charged and not released. */
export function ledgerUsed(): u32 {
  let used: u32 = 0;
  for (let thread: u32 = 0; thread < THREADS; thread++) used += headOf(thread).used;
  return used;
}

/** Charges refused because the ledger was full. */
export function ledgerFull(): u32 {
  let full: u32 = 0;
  for (let thread: u32 = 0; thread < THREADS; thread++) full += headOf(thread).refused;
  return full;
}

/**
 * Takes an entry from the own free list, from the common one, or one that was never used.
 * @returns ticket, 0 = none is left
 */
function takeEntry(): u32 {
  const head = headOf(THREAD);
  let ticket = head.free;
  if (ticket != 0) {
    head.free = entryAt(ticket - 1).next;
    head.length -= 1;
    return ticket;
  }
  const common = commonHead();
  ticket = common.free;
  if (ticket != 0) {
    common.free = entryAt(ticket - 1).next;
    return ticket;
  }
  if (common.top == REQUESTS) return 0;
  common.top += 1;
  return common.top;
}

/** Gives an entry back. The control thread charges nothing, so it keeps nothing. */
function giveEntry(ticket: u32): void {
  const head = headOf(THREAD);
  const own = THREAD != 0 && head.length < OWN_ENTRIES;
  const list = own ? head : commonHead();
  entryAt(ticket - 1).next = list.free;
  list.free = ticket;
  if (own) head.length += 1;
}

export function entryAt(index: u32): LedgerEntry {
  return changetype<LedgerEntry>(LEDGER + HEAD_BYTES + <usize>THREADS * HEAD_BYTES + <usize>index * LEDGER_ENTRY_BYTES);
}

/** The features behind an entry. */
export function featuresOf(entry: LedgerEntry): Features {
  return changetype<Features>(changetype<usize>(entry) + FEATURES);
}

/** Stores the handle of the active blocks of an entry, and how many blocks are behind it. Index lock held. */
export function setHandle(entry: LedgerEntry, handle: u32, blocks: u32): void {
  entry.handle = handle;
  entry.blocks = blocks;
}

/** Returns whether an entry is charged. */
export function isCharged(entry: LedgerEntry): bool {
  return entry.state == ENTRY_CHARGED;
}

/** The slot still belongs to the endpoint that was charged. */
function current(entry: LedgerEntry): bool {
  return column.u32(COLUMN_GENERATION, entry.slot) == entry.slotGeneration;
}

/** Writes the state of an entry after everything else, for threads that read it without the lock. */
function setState(entry: LedgerEntry, state: u32): void {
  atomic.store<u32>(changetype<usize>(entry), state, offsetof<LedgerEntry>('state'));
}

/** Entry of a ticket, or null when the ticket is not ours any more. */
export function entryOf(ticket: u32, generation: u32): LedgerEntry | null {
  if (ticket == 0 || ticket > REQUESTS) return null;
  const entry = entryAt(ticket - 1);
  return isCharged(entry) && entry.generation == generation ? entry : null;
}

/**
 * Charges a request to a slot. Commit lock held.
 * @param tokens what counts as in-flight tokens, estimated output included
 * @param prompt tokens of the prompt, and `uncached` those of them that the endpoint does not hold
 * @param tag what the request's training sample carries: profile and PROGRAM_TAG
 * @returns the ticket (entry + 1), or 0 when the ledger is full: the request is routed all the same, and counted
 */
export function charge(
  slot: u32,
  tokens: u32,
  prompt: u32,
  uncached: u32,
  tag: u32,
  flags: u32,
  priority: i32,
  now: f64,
): u32 {
  const head = headOf(THREAD);
  const ticket = takeEntry();
  if (ticket == 0) {
    head.refused += 1;
    return 0;
  }
  const entry = entryAt(ticket - 1);
  if (ASSERTIONS) assert(slot < SLOTS, 'the charged slot is one of the pool');
  if (ASSERTIONS) assert(entry.state == ENTRY_FREE, 'an entry of a free list is free');
  head.used += 1;
  entry.thread = THREAD;
  entry.slot = slot;
  entry.slotGeneration = column.u32(COLUMN_GENERATION, slot);
  entry.generation += 1;
  entry.tokens = tokens;
  setHandle(entry, 0, 0);
  entry.outputBlocks = 0;
  entry.flags = flags;
  entry.priority = priority;
  entry.time = now;
  entry.wantedTpot = 0;
  featuresNote(featuresOf(entry), slot, prompt, uncached, tag, now);
  hearingReset(ticket - 1);
  // The state comes last: a thread that dies before this line has charged nothing that the repair would count.
  setState(entry, ENTRY_CHARGED);
  addLoad(entry, 1, tokens);
  if (ASSERTIONS) assert(entryOf(ticket, entry.generation) == entry, 'a charge is found by its ticket');
  return ticket;
}

/** @param requests 1 to add the entry to its slot's load, u32.MAX_VALUE (-1) to take it out */
function addLoad(entry: LedgerEntry, requests: u32, tokens: u32): void {
  const slot = entry.slot;
  if (ASSERTIONS) assert(lockHeld(COMMIT_LOCK), 'load columns change under the commit lock');
  column.addU32(COLUMN_INFLIGHT, slot, requests);
  column.addU32(COLUMN_INFLIGHT_TOKENS, slot, tokens);
  if (ASSERTIONS) assert(<i32>column.u32(COLUMN_INFLIGHT, slot) >= 0, 'requests in flight stay at or above 0');
  const sign = <i32>requests;
  column.addU32(COLUMN_PREFILL_TOKENS, slot, <u32>(sign * <i32>featuresOf(entry).prefill));
  column.addU32(COLUMN_PROMPT_TOKENS, slot, <u32>(sign * <i32>featuresOf(entry).prompt));
}

/** The prefill is over: its uncached tokens are no longer ahead of others. Commit lock held. */
export function endPrefill(entry: LedgerEntry): void {
  const tokens = featuresOf(entry).prefill;
  featuresOf(entry).prefill = 0;
  if (current(entry)) column.addU32(COLUMN_PREFILL_TOKENS, entry.slot, 0 - tokens);
}

/** Subtracts the charged in-flight tokens from the load. Commit lock held. */
export function releaseTokens(entry: LedgerEntry): void {
  const tokens = entry.tokens;
  entry.tokens = 0;
  if (current(entry)) column.addU32(COLUMN_INFLIGHT_TOKENS, entry.slot, 0 - tokens);
}

/** The output has grown to `blocks` blocks. Commit lock held. */
export function growOutput(entry: LedgerEntry, blocks: u32): void {
  const before = entry.outputBlocks;
  if (blocks <= before) return;
  entry.outputBlocks = blocks;
  if (current(entry)) column.addU32(COLUMN_OUTPUT_BLOCKS, entry.slot, blocks - before);
}

function setStrictest(slot: u32, ticket: u32): void {
  column.setU32(COLUMN_STRICTEST_TICKET, slot, ticket);
  column.setF32(COLUMN_STRICTEST_TPOT, slot, ticket == 0 ? <f32>0 : entryAt(ticket - 1).wantedTpot);
}

/** Notes the time per output token, in milliseconds, that the request of a fresh charge wants. Commit lock held. */
export function noteWantedTpot(slot: u32, ticket: u32, wanted: f32): void {
  if (ticket == 0 || !(wanted > 0)) return;
  entryAt(ticket - 1).wantedTpot = wanted;
  addStrictest(slot, ticket);
}

/** Puts a charged entry into the list of its slot. Commit lock held. */
function addStrictest(slot: u32, ticket: u32): void {
  const entry = entryAt(ticket - 1);
  const wanted = entry.wantedTpot;
  if (!(wanted > 0)) return;
  const head = column.u32(COLUMN_STRICTEST_TICKET, slot);
  let before: u32 = 0;
  let at = head;
  while (at != 0 && entryAt(at - 1).wantedTpot < wanted) {
    before = at;
    at = entryAt(at - 1).next;
  }
  entry.next = at;
  if (before == 0) setStrictest(slot, ticket);
  else entryAt(before - 1).next = ticket;
  if (ASSERTIONS) assert(column.f32(COLUMN_STRICTEST_TPOT, slot) <= wanted, 'the least wanted time is the first one');
}

/** Takes an entry out of it. Commit lock held. */
function removeStrictest(slot: u32, ticket: u32): void {
  const entry = entryAt(ticket - 1);
  if (!(entry.wantedTpot > 0)) return;
  let at = column.u32(COLUMN_STRICTEST_TICKET, slot);
  if (at == ticket) return setStrictest(slot, entry.next);
  while (at != 0) {
    const next = entryAt(at - 1).next;
    if (next == ticket) {
      entryAt(at - 1).next = entry.next;
      return;
    }
    at = next;
  }
}

/** Forgets the list of a slot that changes hands, or that is made again. Commit lock held. */
function clearStrictest(slot: u32): void {
  setStrictest(slot, 0);
}

/** Number of an entry. */
export function entryIndex(entry: LedgerEntry): u32 {
  return <u32>((changetype<usize>(entry) - changetype<usize>(entryAt(0))) / LEDGER_ENTRY_BYTES);
}

/**
 * Takes an entry out of the load and puts it into the free list. Commit lock held; its active blocks are gone
 * already, and the gate has been told (gateReleased), while the entry was still charged.
 */
export function releaseEntry(entry: LedgerEntry): void {
  const index = entryIndex(entry);
  if (ASSERTIONS) assert(entry.state != ENTRY_FREE, 'a released entry is charged');
  if (current(entry)) {
    const slot = entry.slot;
    addLoad(entry, u32.MAX_VALUE, 0 - entry.tokens);
    column.addU32(COLUMN_OUTPUT_BLOCKS, slot, 0 - entry.outputBlocks);
    removeStrictest(slot, index + 1);
  }
  setState(entry, ENTRY_FREE);
  const head = headOf(THREAD);
  giveEntry(index + 1);
  head.used -= 1;
  if (ASSERTIONS) assert(entryOf(index + 1, entry.generation) == null, 'a released entry is found by no ticket');
}

/**
 * Charges an entry to another slot, whose endpoint has answered the request. Commit lock held; its active blocks are
 * gone, and the gate is told (gateMoved) by the caller.
 */
export function moveEntry(entry: LedgerEntry, slot: u32): void {
  const ticket = entryIndex(entry) + 1;
  if (current(entry)) {
    addLoad(entry, u32.MAX_VALUE, 0 - entry.tokens);
    column.addU32(COLUMN_OUTPUT_BLOCKS, entry.slot, 0 - entry.outputBlocks);
    removeStrictest(entry.slot, ticket);
  }
  entry.slot = slot;
  entry.slotGeneration = column.u32(COLUMN_GENERATION, slot);
  // It probes the endpoint no more that it was sent to.
  entry.flags = 0;
  addLoad(entry, 1, entry.tokens);
  column.addU32(COLUMN_OUTPUT_BLOCKS, slot, entry.outputBlocks);
  addStrictest(slot, ticket);
}

/**
 * Zero the load columns of a slot that changes hands; entries of the old generation count no more. Commit lock held.
 */
export function clearLoad(slot: u32): void {
  column.setU32(COLUMN_INFLIGHT, slot, 0);
  column.setU32(COLUMN_INFLIGHT_TOKENS, slot, 0);
  column.setU32(COLUMN_PREFILL_TOKENS, slot, 0);
  column.setU32(COLUMN_PROMPT_TOKENS, slot, 0);
  column.setU32(COLUMN_OUTPUT_BLOCKS, slot, 0);
  clearStrictest(slot);
}

/**
 * Recomputes every load column from the entries and the load of peers, and the free lists, after a thread died inside
 * the commit lock. Commit lock held (seized); gateRepair() follows.
 */
export function ledgerRepair(): void {
  for (let slot: u32 = 0; slot < SLOTS; slot++) {
    clearLoad(slot);
    addPeers(slot);
  }
  let free: u32 = 0;
  let used: u32 = 0;
  for (let i = commonHead().top; i > 0; i--) {
    const entry = entryAt(i - 1);
    if (isCharged(entry)) {
      used++;
      if (!current(entry)) continue;
      addLoad(entry, 1, entry.tokens);
      column.addU32(COLUMN_OUTPUT_BLOCKS, entry.slot, entry.outputBlocks);
      addStrictest(entry.slot, i);
    } else {
      entry.next = free;
      free = i;
    }
  }
  for (let thread: u32 = 0; thread < THREADS; thread++) {
    const head = headOf(thread);
    head.free = 0;
    head.length = 0;
    head.used = thread == 0 ? used : 0;
  }
  commonHead().free = free;
}

function columnSum(column: u32): u64 {
  const base = columnAddress(column);
  let sum: u64 = 0;
  for (let slot: u32 = 0; slot < SLOTS; slot++) sum += load<u32>(base + slotOffset(slot));
  return sum;
}

function listLength(list: LedgerHead): u32 {
  let length: u32 = 0;
  let at = list.free;
  while (at != 0 && length <= REQUESTS) {
    length++;
    at = entryAt(at - 1).next;
  }
  return length;
}

/**
 * Checks that the columns equal the live entries and the load of peers. Commit lock held, or no other thread at work.
 * @returns 0, or the first thing that does not add up: 1 requests, 2 tokens, 3 output blocks, 4 entries in use,
 *   5 free lists, 6 prefill tokens, 7 prompt tokens
 */
export function ledgerCheck(): u32 {
  let requests: u64 = 0;
  let tokens: u64 = 0;
  let output: u64 = 0;
  let prefill: u64 = 0;
  let prompt: u64 = 0;
  let used: u32 = 0;
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const entry = entryAt(i);
    if (!isCharged(entry)) continue;
    used++;
    if (!current(entry)) continue;
    requests++;
    tokens += entry.tokens;
    output += entry.outputBlocks;
    prefill += featuresOf(entry).prefill;
    prompt += featuresOf(entry).prompt;
  }
  if (columnSum(COLUMN_INFLIGHT) != requests + columnSum(COLUMN_PEER_REQUESTS)) return 1;
  if (columnSum(COLUMN_INFLIGHT_TOKENS) != tokens + columnSum(COLUMN_PEER_TOKENS)) return 2;
  if (columnSum(COLUMN_OUTPUT_BLOCKS) != output + columnSum(COLUMN_PEER_OUTPUT)) return 3;
  if (columnSum(COLUMN_PREFILL_TOKENS) != prefill + columnSum(COLUMN_PEER_PREFILL)) return 6;
  if (columnSum(COLUMN_PROMPT_TOKENS) != prompt + columnSum(COLUMN_PEER_PROMPT)) return 7;
  if (ledgerUsed() != used) return 4;
  let free = listLength(commonHead());
  for (let thread: u32 = 0; thread < THREADS; thread++) {
    const own = listLength(headOf(thread));
    if (own != headOf(thread).length) return 5;
    free += own;
  }
  return free + used == commonHead().top ? 0 : 5;
}
