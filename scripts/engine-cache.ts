// The cache of an engine as the measurements of replicas play it.

/** Blocks in the order of their use, at most `capacity` of them. */
export class EngineCache {
  readonly #capacity: number;
  readonly #blocks = new Set<bigint>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Serves a prompt, whose blocks are held afterwards. @returns leading blocks that were held before */
  serve(chain: readonly bigint[]): number {
    let held = 0;
    while (held < chain.length && this.#blocks.has(chain[held]!)) held++;
    for (const block of chain) {
      this.#blocks.delete(block);
      this.#blocks.add(block);
    }
    for (const block of this.#blocks) {
      if (this.#blocks.size <= this.#capacity) break;
      this.#blocks.delete(block);
    }
    return held;
  }
}
