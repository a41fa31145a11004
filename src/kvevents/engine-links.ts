import { U64Table } from './u64-table.js';

/** Words of an entry before its chain hashes, where blocks of the engine end inside blocks of the index. */
const STATE = 0;
const BASE = 1;
const PARENT = 2;
const HEAD_WORDS = 3;
/** Bits of STATE: tokens behind the last whole block, then whole blocks that end here, then the two flags. */
const OVER_BITS = 17n;
const OVER_MASK = (1n << OVER_BITS) - 1n;
const ENDED_BITS = 17n;
const ROOTED = 1n << (OVER_BITS + ENDED_BITS);
const ORPHAN = 1n << (OVER_BITS + ENDED_BITS + 1n);

/** End of an engine's block: where the next one goes on. */
export interface BlockEnd {
  /** Chain hash of the last whole block of the index before the end, or the root of the chain. */
  readonly base: bigint;
  /** Whether `base` is the root: no block of the index is whole yet. */
  readonly isRoot: boolean;
  /** Tokens between that block and the end. */
  readonly over: number;
}

/** One block of the engine to be remembered. */
export interface NewLink extends BlockEnd {
  /** The engine's hash of the block before; undefined = it begins a prompt. */
  readonly parent: bigint | undefined;
  /** Chain hashes of the blocks of the index that end in it. */
  readonly hashes: readonly bigint[];
  /** Tokens of the block. */
  readonly tokens: Uint32Array;
}

/**
 * What an engine's blocks of one size stand for, by the engine's hashes. Blocks that end where blocks of the index end
 * need nothing but their chain hashes; of others their last tokens are kept too, as the next block of the index begins
 * with them.
 */
export class EngineLinks {
  readonly tokens: number;
  readonly #table: U64Table;
  readonly #isAligned: boolean;
  /** Chain hashes of one entry, at most, and tokens that are kept. */
  readonly #width: number;
  readonly #kept: number;

  /** @param tokens of one block of the engine @param blockTokens of one of the index @param entriesMax bound */
  constructor(tokens: number, blockTokens: number, entriesMax: number) {
    this.tokens = tokens;
    this.#isAligned = tokens % blockTokens === 0;
    this.#width = Math.ceil(tokens / blockTokens);
    this.#kept = this.#isAligned ? 0 : Math.min(tokens, blockTokens - 1);
    const words = this.#isAligned ? this.#width : HEAD_WORDS + this.#width + ((this.#kept + 1) >> 1);
    // Small blocks are many: as many tokens fit as with blocks of the index's size.
    this.#table = new U64Table(words, entriesMax * Math.max(1, Math.ceil(blockTokens / tokens)));
  }

  get size(): number {
    return this.#table.size;
  }

  /** Place of an engine's hash, or -1. Places move with every `add` and `delete`. */
  find(engineHash: bigint): number {
    return this.#table.find(engineHash);
  }

  /** Bits of the tiers on which the block lies. */
  tiers(place: number): number {
    return this.#table.mark(place);
  }

  setTiers(place: number, bits: number): void {
    this.#table.setMark(place, bits);
  }

  /** @returns its place, or -1 when the table is full */
  add(engineHash: bigint, link: NewLink): number {
    const table = this.#table;
    const place = table.add(engineHash);
    if (place < 0) return place;
    const from = this.#isAligned ? 0 : HEAD_WORDS;
    for (const [i, hash] of link.hashes.entries()) table.setValue(place, from + i, hash);
    if (this.#isAligned) return place;
    const state = BigInt(link.over) | (BigInt(link.hashes.length) << OVER_BITS);
    const flags = (link.isRoot ? ROOTED : 0n) | (link.parent === undefined ? ORPHAN : 0n);
    table.setValue(place, STATE, state | flags);
    table.setValue(place, BASE, link.base);
    table.setValue(place, PARENT, link.parent ?? 0n);
    const words = table.words(place, HEAD_WORDS + this.#width);
    words.set(link.tokens.subarray(link.tokens.length - this.#kept));
    return place;
  }

  delete(place: number): void {
    this.#table.delete(place);
  }

  /** Chain hashes of the blocks of the index that end in it. */
  hashes(place: number): readonly bigint[] {
    const from = this.#isAligned ? 0 : HEAD_WORDS;
    return Array.from({ length: this.#ended(place) }, (_, i) => this.#table.value(place, from + i));
  }

  end(place: number): BlockEnd {
    if (this.#isAligned) return { base: this.#table.value(place, this.#width - 1), isRoot: false, over: 0 };
    const state = this.#table.value(place, STATE);
    return {
      base: this.#table.value(place, BASE),
      isRoot: (state & ROOTED) !== 0n,
      over: Number(state & OVER_MASK),
    };
  }

  /** The engine's hash of the block before; undefined = it begins a prompt, or no block needs what is before it. */
  parent(place: number): bigint | undefined {
    if (this.#isAligned || (this.#table.value(place, STATE) & ORPHAN) !== 0n) return undefined;
    return this.#table.value(place, PARENT);
  }

  /** The last tokens of the block, fewer than one of the index has; a view. */
  lastTokens(place: number): Uint32Array {
    return this.#table.words(place, HEAD_WORDS + this.#width).subarray(0, this.#kept);
  }

  #ended(place: number): number {
    if (this.#isAligned) return this.#width;
    return Number((this.#table.value(place, STATE) >> OVER_BITS) & ((1n << ENDED_BITS) - 1n));
  }
}
