/** Blocks that are told apart; of further ones the first removal counts. */
const BLOCKS_MAX = 65_536;
/** Tiers of one place that are told apart; further ones count as the last. */
const OWNERS_MAX = 8;

/**
 * Which secondary tiers have a block, where several lie at one place: a file system and an object store are both
 * storage. An engine names the tier of an event as its `ownership`. Only blocks of other tiers than the first one that
 * was named take room.
 */
export class BlockOwners {
  readonly #names: string[] = [];
  /** Owners as bits, by the engine's hash. */
  readonly #others = new Map<bigint, number>();
  /** Whether blocks were stored that are not told apart. */
  #isFull = false;

  /** Notes that an owner has a block. @param isHeld whether a tier of the place has it already */
  store(hash: bigint, owner: string, isHeld: boolean): void {
    const bit = this.#bit(owner);
    const known = this.#others.get(hash) ?? (isHeld ? FIRST : 0);
    if ((known | bit) === FIRST) return;
    if (!this.#others.has(hash) && this.#others.size >= BLOCKS_MAX) this.#isFull = true;
    else this.#others.set(hash, known | bit);
  }

  /**
   * Notes that an owner no longer has a block. A block that nobody else has is to be forgotten once it is gone.
   * @returns whether another one still has it
   */
  remove(hash: bigint, owner: string): boolean {
    const known = this.#others.get(hash);
    if (known === undefined && this.#isFull) return false;
    const left = (known ?? FIRST) & ~this.#bit(owner);
    if (left === FIRST) this.#others.delete(hash);
    else if (left !== 0) this.#others.set(hash, left);
    return left !== 0;
  }

  forget(hash: bigint): void {
    this.#others.delete(hash);
  }

  clear(): void {
    this.#others.clear();
    this.#isFull = false;
  }

  #bit(owner: string): number {
    const at = this.#names.indexOf(owner);
    if (at >= 0) return 1 << at;
    if (this.#names.length < OWNERS_MAX) this.#names.push(owner);
    return 1 << (this.#names.length - 1);
  }
}

/** The owner that was named first. */
const FIRST = 1;
