// The ledger: what was charged to endpoints and not released yet.
//
// Owns: what charges write into the entries of REGION_LEDGER (ledger-entries.ts), and the load columns of
// REGION_ENDPOINTS (INFLIGHT, INFLIGHT_TOKENS, PREFILL_TOKENS, PROMPT_TOKENS, OUTPUT_BLOCKS). All under the commit
// lock. Entries whose requests want a time per output token are also in a list of their slot (wanted-times.ts).
//
// Invariant (ledgerCheck): each load column equals the sum over the live entries of its slot and generation, and the
// load of other replicas (peers.ts).
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { renewWaiting } from '../columns/waiting';
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
  columnAddress,
} from '../endpoints';
import { journalSlotChanged } from '../load-journal';
import { COMMIT_LOCK, lockHeld } from '../lock';
import { REQUESTS, SLOTS, THREAD, THREADS } from '../memory';
import { featuresNote } from './features';
import { hearingReset } from './hearing';
import {
  commonHead,
  ENTRY_CHARGED,
  ENTRY_FREE,
  entryAt,
  entryIndex,
  entryOf,
  featuresOf,
  freeEntry,
  headOf,
  isCharged,
  isCurrent,
  LedgerEntry,
  listLength,
  setHandle,
  setState,
  takeEntry,
} from './ledger-entries';
import { addPeers } from './peers';
import { addStrictest, clearStrictest, removeStrictest } from './wanted-times';

/** Requests charged and not released. */
export function ledgerUsed(): u32 {
  let used: u32 = 0;
  for (let thread: u32 = 0; thread < THREADS; thread++) used += headOf(thread).used;
  if (ASSERTIONS) assert(used <= REQUESTS, 'no more entries are charged than the ledger has');
  return used;
}

/** Charges refused because the ledger was full. */
export function ledgerFull(): u32 {
  let full: u32 = 0;
  for (let thread: u32 = 0; thread < THREADS; thread++) full += headOf(thread).refused;
  return full;
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
  entry.below = 0;
  entry.time = now;
  entry.wantedTpot = 0;
  featuresNote(featuresOf(entry), slot, prompt, uncached, tag, now);
  hearingReset(ticket - 1);
  // The state comes last: if the thread dies before this line, the repair counts no charge.
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
  renewWaiting(slot);
  journalSlotChanged(slot);
  move(COLUMN_INFLIGHT_TOKENS, slot, tokens);
  if (ASSERTIONS) assert(<i32>column.u32(COLUMN_INFLIGHT, slot) >= 0, 'requests in flight stay at or above 0');
  const sign = <i32>requests;
  move(COLUMN_PREFILL_TOKENS, slot, <u32>(sign * <i32>featuresOf(entry).prefill));
  move(COLUMN_PROMPT_TOKENS, slot, <u32>(sign * <i32>featuresOf(entry).prompt));
}

/** Changes a load column of a slot; one that stays as it is keeps its line of the cache with the other threads. */
function move(load: u32, slot: u32, by: u32): void {
  if (by != 0) column.addU32(load, slot, by);
}

/** Ends the prefill: its uncached tokens are no longer ahead of others. Commit lock held. */
export function endPrefill(entry: LedgerEntry): void {
  const tokens = featuresOf(entry).prefill;
  featuresOf(entry).prefill = 0;
  if (isCurrent(entry)) move(COLUMN_PREFILL_TOKENS, entry.slot, 0 - tokens);
}

/** Subtracts the charged in-flight tokens from the load. Commit lock held. */
export function releaseTokens(entry: LedgerEntry): void {
  const tokens = entry.tokens;
  entry.tokens = 0;
  if (isCurrent(entry)) move(COLUMN_INFLIGHT_TOKENS, entry.slot, 0 - tokens);
}

/** Notes that the output has grown to `blocks` blocks. Commit lock held. */
export function growOutput(entry: LedgerEntry, blocks: u32): void {
  const before = entry.outputBlocks;
  if (blocks <= before) return;
  entry.outputBlocks = blocks;
  if (isCurrent(entry)) column.addU32(COLUMN_OUTPUT_BLOCKS, entry.slot, blocks - before);
}

/**
 * Takes an entry out of the load and puts it into the free list. Commit lock held; its active blocks are gone
 * already, and the gate has been told (gateReleased), while the entry was still charged.
 */
export function releaseEntry(entry: LedgerEntry): void {
  const index = entryIndex(entry);
  if (ASSERTIONS) assert(entry.state != ENTRY_FREE, 'a released entry is charged');
  if (isCurrent(entry)) {
    const slot = entry.slot;
    addLoad(entry, u32.MAX_VALUE, 0 - entry.tokens);
    move(COLUMN_OUTPUT_BLOCKS, slot, 0 - entry.outputBlocks);
    removeStrictest(slot, index + 1);
  }
  setState(entry, ENTRY_FREE);
  const head = headOf(THREAD);
  freeEntry(index + 1);
  head.used -= 1;
  if (ASSERTIONS) assert(entryOf(index + 1, entry.generation) == null, 'a released entry is found by no ticket');
}

/**
 * Charges an entry to another slot, whose endpoint has answered the request. Commit lock held; its active blocks are
 * gone, and the gate is told (gateMoved) by the caller.
 */
export function moveEntry(entry: LedgerEntry, slot: u32): void {
  const ticket = entryIndex(entry) + 1;
  if (isCurrent(entry)) {
    addLoad(entry, u32.MAX_VALUE, 0 - entry.tokens);
    column.addU32(COLUMN_OUTPUT_BLOCKS, entry.slot, 0 - entry.outputBlocks);
    removeStrictest(entry.slot, ticket);
  }
  entry.slot = slot;
  entry.slotGeneration = column.u32(COLUMN_GENERATION, slot);
  // It no longer probes its former endpoint.
  entry.flags = 0;
  addLoad(entry, 1, entry.tokens);
  column.addU32(COLUMN_OUTPUT_BLOCKS, slot, entry.outputBlocks);
  addStrictest(slot, ticket);
}

/**
 * Clears the load columns of a slot that changes hands; entries of the old generation count no more. Commit lock held.
 */
export function clearLoad(slot: u32): void {
  column.setU32(COLUMN_INFLIGHT, slot, 0);
  renewWaiting(slot);
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
      if (!isCurrent(entry)) continue;
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
    if (!isCurrent(entry)) continue;
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
