// The decision log: one record for every decision, and for some of them the columns that it was made from.
//
// Owns: this thread's part of REGION_DECISIONS and its REMOVED column, written by its own thread. Readers take no lock:
// the counts in the head are stored after a record and before columns (see DecisionLogHead), so a reader can tell what
// it has read whole. Nothing of a prompt is written, only sizes. The shard writes the outcome of the request into the
// record later, through the DECISION_* offsets.
//
//   +0      DecisionLogHead, 64 bytes
//   +64     DECISIONS_KEPT records of DECISION_BYTES; decision n has place n % DECISIONS_KEPT
//   then    a ring of COLUMN_UNITS units of 64 bytes: columns of decisions, each without a break:
//           (the last BRIEF_BYTES are no part of it: columns written aside, which the thread copies before
//           its next decision)
//           DecisionColumnsHead, 8 bytes for each operation of the program (code, weight), padded to 64 bytes, then one
//           DecisionEndpoint for each endpoint
import { ASSERTIONS } from '../assertions';
import { candidatesTouched, slotsUsed } from '../columns/candidates';
import { laneMaxOfIntegers } from '../columns/lanes';
import { predictedWaiting } from '../columns/values';
import {
  COLUMN_ACTIVE_BLOCKS,
  COLUMN_DEATH,
  COLUMN_EJECTION,
  COLUMN_GENERATION,
  COLUMN_INFLIGHT,
  COLUMN_INFLIGHT_TOKENS,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_RUNNING,
  COLUMN_SIGNAL_TIME,
  COLUMN_SILENT,
  COLUMN_STATE,
  COLUMN_WAITING,
  cell,
  DEATH_NONE,
  STATE_FREE,
  STATE_LIVE,
  wideCell,
} from '../endpoints';
import { ceilingOf, rankOf } from '../gate/bands';
import { saturationKeys } from '../gate/conditions';
import { gateHead, gateOn, ROOM_LIMIT, ROOM_PENDING, ROOM_STRETCH, ROOM_WINDOW } from '../gate/layout';
import * as room from '../gate/room';
import {
  CANDIDATES,
  DECISIONS,
  EXPLAIN,
  EXPLAIN_COLUMNS,
  HASHES,
  HEADER,
  HEADER_DECISION_COLUMN_BYTES,
  HEADER_DECISION_THREADS,
  HEADER_DECISIONS,
  KEPT,
  KEYS,
  MATCH,
  REMOVED,
  REQUEST,
  SCORE,
  SLOTS,
  SUBSET,
  THREAD,
} from '../memory';
import { isTime, isTruth } from '../preconditions';
import { beginningLoss, LOSS_NONE, lossOf } from '../prefix/losses';
import { answer, DECIDE_FURTHER, DECIDE_SUBSET, DECIDE_UNDECIDED, pickedSlot, request } from '../request-area';
import {
  BRIEF_BYTES,
  BRIEF_ENDPOINTS,
  columnUnits,
  DECISION_BYTES,
  DECISION_COLUMNS_HEAD_BYTES,
  DECISION_ENDPOINT_BYTES,
  DECISION_ENDPOINTS_MAX,
  DECISION_HEAD_BYTES,
  DECISION_ID,
  DECISION_ID_BYTES,
  DECISION_OPERATION_BYTES,
  DECISION_SCORES,
  DECISION_SCORES_MAX,
  DECISION_UNIT_BYTES,
  DecisionColumnsHead,
  DecisionEndpoint,
  DecisionLogHead,
  DecisionRecord,
  EJECTION_DEATH,
  EJECTION_SILENT,
  END_OPEN,
  KEEP_ASIDE,
  LoggedOperation,
  REMOVED_BY_GATE,
  REMOVED_NOT_ADMITTED,
  REMOVED_OUTSIDE_SUBSET,
  TRAIL_COLUMNS,
  TRAIL_ID,
  TRAIL_LENGTH,
  wholeUnits,
} from './decision-record';
import { PREDICTED_TTFT, predictedColumn } from './predictions';
import { isScorer, OP_PREDICT, Program } from './program';
import { longestMatchNoted, noteLongestMatch } from './score-column';

/** Records of this thread's part. */
let kept: u32 = 0;
/** Units of its ring of columns. */
let units: u32 = 0;
/** One decision in so many keeps its columns; 0 = only refused and marked ones. */
let columnsEvery: u32 = 0;
/** Decisions until the next one that does. */
let untilColumns: u32 = 0;
/** The request decided last keeps its columns. */
let keeps: bool = false;
/** It writes them aside otherwise. */
let asides: bool = false;
/** Bytes that its decision has written there. */
let aside: u32 = 0;
/** Unit + 1 of the columns of this decision. */
let written: u32 = 0;
/** The gate has removed endpoints in this decision. */
let closed: bool = false;

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

/** Address of the room for columns aside, 0 = there is none. */
export function briefColumnsAddress(): usize {
  const all = kept == 0 ? 0 : load<u32>(HEADER + HEADER_DECISION_COLUMN_BYTES) >> 6;
  if (units == all) return 0;
  return DECISIONS + DECISION_HEAD_BYTES + <usize>kept * DECISION_BYTES + ((<usize>units) << 6);
}

/** Bytes that the last decision has written there, 0 = none. */
export function briefColumnsBytes(): u32 {
  return aside;
}

/** Takes room in the ring for columns that were held. @returns its address, 0 = they do not fit */
export function takeColumns(bytes: usize): usize {
  return takeUnits(bytes);
}

/** First unit + 1 of the room taken last. */
export function takenUnit(): u32 {
  return written;
}

export function decisionLogBind(): void {
  const logs = THREAD < load<u32>(HEADER + HEADER_DECISION_THREADS);
  kept = logs ? load<u32>(HEADER + HEADER_DECISIONS) : 0;
  units = kept == 0 ? 0 : columnUnits();
}

/** One decision of this thread in `every` keeps its columns; 0 = only refused and marked ones. */
export function keepColumnsEvery(every: u32): void {
  columnsEvery = every;
  untilColumns = every;
}

/** Address of the records of this thread's part. */
function recordAt(number: u32): DecisionRecord {
  return changetype<DecisionRecord>(DECISIONS + DECISION_HEAD_BYTES + <usize>(number % kept) * DECISION_BYTES);
}

function head(): DecisionLogHead {
  return changetype<DecisionLogHead>(DECISIONS);
}

/** Begins a decision. @returns whether its columns are kept, or written aside */
export function logBegin(): bool {
  written = 0;
  aside = 0;
  closed = false;
  noteLongestMatch(u32.MAX_VALUE);
  if ((request().flags & DECIDE_FURTHER) != 0) return keeps || asides;
  const asked = load<u32>(REQUEST + TRAIL_COLUMNS);
  keeps = asked == 1;
  asides = asked == KEEP_ASIDE;
  if (columnsEvery != 0 && --untilColumns == 0) {
    untilColumns = columnsEvery;
    keeps = true;
  }
  return keeps || asides;
}

function isInSubset(slot: u32): bool {
  return (load<u32>(SUBSET + ((<usize>(slot >> 5)) << 2)) & (1 << (slot & 31))) != 0;
}

/** Notes the endpoints that were no candidates from the beginning. */
export function logAdmitted(used: u32): void {
  const out = i32x4.splat(REMOVED_NOT_ADMITTED);
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16) {
    v128.store(REMOVED + at, v128.andnot(out, v128.load(CANDIDATES + at)));
  }
}

/** Notes the endpoints that are no candidates any more: `reason` removed them. */
export function logRemoved(used: u32, reason: u32): void {
  if (reason == REMOVED_BY_GATE) closed = true;
  const zero = i32x4.splat(0);
  const mine = i32x4.splat(reason);
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16) {
    const before = v128.load(REMOVED + at);
    const fresh = v128.andnot(i32x4.eq(before, zero), v128.load(CANDIDATES + at));
    v128.store(REMOVED + at, v128.or(before, v128.and(mine, fresh)));
  }
}

/**
 * Notes that the request has to wait although endpoints were left.
 * @param open reason for those that KEPT marks, which have room
 * @param shut reason for the others
 */
export function logAllClosed(used: u32, open: u32, shut: u32): void {
  closed = true;
  const zero = i32x4.splat(0);
  const ofOpen = i32x4.splat(open);
  const ofShut = i32x4.splat(shut);
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16) {
    const before = v128.load(REMOVED + at);
    const mine = v128.bitselect(ofOpen, ofShut, v128.load(KEPT + at));
    v128.store(REMOVED + at, v128.or(before, v128.and(mine, i32x4.eq(before, zero))));
  }
}

/** Position among the picks + 1, 0 = not picked. */
function rankOfPick(slot: u32): u32 {
  const count = answer().count;
  for (let i: u32 = 0; i < count; i++) if (pickedSlot(i) == slot) return i + 1;
  return 0;
}

function writeEndpoint(at: usize, slot: u32, predicts: bool): void {
  const endpoint = changetype<DecisionEndpoint>(at);
  const offset = (<usize>slot) << 2;
  let removed = load<u32>(REMOVED + offset);
  if (removed == REMOVED_NOT_ADMITTED && (request().flags & DECIDE_SUBSET) != 0 && !isInSubset(slot)) {
    removed = REMOVED_OUTSIDE_SUBSET;
  }
  endpoint.slot = slot;
  endpoint.generation = load<u32>(cell(COLUMN_GENERATION, slot));
  endpoint.removed = removed;
  endpoint.known = load<u32>(cell(COLUMN_KNOWN, slot));
  endpoint.matched = load<u32>(MATCH + offset);
  endpoint.state = <u16>load<u32>(cell(COLUMN_STATE, slot));
  const death = load<u32>(cell(COLUMN_DEATH, slot));
  const ejection = death == DEATH_NONE ? load<u32>(cell(COLUMN_EJECTION, slot)) : EJECTION_DEATH + death;
  endpoint.ejection = <u16>(ejection | (load<u32>(cell(COLUMN_SILENT, slot)) * EJECTION_SILENT));
  endpoint.rank = rankOfPick(slot);
  endpoint.waiting = load<f32>(cell(COLUMN_WAITING, slot));
  endpoint.predictedWaiting = predictedWaiting(slot);
  endpoint.running = load<f32>(cell(COLUMN_RUNNING, slot));
  endpoint.kvUsage = load<f32>(cell(COLUMN_KV_USAGE, slot));
  endpoint.signalAge = <f32>(request().now - load<f64>(wideCell(COLUMN_SIGNAL_TIME, slot)));
  endpoint.inflight = load<u32>(cell(COLUMN_INFLIGHT, slot));
  endpoint.inflightTokens = load<u32>(cell(COLUMN_INFLIGHT_TOKENS, slot));
  endpoint.activeBlocks = load<u32>(cell(COLUMN_ACTIVE_BLOCKS, slot));
  endpoint.score = load<f32>(SCORE + offset);
  endpoint.predictedTtft = predicts ? load<f32>(predictedColumn(PREDICTED_TTFT) + offset) : NaN;
  endpoint.window = gateOn() ? room.f32(ROOM_WINDOW, slot) * room.f32(ROOM_STRETCH, slot) : NaN;
  endpoint.limit = gateOn() ? room.f32(ROOM_LIMIT, slot) : NaN;
  endpoint.pending = gateOn() ? room.u32(ROOM_PENDING + max<u32>(gateHead().bands, 1) - 1, slot) : 0;
  endpoint.saturation = gateOn() ? load<f32>(KEYS + offset) : NaN;
}

/** Writes the scores of a slot behind its endpoint; NaN for a scorer that has not run. */
function writeScores(at: usize, slot: u32, program: Program, scored: bool): void {
  const operations = min(program.operations, EXPLAIN_COLUMNS);
  let number: u32 = 0;
  for (let i: u32 = 0; i < operations && number < DECISION_SCORES_MAX; i++) {
    const operation = program.operation(i);
    if (!isScorer(operation.code)) continue;
    const column = EXPLAIN + <usize>i * SLOTS * 4 + ((<usize>slot) << 2);
    store<f32>(
      at + DECISION_SCORES + ((<usize>number) << 2),
      scored && operation.weight != 0 ? load<f32>(column) : NaN,
    );
    number++;
  }
}

/** Takes the units of `bytes`. The count is stored before they are written. @returns address, 0 = they do not fit */
function takeUnits(bytes: usize): usize {
  const wanted = <u32>(wholeUnits(bytes) / DECISION_UNIT_BYTES);
  if (wanted > units) return 0;
  let first = head().units;
  // Columns have no break: those that would go over the end begin again at the beginning.
  if ((first % units) + wanted > units) first += units - (first % units);
  atomic.store<u32>(DECISIONS, first + wanted, offsetof<DecisionLogHead>('units'));
  written = first + 1;
  return DECISIONS + DECISION_HEAD_BYTES + <usize>kept * DECISION_BYTES + ((<usize>(first % units)) << 6);
}

/** Takes the room for columns aside. @returns its address, 0 = they do not fit */
function roomAside(bytes: usize): usize {
  const at = bytes > BRIEF_BYTES ? 0 : briefColumnsAddress();
  if (at != 0) aside = <u32>bytes;
  return at;
}

/**
 * Writes the inputs of the decision. Commit lock held when it has a pick, which is not charged yet. Without a pick the
 * lock is free: figures may be some microseconds younger than the decision.
 * @param program null = nothing was decided: the endpoints are listed as they are
 * @param scored the scorers' columns are those of this decision
 */
export function logColumns(program: Program | null, used: u32, scored: bool): void {
  if (units == 0) return;
  if (gateOn()) saturationKeys(used, request().now);
  let open: u32 = 0;
  for (let slot: u32 = 0; slot < used; slot++) open += u32(load<u32>(cell(COLUMN_STATE, slot)) != STATE_FREE);
  const brief = scored && !keeps;
  const endpoints = min(open, brief ? BRIEF_ENDPOINTS : DECISION_ENDPOINTS_MAX);
  const operations: u32 = program == null ? 0 : program.operations;
  const listBytes = wholeUnits(DECISION_COLUMNS_HEAD_BYTES + <usize>operations * DECISION_OPERATION_BYTES);
  const bytes = listBytes + <usize>endpoints * DECISION_ENDPOINT_BYTES;
  const at = brief ? roomAside(bytes) : takeUnits(bytes);
  if (at == 0) return;
  const columns = changetype<DecisionColumnsHead>(at);
  columns.number = head().made;
  columns.operations = operations;
  columns.endpoints = endpoints;
  columns.omitted = open - endpoints;
  columns.scored = u32(scored);
  columns.ceiling = gateOn() ? ceilingOf(rankOf(request().priority)) : NaN;
  for (let i: u32 = 0; i < operations; i++) {
    const operation = program!.operation(i);
    const listed = changetype<LoggedOperation>(at + DECISION_COLUMNS_HEAD_BYTES + <usize>i * DECISION_OPERATION_BYTES);
    listed.code = operation.code;
    listed.weight = operation.weight;
  }
  writeEndpoints(at + listBytes, program, used, endpoints, scored);
}

/** The picks come first, so that a pool with more than DECISION_ENDPOINTS_MAX endpoints shows them. */
function writeEndpoints(at: usize, program: Program | null, used: u32, endpoints: u32, scored: bool): void {
  const predicts = program != null && isPredicting(program);
  const end = at + <usize>endpoints * DECISION_ENDPOINT_BYTES;
  for (let i: u32 = 0, picks = answer().count; i < picks && at < end; i++, at += DECISION_ENDPOINT_BYTES) {
    writeEndpoint(at, pickedSlot(i), predicts);
    if (program != null) writeScores(at, pickedSlot(i), program, scored);
  }
  for (let slot: u32 = 0; slot < used && at < end; slot++) {
    if (load<u32>(cell(COLUMN_STATE, slot)) == STATE_FREE || rankOfPick(slot) != 0) continue;
    writeEndpoint(at, slot, predicts);
    if (program != null) writeScores(at, slot, program, scored);
    at += DECISION_ENDPOINT_BYTES;
  }
}

function isPredicting(program: Program): bool {
  for (let i: u32 = 0; i < program.operations; i++) if (program.operation(i).code == OP_PREDICT) return true;
  return false;
}

/** Endpoints that REMOVED marks with `reason`. */
function removedBy(used: u32, reason: u32): u32 {
  const mine = i32x4.splat(reason);
  let count: u32 = 0;
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16) {
    count += <u32>popcnt<i32>(i32x4.bitmask(i32x4.eq(v128.load(REMOVED + at), mine)));
  }
  return count;
}

/** Most blocks of the prompt that any endpoint holds. */
function longestMatch(used: u32): u32 {
  if (longestMatchNoted != u32.MAX_VALUE) return longestMatchNoted;
  let longest = i32x4.splat(0);
  for (let at: usize = 0, end = (<usize>used) << 2; at < end; at += 16)
    longest = i32x4.max_s(longest, v128.load(MATCH + at));
  return <u32>laneMaxOfIntegers(longest);
}

/** Notes the endpoint that held longest of the prompt, when it is not the first pick, and why it is not. */
function recordBest(record: DecisionRecord, used: u32): void {
  const best = longestMatch(used);
  record.bestMatched = best;
  record.bestSlot = u32.MAX_VALUE;
  record.bestRemoved = 0;
  if (best <= answer().matched) return;
  for (let slot: u32 = 0; slot < used; slot++) {
    if (load<u32>(MATCH + ((<usize>slot) << 2)) != best) continue;
    const removed = load<u32>(REMOVED + ((<usize>slot) << 2));
    const outside = removed == REMOVED_NOT_ADMITTED && (request().flags & DECIDE_SUBSET) != 0 && !isInSubset(slot);
    record.bestSlot = slot;
    record.bestRemoved = outside ? REMOVED_OUTSIDE_SUBSET : removed;
    return;
  }
}

/** Cause for which no endpoint holds the first block behind the longest match; a tail has none. */
function lostBehind(best: u32): u32 {
  if (best >= request().blocks) return LOSS_NONE;
  const noted = lossOf(load<u64>(HASHES + ((<usize>best) << 3)));
  return noted != LOSS_NONE || best != 0 ? noted : beginningLoss();
}

/** Writes the fields that the shard fills later, and the request's id. */
function recordRequest(record: DecisionRecord, number: u32): void {
  record.number = number;
  record.thread = THREAD;
  record.columns = written;
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

/** Writes the record of a decision. @param program null = the profile has none, or nothing was decided */
export function logDecision(status: u32, program: Program | null, used: u32): void {
  if (kept == 0) return;
  const number = head().made;
  const record = recordAt(number);
  record.time = request().now;
  record.status = status;
  record.profile = request().profile;
  record.slot = answer().count == 0 ? u32.MAX_VALUE : pickedSlot(0);
  record.generation = answer().count == 0 ? 0 : load<u32>(cell(COLUMN_GENERATION, pickedSlot(0)));
  record.candidates = answer().candidates;
  record.matched = answer().matched;
  record.total = answer().total;
  record.score = answer().score;
  record.promptTokens = request().promptTokens;
  record.uncachedTokens = answer().uncachedTokens;
  record.further = u32((request().flags & DECIDE_FURTHER) != 0);
  record.tag = program == null ? 0 : program.tag;
  record.blockTokens = request().blockTokens;
  record.priority = request().priority;
  record.closed = closed ? removedBy(used, REMOVED_BY_GATE) : 0;
  record.shadow = answer().shadow;
  record.shadowCost = answer().shadowCost;
  record.pickCost = answer().pickCost;
  recordBest(record, used);
  record.lost = lostBehind(record.bestMatched);
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
  const number = head().made;
  const record = recordAt(number);
  memory.fill(changetype<usize>(record), 0, DECISION_BYTES);
  written = 0;
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
  for (let slot: u32 = 0; slot < used; slot++) {
    const live = load<u32>(cell(COLUMN_STATE, slot)) == STATE_LIVE && load<u32>(cell(COLUMN_EJECTION, slot)) == 0;
    store<u32>(REMOVED + ((<usize>slot) << 2), live ? 0 : REMOVED_NOT_ADMITTED);
  }
  logColumns(null, used, false);
}
