// LoRA adapters of an endpoint: those that its engine reports, and those of requests sent there lately.
//
// Owns: the remembered part of REGION_ADAPTERS (ADAPTERS_REMEMBERED name hashes per slot behind those of the gauge,
// newest first) and the column ADAPTERS_SENT, under the commit lock. The part of the gauge is the control thread's. A
// thread that dies while it moves hashes leaves at worst one twice or one missing: a preference is off until the next
// request, so there is nothing to repair.
//
// The gauge of an engine lists the adapters of requests that run or wait; an adapter without requests is not in it,
// though it stays loaded until its place is needed. An engine keeps the adapters used last. So of the remembered and
// unlisted ones, the newest are loaded, as many as the engine has places left.
import * as column from '../columns/column';
import {
  COLUMN_ADAPTERS_MAX,
  COLUMN_ADAPTERS_RUNNING,
  COLUMN_ADAPTERS_SENT,
  COLUMN_ADAPTERS_WAITING,
  cell,
} from '../endpoints';
import { ADAPTERS, ADAPTERS_PER_ENDPOINT, ADAPTERS_REMEMBERED, SLOTS } from '../memory';
import { request } from '../request-area';

/** Address of the names in the gauge of an endpoint's engine, u64 each. */
export function gaugeOf(slot: u32): usize {
  return ADAPTERS + ((<usize>slot * ADAPTERS_PER_ENDPOINT) << 3);
}

function rememberedOf(slot: u32): usize {
  return ADAPTERS + ((<usize>(SLOTS * ADAPTERS_PER_ENDPOINT + slot * ADAPTERS_REMEMBERED)) << 3);
}

/** Place of a hash in a list, or `count`. */
function placeOf(wanted: u64, list: usize, count: u32): u32 {
  for (let i: u32 = 0; i < count; i++) if (load<u64>(list + ((<usize>i) << 3)) == wanted) return i;
  return count;
}

/** Makes the request's adapter the newest one of an endpoint. Commit lock held. */
export function adapterSent(slot: u32): void {
  const wanted = request().adapter;
  const list = rememberedOf(slot);
  const sent = cell(COLUMN_ADAPTERS_SENT, slot);
  const count = min(load<u32>(sent), ADAPTERS_REMEMBERED);
  const place = placeOf(wanted, list, count);
  const moved = min(place, ADAPTERS_REMEMBERED - 1);
  memory.copy(list + 8, list, (<usize>moved) << 3);
  store<u64>(list, wanted);
  if (place == count && count < ADAPTERS_REMEMBERED) store<u32>(sent, count + 1);
}

/** Forgets what was sent to the endpoint that had the slot before. Commit lock held. */
export function adaptersForget(slot: u32): void {
  column.setU32(COLUMN_ADAPTERS_SENT, slot, 0);
}

/** Whether a remembered adapter, not in the gauge, is still within the `room` places left. */
function stillLoaded(slot: u32, wanted: u64, gauge: usize, kept: u32, room: u32): bool {
  const list = rememberedOf(slot);
  const count = min(column.u32(COLUMN_ADAPTERS_SENT, slot), ADAPTERS_REMEMBERED);
  const place = placeOf(wanted, list, count);
  if (place == count) return false;
  let newer: u32 = 0;
  for (let i: u32 = 0; i < place && newer < room; i++) {
    if (placeOf(load<u64>(list + ((<usize>i) << 3)), gauge, kept) == kept) newer++;
  }
  return newer < room;
}

/**
 * Running 1; loaded by the picker's memory 0.9; room for one more 0.8; waiting 0.6; else 0.
 * @param remember whether what was sent counts
 */
export function adapterScore(slot: u32, wanted: u64, remember: bool): f32 {
  const running = column.u32(COLUMN_ADAPTERS_RUNNING, slot);
  const listed = running + column.u32(COLUMN_ADAPTERS_WAITING, slot);
  const places = column.u32(COLUMN_ADAPTERS_MAX, slot);
  const gauge = gaugeOf(slot);
  const kept = min(listed, ADAPTERS_PER_ENDPOINT);
  const found = placeOf(wanted, gauge, kept);
  if (found < min(running, kept)) return 1;
  if (listed >= places) return found < kept ? <f32>0.6 : <f32>0;
  return remember && found == kept && stillLoaded(slot, wanted, gauge, kept, places - listed) ? <f32>0.9 : <f32>0.8;
}
