import type { BandSettings, FairnessSettings, QueueLimits } from '../contract/queue-settings.js';
import { CANDIDATE_SETS_MAX, HELD } from './candidate-sets.js';
import { DrainRate } from './drain-rate.js';
import type { FlowTable } from './flow-table.js';
import { HeapOrder, type LaneOrder, ListOrder } from './lane-order.js';
import type { Lanes } from './lanes.js';
import { BestHead } from './policies/fairness/best-head.js';
import { deficitRoundRobin } from './policies/fairness/deficit-round-robin.js';
import type { Fairness } from './policies/fairness/fairness.js';
import { ProgramAware } from './policies/fairness/program-aware.js';
import { roundRobin } from './policies/fairness/round-robin.js';
import { startTime } from './policies/fairness/start-time.js';
import { Tagged } from './policies/fairness/tagged.js';
import { TurnPriority } from './policies/fairness/turn-priority.js';
import { type OrderedRequest, orderOf } from './policies/ordering.js';
import { NONE, type RequestSlab } from './request-slab.js';

/** Tables that all bands of a pool share. */
export interface QueueTables {
  readonly requests: RequestSlab;
  readonly lanes: Lanes;
  readonly flows: FlowTable;
}

/** Candidate sets 32 to 63 that `dispatch` tries. */
const NOT_HELD = ~(1 << (HELD & 31));

/** The waiting requests of one priority: their lanes, their sums, and the next one to dispatch. */
export class Band {
  readonly priority: number;
  /** A configured band also exists without a request. */
  configured: boolean;
  readonly settings: Omit<BandSettings, 'limits' | 'ttlMs'>;
  limits: QueueLimits;
  /** Longest wait of a request in milliseconds while the pool has endpoints. */
  ttlMs: number;
  readonly fairness: Fairness;
  readonly drain = new DrainRate();
  waiting = 0;
  running = 0;
  bytes = 0;
  tokens = 0;
  /** Sum of the weights of flows with waiting requests. */
  activeWeight = 0;
  idleSinceMs: number;
  readonly #tables: QueueTables;
  readonly #order: LaneOrder;
  readonly #lanesOfSet = new Int32Array(CANDIDATE_SETS_MAX);
  /** Lane of each candidate set, for policies with one lane for all flows. */
  readonly #commonLane = new Int32Array(CANDIDATE_SETS_MAX).fill(NONE);
  /** Bit masks of candidate sets, two words each: sets with a lane, and sets whose first request found no endpoint. */
  readonly #filled = new Uint32Array(2);
  readonly #closed = new Uint32Array(2);

  constructor(
    priority: number,
    configured: boolean,
    settings: BandSettings & { readonly ttlMs: number },
    tables: QueueTables,
    nowMs: number,
  ) {
    this.priority = priority;
    this.configured = configured;
    this.settings = settings;
    this.limits = settings.limits;
    this.ttlMs = settings.ttlMs;
    this.idleSinceMs = nowMs;
    this.#tables = tables;
    const { requests, lanes } = tables;
    const byArrival = settings.ordering.kind === 'arrival';
    this.#order = byArrival ? new ListOrder(requests, lanes) : new HeapOrder(requests, lanes);
    this.fairness = fairnessOf(settings.fairness, priority, tables);
  }

  /** Candidate sets 0 to 31 with waiting requests that are not known to be closed. */
  get openLow(): number {
    return (this.#filled[0]! & ~this.#closed[0]!) >>> 0;
  }

  /** Candidate sets 32 to 63. */
  get openHigh(): number {
    return (this.#filled[1]! & ~this.#closed[1]! & NOT_HELD) >>> 0;
  }

  /** Whether turns are held. */
  get holds(): boolean {
    return (this.#filled[1]! & ~NOT_HELD) !== 0;
  }

  get filledLow(): number {
    return this.#filled[0]!;
  }

  get filledHigh(): number {
    return this.#filled[1]!;
  }

  /** Marks a candidate set as closed, because its first request found no endpoint. */
  close(candidateSet: number): void {
    this.#closed[candidateSet >> 5]! |= 1 << (candidateSet & 31);
  }

  open(low: number, high: number): void {
    this.#closed[0]! &= ~low;
    this.#closed[1]! &= ~high;
  }

  /** Whether one of these candidate sets is closed and has waiting requests. */
  isClosedAmong(low: number, high: number): boolean {
    const [closedLow, closedHigh] = [this.#closed[0]! & this.#filled[0]!, this.#closed[1]! & this.#filled[1]!];
    return ((closedLow & low) | (closedHigh & high)) !== 0;
  }

  closedSets(): readonly number[] {
    const closed: number[] = [];
    for (let id = 0; id < CANDIDATE_SETS_MAX; id++) if (this.isClosedAmong(...wordsOf(id))) closed.push(id);
    return closed;
  }

  /** The lane of a candidate set that goes next. */
  headOf(candidateSet: number): number {
    return this.fairness.choose(...wordsOf(candidateSet));
  }

  /** Sort key of a request among those of its flow. */
  orderOf(request: OrderedRequest): number {
    return orderOf(this.settings.ordering, request);
  }

  /** Puts a request into the lane of its flow and a candidate set. */
  place(request: number, candidateSet: number): void {
    const { requests, lanes } = this.#tables;
    const flow = requests.flow[request]!;
    let lane = this.#findLane(flow, candidateSet);
    if (lane === NONE) lane = this.#openLane(flow, candidateSet);
    const headBefore = lanes.head[lane]!;
    this.#order.insert(lane, request);
    requests.lane[request] = lane;
    if (lanes.count[lane]!++ === 0) {
      this.fairness.add(lane);
      if (this.#lanesOfSet[candidateSet]!++ === 0) this.#filled[candidateSet >> 5]! |= 1 << (candidateSet & 31);
    } else if (lanes.head[lane] !== headBefore) this.fairness.headChanged(lane);
    else return;
    this.open(...wordsOf(candidateSet));
  }

  /** Takes a request out of its lane. */
  unplace(request: number): void {
    const { requests, lanes } = this.#tables;
    const lane = requests.lane[request]!;
    const headBefore = lanes.head[lane]!;
    this.#order.remove(lane, request);
    requests.lane[request] = NONE;
    if (--lanes.count[lane]! === 0) this.#closeLane(lane);
    else if (lanes.head[lane] !== headBefore) this.fairness.headChanged(lane);
    // The reason that closed the set concerned the old head and may not hold for the new one.
    if (request === headBefore) this.open(...wordsOf(lanes.candidateSet[lane]!));
  }

  #findLane(flow: number, candidateSet: number): number {
    if (this.fairness.oneLane) return this.#commonLane[candidateSet]!;
    const { lanes, flows } = this.#tables;
    let lane = flows.firstLane[flow]!;
    while (lane !== NONE && lanes.candidateSet[lane] !== candidateSet) lane = lanes.nextOfFlow[lane]!;
    return lane;
  }

  #openLane(flow: number, candidateSet: number): number {
    const { lanes, flows } = this.#tables;
    const lane = lanes.take(flow, candidateSet);
    if (this.fairness.oneLane) this.#commonLane[candidateSet] = lane;
    else {
      lanes.nextOfFlow[lane] = flows.firstLane[flow]!;
      flows.firstLane[flow] = lane;
    }
    return lane;
  }

  #closeLane(lane: number): void {
    const { lanes } = this.#tables;
    const candidateSet = lanes.candidateSet[lane]!;
    this.fairness.remove(lane);
    if (--this.#lanesOfSet[candidateSet]! === 0) this.#filled[candidateSet >> 5]! &= ~(1 << (candidateSet & 31));
    if (this.fairness.oneLane) this.#commonLane[candidateSet] = NONE;
    else this.#unlink(lane);
    lanes.free(lane);
  }

  #unlink(lane: number): void {
    const { lanes, flows } = this.#tables;
    const flow = lanes.flow[lane]!;
    if (flows.firstLane[flow] === lane) {
      flows.firstLane[flow] = lanes.nextOfFlow[lane]!;
      return;
    }
    let before = flows.firstLane[flow]!;
    while (lanes.nextOfFlow[before] !== lane) before = lanes.nextOfFlow[before]!;
    lanes.nextOfFlow[before] = lanes.nextOfFlow[lane]!;
  }
}

function wordsOf(candidateSet: number): readonly [number, number] {
  const bit = (1 << (candidateSet & 31)) >>> 0;
  return candidateSet < 32 ? [bit, 0] : [0, bit];
}

function fairnessOf(settings: FairnessSettings, priority: number, tables: QueueTables): Fairness {
  const { requests, flows, lanes } = tables;
  switch (settings.kind) {
    case 'global-strict':
      return new BestHead(requests, lanes);
    case 'round-robin':
      return new Tagged(flows, lanes, roundRobin);
    case 'start-time':
      return new Tagged(flows, lanes, startTime);
    case 'deficit-round-robin':
      return new Tagged(flows, lanes, deficitRoundRobin(settings.quantumTokens));
    case 'program-aware':
      return new ProgramAware(requests, flows, lanes, settings, () => flows.ofBand(priority));
    case 'turn-priority':
      return new TurnPriority(requests, flows, lanes, settings);
  }
}

/** Share of the band that a flow gets; the default weight is 1. */
export function weightOf(settings: FairnessSettings, flow: string): number {
  if (settings.kind !== 'start-time' && settings.kind !== 'deficit-round-robin') return 1;
  return Object.hasOwn(settings.weights, flow) ? settings.weights[flow]! : 1;
}

/**
 * The flows of a replaced band keep the differences between their accounts if the policy is the same.
 * @param next settings of the band in its place; undefined = there is none
 */
export function adoptAccounts(flows: FlowTable, old: Band, next: FairnessSettings | undefined): void {
  const all = [...flows.ofBand(old.priority)];
  const kept = next?.kind === old.settings.fairness.kind;
  const base = Math.min(...all.map((flow) => flows.tag[flow]!));
  for (const flow of all) {
    flows.tag[flow] = kept ? flows.tag[flow]! - base : 0;
    flows.service[flow] = 0;
    if (!kept) {
      flows.credit[flow] = 0;
      flows.forgetTurns(flow);
    }
    if (next !== undefined) flows.weight[flow] = weightOf(next, flows.id[flow]!);
  }
}
