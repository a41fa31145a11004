// Nearness of each endpoint to the one that an earlier profile of the request picked.
//
// Owns: nothing; fills the thread's KEYS and KEPT columns from REGION_LABELS, which the control thread writes. Called
// under the commit lock. The levels are compared each for itself, by the hash of a label; the nearest equal one counts.
// An endpoint without the label is near no other at that level.
import { slotOffset } from '../columns/column';
import { KEPT, KEYS, SLOTS } from '../memory';
import { request } from '../request-area';
import { labelAddress } from './labels';
import { Operation } from './program';
import { addKeys } from './score-column';

// Scores of the levels (topology-affinity-scorer of llm-d-router); they also order the levels for the filter.
const NEAR_HOST: f32 = 1;
const NEAR_RACK: f32 = <f32>0.2;
const NEAR_ZONE: f32 = <f32>0.05;
const NEAR_REGION: f32 = <f32>0.02;

/**
 * Raises KEYS to `nearness` where an endpoint's label is that of the earlier pick. @returns whether that has the label
 */
function raise(used: u32, earlier: u32, column: u32, nearness: f32): bool {
  const first = labelAddress(column);
  const second = first + slotOffset(SLOTS);
  const at = slotOffset(earlier);
  if ((load<u32>(first + at) | load<u32>(second + at)) == 0) return false;
  const low = i32x4.splat(<i32>load<u32>(first + at));
  const high = i32x4.splat(<i32>load<u32>(second + at));
  const value = f32x4.splat(nearness);
  for (let i: usize = 0, end = slotOffset(used); i < end; i += 16) {
    const same = v128.and(i32x4.eq(v128.load(first + i), low), i32x4.eq(v128.load(second + i), high));
    v128.store(KEYS + i, v128.bitselect(value, v128.load(KEYS + i), same));
  }
  return true;
}

/** Label columns of the four levels, as parameters of an operation. */
@unmanaged
class LevelColumns {
  /** Label column of the host · control thread · none, published with its program. */
  host: f32;
  /** Label column of the rack · control thread · none, published with its program. */
  rack: f32;
  /** Label column of the zone · control thread · none, published with its program. */
  zone: f32;
  /** Label column of the region · control thread · none, published with its program. */
  region: f32;
}

/**
 * Fills KEYS with the nearness of every endpoint to the earlier pick; 0 = none.
 * @returns false when there is no earlier pick, or nothing is known about where it is
 */
function nearnessKeys(used: u32, columns: LevelColumns): bool {
  memory.fill(KEYS, 0, slotOffset(used));
  const earlier = request().earlier;
  if (earlier == 0 || earlier > used) return false;
  // From far to near, so that the nearest level stays.
  let known = raise(used, earlier - 1, <u32>columns.region, NEAR_REGION);
  known = raise(used, earlier - 1, <u32>columns.zone, NEAR_ZONE) || known;
  known = raise(used, earlier - 1, <u32>columns.rack, NEAR_RACK) || known;
  return raise(used, earlier - 1, <u32>columns.host, NEAR_HOST) || known;
}

/**
 * Marks in KEPT the endpoints at least as near as level 1 host … 4 region.
 * @returns false without a reference endpoint
 */
export function keepNear(op: Operation, used: u32): bool {
  if (!nearnessKeys(used, changetype<LevelColumns>(op.parameters(1)))) return false;
  const level = <u32>op.p0;
  const least = f32x4.splat(level == 1 ? NEAR_HOST : level == 2 ? NEAR_RACK : level == 3 ? NEAR_ZONE : NEAR_REGION);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    v128.store(KEPT + at, f32x4.ge(v128.load(KEYS + at), least));
  }
  return true;
}

/** Host 1, rack 0.2, zone 0.05, region 0.02, else 0; 0 for all without an earlier pick. */
export function scoreNear(op: Operation, used: u32): void {
  nearnessKeys(used, changetype<LevelColumns>(op.parameters(0)));
  addKeys(used);
}
