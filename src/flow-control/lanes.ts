import { NONE } from './request-slab.js';

/**
 * A lane holds the waiting requests of one flow that have the same candidates, in the order of the flow's band:
 *
 *     pool ─ band ─ candidate set ─ lanes, chosen by fairness ─ requests, in the band's order
 *
 * A lane exists while it holds a request, so there are never more lanes than requests.
 */
export class Lanes {
  readonly flow: Int32Array;
  readonly candidateSet: Uint8Array;
  /** The next request; NONE while the lane is being filled or emptied. */
  readonly head: Int32Array;
  readonly tail: Int32Array;
  readonly count: Int32Array;
  /** Place among the lanes of its band and candidate set. */
  readonly place: Int32Array;
  /** Sort key of fairness at its last use; see the policies. */
  readonly key: Float64Array;
  readonly tie: Float64Array;
  readonly nextOfFlow: Int32Array;
  #freeHead = NONE;
  #fresh = 0;

  constructor(capacity: number) {
    this.flow = new Int32Array(capacity);
    this.candidateSet = new Uint8Array(capacity);
    this.head = new Int32Array(capacity);
    this.tail = new Int32Array(capacity);
    this.count = new Int32Array(capacity);
    this.place = new Int32Array(capacity);
    this.key = new Float64Array(capacity);
    this.tie = new Float64Array(capacity);
    this.nextOfFlow = new Int32Array(capacity);
  }

  /** Makes an empty lane; its owner links it to its flow. */
  take(flow: number, candidateSet: number): number {
    let lane = this.#freeHead;
    if (lane !== NONE) this.#freeHead = this.nextOfFlow[lane]!;
    else lane = this.#fresh++;
    this.flow[lane] = flow;
    this.candidateSet[lane] = candidateSet;
    this.head[lane] = NONE;
    this.tail[lane] = NONE;
    this.count[lane] = 0;
    this.place[lane] = NONE;
    this.nextOfFlow[lane] = NONE;
    return lane;
  }

  free(lane: number): void {
    this.nextOfFlow[lane] = this.#freeHead;
    this.#freeHead = lane;
  }
}
