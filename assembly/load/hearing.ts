// Hearings: when the picker saw the last output of each request in flight.
//
// Owns: the hearings at the end of REGION_LEDGER, one for each entry, and the column HEARD. The charge writes a hearing
// under the commit lock; afterwards its shard writes it, by plain stores without a lock, and the control thread reads
// it. HEARD is written by plain stores of any thread: of two at the same time either may stay.
//
// A wrong or late number costs one wrong look at an endpoint (load/silence.ts), so nothing here is atomic.
import { attached, HEARING_BYTES, LEDGER, LEDGER_ENTRY_BYTES, REQUESTS, THREADS } from '../memory';

/** What the picker will see of an answer. */
export const EXPECTS_NOTHING: u32 = 0; // not known, or it comes from elsewhere: the request is no evidence
export const EXPECTS_STREAM: u32 = 1; // output piece by piece
export const EXPECTS_END: u32 = 2; // its end alone
export const EXPECTS_LATER: u32 = 3; // output piece by piece, after the work of other endpoints

/** Last output of one request. */
@unmanaged
export class Hearing {
  /** Milliseconds of the pool clock at its last output, 0 = none · owner of the charge · none. */
  heard: f64;
  /** EXPECTS_* · owner of the charge · none. */
  expects: u32;
  /** Most output tokens that the request allows, 0 = unknown · owner of the charge · none. */
  limit: u32;
}

export const HEARING_EXPECTS: usize = offsetof<Hearing>('expects');
export const HEARING_LIMIT: usize = offsetof<Hearing>('limit');

/** Address of the first hearing; they stand in the order of the tickets, the first one for ticket 1. */
export function hearingAddress(): usize {
  return attached(LEDGER) + 64 + <usize>THREADS * 64 + <usize>REQUESTS * LEDGER_ENTRY_BYTES;
}

/** The hearing of an entry. */
export function hearingAt(index: u32): Hearing {
  return changetype<Hearing>(hearingAddress() + <usize>index * HEARING_BYTES);
}

/**
 * Begins the hearing of a fresh charge, which is no evidence before its shard tells what to expect. Commit lock held.
 */
export function hearingReset(index: u32): void {
  const at = hearingAt(index);
  at.expects = EXPECTS_NOTHING;
  at.heard = 0;
  at.limit = 0;
}
