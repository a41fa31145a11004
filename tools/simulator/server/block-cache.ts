/**
 * The KV memory of a simulated engine: a fixed number of blocks. A block is held by running sequences (counted),
 * or idle: cached, free to be evicted, least recently used first. As in vLLM, idle blocks count as free.
 */
export class BlockCache {
  readonly capacity: number;
  /** Holders of every cached block that is in use. */
  readonly #held = new Map<number, number>();
  /** Unused cached blocks in the order in which they became idle: the first is evicted next. */
  readonly #idle = new Set<number>();
  /** Blocks taken by running sequences and not yet filled with known content. */
  #reserved = 0;
  #evictions = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  /** Blocks that running sequences occupy. */
  get used(): number {
    return this.#held.size + this.#reserved;
  }

  /** Blocks with known content, in use or not. */
  get cached(): number {
    return this.#held.size + this.#idle.size;
  }

  /** Blocks evicted since the start. */
  get evictions(): number {
    return this.#evictions;
  }

  /** Leading blocks of `hashes` that are cached. */
  match(hashes: readonly number[]): number {
    let matched = 0;
    while (matched < hashes.length && this.#has(hashes[matched]!)) matched++;
    return matched;
  }

  /**
   * Takes `total` blocks for a sequence whose first `matched` blocks are cached under `hashes`.
   * False, and nothing changed, when the memory does not suffice.
   */
  take(hashes: readonly number[], matched: number, total: number): boolean {
    let revived = 0;
    for (let index = 0; index < matched; index++) if (this.#idle.has(hashes[index]!)) revived++;
    const fresh = total - matched;
    if (this.used + revived + fresh > this.capacity) return false;
    for (let index = 0; index < matched; index++) this.#hold(hashes[index]!);
    this.#reserved += fresh;
    this.#evictOverflow();
    return true;
  }

  /** Gives one reserved block its content. Content that is already cached is shared. */
  fill(hash: number): void {
    this.#reserved--;
    this.#hold(hash);
  }

  /** Releases a sequence's filled blocks, and what it reserved and did not fill. */
  release(hashes: readonly number[], unfilled: number): void {
    this.#reserved -= unfilled;
    // Backwards: the tail of a prompt becomes idle first and is evicted first, as a prefix is of use without its tail.
    for (let index = hashes.length - 1; index >= 0; index--) this.#release(hashes[index]!);
  }

  #has(hash: number): boolean {
    return this.#held.has(hash) || this.#idle.has(hash);
  }

  #hold(hash: number): void {
    this.#idle.delete(hash);
    this.#held.set(hash, (this.#held.get(hash) ?? 0) + 1);
  }

  #release(hash: number): void {
    const holders = this.#held.get(hash)! - 1;
    if (holders > 0) {
      this.#held.set(hash, holders);
      return;
    }
    this.#held.delete(hash);
    this.#idle.add(hash);
  }

  #evictOverflow(): void {
    for (const hash of this.#idle) {
      if (this.used + this.#idle.size <= this.capacity) return;
      this.#idle.delete(hash);
      this.#evictions++;
    }
  }
}
