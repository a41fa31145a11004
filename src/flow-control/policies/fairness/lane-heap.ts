import type { Lanes } from '../../lanes.js';
import { NONE } from '../../request-slab.js';

/** Children of a node, as in `time-heap.ts`. */
const WIDTH = 4;
/** Lanes that the heap has room for at first. */
const FIRST_SIZE = 16;

/** Lanes by key, then tie; smallest first. Every operation takes O(log n). */
export class LaneHeap {
  readonly #lanes: Lanes;
  #heap = new Int32Array(FIRST_SIZE);
  #size = 0;

  constructor(lanes: Lanes) {
    this.#lanes = lanes;
  }

  get size(): number {
    return this.#size;
  }

  get top(): number {
    return this.#heap[0]!;
  }

  add(lane: number): void {
    if (this.#size === this.#heap.length) {
      const larger = new Int32Array(this.#size * 2);
      larger.set(this.#heap);
      this.#heap = larger;
    }
    this.#put(this.#size++, lane);
    this.#rise(this.#size - 1);
  }

  remove(lane: number): void {
    const place = this.#lanes.place[lane]!;
    this.#lanes.place[lane] = NONE;
    const last = this.#heap[--this.#size]!;
    if (place === this.#size) return;
    this.#put(place, last);
    this.changed(last);
  }

  /** Restores the order after a change of the lane's key or tie. */
  changed(lane: number): void {
    this.#rise(this.#lanes.place[lane]!);
    this.#sink(this.#lanes.place[lane]!);
  }

  /** As `changed`, when the key can only have grown. */
  grown(lane: number): void {
    this.#sink(this.#lanes.place[lane]!);
  }

  #put(place: number, lane: number): void {
    this.#heap[place] = lane;
    this.#lanes.place[lane] = place;
  }

  #before(a: number, b: number): boolean {
    const { key, tie } = this.#lanes;
    return key[a]! < key[b]! || (key[a] === key[b] && tie[a]! < tie[b]!);
  }

  #rise(from: number): void {
    const lane = this.#heap[from]!;
    let place = from;
    while (place > 0) {
      const up = ((place - 1) / WIDTH) | 0;
      const parent = this.#heap[up]!;
      if (!this.#before(lane, parent)) break;
      this.#put(place, parent);
      place = up;
    }
    this.#put(place, lane);
  }

  #sink(from: number): void {
    const lane = this.#heap[from]!;
    let place = from;
    for (;;) {
      const first = place * WIDTH + 1;
      if (first >= this.#size) break;
      const end = Math.min(first + WIDTH, this.#size);
      let least = first;
      for (let at = first + 1; at < end; at++) if (this.#before(this.#heap[at]!, this.#heap[least]!)) least = at;
      const below = this.#heap[least]!;
      if (!this.#before(below, lane)) break;
      this.#put(place, below);
      place = least;
    }
    this.#put(place, lane);
  }
}
