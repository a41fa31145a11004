// Entries of the ledger: their layout, their tickets and their free lists.
//
// Owns: the entries and free lists of REGION_LEDGER; ledger.ts writes what is charged. All under the commit lock, but
// for an entry's handle of active blocks, which is written under the index lock by the thread that owns the entry.
//
//   head of all   one LedgerHead: the common free list
//   thread heads  one LedgerHead each, 64 bytes apart
//   entries       one LedgerEntry each, with its Features behind it (features.ts)
//   hearings      one Hearing for each entry (hearing.ts)
import * as column from '../columns/column';
import { COLUMN_GENERATION } from '../endpoints';
import { LEDGER, LEDGER_ENTRY_BYTES, REQUESTS, THREAD, THREADS } from '../memory';
import { blocksAt } from '../prefix/match';
import { PLACE_GPU, PLACE_REMOTE } from '../prefix/sets';
import { FEATURES, Features } from './features';

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
  /** Shares of the prompt that lie below the GPU there (sharesBelow) · owner of the charge · commit lock. */
  below: u32;
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
export class LedgerHead {
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

export const ENTRY_FREE: u32 = 0;
export const ENTRY_CHARGED: u32 = 1;

/** Flag of an entry: the request probes an ejected endpoint. */
export const ENTRY_PROBE: u32 = 1;

/** Bound on the entries that a thread keeps for itself, so that its charges touch no other thread's cache lines. */
const OWN_ENTRIES: u32 = 64;

export function headOf(thread: u32): LedgerHead {
  return changetype<LedgerHead>(LEDGER + HEAD_BYTES + <usize>thread * HEAD_BYTES);
}

export function commonHead(): LedgerHead {
  return changetype<LedgerHead>(LEDGER);
}

/** Entries that were ever handed out. Read without a lock: entries above it are new. */
export function ledgerTop(): u32 {
  return commonHead().top;
}

/**
 * Takes an entry from the own free list, from the common one, or one that was never used.
 * @returns ticket, 0 = none is left
 */
export function takeEntry(): u32 {
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

/** Puts an entry into a free list. The control thread charges nothing, so it keeps none for itself. */
export function freeEntry(ticket: u32): void {
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

/** Bits of one share in `below`: of 1023 parts of the prompt, from those in the host's memory on. */
export const BELOW_BITS: u32 = 10;
export const BELOW_PARTS: u32 = 1023;

/** Shares of a prompt of `total` blocks that lie at each place below the GPU, by the counts of a lookup (placesOf). */
export function sharesBelow(counts: u64, total: u32): u32 {
  if (counts == 0 || total == 0) return 0;
  let shares: u32 = 0;
  for (let place: u32 = PLACE_REMOTE; place > PLACE_GPU; place--) {
    const share = min<u32>((blocksAt(counts, place) * BELOW_PARTS + (total >> 1)) / total, BELOW_PARTS);
    shares = (shares << BELOW_BITS) | share;
  }
  return shares;
}

/** Returns whether an entry is charged. */
export function isCharged(entry: LedgerEntry): bool {
  return entry.state == ENTRY_CHARGED;
}

/** Whether the slot still belongs to the endpoint that was charged. */
export function isCurrent(entry: LedgerEntry): bool {
  return column.u32(COLUMN_GENERATION, entry.slot) == entry.slotGeneration;
}

/** Writes the state of an entry after everything else, for threads that read it without the lock. */
export function setState(entry: LedgerEntry, state: u32): void {
  atomic.store<u32>(changetype<usize>(entry), state, offsetof<LedgerEntry>('state'));
}

/** Entry of a ticket, or null when the ticket is not ours any more. */
export function entryOf(ticket: u32, generation: u32): LedgerEntry | null {
  if (ticket == 0 || ticket > REQUESTS) return null;
  const entry = entryAt(ticket - 1);
  return isCharged(entry) && entry.generation == generation ? entry : null;
}

/** Number of an entry. */
export function entryIndex(entry: LedgerEntry): u32 {
  return <u32>((changetype<usize>(entry) - changetype<usize>(entryAt(0))) / LEDGER_ENTRY_BYTES);
}

/** Entries in a free list; at most one more than there are, if it is a circle. */
export function listLength(list: LedgerHead): u32 {
  let length: u32 = 0;
  let at = list.free;
  while (at != 0 && length <= REQUESTS) {
    length++;
    at = entryAt(at - 1).next;
  }
  return length;
}
