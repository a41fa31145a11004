import { CLASSES } from './candidate-sets.js';
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
import { type OrderedRequest, orderOf } from './policies/ordering.js';
import { NONE, type RequestSlab } from './request-slab.js';
import type { BandSettings, FairnessSettings, QueueLimits } from './settings.js';

/** The tables that all bands of a pool share. */
export interface QueueTables {
  readonly requests: RequestSlab;
  readonly lanes: Lanes;
  readonly flows: FlowTable;
}

/** The waiting requests of one priority: where they stand, what they sum up to, and who goes next. */
export class Band {
  readonly priority: number;
  /** Exists without a request too. */
  configured: boolean;
  readonly settings: Omit<BandSettings, 'limits'>;
  limits: QueueLimits;
  readonly fairness: Fairness;
  readonly drain = new DrainRate();
  waiting = 0;
  running = 0;
  bytes = 0;
  tokens = 0;
  /** Sum of the weights of flows that have something waiting. */
  activeWeight = 0;
  idleSinceMs: number;
  readonly #tables: QueueTables;
  readonly #order: LaneOrder;
  readonly #lanesOfClass = new Int32Array(CLASSES);
  /** Lane of each class when one holds all flows. */
  readonly #commonLane = new Int32Array(CLASSES).fill(NONE);
  /** Sets of classes, two words each: those that have a lane, and those whose first request found no endpoint. */
  readonly #filled = new Uint32Array(2);
  readonly #closed = new Uint32Array(2);

  constructor(priority: number, configured: boolean, settings: BandSettings, tables: QueueTables, nowMs: number) {
    this.priority = priority;
    this.configured = configured;
    this.settings = settings;
    this.limits = settings.limits;
    this.idleSinceMs = nowMs;
    this.#tables = tables;
    const { requests, lanes } = tables;
    const byArrival = settings.ordering.kind === 'arrival';
    this.#order = byArrival ? new ListOrder(requests, lanes) : new HeapOrder(requests, lanes);
    this.fairness = fairnessOf(settings.fairness, priority, tables);
  }

  /** Classes 0 to 31 that have something waiting and are not known to be closed. */
  get openLow(): number {
    return (this.#filled[0]! & ~this.#closed[0]!) >>> 0;
  }

  /** Classes 32 to 63. */
  get openHigh(): number {
    return (this.#filled[1]! & ~this.#closed[1]!) >>> 0;
  }

  get filledLow(): number {
    return this.#filled[0]!;
  }

  get filledHigh(): number {
    return this.#filled[1]!;
  }

  /** The first request of a class found no endpoint. */
  close(classOf: number): void {
    this.#closed[classOf >> 5]! |= 1 << (classOf & 31);
  }

  open(low: number, high: number): void {
    this.#closed[0]! &= ~low;
    this.#closed[1]! &= ~high;
  }

  /** Whether a class of these is closed while something waits in it. */
  isClosedAmong(low: number, high: number): boolean {
    const [closedLow, closedHigh] = [this.#closed[0]! & this.#filled[0]!, this.#closed[1]! & this.#filled[1]!];
    return ((closedLow & low) | (closedHigh & high)) !== 0;
  }

  closedClasses(): readonly number[] {
    const closed: number[] = [];
    for (let id = 0; id < CLASSES; id++) if (this.isClosedAmong(...wordsOf(id))) closed.push(id);
    return closed;
  }

  /** The lane of a class with something waiting whose turn it is. */
  headOf(classOf: number): number {
    return this.fairness.choose(...wordsOf(classOf));
  }

  /** Where a request sorts among those of its flow. */
  orderOf(request: OrderedRequest): number {
    return orderOf(this.settings.ordering, request);
  }

  /** Stand a request in the lane of its flow and of a class. */
  place(request: number, classOf: number): void {
    const { requests, lanes } = this.#tables;
    const flow = requests.flow[request]!;
    let lane = this.#findLane(flow, classOf);
    if (lane === NONE) lane = this.#openLane(flow, classOf);
    const headBefore = lanes.head[lane]!;
    this.#order.insert(lane, request);
    requests.lane[request] = lane;
    if (lanes.count[lane]!++ === 0) {
      this.fairness.add(lane);
      if (this.#lanesOfClass[classOf]!++ === 0) this.#filled[classOf >> 5]! |= 1 << (classOf & 31);
    } else if (lanes.head[lane] !== headBefore) this.fairness.headChanged(lane);
    else return;
    this.open(...wordsOf(classOf));
  }

  /** Take a request out of its lane. */
  unplace(request: number): void {
    const { requests, lanes } = this.#tables;
    const lane = requests.lane[request]!;
    const headBefore = lanes.head[lane]!;
    this.#order.remove(lane, request);
    requests.lane[request] = NONE;
    if (--lanes.count[lane]! === 0) this.#closeLane(lane);
    else if (lanes.head[lane] !== headBefore) this.fairness.headChanged(lane);
    // What the closed class was closed for may be gone.
    if (request === headBefore) this.open(...wordsOf(lanes.classOf[lane]!));
  }

  #findLane(flow: number, classOf: number): number {
    if (this.fairness.oneLane) return this.#commonLane[classOf]!;
    const { lanes, flows } = this.#tables;
    let lane = flows.firstLane[flow]!;
    while (lane !== NONE && lanes.classOf[lane] !== classOf) lane = lanes.nextOfFlow[lane]!;
    return lane;
  }

  #openLane(flow: number, classOf: number): number {
    const { lanes, flows } = this.#tables;
    const lane = lanes.take(flow, classOf);
    if (this.fairness.oneLane) this.#commonLane[classOf] = lane;
    else {
      lanes.nextOfFlow[lane] = flows.firstLane[flow]!;
      flows.firstLane[flow] = lane;
    }
    return lane;
  }

  #closeLane(lane: number): void {
    const { lanes } = this.#tables;
    const classOf = lanes.classOf[lane]!;
    this.fairness.remove(lane);
    if (--this.#lanesOfClass[classOf]! === 0) this.#filled[classOf >> 5]! &= ~(1 << (classOf & 31));
    if (this.fairness.oneLane) this.#commonLane[classOf] = NONE;
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

function wordsOf(classOf: number): readonly [number, number] {
  const bit = (1 << (classOf & 31)) >>> 0;
  return classOf < 32 ? [bit, 0] : [0, bit];
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
  }
}

/** Share of the band that a flow has, against weight 1 of the others. */
export function weightOf(settings: FairnessSettings, flow: string): number {
  if (settings.kind !== 'start-time' && settings.kind !== 'deficit-round-robin') return 1;
  return Object.hasOwn(settings.weights, flow) ? settings.weights[flow]! : 1;
}
