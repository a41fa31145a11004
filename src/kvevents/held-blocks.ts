import type { BlockPlace } from '../contract/block-place.js';
import { U64Table } from './u64-table.js';

/** Places of blocks, nearest first: place `i` has bit `i` of an engine's block, and a count here. */
export const PLACES: readonly BlockPlace[] = ['gpu', 'host', 'disk', 'remote'];

/** Nearest of the places whose bits are set; undefined = none. */
export function nearestOf(bits: number): BlockPlace | undefined {
  return bits === 0 ? undefined : PLACES[31 - Math.clz32(bits & -bits)];
}

const COUNT_BITS = 4;
/** Blocks of the engine counted for one chain hash and place; with more it stays until its endpoint is cleared. */
const COUNT_MAX = 14;

/** By our chain hash: how many blocks of the engine stand for it at each place. Four counts of four bits. */
export class HeldBlocks {
  readonly #marks = new U64Table(0, Number.MAX_SAFE_INTEGER);

  /** Bits of the places at which the block lies. */
  places(hash: bigint): number {
    const found = this.#marks.find(hash);
    return found < 0 ? 0 : bitsOf(this.#marks.mark(found));
  }

  /** One block of the engine more stands for the hash, at a place. */
  add(hash: bigint, place: number): void {
    const found = this.#marks.find(hash);
    const at = found < 0 ? this.#marks.add(hash) : found;
    const mark = this.#marks.mark(at);
    if (countAt(mark, place) < COUNT_MAX) this.#marks.setMark(at, mark + (1 << (COUNT_BITS * place)));
  }

  /** One block of the engine less. */
  remove(hash: bigint, place: number): void {
    const at = this.#marks.find(hash);
    if (at < 0) return;
    const mark = this.#marks.mark(at);
    const count = countAt(mark, place);
    if (count === 0 || count === COUNT_MAX) return;
    const left = mark - (1 << (COUNT_BITS * place));
    if (left === 0) this.#marks.delete(at);
    else this.#marks.setMark(at, left);
  }

  /** Bits of the places at which the block would still lie with `count` blocks of the engine less at one place. */
  placesWithout(hash: bigint, place: number, count: number): number {
    const found = this.#marks.find(hash);
    if (found < 0) return 0;
    const mark = this.#marks.mark(found);
    const known = countAt(mark, place);
    return known === COUNT_MAX || known > count ? bitsOf(mark) : bitsOf(mark) & ~(1 << place);
  }

  clear(): void {
    this.#marks.clear();
  }
}

function countAt(mark: number, place: number): number {
  return (mark >> (COUNT_BITS * place)) & 15;
}

function bitsOf(mark: number): number {
  let bits = 0;
  for (let place = 0; place < PLACES.length; place++) if (countAt(mark, place) !== 0) bits |= 1 << place;
  return bits;
}
