import type { FlowTable } from '../../flow-table.js';
import type { Lanes } from '../../lanes.js';
import { NONE, type RequestSlab } from '../../request-slab.js';

const FIRST_SIZE = 16;

/** A straight line over (service, arrival of the head); the lane with the smallest value is next. */
export interface Slope {
  readonly service: number;
  readonly arrival: number;
}

/**
 * Lanes of one candidate set as a binary heap by the attained service of their flows. Each node also has the earliest
 * and the latest head and the most service below it. A search for the best lane by any weights of service and wait
 * descends from the root and skips the subtrees that cannot be better: exact, and O(log² lanes) on the whole.
 *
 *             service 2 · earliest head 10
 *            /                             \
 *   service 7 · earliest 12        service 3 · earliest 10
 */
export class ServiceHeap {
  readonly #requests: RequestSlab;
  readonly #flows: FlowTable;
  readonly #lanes: Lanes;
  #heap = new Int32Array(FIRST_SIZE);
  #earliest = new Float64Array(FIRST_SIZE);
  #latest = new Float64Array(FIRST_SIZE);
  #most = new Float64Array(FIRST_SIZE);
  #size = 0;
  #best = NONE;
  #bestValue = 0;

  constructor(requests: RequestSlab, flows: FlowTable, lanes: Lanes) {
    this.#requests = requests;
    this.#flows = flows;
    this.#lanes = lanes;
  }

  get size(): number {
    return this.#size;
  }

  get leastService(): number {
    return this.#service(this.#heap[0]!);
  }

  get serviceMax(): number {
    return this.#most[0]!;
  }

  get earliestHeadMs(): number {
    return this.#earliest[0]!;
  }

  get latestHeadMs(): number {
    return this.#latest[0]!;
  }

  add(lane: number): void {
    if (this.#size === this.#heap.length) this.#grow();
    const place = this.#size++;
    this.#put(place, lane);
    this.#settle(place);
  }

  remove(lane: number): void {
    const place = this.#lanes.place[lane]!;
    this.#lanes.place[lane] = NONE;
    const last = this.#heap[--this.#size]!;
    if (place !== this.#size) this.#put(place, last);
    this.#sumUp((this.#size - 1) >> 1);
    if (place !== this.#size) this.#settle(place);
  }

  /** Restores the order after a change of the lane's head or its flow's service. */
  changed(lane: number): void {
    this.#settle(this.#lanes.place[lane]!);
  }

  /** Updates the heap after a multiplication of all services by one factor. */
  rescaled(): void {
    for (let place = this.#size - 1; place >= 0; place--) this.#sum(place);
  }

  /** The lane with the smallest value on a slope; among equal ones the lane with the earliest head. */
  best(slope: Slope): number {
    this.#best = this.#heap[0]!;
    this.#bestValue = Number.POSITIVE_INFINITY;
    this.#search(0, slope);
    return this.#best;
  }

  #search(place: number, slope: Slope): void {
    if (place >= this.#size) return;
    const lane = this.#heap[place]!;
    const service = this.#service(lane);
    if (slope.service * service + slope.arrival * this.#earliest[place]! > this.#bestValue) return;
    const value = slope.service * service + slope.arrival * this.#headMs(lane);
    if (value < this.#bestValue || (value === this.#bestValue && this.#isEarlier(lane, this.#best))) {
      this.#best = lane;
      this.#bestValue = value;
    }
    this.#search(place * 2 + 1, slope);
    this.#search(place * 2 + 2, slope);
  }

  #isEarlier(a: number, b: number): boolean {
    const { head } = this.#lanes;
    return this.#requests.sequence[head[a]!]! < this.#requests.sequence[head[b]!]!;
  }

  #service(lane: number): number {
    return this.#flows.service[this.#lanes.flow[lane]!]!;
  }

  #headMs(lane: number): number {
    return this.#requests.enqueuedMs[this.#lanes.head[lane]!]!;
  }

  #put(place: number, lane: number): void {
    this.#heap[place] = lane;
    this.#lanes.place[lane] = place;
  }

  /** Moves a lane to its position and updates the sums of all moved nodes. */
  #settle(from: number): void {
    const lane = this.#heap[from]!;
    const service = this.#service(lane);
    let place = from;
    while (place > 0) {
      const up = (place - 1) >> 1;
      if (this.#service(this.#heap[up]!) <= service) break;
      this.#put(place, this.#heap[up]!);
      this.#sum(place);
      place = up;
    }
    for (;;) {
      const below = this.#lesserChild(place);
      if (below === NONE || this.#service(this.#heap[below]!) >= service) break;
      this.#put(place, this.#heap[below]!);
      place = below;
    }
    this.#put(place, lane);
    this.#sumUp(place);
  }

  #lesserChild(place: number): number {
    const left = place * 2 + 1;
    if (left >= this.#size) return NONE;
    const right = left + 1;
    return right < this.#size && this.#service(this.#heap[right]!) < this.#service(this.#heap[left]!) ? right : left;
  }

  #sumUp(from: number): void {
    for (let place = from; place >= 0; place = place === 0 ? NONE : (place - 1) >> 1) this.#sum(place);
  }

  #sum(place: number): void {
    if (place >= this.#size) return;
    const lane = this.#heap[place]!;
    let earliest = this.#headMs(lane);
    let latest = earliest;
    let most = this.#service(lane);
    for (let child = place * 2 + 1; child <= place * 2 + 2 && child < this.#size; child++) {
      earliest = Math.min(earliest, this.#earliest[child]!);
      latest = Math.max(latest, this.#latest[child]!);
      most = Math.max(most, this.#most[child]!);
    }
    this.#earliest[place] = earliest;
    this.#latest[place] = latest;
    this.#most[place] = most;
  }

  #grow(): void {
    const size = this.#size * 2;
    const heap = new Int32Array(size);
    heap.set(this.#heap);
    this.#heap = heap;
    this.#earliest = grown(this.#earliest, size);
    this.#latest = grown(this.#latest, size);
    this.#most = grown(this.#most, size);
  }
}

function grown(array: Float64Array<ArrayBuffer>, size: number): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(size);
  larger.set(array);
  return larger;
}
