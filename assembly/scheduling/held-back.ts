// Endpoints that filters hold back: since when, until when, and by what, for those who watch the pool.
//
// Owns: the columns VETO_* and WARMING_* of REGION_ENDPOINTS, written under the commit lock by decisions that place
// requests; the control thread reads them. Decisions in shadow and those that are only explained leave them alone.
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import {
  COLUMN_VETO_LAST,
  COLUMN_VETO_LIMIT,
  COLUMN_VETO_SINCE,
  COLUMN_WARMING_LAST,
  COLUMN_WARMING_SHARE,
  COLUMN_WARMING_SINCE,
  columnAddress,
} from '../endpoints';
import { CANDIDATES, KEPT } from '../memory';
import { DECIDE_UNCHARGED, request } from '../request-area';
import { isPickedInShadow } from './picker-algorithms';

/** Whether the decision is one that is watched. */
function isWatched(): bool {
  return (request().flags & DECIDE_UNCHARGED) == 0 && !isPickedInShadow();
}

/** Time of the decision in whole seconds. */
function seconds(): u32 {
  return <u32>(request().now / 1000);
}

/** Whether a decision changes what is noted: a candidate is vetoed, or one that was vetoed is not any more. */
function anyVeto(used: u32): bool {
  const since = columnAddress(COLUMN_VETO_SINCE);
  let any = i32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const vetoed = v128.not(v128.load(KEPT + at));
    any = v128.or(any, v128.and(v128.load(CANDIDATES + at), v128.or(vetoed, v128.load(since + at))));
  }
  return v128.any_true(any);
}

/**
 * Notes the candidates that KEPT does not mark as vetoed, and the others as not vetoed.
 * @param limits address of a column with the limit that each vetoed one is over: see COLUMN_VETO_LIMIT
 */
export function noteVetoes(used: u32, limits: usize): void {
  if (!isWatched() || !anyVeto(used)) return;
  const now = seconds();
  for (let slot: u32 = 0; slot < used; slot++) {
    const at = slotOffset(slot);
    if (load<i32>(CANDIDATES + at) == 0) continue;
    if (load<i32>(KEPT + at) != 0) {
      if (column.u32(COLUMN_VETO_SINCE, slot) != 0) column.setU32(COLUMN_VETO_SINCE, slot, 0);
      continue;
    }
    if (column.u32(COLUMN_VETO_SINCE, slot) == 0) column.setU32(COLUMN_VETO_SINCE, slot, now);
    else if (column.u32(COLUMN_VETO_LAST, slot) == now) continue;
    column.setU32(COLUMN_VETO_LAST, slot, now);
    column.setF32(COLUMN_VETO_LIMIT, slot, load<f32>(limits + at));
  }
}

/** Notes an endpoint whose cache a decision takes for cold, and the share that it has for it. */
export function noteWarming(slot: u32, share: f32): void {
  if (!isWatched()) return;
  const now = seconds();
  if (column.u32(COLUMN_WARMING_SINCE, slot) == 0) column.setU32(COLUMN_WARMING_SINCE, slot, now);
  else if (column.u32(COLUMN_WARMING_LAST, slot) == now) return;
  column.setU32(COLUMN_WARMING_LAST, slot, now);
  column.setF32(COLUMN_WARMING_SHARE, slot, share);
}

/** Notes an endpoint whose cache is warm. */
export function noteWarm(slot: u32): void {
  if (column.u32(COLUMN_WARMING_SINCE, slot) != 0 && isWatched()) column.setU32(COLUMN_WARMING_SINCE, slot, 0);
}

/** Forgets what held the endpoint before back. Commit lock held. */
export function heldBackForget(slot: u32): void {
  column.setU32(COLUMN_VETO_SINCE, slot, 0);
  column.setU32(COLUMN_WARMING_SINCE, slot, 0);
}
