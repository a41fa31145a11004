// The strictest time per output token that the requests in flight on an endpoint want: whoever joins them must not slow
// them below it.
//
// Owns: the columns STRICTEST_TPOT and STRICTEST_TICKET and the links of charged ledger entries, under the commit lock.
//
//   slot → ticket of the least wish → next → … → 0      in rising order; requests that want nothing are not in it
//
// A removal walks the list, an insertion the part below its own wish. Wishes are few different ones in practice, so an
// insertion ends early, and a list is as long as an engine's batch.
import { COLUMN_STRICTEST_TICKET, COLUMN_STRICTEST_TPOT, cell } from '../endpoints';
import { entryAt, entryNext, entrySetNext, entrySetTpot, entryTpot } from './ledger';

function setHead(slot: u32, ticket: u32): void {
  store<u32>(cell(COLUMN_STRICTEST_TICKET, slot), ticket);
  store<f32>(cell(COLUMN_STRICTEST_TPOT, slot), ticket == 0 ? <f32>0 : entryTpot(entryAt(ticket - 1)));
}

/** The request of a ticket just charged wants a time per output token, in milliseconds. Commit lock held. */
export function strictestNote(slot: u32, ticket: u32, wish: f32): void {
  if (ticket == 0 || !(wish > 0)) return;
  entrySetTpot(entryAt(ticket - 1), wish);
  strictestAdd(slot, ticket);
}

/** Put a charged entry into the list of its slot. Commit lock held. */
export function strictestAdd(slot: u32, ticket: u32): void {
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
  if (before == 0) setHead(slot, ticket);
  else entrySetNext(entryAt(before - 1), ticket);
}

/** Take an entry out of it. Commit lock held. */
export function strictestRemove(slot: u32, ticket: u32): void {
  const entry = entryAt(ticket - 1);
  if (!(entryTpot(entry) > 0)) return;
  let at = load<u32>(cell(COLUMN_STRICTEST_TICKET, slot));
  if (at == ticket) return setHead(slot, entryNext(entry));
  while (at != 0) {
    const next = entryNext(entryAt(at - 1));
    if (next == ticket) return entrySetNext(entryAt(at - 1), entryNext(entry));
    at = next;
  }
}

/** Forget the list of a slot that changes hands, or that is made again. Commit lock held. */
export function strictestClear(slot: u32): void {
  setHead(slot, 0);
}
