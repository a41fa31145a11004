// Writes of the control thread: endpoints added and removed, their signals, and the repair after a thread's death.
//
// Owns: the columns STATE and GENERATION and the pool words slotsUsed and live (control thread only); writes the signal
// columns under the commit lock. Nothing here is called by a shard.

import { ASSERTIONS } from '../assertions';
import { deathOf } from '../columns/candidates';
import * as column from '../columns/column';
import {
  ATTRIBUTE_COLUMNS,
  COLUMN_ADAPTERS_MAX,
  COLUMN_ADAPTERS_RUNNING,
  COLUMN_ADAPTERS_WAITING,
  COLUMN_ATTRIBUTES,
  COLUMN_BLOCK_COUNT,
  COLUMN_BLOCK_TOKENS,
  COLUMN_COST_PREFILL,
  COLUMN_EJECTED_AT,
  COLUMN_EJECTION,
  COLUMN_FAILURES,
  COLUMN_GENERATION,
  COLUMN_HIT_RELIABILITY,
  COLUMN_INFLIGHT,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_PREFILL_RATE,
  COLUMN_PREFILL_RATE_PEAK,
  COLUMN_PREFILL_RATE_TIME,
  COLUMN_PREFIX_BLOCKS,
  COLUMN_REFUSED,
  COLUMN_RUNNING,
  COLUMN_SIGNAL_TIME,
  COLUMN_SPEED,
  COLUMN_STATE,
  COLUMN_UNTOLD,
  COLUMN_WAITING,
  cell,
  DEATH_NONE,
  STATE_DRAINING,
} from '../endpoints';
import { gateOpened, gateRepair, gateScraped, gateSlotCleared, gateThreadDied } from '../gate/capacity-gate';
import { adaptersForget, gaugeOf } from '../load/adapters';
import { activeRepairAdd, activeRepairBegin } from '../load/blocks';
import { coefficientsForget } from '../load/coefficients';
import { coldForget, coldRepair } from '../load/cold-prompts';
import { deathForget, deathRepair } from '../load/dead';
import { beginProbe, ejectionRepair, readmit } from '../load/ejection';
import { clearLoad, ledgerRepair } from '../load/ledger';
import { ENTRY_PROBE, entryAt, isCharged, setHandle } from '../load/ledger-entries';
import { clearPeers } from '../load/peers';
import { adapterShown } from '../load/shown-adapters';
import { silenceForget } from '../load/silence';
import { warmthForget } from '../load/warmth';
import { journalEachChange, journalSignalsChanged } from '../load-journal';
import { COMMIT_LOCK, INDEX_LOCK, lockAcquire, lockOwner, lockRelease, lockSeize } from '../lock';
import { ADAPTERS_PER_ENDPOINT, REQUESTS, SLOTS, THREAD } from '../memory';
import { poolWords } from '../pool-words';
import { isSlot, isThread, isTime, isTruth } from '../preconditions';
import { prefixInitialise } from '../prefix/index';
import { LOSS_UNCONFIRMED } from '../prefix/losses';
import { prefixRepairRest } from '../prefix/repair';
import { prefixRemoveEndpointLocked } from '../prefix/store';
import { releaseThread } from './charge-steps';
import { coefficientsInitialise } from './cost-coefficients';
import { heldBackForget } from './held-back';
import { clearSlots, noteSlots } from './slots';

/** The control thread must not stop for long: it is the one that repairs. */
const SHORT: u32 = 20;

/** Prepares every structure of a fresh memory; called once, by the creator. */
export function initialise(): void {
  prefixInitialise();
  coefficientsInitialise();
}

function updateUsed(): void {
  let used: u32 = 0;
  let live: u32 = 0;
  for (let slot: u32 = 0; slot < SLOTS; slot++) {
    const state = column.u32(COLUMN_STATE, slot);
    if (state != 0) used = slot + 1;
    if (state == 1) live++;
  }
  poolWords().live = live;
  poolWords().slotsUsed = used;
}

/**
 * Gives a free slot to an endpoint: nothing known, nothing charged. It is not picked before endpointState says live.
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function endpointOpen(slot: u32, generation: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(generation != 0, 'a slot in use has a generation');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  column.setU32(COLUMN_GENERATION, slot, generation);
  clearLoad(slot);
  clearPeers(slot);
  clearSignals(slot);
  gateSlotCleared(slot);
  silenceForget(slot);
  coldForget(slot);
  adaptersForget(slot);
  coefficientsForget(slot);
  warmthForget(slot);
  heldBackForget(slot);
  if (ASSERTIONS) assert(column.u32(COLUMN_INFLIGHT, slot) == 0, 'nothing is in flight on a slot that is given away');
  lockRelease(COMMIT_LOCK);
  return 0;
}

function clearSignals(slot: u32): void {
  column.setU32(COLUMN_KNOWN, slot, 0);
  column.setF32(COLUMN_WAITING, slot, 0);
  column.setF32(COLUMN_RUNNING, slot, 0);
  column.setF32(COLUMN_KV_USAGE, slot, 0);
  clearSlots(slot);
  column.setU32(COLUMN_BLOCK_TOKENS, slot, 0);
  column.setU32(COLUMN_BLOCK_COUNT, slot, 0);
  column.setU32(COLUMN_ADAPTERS_RUNNING, slot, 0);
  column.setU32(COLUMN_ADAPTERS_WAITING, slot, 0);
  column.setU32(COLUMN_ADAPTERS_MAX, slot, 0);
  column.setU32(COLUMN_FAILURES, slot, 0);
  column.setU32(COLUMN_EJECTED_AT, slot, 0);
  column.setF64(COLUMN_SIGNAL_TIME, slot, 0);
  column.setF32(COLUMN_SPEED, slot, 0);
  column.setF32(COLUMN_HIT_RELIABILITY, slot, 0);
  column.setF32(COLUMN_COST_PREFILL, slot, 0);
  column.setF32(COLUMN_PREFILL_RATE, slot, 0);
  column.setF32(COLUMN_PREFILL_RATE_PEAK, slot, 0);
  column.setF64(COLUMN_PREFILL_RATE_TIME, slot, 0);
  column.setU32(COLUMN_UNTOLD, slot, 0);
  column.setU32(COLUMN_REFUSED, slot, 0);
  clearAttributes(slot);
}

function clearAttributes(slot: u32): void {
  for (let i: u32 = 0; i < ATTRIBUTE_COLUMNS; i++) column.setF32(COLUMN_ATTRIBUTES + i, slot, NaN);
}

/** Lets an endpoint be picked (1), keeps it from new picks (2), or frees its slot (0). @returns as endpointOpen */
export function endpointState(slot: u32, state: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(state <= STATE_DRAINING, 'the state is one of endpoints');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  if (state != 1) {
    readmit(slot);
    deathForget(slot);
    silenceForget(slot);
  }
  column.setU32(COLUMN_STATE, slot, state);
  poolWords().stateChanges += 1;
  updateUsed();
  if (ASSERTIONS) assert(state == 0 || slot < poolWords().slotsUsed, 'a slot in use is one that decisions look at');
  if (ASSERTIONS)
    assert(
      state == 1 || (column.u32(COLUMN_EJECTION, slot) == 0 && deathOf(slot) == DEATH_NONE),
      'an endpoint that takes no requests is neither ejected nor dead',
    );
  lockRelease(COMMIT_LOCK);
  gateOpened();
  return 0;
}

/** Makes what is sent to an endpoint count as held by it (1), because its engine sends no events, or no longer (0). */
export function endpointUntold(slot: u32, untold: u32): void {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(isTruth(untold), '`untold` is 0 or 1');
  column.setU32(COLUMN_UNTOLD, slot, untold);
}

/** Writes how many of the waiting requests of an endpoint are those that its engine refused of late. */
export function endpointRefused(slot: u32, requests: u32): void {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  column.setU32(COLUMN_REFUSED, slot, requests);
}

/** Forgets what a removed endpoint held. @param lost LOSS_* cause @returns as endpointOpen */
export function endpointForget(slot: u32, lost: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(lost <= LOSS_UNCONFIRMED, 'the reason of the loss is a known one');
  if (!lockAcquire(INDEX_LOCK, SHORT)) return 1;
  prefixRemoveEndpointLocked(slot, lost);
  if (ASSERTIONS) assert(column.u32(COLUMN_PREFIX_BLOCKS, slot) == 0, 'an endpoint that is forgotten holds no block');
  lockRelease(INDEX_LOCK);
  return 0;
}

/**
 * Writes the signals of one scrape. `known` says which values are known (SIGNAL_* bits).
 * @returns as endpointOpen
 */
export function endpointSignals(
  slot: u32,
  known: u32,
  waiting: f32,
  running: f32,
  kvUsage: f32,
  blockTokens: u32,
  blockCount: u32,
  now: f64,
): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(known <= 15, 'the signals are known ones');
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  journalEachChange();
  column.setU32(COLUMN_KNOWN, slot, known);
  column.setF32(COLUMN_WAITING, slot, waiting);
  column.setF32(COLUMN_RUNNING, slot, running);
  column.setF32(COLUMN_KV_USAGE, slot, kvUsage);
  column.setU32(COLUMN_BLOCK_TOKENS, slot, blockTokens);
  column.setU32(COLUMN_BLOCK_COUNT, slot, blockCount);
  column.setF64(COLUMN_SIGNAL_TIME, slot, now);
  noteSlots(slot, known, waiting, running);
  journalSignalsChanged(slot);
  gateScraped(slot);
  lockRelease(COMMIT_LOCK);
  return 0;
}

/**
 * Writes how many adapters an engine runs, has waiting, and can hold; their hashes stand in REGION_ADAPTERS already.
 */
export function endpointAdapters(slot: u32, running: u32, waiting: u32, adaptersMax: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(running + waiting <= ADAPTERS_PER_ENDPOINT, 'the adapters fit into the row of the endpoint');
  for (let i: u32 = 0; i < running + waiting; i++) adapterShown(gaugeOf(slot) + ((<usize>i) << 3));
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  // No judgement reads them.
  journalEachChange();
  column.setU32(COLUMN_ADAPTERS_RUNNING, slot, running);
  column.setU32(COLUMN_ADAPTERS_WAITING, slot, waiting);
  column.setU32(COLUMN_ADAPTERS_MAX, slot, adaptersMax);
  lockRelease(COMMIT_LOCK);
  return 0;
}

/** Writes the value of a named attribute; NaN = unknown. @returns as endpointOpen */
export function endpointAttribute(slot: u32, attribute: u32, value: f32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (attribute >= ATTRIBUTE_COLUMNS) return 0;
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  // No judgement reads it.
  journalEachChange();
  column.setF32(COLUMN_ATTRIBUTES + attribute, slot, value);
  lockRelease(COMMIT_LOCK);
  return 0;
}

/** Makes the signals unknown: they are too old. @returns as endpointOpen */
export function endpointStale(slot: u32): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  journalEachChange();
  column.setU32(COLUMN_KNOWN, slot, 0);
  clearAttributes(slot);
  journalSignalsChanged(slot);
  lockRelease(COMMIT_LOCK);
  return 0;
}

/** Rebuilds what the index lock guards from segments and ledger, without the dead thread's requests. Lock seized. */
function repairIndex(dead: u32): void {
  activeRepairBegin();
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const entry = entryAt(i);
    const handle = entry.handle;
    if (!isCharged(entry) || handle == 0) continue;
    const kept = entry.thread == dead ? 0 : activeRepairAdd(entry.slot, handle, entry.blocks);
    setHandle(entry, kept, kept == 0 ? 0 : entry.blocks);
  }
  prefixRepairRest();
}

/**
 * Cleans up after thread `dead`: repairs what it left half done inside a lock, frees the lock, releases its charges.
 * The caller is sure that the thread runs no more.
 * @returns number of charges released
 */
export function reclaimThread(dead: u32): u32 {
  if (ASSERTIONS) assert(isThread(dead) && dead != THREAD, 'a dead thread is another one of the pool');
  const commit = COMMIT_LOCK;
  const index = INDEX_LOCK;
  if (lockSeize(commit, dead)) {
    ledgerRepair();
    gateRepair();
    ejectionRepair();
    deathRepair();
    coldRepair();
    for (let i: u32 = 0; i < REQUESTS; i++) {
      const entry = entryAt(i);
      if (isCharged(entry) && (entry.flags & ENTRY_PROBE) != 0) beginProbe(entry.slot);
    }
    lockRelease(commit);
  }
  if (lockSeize(index, dead)) {
    repairIndex(dead);
    lockRelease(index);
  }
  const released = releaseThread(dead);
  gateThreadDied(dead);
  poolWords().epoch += 1;
  if (ASSERTIONS)
    assert(lockOwner(commit) != dead + 1 && lockOwner(index) != dead + 1, 'the dead thread owns no lock any more');
  return released;
}
