// Silence: an endpoint whose requests in flight get no byte for several times what they should take gets no new ones.
//
// Owns: the column SILENT, under the commit lock. The control thread judges (src/pool/silence/), from the hearings of
// the requests in flight, and writes its judgement here. A silent endpoint is ejected as a failing one is, so that
// never more than half of the pool is out; where that bound keeps it in, SILENT alone says so. It comes back by output
// alone, of a probe or of a request that it had already: the head of an answer is no sign of the engine.

import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import {
  COLUMN_EJECTED_AT,
  COLUMN_EJECTED_UNTIL,
  COLUMN_EJECTION,
  COLUMN_GENERATION,
  COLUMN_HEARD,
  COLUMN_SILENT,
  COLUMN_STATE,
  STATE_LIVE,
} from '../endpoints';
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import { OUTPUT, REQUESTS, SLOTS } from '../memory';
import { poolWords } from '../pool-words';
import { isSlot, isTime } from '../preconditions';
import { ejectOne, endProbe, noteSuccess } from './ejection';
import { EXPECTS_NOTHING, hearingAt } from './hearing';
import { ENTRY_PROBE, entryAt, featuresOf, isCharged, LedgerEntry, ledgerTop } from './ledger-entries';

const SHORT: u32 = 20;

export const SILENCE_BUSY: u32 = 0; // lock not had: call again
export const SILENCE_OUT: u32 = 1; // the endpoint is out
export const SILENCE_IN: u32 = 2; // it is not: the bound, ejection is off, or the slot has another endpoint

/** A request in flight as `hearingNext` hands it out, in the OUTPUT area of the caller. */
@unmanaged
class HeardRequest {
  /** Milliseconds of the pool clock at the charge · its thread · none. */
  charged: f64;
  /** Milliseconds of the pool clock at its last output, 0 = none · its thread · none. */
  heard: f64;
  /** Endpoint slot · its thread · none. */
  slot: u32;
  /** EXPECTS_* · its thread · none. */
  expects: u32;
  /** Most output tokens that the request allows, 0 = unknown · its thread · none. */
  limit: u32;
  /** Prompt tokens, 0 = unknown · its thread · none. */
  prompt: u32;
  /** Uncached prompt tokens · its thread · none. */
  uncached: u32;
  /** Uncached tokens without a first output before it, on its endpoint at the decision · its thread · none. */
  ahead: u32;
  /** 1 = the request probes its endpoint · its thread · none. */
  probe: u32;
}

export const HEARD_REQUEST_HEARD: usize = offsetof<HeardRequest>('heard');
export const HEARD_REQUEST_SLOT: usize = offsetof<HeardRequest>('slot');
export const HEARD_REQUEST_EXPECTS: usize = offsetof<HeardRequest>('expects');
export const HEARD_REQUEST_LIMIT: usize = offsetof<HeardRequest>('limit');
export const HEARD_REQUEST_PROMPT: usize = offsetof<HeardRequest>('prompt');
export const HEARD_REQUEST_UNCACHED: usize = offsetof<HeardRequest>('uncached');
export const HEARD_REQUEST_AHEAD: usize = offsetof<HeardRequest>('ahead');
export const HEARD_REQUEST_PROBE: usize = offsetof<HeardRequest>('probe');

/**
 * Copies the next request in flight that is evidence, from entry `from` on, to the OUTPUT area of this thread. Reads
 * without a lock.
 * @returns its entry + 1, 0 = there is none
 */
export function hearingNext(from: u32): u32 {
  if (ASSERTIONS) assert(from <= REQUESTS, 'the entry is one of the ledger, or the end of them');
  const copy = changetype<HeardRequest>(OUTPUT);
  const top = ledgerTop();
  for (let i = from; i < top; i++) {
    const entry = entryAt(i);
    if (!isCharged(entry)) continue;
    const hearing = hearingAt(i);
    const generation = entry.generation;
    if (hearing.expects == EXPECTS_NOTHING) continue;
    copy.charged = entry.time;
    copy.heard = hearing.heard;
    copy.slot = entry.slot;
    copy.expects = hearing.expects;
    copy.limit = hearing.limit;
    copy.prompt = featuresOf(entry).prompt;
    copy.uncached = featuresOf(entry).uncached;
    copy.ahead = featuresOf(entry).prefillAhead;
    copy.probe = u32((entry.flags & ENTRY_PROBE) != 0);
    const same = isCharged(entry) && entry.generation == generation;
    if (same && column.u32(COLUMN_GENERATION, copy.slot) == entry.slotGeneration) {
      if (ASSERTIONS) assert(isSlot(copy.slot), 'a charged entry is of a slot of the pool');
      return i + 1;
    }
  }
  return 0;
}

/** Forgets the silence of a slot that changes hands or drains. Commit lock held. */
export function silenceForget(slot: u32): void {
  column.setU32(COLUMN_SILENT, slot, 0);
  column.setF64(COLUMN_HEARD, slot, 0);
}

/** Judges the endpoint silent. Takes the commit lock. @returns SILENCE_* */
export function endpointSilent(slot: u32, generation: u32, now: f64): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (slot >= SLOTS) return SILENCE_IN;
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return SILENCE_BUSY;
  let out: u32 = 0;
  if (column.u32(COLUMN_GENERATION, slot) == generation && column.u32(COLUMN_STATE, slot) == STATE_LIVE) {
    column.setU32(COLUMN_SILENT, slot, 1);
    if (column.u32(COLUMN_EJECTION, slot) == 0) ejectOne(slot, now);
    out = u32(column.u32(COLUMN_EJECTION, slot) != 0);
  }
  lockRelease(COMMIT_LOCK);
  return out != 0 ? SILENCE_OUT : SILENCE_IN;
}

/**
 * Output came from a silent endpoint: it is back. Takes the commit lock.
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function endpointHeard(slot: u32, generation: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (slot >= SLOTS) return 0;
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  if (column.u32(COLUMN_GENERATION, slot) == generation) {
    column.setU32(COLUMN_SILENT, slot, 0);
    noteSuccess(slot);
    if (ASSERTIONS) assert(column.u32(COLUMN_EJECTION, slot) == 0, 'an endpoint that was heard is not ejected');
  }
  lockRelease(COMMIT_LOCK);
  return 0;
}

function endSilentProbe(slot: u32, generation: u32, entry: LedgerEntry): void {
  if (!isCharged(entry) || entry.slot != slot || entry.slotGeneration != generation) return;
  // Its release must not end the probe after it.
  entry.flags = entry.flags & ~ENTRY_PROBE;
  endProbe(slot);
}

/**
 * Notes the probe of a silent endpoint: the next one waits until `until`, however this one ends. Takes the commit lock.
 * @param over entry + 1 of a probe that got no byte for too long and counts as ended; 0 = it may still get a byte
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function silenceProbed(slot: u32, generation: u32, over: u32, until: f64): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(over <= REQUESTS, 'the ticket of the probe is none or names an entry');
  if (ASSERTIONS) assert(until >= 0, 'the time is one of the pool clock');
  if (slot >= SLOTS) return 0;
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  if (column.u32(COLUMN_GENERATION, slot) == generation && column.u32(COLUMN_EJECTION, slot) == 2) {
    column.setF64(COLUMN_EJECTED_UNTIL, slot, until);
    column.setU32(COLUMN_EJECTED_AT, slot, poolWords().decisions);
    if (over != 0) endSilentProbe(slot, generation, entryAt(over - 1));
    if (ASSERTIONS) assert(column.u32(COLUMN_EJECTION, slot) != 0, 'a probe that goes on keeps its endpoint out');
  }
  lockRelease(COMMIT_LOCK);
  return 0;
}
