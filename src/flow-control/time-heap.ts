import { NONE } from './request-slab.js';

/** Children of a node. Four give fewer levels than two, and siblings share a cache line. */
const WIDTH = 4;

/** Records by a time, earliest first, each removable by its index. All operations take O(log n). */
export class TimeHeap {
  readonly #heap: Int32Array;
  readonly #place: Int32Array;
  readonly #time: Float64Array;
  #size = 0;

  constructor(capacity: number) {
    this.#heap = new Int32Array(capacity);
    this.#place = new Int32Array(capacity).fill(NONE);
    this.#time = new Float64Array(capacity);
  }

  get size(): number {
    return this.#size;
  }

  /** Infinity when empty. */
  get earliestMs(): number {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : this.#time[this.#heap[0]!]!;
  }

  /** The record with the earliest time, or NONE. */
  get first(): number {
    return this.#size === 0 ? NONE : this.#heap[0]!;
  }

  has(index: number): boolean {
    return this.#place[index] !== NONE;
  }

  /** A record at Infinity is never due and is not stored. */
  set(index: number, timeMs: number): void {
    if (timeMs === Number.POSITIVE_INFINITY) {
      this.remove(index);
      return;
    }
    this.#time[index] = timeMs;
    if (this.#place[index] === NONE) {
      this.#place[index] = this.#size;
      this.#heap[this.#size++] = index;
    }
    this.#rise(this.#place[index]!);
    this.#sink(this.#place[index]!);
  }

  remove(index: number): void {
    const place = this.#place[index]!;
    if (place === NONE) return;
    this.#place[index] = NONE;
    const last = this.#heap[--this.#size]!;
    if (place === this.#size) return;
    this.#put(place, last);
    this.#rise(place);
    this.#sink(this.#place[last]!);
  }

  #put(place: number, index: number): void {
    this.#heap[place] = index;
    this.#place[index] = place;
  }

  #rise(from: number): void {
    const index = this.#heap[from]!;
    const time = this.#time[index]!;
    let place = from;
    while (place > 0) {
      const up = ((place - 1) / WIDTH) | 0;
      const parent = this.#heap[up]!;
      if (this.#time[parent]! <= time) break;
      this.#put(place, parent);
      place = up;
    }
    this.#put(place, index);
  }

  #sink(from: number): void {
    const index = this.#heap[from]!;
    const time = this.#time[index]!;
    let place = from;
    for (;;) {
      const first = place * WIDTH + 1;
      if (first >= this.#size) break;
      const end = Math.min(first + WIDTH, this.#size);
      let least = first;
      for (let at = first + 1; at < end; at++) {
        if (this.#time[this.#heap[at]!]! < this.#time[this.#heap[least]!]!) least = at;
      }
      const below = this.#heap[least]!;
      if (this.#time[below]! >= time) break;
      this.#put(place, below);
      place = least;
    }
    this.#put(place, index);
  }
}
