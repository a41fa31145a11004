// One decision: match without a lock, then filter, score, pick and charge in one step under the commit lock, then store
// what the picked endpoint will hold under the index lock.
//
// Owns: the thread's own columns and answer, and its decision ring (written by its thread only). The two locks are taken
// one after the other, never together.
import { filterByHost, markCandidates, slotsUsed } from '../columns/candidates';
import { COLUMN_ACTIVE_BLOCKS, COLUMN_GENERATION, COLUMN_STATE, cell, STATE_FREE } from '../endpoints';
import { gateCharged, gateEnded, gateFirstToken, gateOutput, gatePrefillElsewhere, gateReleased } from '../gate/gate';
import { waitingOf } from '../gate/wait-slots';
import { activeAddLocked, activeOverlapBegin, activeOverlapOf, activeRemoveLocked } from '../load/blocks';
import { beginProbe, endProbe, noteFailure, noteSuccess } from '../load/ejection';
import { featuresNoteBest, featuresNoteWouldPick, featuresOf } from '../load/features';
import {
  charge,
  ENTRY_PROBE,
  endPrefill,
  entryAt,
  entryBlocks,
  entryCharged,
  entryFlags,
  entryGeneration,
  entryHandle,
  entryOf,
  entrySetHandle,
  entrySlot,
  entrySlotGeneration,
  entryThread,
  growOutput,
  noteWantedTpot,
  releaseEntry,
  releaseTokens,
} from '../load/ledger';
import { COMMIT_LOCK, INDEX_LOCK, lockAcquire, lockRelease } from '../lock';
import {
  CANDIDATES,
  DECISION_BYTES,
  DECISION_COUNT,
  DECISIONS,
  EXPLAIN_COLUMNS,
  HASHES,
  MATCH,
  OVERLAP,
  REQUEST,
  REQUESTS,
  SCORE,
  SLOTS,
  THREAD,
} from '../memory';
import { prefixMatch } from '../prefix/match';
import { prefixInsertLocked } from '../prefix/store';
import { tailInsertLocked, tailMatch } from '../prefix/tails';
import {
  ANSWER_CANDIDATES,
  ANSWER_COUNT,
  ANSWER_MATCHED,
  ANSWER_PICKS,
  ANSWER_SCORE,
  ANSWER_TICKET,
  ANSWER_TICKET_GENERATION,
  ANSWER_TOTAL,
  ANSWER_UNCACHED_TOKENS,
  ANSWER_WOULD_PICK,
  DECIDE_BLIND,
  DECIDE_BUSY,
  DECIDE_DENIED,
  DECIDE_EXPLAIN,
  DECIDE_FILTERED,
  DECIDE_FURTHER,
  DECIDE_NO_PROGRAM,
  DECIDE_SUBSET,
  DECIDE_TAIL,
  DECIDE_UNCHARGED,
  DECIDE_UNSTORED,
  DECIDE_WAITS,
  DECIDED,
  REQUEST_BLOCK_TOKENS,
  REQUEST_BLOCKS,
  REQUEST_FLAGS,
  REQUEST_NOW,
  REQUEST_OUTPUT_TOKENS,
  REQUEST_PRIORITY,
  REQUEST_PROFILE,
  REQUEST_PROMPT_TOKENS,
  REQUEST_WANTED_TPOT,
} from '../request-area';
import { filter } from './filters';
import { gateBegin, gateEmpty, gateLeftAll, gatePass, gateWait, mayServe } from './gate-pass';
import { noteSent } from './history-scorers';
import { admitByLatency } from './latency';
import { nextIsSampled, wouldPick } from './marginal-cost';
import { pick } from './pickers';
import { answerPrediction, clearPrediction, predict } from './predictions';
import {
  activeProgram,
  isFilter,
  isPicker,
  OP_ADMIT_LATENCY,
  OP_FILTER_HOST,
  OP_PREDICT,
  OP_WOULD_PICK,
  PROGRAM_INSERTS,
  PROGRAM_NEEDS_MATCH,
  PROGRAM_NEEDS_OVERLAP,
  PROGRAM_PROJECTS,
  PROGRAM_TAG,
} from './program';
import { score } from './scorers';

/**
 * Longest wait for a lock, in sleeps of 1 ms. A shard outwaits the repair of a dead owner; the control thread, which has
 * to do that repair, gives up soon and comes again.
 */
function patience(): u32 {
  return THREAD == 0 ? 20 : 2000;
}

function get(offset: usize): u32 {
  return load<u32>(REQUEST + offset);
}

function put(offset: usize, value: u32): void {
  store<u32>(REQUEST + offset, value);
}

/** Needs that MATCH and OVERLAP meet for the request decided last on this thread. */
let met: u32 = 0;

const NEEDS_COLUMNS: u32 = PROGRAM_NEEDS_MATCH | PROGRAM_NEEDS_OVERLAP;

/**
 * Blocks held and blocks active, per endpoint. All profiles of a request see the same columns: what its own earlier
 * picks will hold is nothing that an endpoint holds already.
 */
function matchPrompt(needs: u32, blocks: u32, tail: bool, used: u32, further: bool): void {
  if (further && (needs & NEEDS_COLUMNS & ~met) == 0) return;
  met = needs & NEEDS_COLUMNS;
  if ((needs & PROGRAM_NEEDS_MATCH) != 0 && (blocks != 0 || tail)) {
    if (blocks != 0) prefixMatch(blocks);
    else memory.fill(MATCH, 0, (<usize>used) << 2);
    if (tail) tailMatch(HASHES + ((<usize>blocks) << 3), blocks);
  } else {
    memory.fill(MATCH, 0, (<usize>used) << 2);
  }
  if ((needs & PROGRAM_NEEDS_OVERLAP) == 0) return;
  memory.fill(OVERLAP, 0, (<usize>used) << 2);
  if (blocks == 0 || !lockAcquire(INDEX_LOCK, patience())) return;
  activeOverlapBegin(blocks);
  // What is active on an endpoint is held by it too, so only endpoints with a match can overlap.
  for (let slot: u32 = 0; slot < used; slot++) {
    if (load<u32>(MATCH + ((<usize>slot) << 2)) == 0 || load<u32>(cell(COLUMN_ACTIVE_BLOCKS, slot)) == 0) continue;
    store<u32>(OVERLAP + ((<usize>slot) << 2), activeOverlapOf(slot));
  }
  lockRelease(INDEX_LOCK);
}

/** Look up which endpoints hold what of a prompt, as the next decision will: fills MATCH. */
export function matchAhead(blocks: u32, tail: u32): void {
  matchPrompt(PROGRAM_NEEDS_MATCH, blocks, tail != 0, slotsUsed(), false);
}

/** Run the program's operations. Commit lock held. @returns a DECIDE_* status */
function run(program: usize, flags: u32, used: u32, total: u32, gated: bool): u32 {
  let candidates = markCandidates(used, load<f64>(REQUEST + REQUEST_NOW), (flags & DECIDE_SUBSET) != 0);
  put(ANSWER_CANDIDATES, candidates);
  if (candidates == 0) return gateEmpty(gated);
  const live = candidates;
  memory.fill(SCORE, 0, (<usize>used) << 2);
  const operations = load<u32>(program);
  const projected = load<u32>(program, PROGRAM_PROJECTS) != 0 && nextIsSampled();
  const explained = projected || (flags & DECIDE_EXPLAIN) != 0;
  let predicted = false;
  for (let i: u32 = 0; i < operations; i++) {
    const op = program + 64 + ((<usize>i) << 6);
    const code = load<u32>(op);
    if (gated && !mayServe(code)) {
      gated = false;
      candidates = gatePass(used, candidates, live);
      put(ANSWER_CANDIDATES, candidates);
      if (candidates == 0) return DECIDE_WAITS;
    }
    if (code == OP_FILTER_HOST) {
      candidates = filterByHost(used, <u32>load<f32>(op, 8), load<f32>(op, 12) != 0, candidates);
      put(ANSWER_CANDIDATES, candidates);
      if (candidates == 0) return gateLeftAll() ? DECIDE_FILTERED : DECIDE_WAITS;
    } else if (code == OP_PREDICT) {
      predict(op, used);
      predicted = true;
    } else if (code == OP_ADMIT_LATENCY) {
      if (!admitByLatency(used)) return DECIDE_DENIED;
    } else if (isFilter(code)) {
      candidates = filter(op, code, used, total, candidates);
      put(ANSWER_CANDIDATES, candidates);
      if (candidates == 0) return gateLeftAll() ? DECIDE_FILTERED : DECIDE_WAITS;
    } else if (code == OP_WOULD_PICK) {
      wouldPick(op, used);
    } else if (isPicker(code)) {
      put(ANSWER_COUNT, pick(op, code, used, candidates));
      if (predicted && get(ANSWER_COUNT) != 0) answerPrediction(get(ANSWER_PICKS));
    } else {
      score(op, code, used, total, explained && i < EXPLAIN_COLUMNS ? <i32>i : -1);
    }
  }
  return DECIDED;
}

/** Most blocks of the prompt that any candidate holds. */
function bestMatch(used: u32): u32 {
  let most = i32x4.splat(0);
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16) {
    most = i32x4.max_s(most, v128.and(v128.load(MATCH + at), v128.load(CANDIDATES + at)));
  }
  return <u32>(
    max(
      max(i32x4.extract_lane(most, 0), i32x4.extract_lane(most, 1)),
      max(i32x4.extract_lane(most, 2), i32x4.extract_lane(most, 3)),
    )
  );
}

/** Charge the first pick. Commit lock held. */
function chargePick(slot: u32, program: usize, used: u32): void {
  const needs = load<u32>(program, 4);
  const block = get(REQUEST_BLOCK_TOKENS);
  const cached = get(ANSWER_MATCHED) * block;
  const prompt = get(REQUEST_PROMPT_TOKENS);
  const uncached = prompt > cached ? prompt - cached : 0;
  const tokens = uncached + get(REQUEST_OUTPUT_TOKENS);
  put(ANSWER_UNCACHED_TOKENS, tokens);
  const probe = beginProbe(slot);
  const tag = get(REQUEST_PROFILE) | (load<u32>(program, PROGRAM_TAG) << 8);
  const priority = load<i32>(REQUEST + REQUEST_PRIORITY);
  const now = load<f64>(REQUEST + REQUEST_NOW);
  const ticket = charge(slot, tokens, prompt, uncached, tag, probe, priority, now);
  if (ticket == 0 && probe != 0) endProbe(slot);
  const blind = (get(REQUEST_FLAGS) & DECIDE_BLIND) != 0;
  if (ticket != 0) gateCharged(ticket - 1, slot, priority, uncached, prompt, get(REQUEST_BLOCKS), blind, now);
  noteWantedTpot(slot, ticket, load<f32>(REQUEST + REQUEST_WANTED_TPOT));
  noteSent(needs, slot);
  put(ANSWER_TICKET, ticket);
  put(ANSWER_TICKET_GENERATION, ticket == 0 ? 0 : entryGeneration(entryAt(ticket - 1)));
  if (ticket != 0) featuresNoteWouldPick(featuresOf(entryAt(ticket - 1)), get(ANSWER_WOULD_PICK));
  if (ticket != 0 && (needs & PROGRAM_NEEDS_MATCH) != 0) {
    featuresNoteBest(featuresOf(entryAt(ticket - 1)), min(bestMatch(used) * block, prompt));
  }
}

/**
 * Account the prompt's blocks on the picked endpoint and believe that it will hold them. Takes the index lock.
 * @param entry ledger entry of the pick, 0 = it is not charged
 */
function storePrompt(slot: u32, entry: usize, inserts: bool): void {
  const blocks = get(REQUEST_BLOCKS);
  const tail = (get(REQUEST_FLAGS) & DECIDE_TAIL) != 0;
  if ((blocks == 0 && !tail) || !lockAcquire(INDEX_LOCK, patience())) return;
  if (inserts) {
    if (blocks != 0) prefixInsertLocked(slot, blocks);
    if (tail) tailInsertLocked(slot, HASHES + ((<usize>blocks) << 3));
  }
  if (entry != 0 && blocks != 0) entrySetHandle(entry, activeAddLocked(slot, blocks), blocks);
  lockRelease(INDEX_LOCK);
}

/**
 * Store what a pick of a DECIDE_UNSTORED decision left out. The prompt of that request is still the one in this thread's
 * REQUEST and HASHES areas.
 */
export function storePick(profile: u32, slot: u32, ticket: u32, generation: u32): void {
  const program = activeProgram(profile);
  if (program == 0 || slot >= SLOTS) return;
  storePrompt(slot, entryOf(ticket, generation), (load<u32>(program, 4) & PROGRAM_INSERTS) != 0);
}

function record(status: u32): void {
  const number = load<u32>(DECISIONS);
  const at = DECISIONS + 64 + <usize>(number % DECISION_COUNT) * DECISION_BYTES;
  store<f64>(at, load<f64>(REQUEST + REQUEST_NOW));
  store<u32>(at, THREAD, 8);
  store<u32>(at, status, 12);
  store<u32>(at, get(REQUEST_PROFILE), 16);
  store<u32>(at, get(ANSWER_COUNT) == 0 ? u32.MAX_VALUE : get(ANSWER_PICKS), 20);
  store<u32>(at, get(ANSWER_CANDIDATES), 24);
  store<u32>(at, get(ANSWER_MATCHED), 28);
  store<u32>(at, get(ANSWER_TOTAL), 32);
  store<f32>(at, load<f32>(REQUEST + ANSWER_SCORE), 36);
  store<u32>(at, get(REQUEST_PROMPT_TOKENS), 40);
  store<u32>(at, get(ANSWER_UNCACHED_TOKENS), 44);
  store<u32>(at, u32((get(REQUEST_FLAGS) & DECIDE_FURTHER) != 0), 48);
  // The count comes last: a reader takes only records that are whole.
  atomic.store<u32>(DECISIONS, number + 1);
}

function clearAnswer(total: u32): void {
  put(ANSWER_COUNT, 0);
  put(ANSWER_TICKET, 0);
  put(ANSWER_TICKET_GENERATION, 0);
  put(ANSWER_MATCHED, 0);
  put(ANSWER_TOTAL, total);
  put(ANSWER_CANDIDATES, 0);
  put(ANSWER_UNCACHED_TOKENS, 0);
  put(ANSWER_WOULD_PICK, 0);
  store<f32>(REQUEST + ANSWER_SCORE, 0);
  clearPrediction();
}

/**
 * Decide the request that stands in this thread's REQUEST area (REQUEST_* fields, hashes in HASHES, subset mask in SUBSET).
 * @returns DECIDED or why not; the ANSWER_* fields say the rest
 */
export function decide(): u32 {
  const flags = get(REQUEST_FLAGS);
  const blocks = get(REQUEST_BLOCKS);
  const tail = (flags & DECIDE_TAIL) != 0;
  const total = blocks + u32(tail);
  clearAnswer(total);
  const program = activeProgram(get(REQUEST_PROFILE));
  if (program == 0) return DECIDE_NO_PROGRAM;
  const needs = load<u32>(program, 4);
  const used = slotsUsed();
  matchPrompt(needs, blocks, tail, used, (flags & DECIDE_FURTHER) != 0);
  if (!lockAcquire(COMMIT_LOCK, patience())) return DECIDE_BUSY;
  const gated = gateBegin(flags);
  let status = run(program, flags, used, total, gated);
  const slot = get(ANSWER_PICKS);
  const picked = status == DECIDED && get(ANSWER_COUNT) != 0;
  if (picked) {
    put(ANSWER_MATCHED, load<u32>(MATCH + ((<usize>slot) << 2)));
    store<f32>(REQUEST + ANSWER_SCORE, load<f32>(SCORE + ((<usize>slot) << 2)));
    if ((flags & DECIDE_UNCHARGED) == 0) chargePick(slot, program, used);
  }
  if (status == DECIDE_WAITS) status = gateWait(used);
  lockRelease(COMMIT_LOCK);
  if (picked && (flags & (DECIDE_UNCHARGED | DECIDE_UNSTORED)) == 0) {
    const ticket = get(ANSWER_TICKET);
    storePrompt(slot, ticket == 0 ? 0 : entryAt(ticket - 1), (needs & PROGRAM_INSERTS) != 0);
  }
  record(status);
  return status;
}

/** Give back the active blocks of an entry. Takes the index lock. */
function releaseBlocks(entry: usize): bool {
  if (entryHandle(entry) == 0) return true;
  if (!lockAcquire(INDEX_LOCK, patience())) return false;
  const handle = entryHandle(entry);
  if (handle != 0) {
    activeRemoveLocked(entrySlot(entry), handle, entryBlocks(entry));
    entrySetHandle(entry, 0, 0);
  }
  lockRelease(INDEX_LOCK);
  return true;
}

/**
 * Release everything that a ticket holds; a ticket that is gone already is no error.
 * @returns 0 released, 1 not held, 2 a lock could not be had in time: call again
 */
export function release(ticket: u32, generation: u32): u32 {
  const entry = entryOf(ticket, generation);
  if (entry == 0) return 1;
  if (!releaseBlocks(entry)) return 2;
  if (!lockAcquire(COMMIT_LOCK, patience())) return 2;
  if ((entryFlags(entry) & ENTRY_PROBE) != 0 && ownsSlot(entry)) endProbe(entrySlot(entry));
  gateReleased(ticket - 1);
  releaseEntry(entry);
  lockRelease(COMMIT_LOCK);
  return 0;
}

function ownsSlot(entry: usize): bool {
  return load<u32>(cell(COLUMN_GENERATION, entrySlot(entry))) == entrySlotGeneration(entry);
}

/**
 * The first output came: the prompt's tokens leave the load.
 * @param keep 1 = what was charged as in-flight tokens stays until the end, since output is counted in it
 * @param now pool clock
 * @returns as release
 */
export function prefillDone(ticket: u32, generation: u32, keep: u32, now: f64): u32 {
  const entry = entryOf(ticket, generation);
  if (entry == 0) return 1;
  if (!lockAcquire(COMMIT_LOCK, patience())) return 2;
  endPrefill(entry);
  if (keep == 0) releaseTokens(entry);
  gateFirstToken(ticket - 1, now);
  lockRelease(COMMIT_LOCK);
  return 0;
}

/** Another endpoint computes the prompt of this ticket's request: the gate does not wait for it here. @returns as release */
export function prefillElsewhere(ticket: u32, generation: u32): u32 {
  if (entryOf(ticket, generation) == 0) return 1;
  if (!lockAcquire(COMMIT_LOCK, patience())) return 2;
  gatePrefillElsewhere(ticket - 1);
  lockRelease(COMMIT_LOCK);
  return 0;
}

/** The output has `tokens` tokens, which fill `blocks` blocks. @returns as release */
export function grow(ticket: u32, generation: u32, blocks: u32, tokens: u32): u32 {
  const entry = entryOf(ticket, generation);
  if (entry == 0) return 1;
  if (!lockAcquire(COMMIT_LOCK, patience())) return 2;
  growOutput(entry, blocks);
  gateOutput(ticket - 1, tokens);
  lockRelease(COMMIT_LOCK);
  return 0;
}

/** The answer is complete and has `tokens` tokens in all; its charge is released right after. @returns as release */
export function complete(ticket: u32, generation: u32, tokens: u32, now: f64): u32 {
  if (entryOf(ticket, generation) == 0) return 1;
  if (!lockAcquire(COMMIT_LOCK, patience())) return 2;
  gateEnded(ticket - 1, tokens, now);
  lockRelease(COMMIT_LOCK);
  return 0;
}

/**
 * How an endpoint answered, for its ejection.
 * @returns 1 when this failure ejected it, else 0
 */
export function noteOutcome(slot: u32, slotGeneration: u32, failed: u32, now: f64): u32 {
  if (!lockAcquire(COMMIT_LOCK, patience())) return 0;
  let ejected: u32 = 0;
  if (load<u32>(cell(COLUMN_GENERATION, slot)) == slotGeneration && load<u32>(cell(COLUMN_STATE, slot)) != STATE_FREE) {
    if (failed != 0) ejected = noteFailure(slot, now);
    else noteSuccess(slot);
  }
  lockRelease(COMMIT_LOCK);
  return ejected;
}

/**
 * Release every charge of a thread that died; its locks must have been repaired before.
 * @returns how many
 */
export function releaseThread(thread: u32): u32 {
  let count: u32 = 0;
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const entry = entryAt(i);
    if (!entryCharged(entry) || entryThread(entry) != thread) continue;
    if (release(i + 1, entryGeneration(entry)) == 0) count++;
  }
  return count;
}

/** How many charges and wait slots a thread holds. */
export function threadCharges(thread: u32): u32 {
  let count = waitingOf(thread);
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const entry = entryAt(i);
    if (entryCharged(entry) && entryThread(entry) == thread) count++;
  }
  return count;
}

/** Weighted score of a slot in the decision just made on this thread. */
export function scoreOf(slot: u32): f32 {
  return slot < SLOTS ? load<f32>(SCORE + ((<usize>slot) << 2)) : 0;
}

/** Whether a slot is still marked in the CANDIDATES column of the decision just made on this thread. */
export function isCandidate(slot: u32): bool {
  return slot < SLOTS && load<i32>(CANDIDATES + ((<usize>slot) << 2)) != 0;
}
