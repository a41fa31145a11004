import type { LowerPlace } from '../../../src/contract/block-place.js';
import type { CoreInstance } from '../../../src/core/memory.js';
import { PrefixIndex } from '../../../src/core/prefix-index.js';

/** A prompt as a chain of contents, one for each block of the workload. */
interface WrittenPrompt {
  readonly promptTokens: number;
  readonly chain: Int32Array;
}

/** The prefix index of a simulated picker, in which a number stands for the content of a block. */
export class BlockIndex {
  readonly #index: PrefixIndex;
  readonly #blockTokens: number;
  /** Blocks of the workload in one block of the picker. */
  readonly #group: number;
  readonly #hashes: BigUint64Array;
  readonly #hashWords: Uint32Array;

  /** @param blockTokens tokens of the picker's blocks @param workloadTokens of the workload's blocks */
  constructor(core: CoreInstance, blockTokens: number, workloadTokens: number) {
    this.#index = new PrefixIndex(core);
    this.#blockTokens = blockTokens;
    this.#group = blockTokens / workloadTokens;
    this.#hashes = new BigUint64Array(this.#index.longest);
    this.#hashWords = new Uint32Array(this.#hashes.buffer);
  }

  /** @returns blocks of the prompt whose hashes were written */
  writePrompt({ promptTokens, chain }: WrittenPrompt, blocksMax: number): number {
    const whole = Math.floor(promptTokens / this.#blockTokens);
    const blocks = Math.min(whole, Math.floor(chain.length / this.#group), blocksMax, this.#hashes.length);
    for (let i = 0; i < blocks; i++) this.#hash(i, chain[(i + 1) * this.#group - 1]!);
    this.#index.writeHashes(this.#hashes.subarray(0, blocks));
    return blocks;
  }

  /**
   * Writes a hash that stands for a content in every replica: two rounds of the mixer of MurmurHash3 (Austin Appleby).
   */
  #hash(at: number, content: number): void {
    const low = mixed(content + 0x9e3779b9);
    this.#hashWords[2 * at] = low;
    this.#hashWords[2 * at + 1] = mixed(low ^ 0x85ebca6b) | 1;
  }

  /** An engine stored blocks behind `parent`, -1 = at the beginning of a prompt. */
  stored(slot: number, parent: number, contents: readonly number[]): void {
    let before = parent;
    for (let from = 0; from < contents.length; from += this.#hashes.length - 1) {
      const piece = contents.slice(from, from + this.#hashes.length - 1);
      this.#hash(0, before);
      const behind = before < 0 ? undefined : this.#hashes[0]!;
      for (const [i, content] of piece.entries()) this.#hash(i, content);
      this.#index.writeHashes(this.#hashes.subarray(0, piece.length));
      this.#index.store(slot, behind, piece.length);
      before = piece.at(-1)!;
    }
  }

  /** Contents lie at a place below the GPU from now on. */
  moved(slot: number, place: LowerPlace, contents: readonly number[]): void {
    for (const content of contents) {
      this.#hash(0, content);
      this.#index.writeHashes(this.#hashes.subarray(0, 1));
      this.#index.move(slot, 1, place);
    }
  }

  removed(slot: number, contents: readonly number[]): void {
    for (let from = 0; from < contents.length; from += this.#hashes.length) {
      const piece = contents.slice(from, from + this.#hashes.length);
      for (const [i, content] of piece.entries()) this.#hash(i, content);
      this.#index.writeHashes(this.#hashes.subarray(0, piece.length));
      this.#index.remove(slot, piece.length, 'evicted-told');
    }
  }

  cleared(slot: number): void {
    this.#index.removeEndpoint(slot);
  }
}

function mixed(value: number): number {
  let mix = value | 0;
  mix = Math.imul(mix ^ (mix >>> 16), 0x85ebca6b);
  mix = Math.imul(mix ^ (mix >>> 13), 0xc2b2ae35);
  return (mix ^ (mix >>> 16)) >>> 0;
}
