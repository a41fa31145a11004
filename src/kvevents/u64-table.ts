/** Share of the places that may be taken before the table grows. */
const LOAD = 0.7;
const FIRST_PLACES = 64;
/** 2^32 / golden ratio (Knuth, vol. 3, 6.4). */
const GOLDEN = 0x9e3779b1;

/**
 * A map from 64-bit keys to a small number and some 64-bit values, open addressing in typed arrays: ten bytes and eight
 * for each value, where a Map of bigints takes about a hundred. Deleting moves entries back, so searches stay short.
 */
export class U64Table {
  readonly #width: number;
  readonly #entriesMax: number;
  #places = FIRST_PLACES;
  #size = 0;
  #keys: BigUint64Array;
  #halves: Uint32Array;
  #values: BigUint64Array;
  /** 0 = a free place; else the entry's mark plus 1. */
  #marks: Uint16Array;

  /**
   * @param width 64-bit values of one entry
   * @param entriesMax entries that the table may have
   */
  constructor(width: number, entriesMax: number) {
    this.#width = width;
    this.#entriesMax = entriesMax;
    [this.#keys, this.#halves, this.#values, this.#marks] = this.#arrays(FIRST_PLACES);
  }

  get size(): number {
    return this.#size;
  }

  /** Place of a key, or -1. Places move with every `add` and `delete`. */
  find(key: bigint): number {
    const place = this.#search(key);
    return this.#marks[place] === 0 ? -1 : place;
  }

  /** Enters a key that is not there yet, with mark and values of 0. @returns its place, or -1 when the table is full */
  add(key: bigint): number {
    if (this.#size >= this.#entriesMax) return -1;
    if (this.#size + 1 > this.#places * LOAD) this.#grow();
    const place = this.#search(key);
    this.#keys[place] = key;
    this.#marks[place] = 1;
    this.#values.fill(0n, place * this.#width, (place + 1) * this.#width);
    this.#size++;
    return place;
  }

  /** Takes the entry at a place out. */
  delete(place: number): void {
    const mask = this.#places - 1;
    let hole = place;
    for (let next = (hole + 1) & mask; this.#marks[next] !== 0; next = (next + 1) & mask) {
      // An entry may move back to the hole unless its search begins behind it.
      const home = this.#home(this.#halves[next * 2]!, this.#halves[next * 2 + 1]!);
      if (((next - home) & mask) < ((next - hole) & mask)) continue;
      this.#keys[hole] = this.#keys[next]!;
      this.#marks[hole] = this.#marks[next]!;
      this.#values.copyWithin(hole * this.#width, next * this.#width, (next + 1) * this.#width);
      hole = next;
    }
    this.#marks[hole] = 0;
    this.#size--;
  }

  /** The small number of an entry, 0 … 65,534. */
  mark(place: number): number {
    return this.#marks[place]! - 1;
  }

  setMark(place: number, mark: number): void {
    this.#marks[place] = mark + 1;
  }

  value(place: number, index: number): bigint {
    return this.#values[place * this.#width + index]!;
  }

  setValue(place: number, index: number, value: bigint): void {
    this.#values[place * this.#width + index] = value;
  }

  /** The values of an entry from `index` on, as words of 32 bits; a view. */
  words(place: number, index: number): Uint32Array {
    const from = place * this.#width + index;
    return new Uint32Array(this.#values.buffer, from * 8, (this.#width - index) * 2);
  }

  clear(): void {
    this.#places = FIRST_PLACES;
    this.#size = 0;
    [this.#keys, this.#halves, this.#values, this.#marks] = this.#arrays(FIRST_PLACES);
  }

  #arrays(places: number): [BigUint64Array, Uint32Array, BigUint64Array, Uint16Array] {
    const keys = new BigUint64Array(places);
    return [keys, new Uint32Array(keys.buffer), new BigUint64Array(places * this.#width), new Uint16Array(places)];
  }

  /** Returns the place of a key, or the free place for it. */
  #search(key: bigint): number {
    const low = Number(key & 0xffff_ffffn);
    const high = Number(key >> 32n);
    const mask = this.#places - 1;
    let place = this.#home(low, high);
    while (this.#marks[place] !== 0) {
      if (this.#halves[place * 2] === low && this.#halves[place * 2 + 1] === high) break;
      place = (place + 1) & mask;
    }
    return place;
  }

  #home(low: number, high: number): number {
    const mixed = Math.imul(low ^ Math.imul(high, GOLDEN), GOLDEN);
    return (mixed ^ (mixed >>> 15)) & (this.#places - 1);
  }

  #grow(): void {
    const [keys, marks, values, places] = [this.#keys, this.#marks, this.#values, this.#places];
    this.#places *= 2;
    [this.#keys, this.#halves, this.#values, this.#marks] = this.#arrays(this.#places);
    for (let place = 0; place < places; place++) {
      if (marks[place] === 0) continue;
      const to = this.#search(keys[place]!);
      this.#keys[to] = keys[place]!;
      this.#marks[to] = marks[place]!;
      for (let index = 0; index < this.#width; index++) {
        this.#values[to * this.#width + index] = values[place * this.#width + index]!;
      }
    }
  }
}
