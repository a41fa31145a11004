import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

/** Requests whose columns a thread holds; 2.4 KB each, made in pieces as they are needed. */
const HELD_MAX = 16_384;
const PIECE = 256;

/**
 * Columns of requests in flight, copied at their decisions, so that they can be kept when a request proves slow, moved
 * or failed. One thread owns it.
 */
export class HeldColumns {
  readonly #core: CoreInstance;
  readonly #memory: Buffer;
  readonly #brief: number;
  /** Place + 1 of the columns of each record of the thread, 0 = none. */
  readonly #places: Uint16Array;
  readonly #pieces: Buffer[] = [];
  readonly #free: number[] = [];
  readonly #bytes = new Uint16Array(HELD_MAX);

  /** @param records of the thread's decision log */
  constructor(core: CoreInstance, records: number) {
    this.#core = core;
    this.#memory = Buffer.from(core.bytes.buffer);
    this.#brief = core.call.briefColumnsAddress() >>> 0;
    this.#places = new Uint16Array(this.#brief === 0 ? 0 : records);
  }

  /** Holds the columns of the last decision, if it wrote some aside. */
  hold(number: number): void {
    if (this.#places.length === 0) return;
    this.#drop(number);
    const bytes = this.#core.call.briefColumnsBytes() >>> 0;
    if (bytes === 0) return;
    const place = this.#take();
    if (place < 0) return;
    this.#memory.copy(this.#piece(place), (place % PIECE) * CORE.BRIEF_BYTES, this.#brief, this.#brief + bytes);
    this.#bytes[place] = bytes;
    this.#places[number % this.#places.length] = place + 1;
  }

  /**
   * Lets the columns of a record go.
   * @param kept true = writes them into the ring of the log
   * @returns unit of the ring + 1; 0 = none were held, or not kept
   */
  release(number: number, kept: boolean): number {
    const place = (this.#places[number % this.#places.length] ?? 0) - 1;
    if (place < 0) return 0;
    this.#drop(number);
    if (!kept) return 0;
    const bytes = this.#bytes[place]!;
    const at = this.#core.call.takeColumns(bytes) >>> 0;
    if (at === 0) return 0;
    const from = (place % PIECE) * CORE.BRIEF_BYTES;
    this.#piece(place).copy(this.#memory, at, from, from + bytes);
    return this.#core.call.takenUnit() >>> 0;
  }

  #drop(number: number): void {
    const at = number % this.#places.length;
    const place = this.#places[at]!;
    if (place === 0) return;
    this.#places[at] = 0;
    this.#free.push(place - 1);
  }

  #take(): number {
    const place = this.#free.pop();
    if (place !== undefined) return place;
    const next = this.#pieces.length * PIECE;
    if (next >= HELD_MAX) return -1;
    this.#pieces.push(Buffer.allocUnsafeSlow(PIECE * CORE.BRIEF_BYTES));
    for (let i = PIECE - 1; i > 0; i--) this.#free.push(next + i);
    return next;
  }

  #piece(place: number): Buffer {
    return this.#pieces[Math.floor(place / PIECE)]!;
  }
}

/** Tells the slowest of late: beyond the time that one request in twenty exceeds. */
export class SlowTail {
  #bound = 0;

  /**
   * Whether a time is in the tail; learns from it. A step of 5 %, up 19 times as far as down, rests at one in twenty.
   */
  isSlow(ms: number): boolean {
    if (this.#bound === 0) {
      this.#bound = ms;
      return false;
    }
    const slow = ms > this.#bound;
    this.#bound *= slow ? 1 + STEP * (1 - TAIL) : 1 - STEP * TAIL;
    return slow;
  }
}

const TAIL = 0.05;
const STEP = 0.05;
