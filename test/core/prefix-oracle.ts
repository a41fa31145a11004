import type { BlockPlace } from '../../dist/src/contract/block-place.js';

/** One block of a chain in the oracle: who holds it, and what needs it to stay known. */
interface OracleBlock {
  readonly hash: bigint;
  readonly parent: OracleBlock | undefined;
  readonly children: Map<bigint, OracleBlock>;
  /** Nearest place of the block on each endpoint that holds it. */
  readonly holders: Map<number, BlockPlace>;
  pins: number;
}

/**
 * The prefix index as plainly as it can be said: a tree with one node a block. A block is known as long as somebody
 * holds it or needs something behind it. Unbounded; nothing is ever evicted.
 */
export class PrefixOracle {
  readonly #roots = new Map<bigint, OracleBlock>();
  readonly #known = new Map<bigint, OracleBlock>();

  knows(hash: bigint): boolean {
    return this.#known.has(hash);
  }

  get blocks(): number {
    return this.#known.size;
  }

  held(slot: number): number {
    let count = 0;
    for (const block of this.#known.values()) if (block.holders.has(slot)) count++;
    return count;
  }

  heldHashes(slot: number): bigint[] {
    return [...this.#known.values()].filter((block) => block.holders.has(slot)).map((block) => block.hash);
  }

  /** `slot` holds one block that is known already. */
  hold(slot: number, hash: bigint): void {
    const block = this.#known.get(hash);
    if (!block) throw new Error(`block ${hash} is not known`);
    block.holders.set(slot, 'gpu');
  }

  insert(slot: number, chain: readonly bigint[]): void {
    for (const block of this.#grow(undefined, chain)) block.holders.set(slot, 'gpu');
  }

  /** An engine's event; blocks behind an unknown parent can never be part of a contiguous prefix and are not kept. */
  store(slot: number, parent: bigint | undefined, hashes: readonly bigint[], place: BlockPlace = 'gpu'): void {
    const from = parent === undefined ? undefined : this.#known.get(parent);
    if (parent !== undefined && !from) return;
    for (const block of this.#grow(from, hashes)) block.holders.set(slot, place);
  }

  /** What the slot holds of some blocks lies at `place`. */
  move(slot: number, hashes: readonly bigint[], place: BlockPlace): void {
    for (const hash of hashes) {
      const holders = this.#known.get(hash)?.holders;
      if (holders?.has(slot)) holders.set(slot, place);
    }
  }

  remove(slot: number, hashes: readonly bigint[]): void {
    for (const hash of hashes) {
      const block = this.#known.get(hash);
      if (block?.holders.delete(slot)) this.#forget(block);
    }
  }

  removeEndpoint(slot: number): void {
    for (const block of [...this.#known.values()]) if (block.holders.delete(slot)) this.#forget(block);
  }

  pin(chain: readonly bigint[]): void {
    const last = this.#grow(undefined, chain).at(-1);
    if (last) last.pins++;
  }

  unpin(chain: readonly bigint[]): void {
    const last = this.#known.get(chain.at(-1)!);
    if (!last) throw new Error('unpinned what was not pinned');
    last.pins--;
    this.#forget(last);
  }

  /** Contiguous blocks from the first one, for every slot below `slots`. */
  match(chain: readonly bigint[], slots: number): number[] {
    const matched = new Array<number>(slots).fill(0);
    let alive = Array.from({ length: slots }, (_, slot) => slot);
    let level = this.#roots;
    for (const hash of chain) {
      const block = level.get(hash);
      if (!block) break;
      alive = alive.filter((slot) => block.holders.has(slot));
      for (const slot of alive) matched[slot]!++;
      level = block.children;
    }
    return matched;
  }

  /** Blocks that the slot holds without a gap from the first one, by place. */
  matchedAt(chain: readonly bigint[], slot: number): Record<BlockPlace, number> {
    const counts = { gpu: 0, host: 0, disk: 0, remote: 0 };
    let level = this.#roots;
    for (const hash of chain) {
      const block = level.get(hash);
      const place = block?.holders.get(slot);
      if (!block || place === undefined) break;
      counts[place]++;
      level = block.children;
    }
    return counts;
  }

  #grow(from: OracleBlock | undefined, hashes: readonly bigint[]): OracleBlock[] {
    const path: OracleBlock[] = [];
    let parent = from;
    for (const hash of hashes) {
      const level: Map<bigint, OracleBlock> = parent ? parent.children : this.#roots;
      let block = level.get(hash);
      if (!block) {
        block = { hash, parent, children: new Map(), holders: new Map(), pins: 0 };
        level.set(hash, block);
        this.#known.set(hash, block);
      }
      path.push(block);
      parent = block;
    }
    return path;
  }

  #forget(block: OracleBlock): void {
    let at: OracleBlock | undefined = block;
    while (at && at.holders.size === 0 && at.children.size === 0 && at.pins === 0) {
      const level: Map<bigint, OracleBlock> = at.parent ? at.parent.children : this.#roots;
      level.delete(at.hash);
      if (this.#known.get(at.hash) === at) this.#known.delete(at.hash);
      at = at.parent;
    }
  }
}

/** A small generator with a seed, so that a failing history can be run again. */
export class Lot {
  #state: bigint;

  constructor(seed: number) {
    this.#state = BigInt(seed) * 0x9e3779b97f4a7c15n + 1n;
  }

  next64(): bigint {
    this.#state = BigInt.asUintN(64, this.#state + 0x9e3779b97f4a7c15n);
    let z = this.#state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return z ^ (z >> 31n);
  }

  below(bound: number): number {
    return Number(this.next64() % BigInt(bound));
  }
}

/** Hash of a block behind `parent`: chained, and cut to `mask` so that short hashes collide. */
export function chainHash(parent: bigint, content: number, mask: bigint): bigint {
  let z = BigInt.asUintN(64, (parent ^ (BigInt(content) * 0x9e3779b97f4a7c15n)) + 0x632be59bd9b4e019n);
  z = BigInt.asUintN(64, (z ^ (z >> 29n)) * 0xbf58476d1ce4e5b9n);
  z = BigInt.asUintN(64, (z ^ (z >> 32n)) * 0x94d049bb133111ebn);
  return (z ^ (z >> 29n)) & mask;
}

export const wholeHash = 0xffff_ffff_ffff_ffffn;

/**
 * Prompts that fork from one another: a random tree of block contents, cut anywhere.
 */
export class PromptFamily {
  readonly #chains: bigint[][] = [];
  readonly #lot: Lot;
  readonly #longest: number;
  readonly #mask: bigint;
  #content = 0;

  constructor(lot: Lot, longest: number, mask: bigint = wholeHash) {
    this.#lot = lot;
    this.#longest = longest;
    this.#mask = mask;
  }

  /** A chain: new, a fork of an earlier one, its beginning, or its continuation. */
  chain(): bigint[] {
    const lot = this.#lot;
    const earlier = this.#chains.length > 0 && lot.below(8) !== 0 ? this.#chains[lot.below(this.#chains.length)]! : [];
    const kept = earlier.slice(0, lot.below(3) === 0 ? earlier.length : lot.below(earlier.length + 1));
    const length = Math.min(this.#longest, kept.length + (lot.below(3) === 0 ? 0 : 1 + lot.below(this.#longest)));
    while (kept.length < length) {
      kept.push(chainHash(kept.at(-1) ?? 0n, ++this.#content, this.#mask));
    }
    if (kept.length === 0) kept.push(chainHash(0n, ++this.#content, this.#mask));
    if (this.#chains.length < 40) this.#chains.push(kept);
    else this.#chains[lot.below(40)] = kept;
    return kept;
  }
}
