// The load journal: the slots whose requests in flight changed last, so that a decision judged without the commit lock
// knows under it which endpoints to judge again (scheduling/judgement.ts).
//
// Owns: the Journal and its ring in the header page (HEADER_JOURNAL, HEADER_JOURNAL_RING). Written under the commit
// lock, read without one. The count is
// stored last, behind the column that it tells of: a reader that takes the count first and the columns then misses no
// change whose number it has not seen.
//
// An entry tells of the requests in flight of a slot, or of all that decisions read of it (SIGNALS_TOO). Scores that
// stand from one decision of a thread to the next are renewed by the entries between them (standing-scores.ts).
//
// A hold of the commit lock counts as a change of every slot, unless it says that it notes each one
// (journalEachChange). A thread that is killed in its hold has perhaps not noted its last change; the hold in which the
// control thread repairs counts as a change of every slot, and nobody has the lock before it.
import { ASSERTIONS } from './assertions';
import { HEADER, HEADER_JOURNAL, HEADER_JOURNAL_RING, SLOTS } from './memory';

/** Changes that the ring holds, a power of two. */
export const JOURNAL_LENGTH: u32 = 256;
/** Bit of an entry: beside its requests in flight, the signals of the slot have changed. */
const SIGNALS_TOO: u32 = 0x8000;
const CELLS: usize = HEADER + HEADER_JOURNAL_RING;

/** Head of the ring. */
@unmanaged
class Journal {
  /** Changes so far, modulo 2^32 · any thread · commit lock; readers none. */
  changes: u32;
}

/** Whether this thread's hold of the commit lock notes each change. */
let each: bool = false;

function cellOf(change: u32): usize {
  return CELLS + ((<usize>(change & (JOURNAL_LENGTH - 1))) << 1);
}

/** Changes so far. A reader that is to judge by the columns calls it before it reads them. */
export function journalChanges(): u32 {
  return atomic.load<u32>(HEADER + HEADER_JOURNAL);
}

function setChanges(changes: u32): void {
  atomic.store<u32>(HEADER + HEADER_JOURNAL, changes, offsetof<Journal>('changes'));
}

/**
 * The slot of a change, one of the last JOURNAL_LENGTH. A reader without the commit lock asks journalHolds() behind
 * what it has read.
 */
export function journalSlot(change: u32): u32 {
  return atomic.load<u16>(cellOf(change)) & ~SIGNALS_TOO;
}

/** Whether a change tells of requests in flight alone. Commit lock held. */
export function isLoadAlone(change: u32): bool {
  return (atomic.load<u16>(cellOf(change)) & SIGNALS_TOO) == 0;
}

/** Whether no change since `change` has overwritten its entry; one more may be half written. */
export function journalHolds(change: u32): bool {
  return journalChanges() - change < JOURNAL_LENGTH;
}

/**
 * This hold of the commit lock changes, of all that a judgement without the lock reads, only requests in flight and
 * signals, and notes each of their slots. Called right after the lock was taken.
 */
export function journalEachChange(): void {
  each = true;
}

function note(slot: u32, bits: u32): void {
  if (ASSERTIONS) assert(slot < SLOTS, 'the changed slot is one of the pool');
  const change = journalChanges();
  store<u16>(cellOf(change), <u16>(slot | bits));
  setChanges(change + 1);
}

/** Notes that the requests in flight of a slot have changed. Commit lock held; the column is written before. */
export function journalSlotChanged(slot: u32): void {
  note(slot, 0);
}

/** Notes that signals of a slot have changed. Commit lock held; the columns are written before. */
export function journalSignalsChanged(slot: u32): void {
  note(slot, SIGNALS_TOO);
}

/** Notes that any slot may have changed. Commit lock held; the columns are written before. */
export function journalAllChanged(): void {
  setChanges(journalChanges() + JOURNAL_LENGTH + 1);
}

/** Ends this thread's hold of the commit lock. */
export function journalRelease(): void {
  if (!each) journalAllChanged();
  each = false;
}
