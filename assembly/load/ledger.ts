// The ledger: what was charged to endpoints and not released yet.
//
// Owns: REGION_LEDGER (64 bytes of common head, 64 bytes of head per thread, REQUESTS entries of 128 bytes) and the load columns of REGION_ENDPOINTS
// (INFLIGHT, INFLIGHT_TOKENS, PREFILL_TOKENS, PROMPT_TOKENS, SINCE_SCRAPE, OUTPUT_BLOCKS, STRICTEST_TPOT, STRICTEST_TICKET). All under the commit lock,
// but for an entry's handle of active blocks, which is written under the index lock by the thread that owns the entry.
//
//   common head    +0 free list (entry + 1)
//   thread's head  +0 own free list (entry + 1) · +4 its length · +8 charges less releases made by this thread
//                  +12 charges refused because the ledger was full
//   entry  +0 state 0 free, 1 charged · +4 thread · +8 slot · +12 slot generation · +16 ticket generation
//          +20 tokens · +24 handle of active blocks · +28 blocks behind the handle · +32 output blocks
//          +36 scrape epoch at the charge · +40 flags · +44 priority · +48 f64 time
//          +56 next free entry, or the next one of the slot's list of wanted times (entry + 1)
//          +60 f32 time per output token that the request wants in milliseconds, 0 = none
//          +64 64 bytes of features (features.ts)
//
// The list of wanted times: the charged entries of a slot whose requests want a time per output token, strictest first, so
// that a decision sees what a request that joins them must not break.
//
//   slot → ticket of the least wanted time → next → … → 0      in rising order; other requests are not in it
//
// A removal walks the list, an insertion the part below its own time. There are few different times in practice, so an
// insertion ends early, and a list is as long as an engine's batch.
//
// Invariant (ledgerCheck): each load column equals the sum over the live entries of its slot and generation.
import { ASSERTIONS } from '../assertions';
import {
  COLUMN_GENERATION,
  COLUMN_INFLIGHT,
  COLUMN_INFLIGHT_TOKENS,
  COLUMN_OUTPUT_BLOCKS,
  COLUMN_PREFILL_TOKENS,
  COLUMN_PROMPT_TOKENS,
  COLUMN_SCRAPE_EPOCH,
  COLUMN_SINCE_SCRAPE,
  COLUMN_STRICTEST_TICKET,
  COLUMN_STRICTEST_TPOT,
  cell,
  columnAddress,
} from '../endpoints';
import { COMMIT_LOCK, lockHeld } from '../lock';
import { LEDGER, LEDGER_ENTRY_BYTES, REQUESTS, SLOTS, THREAD, THREADS } from '../memory';
import { FEATURE_PREFILL, FEATURE_PROMPT, FEATURES, featuresNote, featuresOf } from './features';

const ENTRY_STATE: usize = 0;
const ENTRY_THREAD: usize = 4;
const ENTRY_SLOT: usize = 8;
const ENTRY_SLOT_GENERATION: usize = 12;
const ENTRY_GENERATION: usize = 16;
const ENTRY_TOKENS: usize = 20;
const ENTRY_HANDLE: usize = 24;
const ENTRY_BLOCKS: usize = 28;
const ENTRY_OUTPUT_BLOCKS: usize = 32;
const ENTRY_EPOCH: usize = 36;
const ENTRY_FLAGS: usize = 40;
const ENTRY_PRIORITY: usize = 44;
const ENTRY_TIME: usize = 48;
const ENTRY_NEXT: usize = 56;
const ENTRY_TPOT: usize = 60;

export const ENTRY_PROBE: u32 = 1;

const HEAD_FREE: usize = 0;
const HEAD_LENGTH: usize = 4;
const HEAD_USED: usize = 8;
const HEAD_FULL: usize = 12;

/** Entries that a thread keeps for itself at most, so that its charges touch no other thread's cache lines. */
const OWN_ENTRIES: u32 = 64;

function headOf(thread: u32): usize {
  return LEDGER + 64 + ((<usize>thread) << 6);
}

/** Requests charged and not released. */
export function ledgerUsed(): u32 {
  let used: u32 = 0;
  for (let thread: u32 = 0; thread < THREADS; thread++) used += load<u32>(headOf(thread), HEAD_USED);
  return used;
}

/** Charges refused because the ledger was full. */
export function ledgerFull(): u32 {
  let full: u32 = 0;
  for (let thread: u32 = 0; thread < THREADS; thread++) full += load<u32>(headOf(thread), HEAD_FULL);
  return full;
}

/** Take an entry from the own free list, or from the common one. @returns ticket, 0 = none is left */
function takeEntry(): u32 {
  const head = headOf(THREAD);
  let ticket = load<u32>(head, HEAD_FREE);
  if (ticket != 0) {
    store<u32>(head, load<u32>(entryAt(ticket - 1), ENTRY_NEXT), HEAD_FREE);
    store<u32>(head, load<u32>(head, HEAD_LENGTH) - 1, HEAD_LENGTH);
    return ticket;
  }
  ticket = load<u32>(LEDGER, HEAD_FREE);
  if (ticket != 0) store<u32>(LEDGER, load<u32>(entryAt(ticket - 1), ENTRY_NEXT), HEAD_FREE);
  return ticket;
}

/** Give an entry back. The control thread charges nothing, so it keeps nothing. */
function giveEntry(ticket: u32): void {
  const head = headOf(THREAD);
  const own = THREAD != 0 && load<u32>(head, HEAD_LENGTH) < OWN_ENTRIES;
  const list = own ? head : LEDGER;
  store<u32>(entryAt(ticket - 1), load<u32>(list, HEAD_FREE), ENTRY_NEXT);
  store<u32>(list, ticket, HEAD_FREE);
  if (own) store<u32>(head, load<u32>(head, HEAD_LENGTH) + 1, HEAD_LENGTH);
}

export function entryAt(index: u32): usize {
  return LEDGER + 64 + ((<usize>THREADS) << 6) + <usize>index * LEDGER_ENTRY_BYTES;
}

export function entryHandle(entry: usize): u32 {
  return load<u32>(entry, ENTRY_HANDLE);
}
export function entryBlocks(entry: usize): u32 {
  return load<u32>(entry, ENTRY_BLOCKS);
}
export function entrySlot(entry: usize): u32 {
  return load<u32>(entry, ENTRY_SLOT);
}
export function entrySlotGeneration(entry: usize): u32 {
  return load<u32>(entry, ENTRY_SLOT_GENERATION);
}
export function entryThread(entry: usize): u32 {
  return load<u32>(entry, ENTRY_THREAD);
}
export function entryFlags(entry: usize): u32 {
  return load<u32>(entry, ENTRY_FLAGS);
}
export function entryGeneration(entry: usize): u32 {
  return load<u32>(entry, ENTRY_GENERATION);
}
export function entryTokens(entry: usize): u32 {
  return load<u32>(entry, ENTRY_TOKENS);
}
export function entryPriority(entry: usize): i32 {
  return load<i32>(entry, ENTRY_PRIORITY);
}
export function entryTime(entry: usize): f64 {
  return load<f64>(entry, ENTRY_TIME);
}
/** The charge belongs to another thread than the one that made it. Commit lock held. */
export function entrySetThread(entry: usize, thread: u32): void {
  store<u32>(entry, thread, ENTRY_THREAD);
}
export function entryCharged(entry: usize): bool {
  return load<u32>(entry, ENTRY_STATE) == 1;
}
export function entryNext(entry: usize): u32 {
  return load<u32>(entry, ENTRY_NEXT);
}
export function entrySetNext(entry: usize, ticket: u32): void {
  store<u32>(entry, ticket, ENTRY_NEXT);
}
export function entryTpot(entry: usize): f32 {
  return load<f32>(entry, ENTRY_TPOT);
}
export function entrySetTpot(entry: usize, wish: f32): void {
  store<f32>(entry, wish, ENTRY_TPOT);
}
export function entrySetHandle(entry: usize, handle: u32, blocks: u32): void {
  store<u32>(entry, handle, ENTRY_HANDLE);
  store<u32>(entry, blocks, ENTRY_BLOCKS);
}

/** The slot still belongs to the endpoint that was charged. */
function current(entry: usize): bool {
  return load<u32>(cell(COLUMN_GENERATION, load<u32>(entry, ENTRY_SLOT))) == load<u32>(entry, ENTRY_SLOT_GENERATION);
}

function add(column: u32, slot: u32, by: u32): void {
  const at = cell(column, slot);
  if (ASSERTIONS) assert(lockHeld(COMMIT_LOCK), 'load columns change under the commit lock');
  if (ASSERTIONS) assert(<i64>load<u32>(at) + <i64>(<i32>by) >= 0, 'a load column stays at or above 0');
  store<u32>(at, load<u32>(at) + by);
}

/** Entry of a ticket, or 0 when the ticket is not ours any more. */
export function entryOf(ticket: u32, generation: u32): usize {
  if (ticket == 0 || ticket > REQUESTS) return 0;
  const entry = entryAt(ticket - 1);
  return load<u32>(entry, ENTRY_STATE) == 1 && load<u32>(entry, ENTRY_GENERATION) == generation ? entry : 0;
}

/** Link every entry into the free list; creator only. */
export function ledgerInitialise(): void {
  for (let i: u32 = 0; i < REQUESTS; i++) store<u32>(entryAt(i), i + 1 < REQUESTS ? i + 2 : 0, ENTRY_NEXT);
  store<u32>(LEDGER, 1, HEAD_FREE);
}

/**
 * Charge a request to a slot. Commit lock held.
 * @param tokens what counts as in-flight tokens, estimated output included
 * @param prompt tokens of the prompt, and `uncached` those of them that the endpoint does not hold
 * @param tag what the request's label carries: profile and PROGRAM_TAG
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
    store<u32>(head, load<u32>(head, HEAD_FULL) + 1, HEAD_FULL);
    return 0;
  }
  const entry = entryAt(ticket - 1);
  if (ASSERTIONS) assert(slot < SLOTS, 'the charged slot is one of the pool');
  if (ASSERTIONS) assert(load<u32>(entry, ENTRY_STATE) == 0, 'an entry of a free list is free');
  store<u32>(head, load<u32>(head, HEAD_USED) + 1, HEAD_USED);
  store<u32>(entry, THREAD, ENTRY_THREAD);
  store<u32>(entry, slot, ENTRY_SLOT);
  store<u32>(entry, load<u32>(cell(COLUMN_GENERATION, slot)), ENTRY_SLOT_GENERATION);
  store<u32>(entry, load<u32>(entry, ENTRY_GENERATION) + 1, ENTRY_GENERATION);
  store<u32>(entry, tokens, ENTRY_TOKENS);
  store<u64>(entry, 0, ENTRY_HANDLE);
  store<u32>(entry, 0, ENTRY_OUTPUT_BLOCKS);
  store<u32>(entry, load<u32>(cell(COLUMN_SCRAPE_EPOCH, slot)), ENTRY_EPOCH);
  store<u32>(entry, flags, ENTRY_FLAGS);
  store<i32>(entry, priority, ENTRY_PRIORITY);
  store<f64>(entry, now, ENTRY_TIME);
  store<f32>(entry, 0, ENTRY_TPOT);
  featuresNote(featuresOf(entry), slot, prompt, uncached, tag, now);
  // The state comes last: a thread that dies before this line has charged nothing that the repair would count.
  atomic.store<u32>(entry, 1, ENTRY_STATE);
  addLoad(entry, 1, tokens);
  return ticket;
}

/** @param requests 1 to add the entry to its slot's load, u32.MAX_VALUE (-1) to take it out */
function addLoad(entry: usize, requests: u32, tokens: u32): void {
  const slot = load<u32>(entry, ENTRY_SLOT);
  add(COLUMN_INFLIGHT, slot, requests);
  add(COLUMN_INFLIGHT_TOKENS, slot, tokens);
  const sign = <i32>requests;
  add(COLUMN_PREFILL_TOKENS, slot, <u32>(sign * load<i32>(entry, FEATURES + FEATURE_PREFILL)));
  add(COLUMN_PROMPT_TOKENS, slot, <u32>(sign * load<i32>(entry, FEATURES + FEATURE_PROMPT)));
  if (load<u32>(entry, ENTRY_EPOCH) == load<u32>(cell(COLUMN_SCRAPE_EPOCH, slot)))
    add(COLUMN_SINCE_SCRAPE, slot, requests);
}

/** The prefill is over: its uncached tokens are no longer ahead of others. Commit lock held. */
export function endPrefill(entry: usize): void {
  const tokens = load<u32>(entry, FEATURES + FEATURE_PREFILL);
  store<u32>(entry, 0, FEATURES + FEATURE_PREFILL);
  if (current(entry)) add(COLUMN_PREFILL_TOKENS, load<u32>(entry, ENTRY_SLOT), 0 - tokens);
}

/** What was charged as in-flight tokens leaves the load. Commit lock held. */
export function releaseTokens(entry: usize): void {
  const tokens = load<u32>(entry, ENTRY_TOKENS);
  store<u32>(entry, 0, ENTRY_TOKENS);
  if (current(entry)) add(COLUMN_INFLIGHT_TOKENS, load<u32>(entry, ENTRY_SLOT), 0 - tokens);
}

/** The output has grown to `blocks` blocks. Commit lock held. */
export function growOutput(entry: usize, blocks: u32): void {
  const before = load<u32>(entry, ENTRY_OUTPUT_BLOCKS);
  if (blocks <= before) return;
  store<u32>(entry, blocks, ENTRY_OUTPUT_BLOCKS);
  if (current(entry)) add(COLUMN_OUTPUT_BLOCKS, load<u32>(entry, ENTRY_SLOT), blocks - before);
}

function setStrictest(slot: u32, ticket: u32): void {
  store<u32>(cell(COLUMN_STRICTEST_TICKET, slot), ticket);
  store<f32>(cell(COLUMN_STRICTEST_TPOT, slot), ticket == 0 ? <f32>0 : entryTpot(entryAt(ticket - 1)));
}

/** The request of a ticket just charged wants a time per output token, in milliseconds. Commit lock held. */
export function noteWantedTpot(slot: u32, ticket: u32, wish: f32): void {
  if (ticket == 0 || !(wish > 0)) return;
  entrySetTpot(entryAt(ticket - 1), wish);
  addStrictest(slot, ticket);
}

/** Put a charged entry into the list of its slot. Commit lock held. */
function addStrictest(slot: u32, ticket: u32): void {
  const entry = entryAt(ticket - 1);
  const wish = entryTpot(entry);
  if (!(wish > 0)) return;
  const head = load<u32>(cell(COLUMN_STRICTEST_TICKET, slot));
  let before: u32 = 0;
  let at = head;
  while (at != 0 && entryTpot(entryAt(at - 1)) < wish) {
    before = at;
    at = entryNext(entryAt(at - 1));
  }
  entrySetNext(entry, at);
  if (before == 0) setStrictest(slot, ticket);
  else entrySetNext(entryAt(before - 1), ticket);
}

/** Take an entry out of it. Commit lock held. */
function removeStrictest(slot: u32, ticket: u32): void {
  const entry = entryAt(ticket - 1);
  if (!(entryTpot(entry) > 0)) return;
  let at = load<u32>(cell(COLUMN_STRICTEST_TICKET, slot));
  if (at == ticket) return setStrictest(slot, entryNext(entry));
  while (at != 0) {
    const next = entryNext(entryAt(at - 1));
    if (next == ticket) return entrySetNext(entryAt(at - 1), entryNext(entry));
    at = next;
  }
}

/** Forget the list of a slot that changes hands, or that is made again. Commit lock held. */
function clearStrictest(slot: u32): void {
  setStrictest(slot, 0);
}

/** Number of an entry. */
export function entryIndex(entry: usize): u32 {
  return <u32>((entry - entryAt(0)) / LEDGER_ENTRY_BYTES);
}

/**
 * Take an entry out of the load and give it back to the free list. Commit lock held; its active blocks are gone already,
 * and the gate has been told (gateReleased), while the entry was still charged.
 */
export function releaseEntry(entry: usize): void {
  const index = entryIndex(entry);
  if (ASSERTIONS) assert(load<u32>(entry, ENTRY_STATE) == 1, 'a released entry is charged');
  if (current(entry)) {
    const slot = load<u32>(entry, ENTRY_SLOT);
    addLoad(entry, u32.MAX_VALUE, 0 - load<u32>(entry, ENTRY_TOKENS));
    add(COLUMN_OUTPUT_BLOCKS, slot, 0 - load<u32>(entry, ENTRY_OUTPUT_BLOCKS));
    removeStrictest(slot, index + 1);
  }
  atomic.store<u32>(entry, 0, ENTRY_STATE);
  const head = headOf(THREAD);
  giveEntry(index + 1);
  store<u32>(head, load<u32>(head, HEAD_USED) - 1, HEAD_USED);
}

/** Zero the load columns of a slot that changes hands; entries of the old generation count no more. Commit lock held. */
export function clearLoad(slot: u32): void {
  store<u32>(cell(COLUMN_INFLIGHT, slot), 0);
  store<u32>(cell(COLUMN_INFLIGHT_TOKENS, slot), 0);
  store<u32>(cell(COLUMN_PREFILL_TOKENS, slot), 0);
  store<u32>(cell(COLUMN_PROMPT_TOKENS, slot), 0);
  store<u32>(cell(COLUMN_SINCE_SCRAPE, slot), 0);
  store<u32>(cell(COLUMN_OUTPUT_BLOCKS, slot), 0);
  clearStrictest(slot);
}

/**
 * Recompute every load column and the free lists from the entries, after a thread died inside the commit lock.
 * Commit lock held (seized); gateRepair() follows.
 */
export function ledgerRepair(): void {
  for (let slot: u32 = 0; slot < SLOTS; slot++) clearLoad(slot);
  let free: u32 = 0;
  let used: u32 = 0;
  for (let i = REQUESTS; i > 0; i--) {
    const entry = entryAt(i - 1);
    if (load<u32>(entry, ENTRY_STATE) == 1) {
      used++;
      if (!current(entry)) continue;
      addLoad(entry, 1, load<u32>(entry, ENTRY_TOKENS));
      add(COLUMN_OUTPUT_BLOCKS, load<u32>(entry, ENTRY_SLOT), load<u32>(entry, ENTRY_OUTPUT_BLOCKS));
      addStrictest(load<u32>(entry, ENTRY_SLOT), i);
    } else {
      store<u32>(entry, free, ENTRY_NEXT);
      free = i;
    }
  }
  for (let thread: u32 = 0; thread < THREADS; thread++) {
    store<u64>(headOf(thread), 0, HEAD_FREE);
    store<u32>(headOf(thread), thread == 0 ? used : 0, HEAD_USED);
  }
  store<u32>(LEDGER, free, HEAD_FREE);
}

function columnSum(column: u32): u64 {
  const base = columnAddress(column);
  let sum: u64 = 0;
  for (let slot: u32 = 0; slot < SLOTS; slot++) sum += load<u32>(base + ((<usize>slot) << 2));
  return sum;
}

function listLength(list: usize): u32 {
  let length: u32 = 0;
  let at = load<u32>(list, HEAD_FREE);
  while (at != 0 && length <= REQUESTS) {
    length++;
    at = load<u32>(entryAt(at - 1), ENTRY_NEXT);
  }
  return length;
}

/**
 * Check that the columns equal the live entries. Commit lock held, or nobody else at work.
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
    if (load<u32>(entry, ENTRY_STATE) != 1) continue;
    used++;
    if (!current(entry)) continue;
    requests++;
    tokens += load<u32>(entry, ENTRY_TOKENS);
    output += load<u32>(entry, ENTRY_OUTPUT_BLOCKS);
    prefill += load<u32>(entry, FEATURES + FEATURE_PREFILL);
    prompt += load<u32>(entry, FEATURES + FEATURE_PROMPT);
  }
  if (columnSum(COLUMN_INFLIGHT) != requests) return 1;
  if (columnSum(COLUMN_INFLIGHT_TOKENS) != tokens) return 2;
  if (columnSum(COLUMN_OUTPUT_BLOCKS) != output) return 3;
  if (columnSum(COLUMN_PREFILL_TOKENS) != prefill) return 6;
  if (columnSum(COLUMN_PROMPT_TOKENS) != prompt) return 7;
  if (ledgerUsed() != used) return 4;
  let free = listLength(LEDGER);
  for (let thread: u32 = 0; thread < THREADS; thread++) {
    const own = listLength(headOf(thread));
    if (own != load<u32>(headOf(thread), HEAD_LENGTH)) return 5;
    free += own;
  }
  return free + used == REQUESTS ? 0 : 5;
}
