import type { LowerPlace } from '../../../src/contract/block-place.js';
import { KvTiers, type TierSettings } from './kv-tiers.js';

const NONE = -1;

/** Hears what the prefix cache of an engine gains and loses. Contents are ids of chained blocks. */
export interface CacheListener {
  /** Called with new content. `parent`: the content before it, -1 at the beginning of a prompt. */
  stored(content: number, parent: number): void;
  removed(content: number): void;
  /** The nearest place of a content is a tier below the GPU now. */
  moved(content: number, place: LowerPlace): void;
}

/**
 * The KV blocks of one engine with its prefix cache, as vLLM v1 keeps them. Blocks in use have a reference count. An
 * unused block keeps its content and joins the end of the free list. A new block is taken from the head of that list,
 * which has been unused longest, and loses its content.
 *
 * A content is the id of a block of tokens after exactly the blocks before it; ids are small whole numbers.
 */
export class KvBlocks {
  readonly count: number;
  /** Physical block that holds a content, plus one. */
  readonly #holder: Int32Array;
  /** Content of a physical block. */
  readonly #content: Int32Array;
  readonly #users: Int32Array;
  /** The row of unused blocks; entry `count` is its sentinel. */
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  #free: number;
  #listener: CacheListener | undefined;
  /** Tiers below the GPU; undefined = there are none. */
  readonly #tiers: KvTiers | undefined;

  /**
   * @param count physical blocks
   * @param contents one more than the largest content id
   */
  constructor(count: number, contents: number, tiers: readonly TierSettings[] = []) {
    this.count = count;
    if (tiers.length > 0) this.#tiers = new KvTiers(tiers, (content, place) => this.#contentLeft(content, place));
    this.#holder = new Int32Array(contents);
    this.#content = new Int32Array(count).fill(NONE);
    this.#users = new Int32Array(count);
    this.#next = new Int32Array(count + 1);
    this.#previous = new Int32Array(count + 1);
    this.#free = count;
    for (let i = 0; i <= count; i++) {
      this.#next[i] = i === count ? 0 : i + 1;
      this.#previous[i] = i === 0 ? count : i - 1;
    }
  }

  listen(listener: CacheListener): void {
    this.#listener = listener;
  }

  /** Unused blocks, cached ones included. */
  get free(): number {
    return this.#free;
  }

  /** Share of the blocks in use. */
  get usage(): number {
    return 1 - this.#free / this.count;
  }

  /** Returns the number of cached contents before the first gap, of the first `most` of a chain. */
  cachedRun(chain: Int32Array, blocksMax: number): number {
    const end = Math.min(blocksMax, chain.length);
    let run = 0;
    while (run < end && this.#holder[chain[run]!]! !== 0) run++;
    return run;
  }

  /** Returns the number of contents before the first one that neither the GPU nor a tier has, of the first `most`. */
  reachableRun(chain: Int32Array, blocksMax: number): number {
    if (this.#tiers === undefined) return this.cachedRun(chain, blocksMax);
    const end = Math.min(blocksMax, chain.length);
    let run = 0;
    while (run < end && (this.holds(chain[run]!) || this.#tiers.loadMs(chain[run]!) !== undefined)) run++;
    return run;
  }

  /** Whether the GPU has a content. */
  holds(content: number): boolean {
    return this.#holder[content] !== 0;
  }

  /** Milliseconds in which a tier gives a content back, which one of them has. */
  loadMs(content: number): number {
    return this.#tiers?.loadMs(content) ?? 0;
  }

  /** Number of the first `blocks` contents that are cached and in no use: using them takes them from the free ones. */
  unusedOf(chain: Int32Array, blocks: number): number {
    let unused = 0;
    for (let i = 0; i < blocks; i++) {
      const block = this.#holder[chain[i]!]! - 1;
      if (block >= 0 && this.#users[block] === 0) unused++;
    }
    return unused;
  }

  /** Uses the block that holds a cached content. @returns the block */
  share(content: number): number {
    const block = this.#holder[content]! - 1;
    if (this.#users[block]!++ === 0) this.#unlink(block);
    return block;
  }

  /** Uses a free block, which the caller has checked with `free`. @returns the block */
  take(): number {
    const block = this.#next[this.count]!;
    this.#unlink(block);
    this.#forget(block);
    this.#users[block] = 1;
    return block;
  }

  /** Notes that a block is full: it holds `content` from now on, unless another one does already. */
  fill(block: number, content: number, parent: number): void {
    if (this.#holder[content] !== 0) return;
    this.#holder[content] = block + 1;
    this.#content[block] = content;
    this.#tiers?.touch(content);
    this.#listener?.stored(content, parent);
  }

  /** Stops using a block. With its last use it goes to the end of the free list. */
  release(block: number): void {
    if (--this.#users[block]! > 0) return;
    const last = this.#previous[this.count]!;
    this.#next[last] = block;
    this.#previous[block] = last;
    this.#next[block] = this.count;
    this.#previous[this.count] = block;
    this.#free++;
  }

  /** Drops the content of all unused blocks, and that of the tiers. */
  clear(): void {
    this.#tiers?.clear();
    for (let block = 0; block < this.count; block++) if (this.#users[block] === 0) this.#drop(block);
  }

  #unlink(block: number): void {
    const next = this.#next[block]!;
    const previous = this.#previous[block]!;
    this.#next[previous] = next;
    this.#previous[next] = previous;
    this.#free--;
  }

  /** Drops the content of a block, which goes to the tiers where there are some. */
  #forget(block: number): void {
    const content = this.#content[block]!;
    if (this.#tiers === undefined || content === NONE) {
      this.#drop(block);
      return;
    }
    this.#content[block] = NONE;
    this.#holder[content] = 0;
    this.#tiers.keep(content);
  }

  #drop(block: number): void {
    const content = this.#content[block]!;
    if (content === NONE) return;
    this.#content[block] = NONE;
    this.#holder[content] = 0;
    this.#listener?.removed(content);
  }

  /** A tier has taken a content, or the last one has dropped it. */
  #contentLeft(content: number, place: LowerPlace | undefined): void {
    if (this.holds(content)) return;
    if (place === undefined) this.#listener?.removed(content);
    else this.#listener?.moved(content, place);
  }

  /** Used blocks and free ones add up, the row has as many as are free, and holders and contents agree. For tests. */
  check(): string | undefined {
    let length = 0;
    for (let at = this.#next[this.count]!; at !== this.count; at = this.#next[at]!) {
      if (this.#users[at] !== 0) return `block ${at} waits and is in use`;
      length++;
    }
    if (length !== this.#free) return `${length} blocks wait, ${this.#free} are counted as free`;
    const used = this.#users.reduce((sum, users) => sum + (users > 0 ? 1 : 0), 0);
    if (used + length !== this.count) return `${used} used and ${length} free blocks are not ${this.count}`;
    for (let block = 0; block < this.count; block++) {
      const content = this.#content[block]!;
      if (content !== NONE && this.#holder[content] !== block + 1)
        return `block ${block} is not the holder of ${content}`;
    }
    return undefined;
  }
}
