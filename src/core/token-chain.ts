import { CORE } from './core-names.js';
import { InputBytes } from './input-bytes.js';
import type { CoreInstance } from './memory.js';

/** A part of a prompt that is no text: an image, a clip. Its placeholder tokens are equal for all such parts. */
export interface PromptFeature {
  /** Digest of its content, as the engine names it. */
  readonly identifier: string;
  /** Position of its placeholders, in tokens from the start of the prompt. */
  readonly offset: number;
  readonly length: number;
}

/** The tokens of a prompt by the model's tokeniser. */
export interface PromptTokens {
  readonly ids: Uint32Array;
  /** In the order of their offsets. */
  readonly features: readonly PromptFeature[];
}

/** Names that are mixed into block hashes, by number of the block among those of one call. */
export type BlockExtras = ReadonlyMap<number, readonly string[]>;

/** Bytes of a model name that count, as in a request scan (SCAN_HEAD_NAME_BYTES). */
const NAME_BYTES = 4032;

/**
 * Chain hashes of prompts with known tokens, written into the thread's HASHES area. The next chain, scan or event of
 * the thread overwrites them, so a chain is used in the turn in which it is made.
 */
export class TokenChain {
  readonly #core: CoreInstance;
  readonly #input: number;
  readonly #inputTokens: number;
  readonly #text: Buffer;
  readonly #tokens: InputBytes;
  readonly #hashes: BigUint64Array;

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#input = core.call.inputAddress() >>> 0;
    this.#inputTokens = CORE.THREAD_INPUT_BYTES >>> 2;
    this.#text = Buffer.from(core.memory.buffer);
    this.#tokens = new InputBytes(core);
    const { chainBlocks } = core.sizes;
    this.#hashes = new BigUint64Array(core.memory.buffer, core.call.hashesAddress() >>> 0, chainBlocks);
  }

  /** Bound on the blocks of a chain. */
  get longest(): number {
    return this.#hashes.length;
  }

  /** The hash of block `index`; a tail's hash follows the whole blocks. */
  hash(index: number): bigint {
    return this.#hashes[index]!;
  }

  /** Copies the hashes from `from` up to and without `to`. */
  hashes(from: number, to: number): BigUint64Array<ArrayBuffer> {
    return BigUint64Array.from(this.#hashes.subarray(from, to));
  }

  /**
   * Chains a whole prompt.
   * @returns its whole blocks, at most `longest`, and whether the hash of a partial last block follows them
   */
  chain(
    { ids, features }: PromptTokens,
    model: string,
    salt: string | undefined,
    blockTokens: number,
  ): { readonly blocks: number; readonly tail: boolean } {
    this.begin(model, salt);
    const extras = extrasOf(features, blockTokens);
    const blocks = this.add(ids, blockTokens, extras);
    const rest = blocks * blockTokens;
    const whole = Math.floor(ids.length / blockTokens);
    const left = ids.length - rest;
    if (blocks < whole || left === 0 || left > this.#inputTokens) return { blocks, tail: false };
    this.#mix(extras.get(whole));
    this.#writeTokens(ids, rest, ids.length);
    return { blocks, tail: this.#core.call.tokenChainTail(left * 4) === 1 };
  }

  /** Begins at the root of a model (or adapter) name. */
  begin(model: string, salt: string | undefined): void {
    const name = this.#text.write(model, this.#input, NAME_BYTES, 'utf8');
    const salted = salt === undefined ? -1 : this.#text.write(salt, this.#input + name, this.#inputTokens, 'utf8');
    this.#core.call.tokenChainBegin(name, salted);
  }

  /** Begins after a block that has been chained before. */
  resume(parent: bigint): void {
    this.#core.view.setBigUint64(this.#input, parent, true);
    this.#core.call.tokenChainResume();
  }

  /** Chain hash that the next block hangs on: of the last block, or the root. */
  end(): bigint {
    return BigInt.asUintN(64, this.#core.call.tokenChainEnd());
  }

  /** Appends the whole blocks of `tokens`. @returns blocks of the chain so far, at most `longest` */
  add(tokens: Uint32Array, blockTokens: number, extras: BlockExtras): number {
    const { call } = this.#core;
    const whole = Math.floor(tokens.length / blockTokens);
    const blocksMax = Math.floor(this.#inputTokens / blockTokens);
    // A block that does not fit into INPUT is not hashed; the prompt has no match then.
    if (blocksMax === 0) return 0;
    let blocks = 0;
    let at = 0;
    while (at < whole) {
      this.#mix(extras.get(at));
      let end = Math.min(whole, at + blocksMax);
      for (let next = at + 1; next < end; next++) if (extras.has(next)) end = next;
      this.#writeTokens(tokens, at * blockTokens, end * blockTokens);
      blocks = call.tokenChainAdd((end - at) * blockTokens * 4, blockTokens * 4);
      at = end;
    }
    return blocks;
  }

  #mix(names: readonly string[] | undefined): void {
    for (const name of names ?? []) {
      this.#core.call.tokenChainMix(this.#text.write(name, this.#input, this.#inputTokens, 'utf8'));
    }
  }

  #writeTokens(tokens: Uint32Array, from: number, to: number): void {
    this.#tokens.write(new Uint8Array(tokens.buffer, tokens.byteOffset + 4 * from, 4 * (to - from)));
  }
}

/** Features that overlap each block of a prompt. */
function extrasOf(features: readonly PromptFeature[], blockTokens: number): BlockExtras {
  const extras = new Map<number, string[]>();
  for (const { identifier, offset, length } of features) {
    const last = Math.floor((offset + length - 1) / blockTokens);
    for (let block = Math.floor(offset / blockTokens); block <= last; block++) {
      const names = extras.get(block);
      if (names === undefined) extras.set(block, [identifier]);
      else if (!names.includes(identifier)) names.push(identifier);
    }
  }
  return extras;
}
