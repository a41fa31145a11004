// Warmth: how much of what could be found of their prompts the requests of an endpoint have found in its cache.
//
// Owns: the columns HIT_SHARE, CHARGED and REACHED of REGION_ENDPOINTS. A charge writes them under the commit lock. An
// endpoint that comes, or whose cache is emptied (prefix/store.ts), has all three at 0 again; a charge at that moment
// may undo it, which lets a cold cache count as warm.
import * as column from '../columns/column';
import { COLUMN_CHARGED, COLUMN_HIT_SHARE, COLUMN_REACHED } from '../endpoints';

/** Requests that the mean goes back over: the last 32 make up two thirds of it. */
const MEAN_OVER: u32 = 32;
/** Requests without a hit that a cache begins with, so that the first hit does not make it warm. */
const DOUBT: u32 = 4;

/**
 * Takes a request that is charged to a slot. Commit lock held.
 * @param reachable tokens of its prompt that the endpoint with most of it held; without any it says nothing of a cache
 * @param cached tokens of its prompt that this endpoint held
 */
export function warmthNote(slot: u32, reachable: u32, cached: u32): void {
  const charged = column.u32(COLUMN_CHARGED, slot);
  if (charged != u32.MAX_VALUE) column.setU32(COLUMN_CHARGED, slot, charged + 1);
  if (reachable == 0) return;
  const reached = min(column.u32(COLUMN_REACHED, slot) + 1, MEAN_OVER - DOUBT);
  column.setU32(COLUMN_REACHED, slot, reached);
  const share = <f32>min(cached, reachable) / <f32>reachable;
  const before = column.f32(COLUMN_HIT_SHARE, slot);
  column.setF32(COLUMN_HIT_SHARE, slot, before + (share - before) / <f32>(reached + DOUBT));
}

/** Forgets what was found in the cache of the endpoint before. */
export function warmthForget(slot: u32): void {
  column.setU32(COLUMN_CHARGED, slot, 0);
  column.setU32(COLUMN_REACHED, slot, 0);
  column.setF32(COLUMN_HIT_SHARE, slot, 0);
}
