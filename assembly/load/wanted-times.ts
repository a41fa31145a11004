// Wanted times: the charged entries of a slot whose requests want a time per output token, strictest first, so that a
// decision sees what a request that joins them must not break.
//
// Owns: the columns STRICTEST_TPOT and STRICTEST_TICKET of REGION_ENDPOINTS, and `next` and `wantedTpot` of charged
// entries of the ledger. All under the commit lock.
//
//   slot → ticket of the least wanted time → next → … → 0      in rising order; other requests are not in it
//
// A removal walks the list, an insertion the part below its own time. There are few different times in practice, so an
// insertion ends early, and a list is as long as an engine's batch.
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { COLUMN_STRICTEST_TICKET, COLUMN_STRICTEST_TPOT } from '../endpoints';
import { entryAt } from './ledger-entries';

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
export function addStrictest(slot: u32, ticket: u32): void {
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
export function removeStrictest(slot: u32, ticket: u32): void {
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
export function clearStrictest(slot: u32): void {
  setStrictest(slot, 0);
}
