// Cold prompts: one list of slots, ordered by the time of their last cold prompt, oldest first.
//
// Owns: the columns COLD_OLDER and COLD_NEWER and the pool words cold*, all under the commit lock. What a dead
// thread may have left half linked is forgotten as a whole (coldRepair): the list is a preference, not an account.
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { COLUMN_COLD_NEWER, COLUMN_COLD_OLDER, columnAddress } from '../endpoints';
import { CANDIDATES, KEYS, SLOTS } from '../memory';
import { poolWords } from '../pool-words';

function listed(slot: u32): bool {
  return poolWords().coldOldest == slot + 1 || column.u32(COLUMN_COLD_OLDER, slot) != 0;
}

/** Takes a slot out of the list; nothing when it is not in it. Commit lock held. */
export function coldForget(slot: u32): void {
  if (!listed(slot)) return;
  const older = column.u32(COLUMN_COLD_OLDER, slot);
  const newer = column.u32(COLUMN_COLD_NEWER, slot);
  if (older == 0) poolWords().coldOldest = newer;
  else column.setU32(COLUMN_COLD_NEWER, older - 1, newer);
  if (newer == 0) poolWords().coldNewest = older;
  else column.setU32(COLUMN_COLD_OLDER, newer - 1, older);
  column.setU32(COLUMN_COLD_OLDER, slot, 0);
  column.setU32(COLUMN_COLD_NEWER, slot, 0);
  poolWords().coldLength -= 1;
}

/** Makes a slot the latest one with a cold prompt; at most `size` slots stay in the list. Commit lock held. */
export function coldSent(slot: u32, size: u32): void {
  coldForget(slot);
  const newest = poolWords().coldNewest;
  column.setU32(COLUMN_COLD_OLDER, slot, newest);
  if (newest == 0) poolWords().coldOldest = slot + 1;
  else column.setU32(COLUMN_COLD_NEWER, newest - 1, slot + 1);
  poolWords().coldNewest = slot + 1;
  poolWords().coldLength += 1;
  while (poolWords().coldLength > max<u32>(size, 1)) coldForget(poolWords().coldOldest - 1);
}

/** Empties the list. Commit lock held (seized). */
export function coldRepair(): void {
  memory.fill(columnAddress(COLUMN_COLD_OLDER), 0, slotOffset(SLOTS));
  memory.fill(columnAddress(COLUMN_COLD_NEWER), 0, slotOffset(SLOTS));
  poolWords().coldOldest = 0;
  poolWords().coldNewest = 0;
  poolWords().coldLength = 0;
}

/**
 * Fills KEYS with each candidate's place in the order in which cold prompts visit them: those not in the list first, in
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
  let next = poolWords().coldOldest;
  while (next != 0) {
    const at = slotOffset(next - 1);
    if (next <= used && load<i32>(CANDIDATES + at) != 0) {
      store<f32>(KEYS + at, <f32>rank);
      rank++;
    }
    next = column.u32(COLUMN_COLD_NEWER, next - 1);
  }
  return rank;
}
