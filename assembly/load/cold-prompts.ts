// Cold prompts: one list of slots, ordered by the time of their last cold prompt, oldest first.
//
// Owns: the columns COLD_OLDER and COLD_NEWER and the pool words POOL_COLD_*, all under the commit lock. What a dead
// thread may have left half linked is forgotten as a whole (coldRepair): the list is a preference, not an account.
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { COLUMN_COLD_NEWER, COLUMN_COLD_OLDER, columnAddress } from '../endpoints';
import { CANDIDATES, HEADER, HEADER_POOL, KEYS, SLOTS } from '../memory';
import { POOL_COLD_LENGTH, POOL_COLD_NEWEST, POOL_COLD_OLDEST } from '../pool-words';

const OLDEST: usize = HEADER + HEADER_POOL + POOL_COLD_OLDEST;
const NEWEST: usize = HEADER + HEADER_POOL + POOL_COLD_NEWEST;
const LENGTH: usize = HEADER + HEADER_POOL + POOL_COLD_LENGTH;

function listed(slot: u32): bool {
  return load<u32>(OLDEST) == slot + 1 || column.u32(COLUMN_COLD_OLDER, slot) != 0;
}

/** Take a slot out of the list; nothing when it is not in it. Commit lock held. */
export function coldForget(slot: u32): void {
  if (!listed(slot)) return;
  const older = column.u32(COLUMN_COLD_OLDER, slot);
  const newer = column.u32(COLUMN_COLD_NEWER, slot);
  if (older == 0) store<u32>(OLDEST, newer);
  else column.setU32(COLUMN_COLD_NEWER, older - 1, newer);
  if (newer == 0) store<u32>(NEWEST, older);
  else column.setU32(COLUMN_COLD_OLDER, newer - 1, older);
  column.setU32(COLUMN_COLD_OLDER, slot, 0);
  column.setU32(COLUMN_COLD_NEWER, slot, 0);
  store<u32>(LENGTH, load<u32>(LENGTH) - 1);
}

/** A slot is sent a cold prompt: it becomes the latest, and at most `size` slots stay in the list. Commit lock held. */
export function coldSent(slot: u32, size: u32): void {
  coldForget(slot);
  const newest = load<u32>(NEWEST);
  column.setU32(COLUMN_COLD_OLDER, slot, newest);
  if (newest == 0) store<u32>(OLDEST, slot + 1);
  else column.setU32(COLUMN_COLD_NEWER, newest - 1, slot + 1);
  store<u32>(NEWEST, slot + 1);
  store<u32>(LENGTH, load<u32>(LENGTH) + 1);
  while (load<u32>(LENGTH) > max<u32>(size, 1)) coldForget(load<u32>(OLDEST) - 1);
}

/** Empties the list. Commit lock held (seized). */
export function coldRepair(): void {
  memory.fill(columnAddress(COLUMN_COLD_OLDER), 0, slotOffset(SLOTS));
  memory.fill(columnAddress(COLUMN_COLD_NEWER), 0, slotOffset(SLOTS));
  store<u32>(OLDEST, 0);
  store<u32>(NEWEST, 0);
  store<u32>(LENGTH, 0);
}

/**
 * Fill KEYS with each candidate's place in the order in which cold prompts visit them: those not in the list first, in
 * the order of their slots, then the list. Commit lock held.
 * @returns how many candidates there are
 */
export function coldRanks(used: u32): u32 {
  let rank: u32 = 0;
  for (let slot: u32 = 0; slot < used; slot++) {
    const at = slotOffset(slot);
    if (load<i32>(CANDIDATES + at) != 0 && !listed(slot)) {
      store<f32>(KEYS + at, <f32>rank);
      rank++;
    }
  }
  let next = load<u32>(OLDEST);
  while (next != 0) {
    const at = (<usize>(next - 1)) << 2;
    if (next <= used && load<i32>(CANDIDATES + at) != 0) {
      store<f32>(KEYS + at, <f32>rank);
      rank++;
    }
    next = column.u32(COLUMN_COLD_NEWER, next - 1);
  }
  return rank;
}
