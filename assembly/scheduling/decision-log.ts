// The decision log: one record for every decision, and for some of them the columns that it was made from
// (decision-columns.ts).
//
// Owns: the records in this thread's part of REGION_DECISIONS, written by its own thread. Readers take no lock: the
// count in the head is stored after a record (see DecisionLogHead), so a reader can tell which are complete. Nothing
// of a prompt is written, only sizes. The shard writes the outcome of the request into the record later, through the
// DECISION_* offsets.
//
//   +0      DecisionLogHead, 64 bytes
//   +64     DECISIONS_KEPT records of DECISION_BYTES; decision n has place n % DECISIONS_KEPT
//   then    the ring of columns
import { ASSERTIONS } from '../assertions';
import { candidatesTouched, slotsUsed } from '../columns/candidates';
import { laneMaxOfIntegers } from '../columns/lanes';
import { COLUMN_EJECTION, COLUMN_GENERATION, COLUMN_STATE, cell, STATE_LIVE } from '../endpoints';
import {
  FOUND_BY_HEADER,
  foundBegin,
  foundByHeader,
  foundFate,
  foundHome,
  foundIdle,
  foundKept,
  foundLook,
  foundNeed,
  foundShared,
  foundTokens,
  foundTurns,
} from '../gate/sessions-found';
import {
  DECISIONS,
  HASHES,
  HEADER,
  HEADER_DECISION_COLUMN_BYTES,
  HEADER_DECISION_THREADS,
  HEADER_DECISIONS,
  MATCH,
  REMOVED,
  REQUEST,
  THREAD,
} from '../memory';
import { isTime, isTruth } from '../preconditions';
import { beginningLoss, isEviction, LOSS_NONE, lossOf } from '../prefix/losses';
import { forgetPlaces, placesOf } from '../prefix/match';
import { answer, DECIDE_FURTHER, DECIDE_UNDECIDED, pickedSlot, request } from '../request-area';
import { columnsBegin, columnsBeginRefusal, columnsBind, logColumns, takenUnit } from './decision-columns';
import {
  DECISION_BYTES,
  DECISION_HEAD_BYTES,
  DECISION_ID,
  DECISION_ID_BYTES,
  DecisionLogHead,
  DecisionRecord,
  decisionLogHead,
  END_OPEN,
  REMOVED_NOT_ADMITTED,
  TRAIL_ID,
  TRAIL_LENGTH,
} from './decision-record';
import { Program } from './program';
import { removalOf, removalsBegin, removedByGate } from './removals';
import { longestMatchNoted, noteLongestMatch } from './score-column';

/** Records of this thread's part. */
let kept: u32 = 0;
/** Whether this thread has a part, also where no record is kept. */
let counts: bool = false;

/** Bytes between the parts of two threads. */
export function decisionLogStride(): usize {
  return <usize>decisionLogBytes();
}

/** Bytes of one thread's part. */
export function decisionLogBytes(): u64 {
  const records = load<u32>(HEADER + HEADER_DECISIONS);
  const columns = load<u32>(HEADER + HEADER_DECISION_COLUMN_BYTES);
  return DECISION_HEAD_BYTES + <u64>records * DECISION_BYTES + (<u64>columns & ~63);
}

export function decisionLogBind(): void {
  counts = THREAD < load<u32>(HEADER + HEADER_DECISION_THREADS);
  kept = counts ? load<u32>(HEADER + HEADER_DECISIONS) : 0;
  columnsBind(kept == 0 ? 0 : DECISIONS + DECISION_HEAD_BYTES + <usize>kept * DECISION_BYTES);
}

/** Address of the records of this thread's part. */
function recordAt(number: u32): DecisionRecord {
  return changetype<DecisionRecord>(DECISIONS + DECISION_HEAD_BYTES + <usize>(number % kept) * DECISION_BYTES);
}

/** Begins a decision. @returns whether its columns are kept, or written aside */
export function logBegin(): bool {
  removalsBegin();
  foundBegin();
  noteLongestMatch(u32.MAX_VALUE);
  return columnsBegin();
}

/** Most blocks of the prompt that any endpoint holds. */
function longestMatch(used: u32): u32 {
  if (longestMatchNoted != u32.MAX_VALUE) return longestMatchNoted;
  let longest = i32x4.splat(0);
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16)
    longest = i32x4.max_s(longest, v128.load(MATCH + at));
  return <u32>laneMaxOfIntegers(longest);
}

/**
 * Notes the endpoint that held longest of the prompt, when it is not the first pick, and why it is not.
 * @param best blocks that it held
 */
function recordBest(record: DecisionRecord, best: u32, used: u32): void {
  record.bestMatched = best;
  record.bestSlot = u32.MAX_VALUE;
  record.bestRemoved = 0;
  if (best <= answer().matched) return;
  for (let slot: u32 = 0; slot < used; slot++) {
    if (load<u32>(MATCH + ((<usize>slot) << 2)) != best) continue;
    record.bestSlot = slot;
    record.bestRemoved = removalOf(slot);
    return;
  }
}

/** Cause for which no endpoint holds the first block behind the longest match; a tail has none. */
function lostBehind(best: u32): u32 {
  if (best >= request().blocks) return LOSS_NONE;
  const noted = lossOf(load<u64>(HASHES + ((<usize>best) << 3)));
  return noted != LOSS_NONE || best != 0 ? noted : beginningLoss();
}

/**
 * Counts the tokens that the picked endpoint has to compute, and those of them that were evicted everywhere.
 * @param best most blocks that an endpoint held @param lost LOSS_* of the first block behind them
 */
function countComputed(best: u32, lost: u32): void {
  if (answer().ticket == 0) return;
  const head = changetype<usize>(decisionLogHead());
  const computed = tokensBehind(answer().matched);
  add(head + offsetof<DecisionLogHead>('computed'), computed);
  if (isEviction(lost)) add(head + offsetof<DecisionLogHead>('evicted'), min(computed, tokensBehind(best)));
}

/** Tokens of the prompt behind its first `blocks` blocks. */
function tokensBehind(blocks: u32): u32 {
  const prompt = request().promptTokens;
  return prompt - min(prompt, blocks * request().blockTokens);
}

/** Adds to a count that only this thread writes. */
function add(count: usize, tokens: u32): void {
  atomic.store<u64>(count, load<u64>(count) + tokens);
}

/** Writes the fields that the shard fills later, and the request's id. */
function recordRequest(record: DecisionRecord, number: u32): void {
  record.number = number;
  record.thread = THREAD;
  record.columns = takenUnit();
  record.waitedMs = 0;
  record.series = 0;
  record.end = END_OPEN;
  record.httpStatus = 0;
  record.firstOutputMs = NaN;
  record.durationMs = 0;
  record.outputTokens = u32.MAX_VALUE;
  record.enginePromptTokens = u32.MAX_VALUE;
  record.cachedTokens = u32.MAX_VALUE;
  record.bound = 0;
  record.idLength = load<u32>(REQUEST + TRAIL_LENGTH);
  memory.copy(changetype<usize>(record) + DECISION_ID, REQUEST + TRAIL_ID, DECISION_ID_BYTES);
}

/** Writes what was found of the session of the prompt. */
function recordSession(record: DecisionRecord): void {
  record.sessionFate = <u8>(foundByHeader ? foundFate | FOUND_BY_HEADER : foundFate);
  record.sessionLook = <u8>foundLook;
  record.sessionTurns = <u8>foundTurns;
  record.sessionKept = <u8>foundKept;
  record.sessionHome = <u16>foundHome;
  record.sessionIdle = <u16>foundIdle;
  record.sessionTokens = foundTokens;
  record.sessionShared = foundShared;
  record.sessionNeed = foundNeed;
}

/** Counts a decision and writes its record. @param program null = the profile has none, or nothing was decided */
export function logDecision(status: u32, program: Program | null, used: u32): void {
  if (!counts) return;
  const best = longestMatch(used);
  const lost = lostBehind(best);
  countComputed(best, lost);
  if (kept == 0) return;
  const number = decisionLogHead().made;
  const record = recordAt(number);
  record.time = request().now;
  record.status = status;
  record.profile = request().profile;
  record.slot = answer().count == 0 ? u32.MAX_VALUE : pickedSlot(0);
  record.generation = answer().count == 0 ? 0 : load<u32>(cell(COLUMN_GENERATION, pickedSlot(0)));
  record.candidates = answer().candidates;
  record.matched = answer().matched;
  record.total = answer().total;
  record.places = answer().count == 0 ? 0 : placesOf(pickedSlot(0));
  record.score = answer().score;
  record.promptTokens = request().promptTokens;
  record.uncachedTokens = answer().uncachedTokens;
  record.further = u32((request().flags & DECIDE_FURTHER) != 0);
  record.tag = program == null ? 0 : program.tag;
  record.blockTokens = request().blockTokens;
  record.priority = request().priority;
  record.closed = removedByGate(used);
  record.shadow = answer().shadow;
  record.shadowCost = answer().shadowCost;
  record.pickCost = answer().pickCost;
  recordSession(record);
  recordBest(record, best, used);
  record.lost = lost;
  recordRequest(record, number);
  answer().record = number + 1;
  // The count comes last: a reader takes only records that are whole.
  atomic.store<u32>(DECISIONS, number + 1);
}

/**
 * Writes the record of a request that was refused before any decision; its shard fills in the rest.
 * @param endpoints 1 = with the endpoints as they are now, because their load refused it
 * @returns its number
 */
export function logRefusal(now: f64, priority: i32, endpoints: u32): u32 {
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (ASSERTIONS) assert(isTruth(endpoints), '`endpoints` is 0 or 1');
  if (kept == 0) return 0;
  const number = decisionLogHead().made;
  const record = recordAt(number);
  memory.fill(changetype<usize>(record), 0, DECISION_BYTES);
  columnsBeginRefusal();
  request().now = now;
  request().priority = priority;
  if (endpoints != 0) logEndpoints();
  record.time = now;
  record.status = DECIDE_UNDECIDED;
  record.slot = u32.MAX_VALUE;
  record.bestSlot = u32.MAX_VALUE;
  record.priority = priority;
  recordRequest(record, number);
  atomic.store<u32>(DECISIONS, number + 1);
  return number;
}

/** Writes the endpoints as they are, for a request of which nothing was looked up. */
function logEndpoints(): void {
  const used = slotsUsed();
  answer().count = 0;
  // The columns below are no longer those of the decision before.
  candidatesTouched();
  memory.fill(MATCH, 0, (<usize>used) << 2);
  forgetPlaces();
  for (let slot: u32 = 0; slot < used; slot++) {
    const live = load<u32>(cell(COLUMN_STATE, slot)) == STATE_LIVE && load<u32>(cell(COLUMN_EJECTION, slot)) == 0;
    store<u32>(REMOVED + ((<usize>slot) << 2), live ? 0 : REMOVED_NOT_ADMITTED);
  }
  logColumns(null, used, false);
}
