import { NONE } from './request-slab.js';

/** Output tokens assumed for a flow without answers, until the pool's own mean is known (design prior). */
export const PRIOR_OUTPUT_TOKENS = 200;
/** Minimum weight of the newest output in a flow's mean. */
const WEIGHT_MIN = 0.05;

/**
 * Flows: fairness id and priority, with the account of the service they got. A flow stays in the table while it has
 * waiting or running requests, and afterwards until it is collected.
 */
export class FlowTable {
  readonly capacity: number;
  readonly id: string[] = [];
  /** Priority of its band. */
  readonly priority: Float64Array;
  readonly waiting: Int32Array;
  readonly running: Int32Array;
  /** Waiting tokens. */
  readonly waitingTokens: Float64Array;
  readonly firstLane: Int32Array;
  readonly weight: Float64Array;
  /** Sort key of the fairness policy; only grows. */
  readonly tag: Float64Array;
  /** Order of equal tags: number of the last change of the tag. */
  readonly tie: Float64Array;
  /** Tokens that were paid for and not used. */
  readonly credit: Float64Array;
  /** Attained service of program-aware fairness. */
  readonly service: Float64Array;
  /** Dispatched requests, and the end of the last one (Infinity = none has ended), for turn priority. */
  readonly turns: Float64Array;
  readonly endedMs: Float64Array;
  /** Mean output of its requests, in tokens. */
  readonly outputMean: Float64Array;
  readonly #outputs: Int32Array;
  readonly #idleSinceMs: Float64Array;
  /** 1 = in the list of idle flows, longest idle first. */
  readonly #listed: Uint8Array;
  readonly #idleNext: Int32Array;
  readonly #idlePrevious: Int32Array;
  readonly #byBand = new Map<number, Map<string, number>>();
  #idleFirst = NONE;
  #idleLast = NONE;
  #freeHead = NONE;
  #fresh = 0;
  #size = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.priority = new Float64Array(capacity);
    this.waiting = new Int32Array(capacity);
    this.running = new Int32Array(capacity);
    this.waitingTokens = new Float64Array(capacity);
    this.firstLane = new Int32Array(capacity);
    this.weight = new Float64Array(capacity);
    this.tag = new Float64Array(capacity);
    this.tie = new Float64Array(capacity);
    this.credit = new Float64Array(capacity);
    this.service = new Float64Array(capacity);
    this.turns = new Float64Array(capacity);
    this.endedMs = new Float64Array(capacity);
    this.outputMean = new Float64Array(capacity);
    this.#outputs = new Int32Array(capacity);
    this.#idleSinceMs = new Float64Array(capacity);
    this.#listed = new Uint8Array(capacity);
    this.#idleNext = new Int32Array(capacity);
    this.#idlePrevious = new Int32Array(capacity);
  }

  get size(): number {
    return this.#size;
  }

  find(priority: number, id: string): number {
    return this.#byBand.get(priority)?.get(id) ?? NONE;
  }

  /** Flows of a band, in arbitrary order. */
  ofBand(priority: number): Iterable<number> {
    return this.#byBand.get(priority)?.values() ?? [];
  }

  countOfBand(priority: number): number {
    return this.#byBand.get(priority)?.size ?? 0;
  }

  /**
   * Adds a new flow without an account. When the table is full, the longest idle flow is dropped. @returns NONE when
   * all flows are in use
   */
  open(priority: number, id: string, weight: number, outputMean: number, nowMs: number): number {
    if (this.#size === this.capacity && this.#idleFirst !== NONE) this.#close(this.#idleFirst);
    let flow = this.#freeHead;
    if (flow !== NONE) this.#freeHead = this.#idleNext[flow]!;
    else if (this.#fresh < this.capacity) flow = this.#fresh++;
    else return NONE;
    this.#size++;
    this.id[flow] = id;
    this.priority[flow] = priority;
    this.weight[flow] = weight;
    for (const column of [this.waiting, this.running, this.waitingTokens, this.tag, this.tie, this.credit])
      column[flow] = 0;
    this.service[flow] = 0;
    this.forgetTurns(flow);
    this.firstLane[flow] = NONE;
    this.outputMean[flow] = outputMean;
    this.#outputs[flow] = 1;
    let band = this.#byBand.get(priority);
    if (band === undefined) {
      band = new Map();
      this.#byBand.set(priority, band);
    }
    band.set(id, flow);
    this.#list(flow, nowMs);
    return flow;
  }

  forgetTurns(flow: number): void {
    this.turns[flow] = 0;
    this.endedMs[flow] = Number.POSITIVE_INFINITY;
  }

  /** Drops the flows of a dropped band; all of them are idle. */
  forgetBand(priority: number): void {
    for (const flow of [...this.ofBand(priority)]) this.#close(flow);
  }

  /** Adds a request to the flow. */
  hold(flow: number): void {
    if (this.#listed[flow] === 1) this.#unlist(flow);
  }

  /** Takes a request off the flow. After the last one the flow is idle. */
  release(flow: number, nowMs: number): void {
    const idle = this.waiting[flow] === 0 && this.running[flow] === 0;
    if (idle && this.#listed[flow] === 0) this.#list(flow, nowMs);
  }

  /** Drops flows that have been idle since before `beforeMs`, at most `most`. */
  collect(beforeMs: number, flowsMax: number): void {
    for (let i = 0; i < flowsMax; i++) {
      const flow = this.#idleFirst;
      if (flow === NONE || this.#idleSinceMs[flow]! > beforeMs) return;
      this.#close(flow);
    }
  }

  /** Adds the output of one more request to the mean. */
  learnOutput(flow: number, tokens: number): void {
    const outputs = ++this.#outputs[flow]!;
    const weight = Math.max(WEIGHT_MIN, 1 / outputs);
    this.outputMean[flow]! += weight * (tokens - this.outputMean[flow]!);
  }

  #list(flow: number, nowMs: number): void {
    this.#listed[flow] = 1;
    this.#idleSinceMs[flow] = nowMs;
    this.#idleNext[flow] = NONE;
    this.#idlePrevious[flow] = this.#idleLast;
    if (this.#idleLast === NONE) this.#idleFirst = flow;
    else this.#idleNext[this.#idleLast] = flow;
    this.#idleLast = flow;
  }

  #unlist(flow: number): void {
    this.#listed[flow] = 0;
    const before = this.#idlePrevious[flow]!;
    const after = this.#idleNext[flow]!;
    if (before === NONE) this.#idleFirst = after;
    else this.#idleNext[before] = after;
    if (after === NONE) this.#idleLast = before;
    else this.#idlePrevious[after] = before;
  }

  #close(flow: number): void {
    this.#unlist(flow);
    const priority = this.priority[flow]!;
    const band = this.#byBand.get(priority)!;
    band.delete(this.id[flow]!);
    if (band.size === 0) this.#byBand.delete(priority);
    this.id[flow] = '';
    this.#idleNext[flow] = this.#freeHead;
    this.#freeHead = flow;
    this.#size--;
  }
}
