// Values that an export of the core may be called with, for the assertions at its beginning.
//
// Owns nothing and reads only the sizes of the pool and addresses of this instance. Used as `if (ASSERTIONS)
// assert(isSlot(slot), 'what must hold')`, which the release build leaves out.
import { CHAIN_BLOCKS, HEADER, REQUESTS, SCANS, SLOTS, THREAD_INPUT_BYTES, THREADS } from './memory';

/** Whether the number is one of an endpoint slot. */
export function isSlot(slot: u32): bool {
  return slot < SLOTS;
}

/** Whether the number is one of a thread of the pool. */
export function isThread(thread: u32): bool {
  return thread < THREADS;
}

/** Whether the number is one of a scan or of a wait slot of a thread. */
export function isScan(scan: u32): bool {
  return scan < SCANS;
}

/** Whether the ticket is none (0) or names an entry of the ledger, charged or not. */
export function isTicket(ticket: u32): bool {
  return ticket <= REQUESTS;
}

/** Whether the time is one of the pool clock: finite and not before its start [ms]. */
export function isTime(now: f64): bool {
  return now >= 0 && now < Infinity;
}

/** Whether the value is a truth: 0 or 1. */
export function isTruth(value: u32): bool {
  return value <= 1;
}

/** Whether the value is a number that is not negative; infinity is one. */
export function isAmount(value: f32): bool {
  return value >= 0;
}

/** Whether so many bytes fit into the input of the thread. */
export function fitsInput(bytes: u32): bool {
  return bytes <= <u32>THREAD_INPUT_BYTES;
}

/** Whether so many blocks are of one chain; the last one may be a tail. */
export function fitsChain(blocks: u32): bool {
  return blocks <= CHAIN_BLOCKS + 1;
}

/** Whether so many bytes from an address on lie in the memory, behind the page that nothing uses. */
export function isMapped(at: usize, bytes: usize): bool {
  const end = <u64>at + bytes;
  return at >= HEADER && end <= (<u64>memory.size()) << 16;
}
