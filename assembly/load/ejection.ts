// Ejection of failing endpoints: out for a growing time after consecutive upstream failures, back by one probe.
//
// Owns: the columns EJECTION, FAILURES, EJECTIONS and EJECTED_UNTIL and the pool word POOL_EJECTED, all under the commit
// lock. States of a slot: 0 in → 1 out (for base · 2^n, at most the longest) → 2 a probe is under way → 0 or 1.
import { COLUMN_EJECTED_UNTIL, COLUMN_EJECTION, COLUMN_EJECTIONS, COLUMN_FAILURES, cell, wideCell } from '../endpoints';
import { HEADER, HEADER_POOL, SLOTS } from '../memory';
import { POOL_EJECTED, POOL_EJECTION_OFF, POOL_LIVE } from '../pool-words';

/** Failures in a row until an endpoint is out. Two may be a coincidence of a rolling restart. */
export const EJECTION_FAILURES: u32 = 3;
/** First time out, doubled with each ejection that follows without a success. Milliseconds. */
export const EJECTION_BASE_MS: f64 = 1000;
export const EJECTION_LONGEST_MS: f64 = 60000;

function word(offset: usize): usize {
  return HEADER + HEADER_POOL + offset;
}

function eject(slot: u32, now: f64): void {
  const times = load<u32>(cell(COLUMN_EJECTIONS, slot));
  const out = min(EJECTION_BASE_MS * <f64>(1 << min(times, 16)), EJECTION_LONGEST_MS);
  store<u32>(cell(COLUMN_EJECTIONS, slot), times + 1);
  store<f64>(wideCell(COLUMN_EJECTED_UNTIL, slot), now + out);
  store<u32>(cell(COLUMN_EJECTION, slot), 1);
}

/** The picked endpoint was out and its time is over: this request is its probe. @returns 1 when it is */
export function beginProbe(slot: u32): u32 {
  if (load<u32>(cell(COLUMN_EJECTION, slot)) != 1) return 0;
  store<u32>(cell(COLUMN_EJECTION, slot), 2);
  return 1;
}

/** The probe ended without an answer either way (the client left): another one may follow at once. */
export function endProbe(slot: u32): void {
  if (load<u32>(cell(COLUMN_EJECTION, slot)) == 2) store<u32>(cell(COLUMN_EJECTION, slot), 1);
}

/** The endpoint answered. */
export function noteSuccess(slot: u32): void {
  store<u32>(cell(COLUMN_FAILURES, slot), 0);
  if (load<u32>(cell(COLUMN_EJECTION, slot)) != 0) readmit(slot);
  store<u32>(cell(COLUMN_EJECTIONS, slot), 0);
}

/** The endpoint failed: a 5xx, a reset, a refused connection. @returns 1 when this ejected it */
export function noteFailure(slot: u32, now: f64): u32 {
  const failures = load<u32>(cell(COLUMN_FAILURES, slot)) + 1;
  store<u32>(cell(COLUMN_FAILURES, slot), failures);
  const state = load<u32>(cell(COLUMN_EJECTION, slot));
  if (state == 2) {
    eject(slot, now);
    return 0;
  }
  if (state == 1 || failures < EJECTION_FAILURES || load<u32>(word(POOL_EJECTION_OFF)) != 0) return 0;
  // Never more than half of the pool is out.
  const ejected = load<u32>(word(POOL_EJECTED));
  if ((ejected + 1) * 2 > load<u32>(word(POOL_LIVE))) return 0;
  store<u32>(word(POOL_EJECTED), ejected + 1);
  eject(slot, now);
  return 1;
}

/** Take the endpoint back. */
export function readmit(slot: u32): void {
  if (load<u32>(cell(COLUMN_EJECTION, slot)) == 0) return;
  store<u32>(cell(COLUMN_EJECTION, slot), 0);
  store<u32>(word(POOL_EJECTED), load<u32>(word(POOL_EJECTED)) - 1);
}

/** Count the ejected again and forget probes; the caller marks the live probes afterwards. Commit lock held (seized). */
export function ejectionRepair(): void {
  let ejected: u32 = 0;
  for (let slot: u32 = 0; slot < SLOTS; slot++) {
    endProbe(slot);
    ejected += u32(load<u32>(cell(COLUMN_EJECTION, slot)) != 0);
  }
  store<u32>(word(POOL_EJECTED), ejected);
}
