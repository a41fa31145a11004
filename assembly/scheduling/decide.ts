// One decision: match without a lock, then filter, score, pick and charge in one step under the commit lock, then store
// what the picked endpoint will hold under the index lock.
//
// Owns: the thread's own columns and answer, and its decision log (written by its thread only). The two locks are taken
// one after the other, never together.

import { ASSERTIONS } from '../assertions';
import { slotsUsed } from '../columns/candidates';
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { blockTokens, promptTokens } from '../columns/values';
import { COLUMN_ACTIVE_BLOCKS, COLUMN_UNTOLD } from '../endpoints';
import { gateCharged } from '../gate/capacity-gate';
import { sessionsOn } from '../gate/sessions-layout';
import { seekSession } from '../gate/sessions-sought';
import { turnBegins } from '../gate/sessions-turns';
import { activeAddLocked, activeOverlapBegin, activeOverlapOf } from '../load/blocks';
import { changeNote } from '../load/changes';
import { tried } from '../load/dead';
import { beginProbe, endProbe } from '../load/ejection';
import { FEATURE_TAG_SHIFT, featuresNoteBest, featuresNoteWouldPick } from '../load/features';
import { charge } from '../load/ledger';
import { entryAt, entryOf, featuresOf, LedgerEntry, setHandle, sharesBelow } from '../load/ledger-entries';
import { noteWantedTpot } from '../load/wanted-times';
import { warmthNote } from '../load/warmth';
import { journalEachChange } from '../load-journal';
import { COMMIT_LOCK, INDEX_LOCK, lockAcquire, lockHeld, lockRelease, lockSleepsMax } from '../lock';
import { CANDIDATES, CHANGES, HASHES, MATCH, OVERLAP, SCORE, SLOTS } from '../memory';
import { PROFILES_MAX } from '../pool-words';
import { fitsChain, isSlot, isTicket, isTruth } from '../preconditions';
import { noteBeginning } from '../prefix/losses';
import { forgetPlaces, placesOf, prefixMatch, weighMatches } from '../prefix/match';
import { prefixInsertLocked } from '../prefix/store';
import { tailInsertLocked, tailMatch } from '../prefix/tails';
import {
  answer,
  DECIDE_BLIND,
  DECIDE_BUSY,
  DECIDE_FURTHER,
  DECIDE_GIVEN,
  DECIDE_NO_PROGRAM,
  DECIDE_TAIL,
  DECIDE_UNCHARGED,
  DECIDE_UNSTORED,
  DECIDE_WAITS,
  DECIDED,
  pickedSlot,
  request,
  wantedTimes,
} from '../request-area';
import { coefficients } from './cost-coefficients';
import { logColumns } from './decision-columns';
import { logBegin, logDecision } from './decision-log';
import { gateBegin, gateWait } from './gate-pass';
import { noteSent } from './history-scorers';
import { confirmed, judged, judgementBegin, runLocked } from './judgement';
import { isPressed } from './memory-price';
import { clearPrediction } from './predictions';
import {
  activeProgram,
  PROGRAM_INSERTS,
  PROGRAM_NEEDS_MATCH,
  PROGRAM_NEEDS_OVERLAP,
  PROGRAM_NEEDS_PRESSED_OVERLAP,
  PROGRAM_TOLD,
  PROGRAM_WHOLE_BLOCKS,
  Program,
} from './program';
import { captureState, isRecorded } from './recorded-state';
import { bestMatchNoted, reachableNoted } from './score-column';
import { shadowBegin, shadowRun } from './shadow';
import { cachedTokens, creditWholeBlocks } from './whole-blocks';

/** Needs that MATCH and OVERLAP meet for the request decided last on this thread. */
let met: u32 = 0;

/** Slots from which on a judgement that does not hold is made again without the lock, and how often. */
const LARGE_POOL: u32 = 512;
const LARGE_POOL_TRIES: u32 = 3;

const NEEDS_OVERLAP: u32 = PROGRAM_NEEDS_OVERLAP | PROGRAM_NEEDS_PRESSED_OVERLAP;
const NEEDS_COLUMNS: u32 = PROGRAM_NEEDS_MATCH | NEEDS_OVERLAP;

/**
 * Blocks held and blocks active, per endpoint. All profiles of a request see the same columns: what its own earlier
 * picks will hold is nothing that an endpoint holds already.
 */
function matchPrompt(needs: u32, blocks: u32, tail: bool, used: u32, further: bool): void {
  if (further && (needs & NEEDS_COLUMNS & ~met) == 0) return;
  met = needs & NEEDS_COLUMNS;
  if ((needs & PROGRAM_NEEDS_MATCH) != 0 && (blocks != 0 || tail)) {
    if (blocks != 0) prefixMatch(blocks);
    else memory.fill(MATCH, 0, slotOffset(used));
    if (tail) tailMatch(HASHES + ((<usize>blocks) << 3), blocks);
    if ((needs & PROGRAM_WHOLE_BLOCKS) != 0) creditWholeBlocks(used, blocks, (needs & PROGRAM_TOLD) != 0);
    if (blocks != 0) weighMatches(used);
    else forgetPlaces();
  } else {
    forgetPlaces();
    memory.fill(MATCH, 0, slotOffset(used));
  }
  if ((needs & NEEDS_OVERLAP) == 0) return;
  memory.fill(OVERLAP, 0, slotOffset(used));
  if (blocks == 0) return;
  if ((needs & PROGRAM_NEEDS_OVERLAP) == 0) {
    if (!isPressed(used, promptTokens(), blockTokens(), max<f32>(coefficients().output, 1))) return;
  }
  if (!lockAcquire(INDEX_LOCK, lockSleepsMax())) return;
  activeOverlapBegin(blocks);
  // An endpoint holds its active blocks too, so only endpoints with a match can overlap.
  for (let slot: u32 = 0; slot < used; slot++) {
    if (load<u32>(MATCH + slotOffset(slot)) == 0 || column.u32(COLUMN_ACTIVE_BLOCKS, slot) == 0) continue;
    store<u32>(OVERLAP + slotOffset(slot), activeOverlapOf(slot));
  }
  lockRelease(INDEX_LOCK);
}

/** Fills MATCH with the blocks of a prompt that each endpoint holds, as the next decision will. */
export function matchAhead(blocks: u32, tail: u32): void {
  if (ASSERTIONS) assert(fitsChain(blocks), 'the blocks are those of one chain');
  if (ASSERTIONS) assert(isTruth(tail), '`tail` is 0 or 1');
  matchPrompt(PROGRAM_NEEDS_MATCH, blocks, tail != 0, slotsUsed(), false);
}

/** Most blocks of the prompt that any candidate holds. */
function bestMatch(used: u32): u32 {
  if (bestMatchNoted != u32.MAX_VALUE) return bestMatchNoted;
  let longest = i32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    longest = i32x4.max_s(longest, v128.and(v128.load(MATCH + at), v128.load(CANDIDATES + at)));
  }
  return <u32>(
    max(
      max(i32x4.extract_lane(longest, 0), i32x4.extract_lane(longest, 1)),
      max(i32x4.extract_lane(longest, 2), i32x4.extract_lane(longest, 3)),
    )
  );
}

/**
 * Takes the commit lock and picks under it, by a judgement made before it where there can be one.
 * @param plain whether the decision leaves nothing but its pick, so that it may be judged
 * @returns a DECIDE_* status; DECIDE_BUSY = the lock was not had in time
 */
function commitPick(program: Program, flags: u32, used: u32, total: u32, plain: bool, shown: bool): u32 {
  judgementBegin();
  let tries: u32 = used < LARGE_POOL ? 1 : LARGE_POOL_TRIES;
  while (true) {
    const early = plain && judged(program, flags, used, total);
    if (!lockAcquire(COMMIT_LOCK, lockSleepsMax())) {
      answer().count = 0;
      return DECIDE_BUSY;
    }
    journalEachChange();
    if (early && confirmed(program, flags, used, total)) {
      gateBegin(flags);
      return DECIDED;
    }
    if (!early || --tries == 0) return runLocked(program, flags, used, total, gateBegin(flags), shown);
    lockRelease(COMMIT_LOCK);
  }
}

/** Charges the first pick. Commit lock held. */
function chargePick(slot: u32, program: Program, used: u32): void {
  const needs = program.needs;
  const block = request().blockTokens;
  const prompt = request().promptTokens;
  const cached = cachedTokens(slot, answer().matched, (needs & PROGRAM_WHOLE_BLOCKS) != 0);
  const uncached = prompt > cached ? prompt - cached : 0;
  const tokens = uncached + request().outputTokens;
  answer().uncachedTokens = tokens;
  const probe = beginProbe(slot);
  tried(slot, request().now);
  const tag = request().profile | (program.tag << FEATURE_TAG_SHIFT);
  const priority = request().priority;
  const now = request().now;
  const ticket = charge(slot, tokens, prompt, uncached, tag, probe, priority, now);
  if (ticket == 0 && probe != 0) endProbe(slot);
  const blind = (request().flags & DECIDE_BLIND) != 0;
  if (reachableNoted != u32.MAX_VALUE && prompt != 0) {
    warmthNote(slot, min(reachableNoted * block, prompt), min(cached, prompt));
  }
  if (ticket != 0) gateCharged(ticket - 1, slot, priority, uncached, prompt, request().blocks, blind, now);
  if (ticket != 0) turnBegins(ticket - 1, slot, uncached, (request().flags & DECIDE_FURTHER) == 0);
  noteWantedTpot(slot, ticket, wantedTimes().tpot);
  noteSent(needs, slot);
  if (ticket != 0) entryAt(ticket - 1).below = sharesBelow(placesOf(slot), request().blocks);
  answer().ticket = ticket;
  answer().ticketGeneration = ticket == 0 ? 0 : entryAt(ticket - 1).generation;
  if (ticket != 0) featuresNoteWouldPick(featuresOf(entryAt(ticket - 1)), answer().wouldPick);
  if (ticket != 0 && (needs & PROGRAM_NEEDS_MATCH) != 0) {
    featuresNoteBest(featuresOf(entryAt(ticket - 1)), min(bestMatch(used) * block, prompt));
  }
}

/** Whether what is sent to the slot counts as held by it. */
function insertsFor(needs: u32, slot: u32): bool {
  return (needs & PROGRAM_INSERTS) != 0 || column.u32(COLUMN_UNTOLD, slot) != 0;
}

/**
 * Accounts the prompt's blocks on the picked endpoint and enters them into the prefix index as held there. Takes the
 * index lock. Notes the prompt for other replicas, if there are any.
 * @param entry ledger entry of the pick, null = it is not charged
 */
function storePrompt(slot: u32, entry: LedgerEntry | null, inserts: bool): void {
  const blocks = request().blocks;
  const tail = (request().flags & DECIDE_TAIL) != 0;
  const fresh = blocks == 0 && !tail ? 0 : storeBlocks(slot, entry, inserts, blocks, tail);
  if (CHANGES != 0) changeNote(slot, inserts ? blocks : 0, fresh, inserts && tail);
}

/** @returns blocks that are new to the slot */
function storeBlocks(slot: u32, entry: LedgerEntry | null, inserts: bool, blocks: u32, tail: bool): u32 {
  let fresh: u32 = 0;
  if (!lockAcquire(INDEX_LOCK, lockSleepsMax())) return fresh;
  if (inserts) {
    if (blocks != 0) fresh = prefixInsertLocked(slot, blocks);
    if (tail) tailInsertLocked(slot, HASHES + ((<usize>blocks) << 3));
  }
  if (blocks != 0) noteBeginning();
  if (entry != null && blocks != 0) setHandle(entry, activeAddLocked(slot, blocks), blocks);
  lockRelease(INDEX_LOCK);
  return fresh;
}

/**
 * Stores what a pick of a DECIDE_UNSTORED decision left out. The prompt of that request is still the one in this
 * thread's REQUEST and HASHES areas.
 */
export function storePick(profile: u32, slot: u32, ticket: u32, generation: u32): void {
  if (ASSERTIONS) assert(profile < PROFILES_MAX, 'the profile is one of the pool');
  if (ASSERTIONS) assert(isTicket(ticket), 'the ticket is none or names an entry of the ledger');
  const program = activeProgram(profile);
  if (program == null || slot >= SLOTS) return;
  storePrompt(slot, entryOf(ticket, generation), insertsFor(program.needs, slot));
}

function clearAnswer(total: u32): void {
  answer().count = 0;
  answer().ticket = 0;
  answer().ticketGeneration = 0;
  answer().matched = 0;
  answer().total = total;
  answer().candidates = 0;
  answer().uncachedTokens = 0;
  answer().wouldPick = 0;
  answer().filter = 0;
  answer().score = 0;
  answer().record = 0;
  answer().shadow = 0;
  clearPrediction();
}

/**
 * Decide the request that stands in this thread's REQUEST area (REQUEST_* fields, hashes in HASHES, subset mask in
 * SUBSET).
 * @returns DECIDED or why not; the ANSWER_* fields say the rest
 */
export function decide(): u32 {
  const flags = request().flags;
  const blocks = request().blocks;
  const tail = (flags & DECIDE_TAIL) != 0;
  const total = blocks + u32(tail);
  clearAnswer(total);
  const shown = logBegin();
  const program = activeProgram(request().profile);
  if (program == null) return DECIDE_NO_PROGRAM;
  const needs = program.needs;
  const used = slotsUsed();
  const shadow = shadowBegin(flags);
  const recorded = isRecorded();
  let columns = needs;
  if (shadow != null) columns |= shadow.needs & NEEDS_OVERLAP;
  if (recorded) columns |= PROGRAM_NEEDS_OVERLAP;
  if ((flags & DECIDE_GIVEN) == 0) matchPrompt(columns, blocks, tail, used, (flags & DECIDE_FURTHER) != 0);
  else forgetPlaces();
  if (sessionsOn()) seekSession(blocks);
  const plain = !shown && !recorded && shadow == null;
  let status = commitPick(program, flags, used, total, plain, shown);
  if (status == DECIDE_BUSY) return status;
  const slot = pickedSlot(0);
  const picked = status == DECIDED && answer().count != 0;
  if (ASSERTIONS) assert(!picked || isSlot(slot), 'the picked slot is one of the pool');
  if (picked) {
    answer().matched = load<u32>(MATCH + slotOffset(slot));
    answer().score = load<f32>(SCORE + slotOffset(slot));
  }
  if (picked) {
    if (shown) logColumns(program, used, true);
    if (recorded) captureState(used);
    if (shadow != null) shadowRun(shadow, flags, used, total);
    if ((flags & DECIDE_UNCHARGED) == 0) chargePick(slot, program, used);
  }
  if (status == DECIDE_WAITS) status = gateWait(used);
  lockRelease(COMMIT_LOCK);
  // A request without an endpoint may be refused, so its columns are kept, also when it waits first.
  if (!picked) logColumns(program, used, false);
  // Before the prompt is stored: the record tells why no endpoint held it.
  logDecision(status, program, used);
  if (picked && (flags & (DECIDE_UNCHARGED | DECIDE_UNSTORED)) == 0) {
    const ticket = answer().ticket;
    storePrompt(slot, ticket == 0 ? null : entryAt(ticket - 1), insertsFor(needs, slot));
  }
  if (ASSERTIONS) assert(!lockHeld(COMMIT_LOCK) && !lockHeld(INDEX_LOCK), 'a decision leaves no lock behind');
  return status;
}

/** Weighted score of a slot in the decision just made on this thread. */
export function scoreOf(slot: u32): f32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  return slot < SLOTS ? load<f32>(SCORE + slotOffset(slot)) : 0;
}

/** Returns whether a slot is still marked in the CANDIDATES column of the decision just made on this thread. */
export function isCandidate(slot: u32): bool {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  return slot < SLOTS && load<i32>(CANDIDATES + slotOffset(slot)) != 0;
}
