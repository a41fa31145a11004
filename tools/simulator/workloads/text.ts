/** Issues content ids: each stands for one block of text that nothing else shares. */
export class ContentIds {
  #next = 0;

  /** @returns the first of `count` new ids that follow each other */
  take(count: number): number {
    const first = this.#next;
    this.#next += count;
    return first;
  }

  /** One more than the largest id given out. */
  get end(): number {
    return this.#next;
  }
}

/**
 * A text that grows at its end and knows the contents of its full blocks. Two texts that began as copies share the
 * blocks up to where they part; a block that lies over the parting belongs to each alone.
 */
export class GrowingText {
  readonly #blockTokens: number;
  readonly #ids: ContentIds;
  readonly #blocks: number[];
  #tokens: number;

  constructor(blockTokens: number, ids: ContentIds, from?: GrowingText) {
    this.#blockTokens = blockTokens;
    this.#ids = ids;
    this.#blocks = from === undefined ? [] : [...from.#blocks];
    this.#tokens = from?.tokens ?? 0;
  }

  get tokens(): number {
    return this.#tokens;
  }

  copy(): GrowingText {
    return new GrowingText(this.#blockTokens, this.#ids, this);
  }

  /** Adds `tokens` new tokens. */
  append(tokens: number): this {
    this.#tokens += tokens;
    const missing = Math.floor(this.#tokens / this.#blockTokens) - this.#blocks.length;
    const first = this.#ids.take(missing);
    for (let i = 0; i < missing; i++) this.#blocks.push(first + i);
    return this;
  }

  /** Full blocks in the first `tokens` tokens. */
  blocksIn(tokens: number): number {
    return Math.floor(tokens / this.#blockTokens);
  }

  /** Contents of the full blocks so far. */
  chain(): Int32Array {
    return Int32Array.from(this.#blocks);
  }
}
