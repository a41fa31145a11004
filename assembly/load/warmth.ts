// Warmth: how much of their prompts the requests of an endpoint have found in its cache since it was empty.
//
// Owns: the columns HIT_SHARE and CHARGED of REGION_ENDPOINTS. A charge writes them under the commit lock. An endpoint
// that comes, or whose cache is emptied (prefix/store.ts), has both at 0 again; a charge at that moment may undo it,
// which lets a cold cache count as warm.
import * as column from '../columns/column';
import { COLUMN_CHARGED, COLUMN_HIT_SHARE } from '../endpoints';

/** Weight of a request in the mean: the last 32 make up two thirds of it. */
const WEIGHT: f32 = 0.03125;

/** Takes a request that is charged to a slot. Commit lock held. */
export function warmthNote(slot: u32, prompt: u32, uncached: u32): void {
  if (prompt == 0) return;
  const charged = column.u32(COLUMN_CHARGED, slot);
  if (charged != u32.MAX_VALUE) column.setU32(COLUMN_CHARGED, slot, charged + 1);
  const share = <f32>(prompt - min(uncached, prompt)) / <f32>prompt;
  const before = column.f32(COLUMN_HIT_SHARE, slot);
  column.setF32(COLUMN_HIT_SHARE, slot, before + WEIGHT * (share - before));
}

/** Forgets what was found in the cache of the endpoint before. */
export function warmthForget(slot: u32): void {
  column.setU32(COLUMN_CHARGED, slot, 0);
  column.setF32(COLUMN_HIT_SHARE, slot, 0);
}
