// The load journal: the slots whose requests in flight changed last, so that a decision judged without the commit lock
// knows under it which endpoints to judge again (scheduling/judgement.ts).
//
// Owns: the Journal and its ring in the header page (HEADER_JOURNAL, HEADER_JOURNAL_RING). Written under the commit
// lock, read without one. The count is
// stored last, behind the column that it tells of: a reader that takes the count first and the columns then misses no
// change whose number it has not seen.
//
// A hold of the commit lock counts as a change of every slot, unless it says that it notes each one
// (journalEachChange). A thread that is killed in its hold has perhaps not noted its last change; the hold in which the
// control thread repairs counts as a change of every slot, and nobody has the lock before it.
import { ASSERTIONS } from './assertions';
import { HEADER, HEADER_JOURNAL, HEADER_JOURNAL_RING, SLOTS } from './memory';

/** Changes that the ring holds, a power of two. */
export const JOURNAL_LENGTH: u32 = 64;
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

/** The slot of a change, one of the last JOURNAL_LENGTH. Commit lock held. */
export function journalSlot(change: u32): u32 {
  return load<u16>(cellOf(change));
}

/**
 * This hold of the commit lock changes, of all that a judgement without the lock reads, only requests in flight, and
 * notes each of their slots. Called right after the lock was taken.
 */
export function journalEachChange(): void {
  each = true;
}

/** Notes that the requests in flight of a slot have changed. Commit lock held; the column is written before. */
export function journalSlotChanged(slot: u32): void {
  if (ASSERTIONS) assert(slot < SLOTS, 'the changed slot is one of the pool');
  const change = journalChanges();
  store<u16>(cellOf(change), <u16>slot);
  setChanges(change + 1);
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
