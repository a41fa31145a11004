// A charge after its decision: first output, growth, another endpoint, end and release.
//
// Owns nothing: the ledger, the gate and the active blocks are told under the commit lock or the index lock, taken one
// after the other, never together.
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { COLUMN_GENERATION, COLUMN_STATE, STATE_FREE } from '../endpoints';
import {
  gateEnded,
  gateFirstToken,
  gateMoved,
  gateOutput,
  gatePrefillElsewhere,
  gateReleased,
} from '../gate/capacity-gate';
import { waitingOf } from '../gate/wait-slots';
import { activeRemoveLocked } from '../load/blocks';
import { endProbe } from '../load/ejection';
import { endPrefill, growOutput, moveEntry, releaseEntry, releaseTokens } from '../load/ledger';
import {
  ENTRY_PROBE,
  entryAt,
  entryOf,
  featuresOf,
  isCharged,
  isCurrent,
  LedgerEntry,
  setHandle,
} from '../load/ledger-entries';
import { journalEachChange } from '../load-journal';
import { COMMIT_LOCK, INDEX_LOCK, lockAcquire, lockRelease, lockSleepsMax } from '../lock';
import { REQUESTS, SCANS, SLOTS } from '../memory';
import { isSlot, isThread, isTicket, isTime, isTruth } from '../preconditions';

/** Releases the active blocks of an entry. Takes the index lock. */
function releaseBlocks(entry: LedgerEntry): bool {
  if (entry.handle == 0) return true;
  if (!lockAcquire(INDEX_LOCK, lockSleepsMax())) return false;
  const handle = entry.handle;
  if (handle != 0) {
    activeRemoveLocked(entry.slot, handle, entry.blocks);
    setHandle(entry, 0, 0);
  }
  lockRelease(INDEX_LOCK);
  return true;
}

/**
 * Releases everything that a ticket holds; a ticket that is gone already is no error.
 * @returns 0 released, 1 not held, 2 a lock could not be had in time: call again
 */
export function release(ticket: u32, generation: u32): u32 {
  if (ASSERTIONS) assert(isTicket(ticket), 'the ticket is none or names an entry of the ledger');
  const entry = entryOf(ticket, generation);
  if (entry == null) return 1;
  if (!releaseBlocks(entry)) return 2;
  if (!lockAcquire(COMMIT_LOCK, lockSleepsMax())) return 2;
  journalEachChange();
  if ((entry.flags & ENTRY_PROBE) != 0 && isCurrent(entry)) endProbe(entry.slot);
  gateReleased(ticket - 1);
  releaseEntry(entry);
  lockRelease(COMMIT_LOCK);
  if (ASSERTIONS) assert(entryOf(ticket, generation) == null, 'a released ticket names no entry any more');
  return 0;
}

/**
 * Takes the first output: the prompt's tokens leave the load.
 * @param keep 1 = what was charged as in-flight tokens stays until the end, since output is counted in it
 * @param now pool clock
 * @returns as release
 */
export function prefillDone(ticket: u32, generation: u32, keep: u32, now: f64): u32 {
  if (ASSERTIONS) assert(isTicket(ticket), 'the ticket is none or names an entry of the ledger');
  if (ASSERTIONS) assert(isTruth(keep), '`keep` is 0 or 1');
  const entry = entryOf(ticket, generation);
  if (entry == null) return 1;
  if (!lockAcquire(COMMIT_LOCK, lockSleepsMax())) return 2;
  journalEachChange();
  endPrefill(entry);
  if (keep == 0) releaseTokens(entry);
  gateFirstToken(ticket - 1, now);
  if (ASSERTIONS) assert(featuresOf(entry).prefill == 0, 'a prefill that is over has no tokens ahead of others');
  if (ASSERTIONS) assert(keep != 0 || entry.tokens == 0, 'tokens that are not kept have left the load');
  lockRelease(COMMIT_LOCK);
  return 0;
}

/**
 * Another endpoint computes the prompt of this ticket's request: the gate does not wait for it here.
 * @returns as release
 */
export function prefillElsewhere(ticket: u32, generation: u32): u32 {
  if (ASSERTIONS) assert(isTicket(ticket), 'the ticket is none or names an entry of the ledger');
  if (entryOf(ticket, generation) == null) return 1;
  if (!lockAcquire(COMMIT_LOCK, lockSleepsMax())) return 2;
  journalEachChange();
  gatePrefillElsewhere(ticket - 1);
  lockRelease(COMMIT_LOCK);
  return 0;
}

/** Notes the output so far: `tokens` tokens, which fill `blocks` blocks. @returns as release */
export function grow(ticket: u32, generation: u32, blocks: u32, tokens: u32): u32 {
  if (ASSERTIONS) assert(isTicket(ticket), 'the ticket is none or names an entry of the ledger');
  const entry = entryOf(ticket, generation);
  if (entry == null) return 1;
  if (!lockAcquire(COMMIT_LOCK, lockSleepsMax())) return 2;
  journalEachChange();
  growOutput(entry, blocks);
  gateOutput(ticket - 1, tokens);
  if (ASSERTIONS) assert(entry.outputBlocks >= blocks, 'the output of a charge has grown');
  lockRelease(COMMIT_LOCK);
  return 0;
}

/** Takes the end of an answer of `tokens` tokens in all; its charge is released right after. @returns as release */
export function complete(ticket: u32, generation: u32, tokens: u32, now: f64): u32 {
  if (ASSERTIONS) assert(isTicket(ticket), 'the ticket is none or names an entry of the ledger');
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (entryOf(ticket, generation) == null) return 1;
  if (!lockAcquire(COMMIT_LOCK, lockSleepsMax())) return 2;
  journalEachChange();
  gateEnded(ticket - 1, tokens, now);
  lockRelease(COMMIT_LOCK);
  return 0;
}

/**
 * Charges a ticket to the endpoint that has answered in place of the picked one. Its blocks are active nowhere from
 * then on.
 * @returns as release; 1 also when the slot has another endpoint by now
 */
export function moveCharge(ticket: u32, generation: u32, slot: u32, slotGeneration: u32): u32 {
  if (ASSERTIONS) assert(isTicket(ticket), 'the ticket is none or names an entry of the ledger');
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  const entry = entryOf(ticket, generation);
  if (entry == null || slot >= SLOTS) return 1;
  if (!releaseBlocks(entry)) return 2;
  if (!lockAcquire(COMMIT_LOCK, lockSleepsMax())) return 2;
  journalEachChange();
  let result: u32 = 1;
  if (column.u32(COLUMN_GENERATION, slot) == slotGeneration && column.u32(COLUMN_STATE, slot) != STATE_FREE) {
    if ((entry.flags & ENTRY_PROBE) != 0 && isCurrent(entry)) endProbe(entry.slot);
    gateMoved(ticket - 1, slot);
    moveEntry(entry, slot);
    result = 0;
  }
  lockRelease(COMMIT_LOCK);
  if (ASSERTIONS) assert(result != 0 || entry.slot == slot, 'a moved charge is on its new slot');
  return result;
}

/**
 * Releases every charge of a thread that died; its locks must have been repaired before.
 * @returns how many
 */
export function releaseThread(thread: u32): u32 {
  let count: u32 = 0;
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const entry = entryAt(i);
    if (!isCharged(entry) || entry.thread != thread) continue;
    if (release(i + 1, entry.generation) == 0) count++;
  }
  return count;
}

/** Returns the number of charges and wait slots of a thread. */
export function threadCharges(thread: u32): u32 {
  if (ASSERTIONS) assert(isThread(thread), 'the thread is one of the pool');
  let count = waitingOf(thread);
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const entry = entryAt(i);
    if (isCharged(entry) && entry.thread == thread) count++;
  }
  if (ASSERTIONS)
    assert(count <= REQUESTS + SCANS, 'a thread has no more charges than there are entries and wait slots');
  return count;
}
