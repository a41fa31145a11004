// Endpoints with a few places each, as the simulation of the queues needs them: places are taken and released, limits
// change, endpoints leave and come back under the same slot, and never do two requests have one place.

/** Lower bands leave so many places of an endpoint free for the highest. */
const KEPT_FREE = 1;

export interface Placed {
  readonly handle: number;
  readonly slot: number;
  /** Which of the endpoints that the slot has had. */
  readonly generation: number;
  readonly shard: number;
  output: number;
}

export class SimulatedPool {
  readonly size: number;
  readonly placed = new Map<number, Placed>();
  readonly #limit: number[];
  readonly #load: number[];
  readonly #live: boolean[];
  readonly #generation: number[];

  constructor(size: number) {
    this.size = size;
    this.#limit = new Array<number>(size).fill(3);
    this.#load = new Array<number>(size).fill(0);
    this.#live = new Array<boolean>(size).fill(true);
    this.#generation = new Array<number>(size).fill(0);
  }

  get empty(): boolean {
    return !this.#live.includes(true);
  }

  isLive(slot: number): boolean {
    return this.#live[slot]!;
  }

  live(): readonly number[] {
    return this.#live.flatMap((live, slot) => (live ? [slot] : []));
  }

  hasRoom(slot: number, highest: boolean): boolean {
    return this.#live[slot]! && this.#load[slot]! < this.#limit[slot]! - (highest ? 0 : KEPT_FREE);
  }

  take(handle: number, slot: number, shard: number): void {
    if (!this.hasRoom(slot, true)) throw new Error(`endpoint ${slot} has no place left, and ${handle} took one`);
    this.#load[slot]!++;
    this.placed.set(handle, { handle, slot, generation: this.#generation[slot]!, shard, output: 0 });
  }

  /** A request is over. @returns the slot that has room because of it, or undefined when its endpoint has left */
  vacate(handle: number): number | undefined {
    const { slot, generation } = this.placed.get(handle)!;
    this.placed.delete(handle);
    if (this.#generation[slot] !== generation) return undefined;
    this.#load[slot]!--;
    return slot;
  }

  setLimit(slot: number, limit: number): void {
    this.#limit[slot] = limit;
  }

  /** The endpoint leaves; what it serves runs on without a place. */
  remove(slot: number): void {
    this.#live[slot] = false;
    this.#generation[slot]!++;
    this.#load[slot] = 0;
  }

  restore(slot: number): void {
    this.#live[slot] = true;
  }
}
