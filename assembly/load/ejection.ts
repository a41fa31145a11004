// Ejection of failing endpoints: out after two upstream failures in a row, back by one probe.
//
// Owns: the columns EJECTION, FAILURES, EJECTED_AT and EJECTED_UNTIL and the pool words ejected and decisions, all
// under the commit lock. States of a slot: 0 in → 1 out → 2 a probe is under way → 0 or 1.
//
// A probe is a client's request. It is due PROBE_PAUSE_MS after the last failure, and only after the pool has decided
// PROBE_SHARE requests meanwhile: an endpoint that never recovers spoils at most that share of a slow pool's requests.
// An endpoint that refuses connections is not probed; the control thread finds out when it takes them again
// (src/picker/control/return-watch.ts), and then the probe is due at once. admitted() in columns/candidates.ts reads
// it.

import { ASSERTIONS } from '../assertions';
import { PROBE_SHARE } from '../columns/candidates';
import * as column from '../columns/column';
import {
  COLUMN_EJECTED_AT,
  COLUMN_EJECTED_UNTIL,
  COLUMN_EJECTION,
  COLUMN_FAILURES,
  COLUMN_GENERATION,
  COLUMN_SILENT,
} from '../endpoints';
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import { SLOTS } from '../memory';
import { poolWords } from '../pool-words';
import { isSlot, isTime, isTruth } from '../preconditions';

/** Failures in a row until an endpoint is out. */
export const EJECTION_FAILURES: u32 = 2;
/**
 * Pause before a probe, in milliseconds: a request that comes within a second of the endpoint's return finds it due.
 */
export const PROBE_PAUSE_MS: f64 = 800;

function eject(slot: u32, now: f64): void {
  column.setF64(COLUMN_EJECTED_UNTIL, slot, now + PROBE_PAUSE_MS);
  column.setU32(COLUMN_EJECTED_AT, slot, poolWords().decisions);
  column.setU32(COLUMN_EJECTION, slot, 1);
}

/**
 * Notes what the control thread found at an ejected endpoint. Takes the commit lock.
 * @param reachable 1 = the endpoint takes connections again, so its probe is due; 0 = it does not, so its probe waits
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function endpointReachable(slot: u32, generation: u32, reachable: u32, now: f64): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(isTruth(reachable), '`reachable` is 0 or 1');
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (slot >= SLOTS) return 0;
  if (!lockAcquire(COMMIT_LOCK, 20)) return 1;
  if (column.u32(COLUMN_GENERATION, slot) == generation && column.u32(COLUMN_EJECTION, slot) != 0) {
    const decisions = poolWords().decisions;
    column.setF64(COLUMN_EJECTED_UNTIL, slot, reachable != 0 ? now : now + PROBE_PAUSE_MS);
    column.setU32(COLUMN_EJECTED_AT, slot, reachable != 0 ? decisions - PROBE_SHARE : decisions);
  }
  lockRelease(COMMIT_LOCK);
  return 0;
}

/**
 * Applies an ejection, or the end of one, that another replica reports. Takes the commit lock.
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function peerEjection(slot: u32, generation: u32, out: u32, now: f64): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(isTruth(out), '`out` is 0 or 1');
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (slot >= SLOTS) return 0;
  if (!lockAcquire(COMMIT_LOCK, 20)) return 1;
  if (column.u32(COLUMN_GENERATION, slot) == generation) {
    if (out == 0) noteSuccess(slot);
    else if (column.u32(COLUMN_EJECTION, slot) == 0) ejectOne(slot, now);
    if (ASSERTIONS)
      assert(
        out != 0 || column.u32(COLUMN_EJECTION, slot) == 0 || column.u32(COLUMN_SILENT, slot) != 0,
        'an endpoint that answers a replica is out for its silence alone',
      );
  }
  lockRelease(COMMIT_LOCK);
  return 0;
}

/** Makes the request a probe when the picked endpoint was out and its time is over. @returns 1 when it is */
export function beginProbe(slot: u32): u32 {
  if (column.u32(COLUMN_EJECTION, slot) != 1) return 0;
  column.setU32(COLUMN_EJECTION, slot, 2);
  return 1;
}

/** Ends a probe without an answer either way (the client left): another one may follow at once. */
export function endProbe(slot: u32): void {
  if (column.u32(COLUMN_EJECTION, slot) == 2) column.setU32(COLUMN_EJECTION, slot, 1);
}

/** Notes an answer of the endpoint. */
export function noteSuccess(slot: u32): void {
  column.setU32(COLUMN_FAILURES, slot, 0);
  // The head of an answer says nothing about a silent endpoint: servers send it before the engine has begun.
  if (column.u32(COLUMN_EJECTION, slot) != 0 && column.u32(COLUMN_SILENT, slot) == 0) readmit(slot);
}

/** The endpoint failed: a 5xx, a reset, a refused connection. @returns 1 when this ejected it */
export function noteFailure(slot: u32, now: f64): u32 {
  const failures = column.u32(COLUMN_FAILURES, slot) + 1;
  column.setU32(COLUMN_FAILURES, slot, failures);
  const state = column.u32(COLUMN_EJECTION, slot);
  if (state == 2) {
    eject(slot, now);
    return 0;
  }
  if (state == 1 || failures < EJECTION_FAILURES) return 0;
  return ejectOne(slot, now);
}

/** Ejects the endpoint unless half of the pool is ejected already. @returns 1 when it is ejected now */
export function ejectOne(slot: u32, now: f64): u32 {
  if (poolWords().ejectionOff != 0) return 0;
  // Never more than half of the endpoints that take connections is out.
  const ejected = poolWords().ejected;
  if ((ejected + 1) * 2 > poolWords().live - poolWords().dead) return 0;
  poolWords().ejected = ejected + 1;
  eject(slot, now);
  if (ASSERTIONS) assert(poolWords().ejected <= poolWords().live / 2, 'at most half of the endpoints are ejected');
  return 1;
}

/**
 * Ejects an endpoint that was dead and takes connections again, with its probe due, unless half of the pool is ejected.
 * Commit lock held.
 */
export function ejectForProbe(slot: u32, now: f64): void {
  if (column.u32(COLUMN_EJECTION, slot) != 0 || ejectOne(slot, now) == 0) return;
  column.setF64(COLUMN_EJECTED_UNTIL, slot, now);
  column.setU32(COLUMN_EJECTED_AT, slot, poolWords().decisions - PROBE_SHARE);
}

/** Takes the endpoint back. */
export function readmit(slot: u32): void {
  if (column.u32(COLUMN_EJECTION, slot) == 0) return;
  if (ASSERTIONS) assert(poolWords().ejected != 0, 'an endpoint that comes back is counted as ejected');
  column.setU32(COLUMN_EJECTION, slot, 0);
  poolWords().ejected -= 1;
}

/**
 * Counts the ejected again and forgets probes; the caller marks the live probes afterwards. Commit lock held (seized).
 */
export function ejectionRepair(): void {
  let ejected: u32 = 0;
  for (let slot: u32 = 0; slot < SLOTS; slot++) {
    endProbe(slot);
    ejected += u32(column.u32(COLUMN_EJECTION, slot) != 0);
  }
  poolWords().ejected = ejected;
}
