// Columns of a decision: what it was made from, each endpoint with its signals and scores. Some decisions keep them in
// the decision log, others write them aside.
//
// Owns: the ring of columns in this thread's part of REGION_DECISIONS, written by its own thread. Readers take no lock:
// the count of units is stored before they are written (see DecisionLogHead).
//
//   ring    COLUMN_UNITS units of 64 bytes; the columns of a decision have no break
//           (the last BRIEF_BYTES are no part of it: columns written aside, which the thread copies before
//           its next decision)
//   columns DecisionColumnsHead, 8 bytes for each operation of the program (code, weight), padded to 64 bytes, then one
//           DecisionEndpoint for each endpoint
import { ASSERTIONS } from '../assertions';
import { predictedWaiting } from '../columns/waiting';
import {
  COLUMN_ACTIVE_BLOCKS,
  COLUMN_DEATH,
  COLUMN_EJECTION,
  COLUMN_GENERATION,
  COLUMN_INFLIGHT,
  COLUMN_INFLIGHT_TOKENS,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_REFUSED,
  COLUMN_RUNNING,
  COLUMN_SIGNAL_TIME,
  COLUMN_SILENT,
  COLUMN_STATE,
  COLUMN_WAITING,
  cell,
  DEATH_NONE,
  STATE_FREE,
  wideCell,
} from '../endpoints';
import { ceilingOf, rankOf } from '../gate/bands';
import { saturationKeys } from '../gate/conditions';
import { gateHead, gateOn, ROOM_LIMIT, ROOM_PENDING, ROOM_STRETCH, ROOM_WINDOW } from '../gate/layout';
import * as room from '../gate/room';
import { sessionsOn } from '../gate/sessions-layout';
import { sessionsRoom } from '../gate/sessions-room';
import {
  DECISIONS,
  EXPLAIN,
  EXPLAIN_COLUMNS,
  HEADER,
  HEADER_DECISION_COLUMN_BYTES,
  KEYS,
  MATCH,
  REQUEST,
  SCORE,
  SLOTS,
} from '../memory';
import { isMapped } from '../preconditions';
import { placesOf } from '../prefix/match';
import { answer, DECIDE_FURTHER, pickedSlot, request } from '../request-area';
import {
  BRIEF_BYTES,
  BRIEF_ENDPOINTS,
  columnUnits,
  DECISION_COLUMNS_HEAD_BYTES,
  DECISION_ENDPOINT_BYTES,
  DECISION_ENDPOINT_PLACES,
  DECISION_ENDPOINT_ROOM,
  DECISION_ENDPOINTS_MAX,
  DECISION_OPERATION_BYTES,
  DECISION_SCORES,
  DECISION_SCORES_MAX,
  DECISION_UNIT_BYTES,
  DecisionColumnsHead,
  DecisionEndpoint,
  DecisionLogHead,
  decisionLogHead,
  EJECTION_DEATH,
  EJECTION_SILENT,
  KEEP_ASIDE,
  LoggedOperation,
  TRAIL_COLUMNS,
  wholeUnits,
} from './decision-record';
import { PREDICTED_TTFT, predictedColumn } from './predictions';
import { isScorer, OP_PREDICT, Program } from './program';
import { removalOf } from './removals';

/** Address of the ring, 0 = there is none. */
let ring: usize = 0;
/** Units of the ring. */
let units: u32 = 0;
/** One decision in so many keeps its columns; 0 = only refused and marked ones. */
let columnsEvery: u32 = 0;
/** Decisions until the next one that keeps them. */
let untilColumns: u32 = 0;
/** Whether the request decided last keeps its columns. */
let keeps: bool = false;
/** Whether it writes them aside otherwise. */
let asides: bool = false;
/** Bytes of the columns that this decision has written aside. */
let aside: u32 = 0;
/** Unit + 1 of the columns of this decision. */
let written: u32 = 0;

/** @param at address of the room for columns, 0 = there is none */
export function columnsBind(at: usize): void {
  ring = at;
  units = at == 0 ? 0 : columnUnits();
}

/** Address of the room for columns aside, 0 = there is none. */
export function briefColumnsAddress(): usize {
  const all = ring == 0 ? 0 : load<u32>(HEADER + HEADER_DECISION_COLUMN_BYTES) >> 6;
  return units == all ? 0 : ring + ((<usize>units) << 6);
}

/** Bytes that the last decision has written aside, 0 = none. */
export function briefColumnsBytes(): u32 {
  return aside;
}

/** Takes room in the ring for columns that were held. @returns its address, 0 = the columns do not fit */
export function takeColumns(bytes: usize): usize {
  const at = takeUnits(bytes);
  if (ASSERTIONS) assert(at == 0 || isMapped(at, bytes), 'the room for columns is in the memory');
  return at;
}

/** First unit + 1 of the room taken last. */
export function takenUnit(): u32 {
  return written;
}

/** Makes one decision of this thread in `every` keep its columns; 0 = only refused and marked ones. */
export function keepColumnsEvery(every: u32): void {
  columnsEvery = every;
  untilColumns = every;
}

/** Begins a decision. @returns whether its columns are kept, or written aside */
export function columnsBegin(): bool {
  written = 0;
  aside = 0;
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

/** Begins a record without a decision. */
export function columnsBeginRefusal(): void {
  written = 0;
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
  endpoint.slot = slot;
  endpoint.generation = load<u32>(cell(COLUMN_GENERATION, slot));
  endpoint.removed = removalOf(slot);
  endpoint.known = load<u32>(cell(COLUMN_KNOWN, slot));
  endpoint.matched = load<u32>(MATCH + offset);
  store<u64>(at + DECISION_ENDPOINT_PLACES, placesOf(slot));
  endpoint.state = <u16>load<u32>(cell(COLUMN_STATE, slot));
  const death = load<u32>(cell(COLUMN_DEATH, slot));
  const ejection = death == DEATH_NONE ? load<u32>(cell(COLUMN_EJECTION, slot)) : EJECTION_DEATH + death;
  endpoint.ejection = <u16>(ejection | (load<u32>(cell(COLUMN_SILENT, slot)) * EJECTION_SILENT));
  endpoint.rank = <u16>rankOfPick(slot);
  endpoint.refused = <u16>min<u32>(load<u32>(cell(COLUMN_REFUSED, slot)), u16.MAX_VALUE);
  endpoint.waiting = load<f32>(cell(COLUMN_WAITING, slot));
  endpoint.predictedWaiting = predictedWaiting(slot);
  endpoint.running = load<f32>(cell(COLUMN_RUNNING, slot));
  endpoint.kvUsage = load<f32>(cell(COLUMN_KV_USAGE, slot));
  endpoint.signalAge = <f32>max<f64>(0, request().now - load<f64>(wideCell(COLUMN_SIGNAL_TIME, slot)));
  endpoint.inflight = load<u32>(cell(COLUMN_INFLIGHT, slot));
  endpoint.inflightTokens = load<u32>(cell(COLUMN_INFLIGHT_TOKENS, slot));
  endpoint.activeBlocks = load<u32>(cell(COLUMN_ACTIVE_BLOCKS, slot));
  endpoint.score = load<f32>(SCORE + offset);
  endpoint.predictedTtft = predicts ? load<f32>(predictedColumn(PREDICTED_TTFT) + offset) : NaN;
  endpoint.window = gateOn() ? room.f32(ROOM_WINDOW, slot) * room.f32(ROOM_STRETCH, slot) : NaN;
  endpoint.limit = gateOn() ? room.f32(ROOM_LIMIT, slot) : NaN;
  endpoint.pending = gateOn() ? room.u32(ROOM_PENDING + max<u32>(gateHead().bands, 1) - 1, slot) : 0;
  store<f32>(at + DECISION_ENDPOINT_ROOM, sessionsOn() ? sessionsRoom(slot) : NaN);
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
  let first = decisionLogHead().units;
  // Columns have no break: where they would cross the end, they begin again at the beginning.
  if ((first % units) + wanted > units) first += units - (first % units);
  atomic.store<u32>(DECISIONS, first + wanted, offsetof<DecisionLogHead>('units'));
  written = first + 1;
  return ring + ((<usize>(first % units)) << 6);
}

/** Takes the room for columns aside. @returns its address, 0 = the columns do not fit */
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
  columns.number = decisionLogHead().made;
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
