/** States of a record. */
export const FREE = 0;
export const WAITING = 1;
export const RUNNING = 2;

/** Value of a link that leads to no record, lane or flow. */
export const NONE = -1;

/**
 * Records of requests, waiting and running, as one array per field, so that a request leaves no garbage. A record is
 * named by its index. Its handle also contains a generation, so that a late call for an ended request finds no record.
 */
export class RequestSlab {
  readonly capacity: number;
  readonly state: Uint8Array;
  /** The owner's name for the request. */
  readonly reference: Int32Array;
  readonly flow: Int32Array;
  /** Candidate set of the request. */
  readonly ownSet: Uint8Array;
  /** Lane of a waiting request; NONE while it runs. */
  readonly lane: Int32Array;
  /** Links of its lane's order, which defines their meaning. */
  readonly next: Int32Array;
  readonly previous: Int32Array;
  readonly child: Int32Array;
  /** Sort key within a lane; smallest first, then by sequence. */
  readonly order: Float64Array;
  /** Number of its arrival. */
  readonly sequence: Float64Array;
  readonly enqueuedMs: Float64Array;
  /** End of the wait set by the client; Infinity = none. */
  readonly ownDeadlineMs: Float64Array;
  /** Due time of the first token; Infinity = no objective. */
  readonly firstTokenDueMs: Float64Array;
  readonly bytes: Float64Array;
  readonly promptTokens: Float64Array;
  readonly uncachedTokens: Float64Array;
  readonly maxTokens: Float64Array;
  /** Tokens of a waiting request in the limits and in the estimates of waits. */
  readonly tokens: Float64Array;
  /** Output tokens of a running request: paid for by its flow, and generated so far. */
  readonly paidOutput: Float64Array;
  readonly seenOutput: Float64Array;
  /** The only endpoint for which it waits; NONE = any candidate. */
  readonly stickySlot: Int32Array;
  /** The only endpoint for which it may start to wait; NONE = none. */
  readonly prefixSlot: Int32Array;
  readonly #generation: Uint32Array;
  #freeHead = NONE;
  #fresh = 0;
  #live = 0;

  /** @param capacity bound on the records, at most 2^20 */
  constructor(capacity: number) {
    if (!Number.isInteger(capacity) || capacity < 1 || capacity > 2 ** 20) {
      throw new RangeError(`the number of queued requests must be 1 to ${2 ** 20}, got ${capacity}`);
    }
    this.capacity = capacity;
    this.state = new Uint8Array(capacity);
    this.reference = new Int32Array(capacity);
    this.flow = new Int32Array(capacity);
    this.ownSet = new Uint8Array(capacity);
    this.lane = new Int32Array(capacity);
    this.next = new Int32Array(capacity);
    this.previous = new Int32Array(capacity);
    this.child = new Int32Array(capacity);
    this.order = new Float64Array(capacity);
    this.sequence = new Float64Array(capacity);
    this.enqueuedMs = new Float64Array(capacity);
    this.ownDeadlineMs = new Float64Array(capacity);
    this.firstTokenDueMs = new Float64Array(capacity);
    this.bytes = new Float64Array(capacity);
    this.promptTokens = new Float64Array(capacity);
    this.uncachedTokens = new Float64Array(capacity);
    this.maxTokens = new Float64Array(capacity);
    this.tokens = new Float64Array(capacity);
    this.seenOutput = new Float64Array(capacity);
    this.paidOutput = new Float64Array(capacity);
    this.stickySlot = new Int32Array(capacity);
    this.prefixSlot = new Int32Array(capacity);
    this.#generation = new Uint32Array(capacity);
  }

  /** Records in use. */
  get live(): number {
    return this.#live;
  }

  /** 1 above the largest index that was ever in use. */
  get used(): number {
    return this.#fresh;
  }

  /** @returns the index of a record, or NONE when all are in use */
  take(): number {
    let index = this.#freeHead;
    if (index !== NONE) this.#freeHead = this.next[index]!;
    else if (this.#fresh < this.capacity) index = this.#fresh++;
    else return NONE;
    this.#live++;
    return index;
  }

  free(index: number): void {
    this.state[index] = FREE;
    this.#generation[index]!++;
    this.next[index] = this.#freeHead;
    this.#freeHead = index;
    this.#live--;
  }

  handleOf(index: number): number {
    return this.#generation[index]! * this.capacity + index;
  }

  /** Index of a handle's record when it is in this state; else NONE. */
  find(handle: number, state: number): number {
    if (!(handle >= 0)) return NONE;
    const index = handle % this.capacity;
    if (this.state[index] !== state || this.handleOf(index) !== handle) return NONE;
    return index;
  }
}
