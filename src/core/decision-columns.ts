import type { PlaceCounts } from '../contract/block-place.js';
import { CORE, type CoreConstant } from './core-names.js';
import type { CoreInstance } from './memory.js';
import { isScorer, type OperationName } from './operations.js';

/** Reason why an endpoint was not picked: number of an operation, or one of these. */
export type Removal = number | 'outside-subset' | 'gate' | 'behind' | 'aside' | 'session' | 'not-admitted';

/** An operation of the program that decided. */
export interface LoggedOperation {
  readonly code: OperationName | undefined;
  readonly weight: number;
}

/** Room on an endpoint by the capacity gate. */
export interface LoggedRoom {
  /** Bound on pending prompt tokens, and the pending ones. */
  readonly window: number;
  readonly pending: number;
  /** Learned limit of requests. */
  readonly limit: number;
  /** Use of what the gate allows, 1 = full. */
  readonly saturation: number;
}

/** One endpoint as a decision saw it, before its charge. Signals are undefined when they were unknown. */
export interface LoggedEndpoint {
  readonly slot: number;
  readonly generation: number;
  /** Operation that removed it, or another reason; undefined = candidate. */
  readonly removed: Removal | undefined;
  readonly draining: boolean;
  readonly ejected: boolean;
  /** Whether it took no connections; `ejected` is false then. */
  readonly dead: boolean;
  /** Whether a request to it had just got no answer, and it was being asked. */
  readonly doubted: boolean;
  /** Whether its requests in flight got no byte. */
  readonly silent: boolean;
  /** Position among the picks from 1; undefined = not picked. */
  readonly rank: number | undefined;
  readonly matchedBlocks: number;
  /** Blocks that it held at each place; undefined = all of them on the GPU. */
  readonly places: PlaceCounts | undefined;
  /** As scraped last, and as predicted for the decision. */
  readonly waiting: number | undefined;
  readonly predictedWaiting: number | undefined;
  /** Requests that its engine refused of late; they count as waiting. */
  readonly refused: number;
  readonly running: number | undefined;
  readonly kvUsage: number | undefined;
  /** Milliseconds since the last scrape; undefined = never scraped. */
  readonly signalAgeMs: number | undefined;
  readonly inflight: number;
  readonly inflightTokens: number;
  readonly activeBlocks: number;
  readonly predictedTtftMs: number | undefined;
  /** Tokens that sessions leave of its cache, below 0 when they need more; undefined = unknown. */
  readonly roomTokens: number | undefined;
  /** Bounds of the capacity gate and the prompt tokens pending; undefined without flow control. */
  readonly gate: LoggedRoom | undefined;
  readonly score: number | undefined;
  /** Scores of the scorers, in the order of the operations, before their weights; undefined = it has not run. */
  readonly scores: readonly (number | undefined)[];
}

/** Inputs of a decision. */
export interface DecisionColumns {
  readonly operations: readonly LoggedOperation[];
  /** Positions of the scorers among the operations, in the order of `scores`. */
  readonly scorers: readonly number[];
  readonly endpoints: readonly LoggedEndpoint[];
  /** Endpoints of the pool that are not listed. */
  readonly omitted: number;
  /** Share of every endpoint that the request's band may fill; undefined without flow control. */
  readonly ceiling: number | undefined;
}

const codes = new Map<number, OperationName>(
  (Object.keys(CORE) as CoreConstant[])
    .filter((name): name is OperationName => name.startsWith('OP_') && !name.endsWith('_LAST'))
    .map((name) => [CORE[name], name]),
);

/** The record that columns belong to: its number, and their first unit + 1. */
interface LoggedColumns {
  readonly number: number;
  readonly columns: number;
}

/**
 * The columns of a decision.
 * @param ring address of the thread's part of the log, and `columns` of its ring of columns
 * @returns undefined when they were not kept, or are overwritten
 */
export function readColumns(
  core: CoreInstance,
  ring: number,
  columns: number,
  record: LoggedColumns,
): DecisionColumns | undefined {
  if (!areColumnsKept(core, ring, record)) return undefined;
  const unit = (record.columns - 1) % core.call.columnUnits();
  const found = readAt(core, columns + unit * CORE.DECISION_UNIT_BYTES, record.number);
  // The writer may have overwritten them while they were read.
  return areColumnsKept(core, ring, record) ? found : undefined;
}

/** Whether the columns of a decision were kept and are not overwritten. @param ring as `readColumns` */
export function areColumnsKept(core: CoreInstance, ring: number, { columns }: LoggedColumns): boolean {
  const units = core.call.columnUnits() >>> 0;
  if (columns === 0 || units === 0) return false;
  const taken = Atomics.load(core.i32, (ring + CORE.DECISION_LOG_UNITS) >>> 2) >>> 0;
  return (taken - (columns - 1)) >>> 0 <= units;
}

function readAt(core: CoreInstance, at: number, number: number): DecisionColumns | undefined {
  const { view } = core;
  const word = (offset: number) => view.getUint32(at + offset, true);
  if (word(CORE.DECISION_COLUMNS_NUMBER) !== number) return undefined;
  const count = Math.min(word(CORE.DECISION_COLUMNS_OPERATIONS), CORE.PROGRAM_OPS);
  const list = CORE.DECISION_COLUMNS_HEAD_BYTES;
  const operations = Array.from({ length: count }, (_, i) => ({
    code: codes.get(word(list + i * CORE.DECISION_OPERATION_BYTES)),
    weight: view.getFloat32(at + list + i * CORE.DECISION_OPERATION_BYTES + CORE.DECISION_OPERATION_WEIGHT, true),
  }));
  const scorers = [...operations.keys()]
    .filter((i) => isScorerCode(operations[i]!.code))
    .slice(0, CORE.DECISION_SCORES_MAX);
  const endpoints = Math.min(word(CORE.DECISION_COLUMNS_ENDPOINTS), CORE.DECISION_ENDPOINTS_MAX);
  const from = at + wholeUnits(list + count * CORE.DECISION_OPERATION_BYTES);
  const scored = word(CORE.DECISION_COLUMNS_SCORED) === 1;
  return {
    operations,
    scorers,
    endpoints: Array.from({ length: endpoints }, (_, i) =>
      readEndpoint(core, from + i * CORE.DECISION_ENDPOINT_BYTES, scored, scorers.length),
    ),
    omitted: word(CORE.DECISION_COLUMNS_OMITTED),
    ceiling: numberOf(view.getFloat32(at + CORE.DECISION_COLUMNS_CEILING, true)),
  };
}

/** Bytes with the padding of the last unit. */
function wholeUnits(bytes: number): number {
  return Math.ceil(bytes / CORE.DECISION_UNIT_BYTES) * CORE.DECISION_UNIT_BYTES;
}

function isScorerCode(code: OperationName | undefined): boolean {
  return code !== undefined && isScorer(code);
}

function readEndpoint({ view }: CoreInstance, at: number, scored: boolean, scorers: number): LoggedEndpoint {
  const word = (offset: number) => view.getUint32(at + offset, true);
  const float = (offset: number) => view.getFloat32(at + offset, true);
  const known = word(CORE.DECISION_ENDPOINT_KNOWN);
  const signal = (bit: number, offset: number) => ((known & bit) === 0 ? undefined : float(offset));
  const rank = view.getUint16(at + CORE.DECISION_ENDPOINT_RANK, true);
  const states = view.getUint16(at + CORE.DECISION_ENDPOINT_EJECTION, true);
  const ejection = states % CORE.EJECTION_SILENT;
  const window = float(CORE.DECISION_ENDPOINT_WINDOW);
  const gate = {
    window,
    pending: word(CORE.DECISION_ENDPOINT_PENDING),
    limit: float(CORE.DECISION_ENDPOINT_LIMIT),
    saturation: float(CORE.DECISION_ENDPOINT_SATURATION),
  };
  return {
    slot: word(CORE.DECISION_ENDPOINT_SLOT),
    generation: word(CORE.DECISION_ENDPOINT_GENERATION),
    removed: removalOf(word(CORE.DECISION_ENDPOINT_REMOVED)),
    draining: view.getUint16(at + CORE.DECISION_ENDPOINT_STATE, true) === CORE.STATE_DRAINING,
    ejected: ejection !== 0 && ejection <= CORE.EJECTION_DEATH,
    dead: ejection === CORE.EJECTION_DEATH + CORE.DEATH_DEAD,
    doubted: ejection === CORE.EJECTION_DEATH + CORE.DEATH_DOUBTED,
    silent: (states & CORE.EJECTION_SILENT) !== 0,
    rank: rank === 0 ? undefined : rank,
    matchedBlocks: word(CORE.DECISION_ENDPOINT_MATCHED),
    places: placesAt(view, at + CORE.DECISION_ENDPOINT_PLACES),
    waiting: signal(CORE.SIGNAL_WAITING, CORE.DECISION_ENDPOINT_WAITING),
    predictedWaiting: signal(CORE.SIGNAL_WAITING, CORE.DECISION_ENDPOINT_PREDICTED_WAITING),
    refused: view.getUint16(at + CORE.DECISION_ENDPOINT_REFUSED, true),
    running: signal(CORE.SIGNAL_RUNNING, CORE.DECISION_ENDPOINT_RUNNING),
    kvUsage: signal(CORE.SIGNAL_KV_USAGE, CORE.DECISION_ENDPOINT_KV_USAGE),
    signalAgeMs: known === 0 ? undefined : float(CORE.DECISION_ENDPOINT_AGE),
    inflight: word(CORE.DECISION_ENDPOINT_INFLIGHT),
    inflightTokens: word(CORE.DECISION_ENDPOINT_TOKENS),
    activeBlocks: word(CORE.DECISION_ENDPOINT_ACTIVE),
    predictedTtftMs: numberOf(float(CORE.DECISION_ENDPOINT_TTFT)),
    roomTokens: numberOf(float(CORE.DECISION_ENDPOINT_ROOM)),
    gate: Number.isNaN(window) ? undefined : gate,
    score: scored ? float(CORE.DECISION_ENDPOINT_SCORE) : undefined,
    scores: Array.from({ length: scorers }, (_, i) => numberOf(float(CORE.DECISION_SCORES + i * 4))),
  };
}

/** Blocks at each place as the core writes them; undefined = all on the GPU. */
export function placesAt(view: DataView, at: number): PlaceCounts | undefined {
  const [gpu, host, disk, remote] = [0, 2, 4, 6].map((offset) => view.getUint16(at + offset, true));
  return host === 0 && disk === 0 && remote === 0
    ? undefined
    : { gpu: gpu!, host: host!, disk: disk!, remote: remote! };
}

function numberOf(value: number): number | undefined {
  return Number.isNaN(value) ? undefined : value;
}

/** Reason of a REMOVED_* number; undefined = still a candidate. */
export function removalOf(number: number): Removal | undefined {
  if (number === 0) return undefined;
  if (number === CORE.REMOVED_OUTSIDE_SUBSET) return 'outside-subset';
  if (number === CORE.REMOVED_BY_GATE) return 'gate';
  if (number === CORE.REMOVED_BEHIND) return 'behind';
  if (number === CORE.REMOVED_ASIDE) return 'aside';
  if (number === CORE.REMOVED_BY_SESSIONS) return 'session';
  return number === CORE.REMOVED_NOT_ADMITTED ? 'not-admitted' : number - 1;
}
