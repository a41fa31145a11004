import type { GeneratorContext } from './generator.js';

type BlockId = string | number;

/**
 * Ids of blocks of a trace in the workload's blocks. A larger block of the trace is cut into equal pieces. Of smaller
 * ones the last of a whole block stands for it, because an id stands for a block after exactly the blocks before it.
 */
export class TraceBlocks {
  readonly #first = new Map<BlockId, number>();
  readonly #pieces: number;
  /** Blocks of the trace in one of the workload's. */
  readonly #joined: number;
  readonly #context: GeneratorContext;

  /** @throws Error when neither of the two block sizes is a multiple of the other */
  constructor(path: string, traceBlock: number, context: GeneratorContext) {
    const { blockTokens } = context;
    if (traceBlock % blockTokens !== 0 && blockTokens % traceBlock !== 0) {
      throw new Error(
        `${path}: blocks of ${traceBlock} tokens do not fit blockTokens, ${blockTokens}: one must be a multiple of ` +
          'the other',
      );
    }
    this.#pieces = Math.max(1, traceBlock / blockTokens);
    this.#joined = Math.max(1, blockTokens / traceBlock);
    this.#context = context;
  }

  /** Whole blocks of the workload that so many ids stand for. */
  whole(ids: number): number {
    return this.#joined > 1 ? Math.floor(ids / this.#joined) : ids * this.#pieces;
  }

  /**
   * Chain of a prompt with these blocks, and of its output behind it. What no id stands for is shared with nothing.
   * @param tokens of prompt and output that the ids may stand for
   */
  chain(given: readonly BlockId[], tokens: number, allTokens: number): Int32Array {
    const { blockTokens, ids } = this.#context;
    const known = Math.min(Math.floor(tokens / blockTokens), this.whole(given.length));
    const chain = new Int32Array(Math.floor(allTokens / blockTokens));
    for (let i = 0; i < known; i++) chain[i] = this.#contentOf(given, i);
    const own = ids.take(chain.length - known);
    for (let i = known; i < chain.length; i++) chain[i] = own + i - known;
    return chain;
  }

  #contentOf(given: readonly BlockId[], block: number): number {
    if (this.#joined > 1) return this.#firstOf(given[(block + 1) * this.#joined - 1]!);
    return this.#firstOf(given[Math.floor(block / this.#pieces)]!) + (block % this.#pieces);
  }

  #firstOf(block: BlockId): number {
    let first = this.#first.get(block);
    if (first === undefined) {
      first = this.#context.ids.take(this.#pieces);
      this.#first.set(block, first);
    }
    return first;
  }
}
