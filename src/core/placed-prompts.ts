import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

/** Bits of a slot's generation that a record carries: those above the slot in its word. */
const GENERATION_BITS = 32 - CORE.CHANGE_GENERATION_SHIFT;

/** A prompt that a shard has placed. `hashes` belongs to the reader and is overwritten by the next one. */
export interface PlacedPrompt {
  slot: number;
  /** Low bits of the slot's generation (sameGeneration). */
  generation: number;
  /** Chain hash of the block before the first hash; undefined = the hashes begin the prompt. */
  parent: bigint | undefined;
  /** Chain hashes that are new to the endpoint, or the last one; empty = the record only counts a request. */
  hashes: BigUint64Array;
  /** Chain hash of the partial last block. */
  tail: bigint | undefined;
}

/** Whether a generation is the one of a record. */
export function sameGeneration(recorded: number, generation: number): boolean {
  return recorded === (generation & ((1 << GENERATION_BITS) - 1));
}

/**
 * Reads placed prompts from the rings of the shards, each record once. The space of a read record is free for later
 * ones, so there is one reader. Control thread only.
 */
export class PlacedPrompts {
  readonly #core: CoreInstance;
  readonly #size: number;
  readonly #lost: Uint32Array;
  readonly #prompt: PlacedPrompt = {
    slot: 0,
    generation: 0,
    parent: undefined,
    hashes: new BigUint64Array(0),
    tail: undefined,
  };
  readonly #hashes: BigUint64Array;

  /** @throws RangeError when the memory has no rings (PoolSizes.changeBytes) */
  constructor(core: CoreInstance) {
    core.asserts?.control();
    this.#core = core;
    this.#size = core.sizes.changeBytes ?? 0;
    if (this.#size === 0) throw new RangeError('the memory has no rings of placed prompts: set changeBytes');
    this.#lost = new Uint32Array(core.sizes.threads);
    this.#hashes = new BigUint64Array(core.memory.buffer);
  }

  /**
   * Passes the new records to `visit`, thread by thread.
   * @param bytes bound on the bytes read of each ring
   * @returns records that found no room since the last call
   */
  drain(visit: (prompt: PlacedPrompt) => void, bytes = this.#size): number {
    let lost = 0;
    for (let thread = 1; thread < this.#lost.length; thread++) {
      this.#drainThread(thread, visit, bytes);
      lost += this.#newlyLost(thread);
    }
    return lost;
  }

  #newlyLost(thread: number): number {
    const { i32, call } = this.#core;
    const now = Atomics.load(i32, (call.changesAddress(thread) + CORE.CHANGE_LOST) >>> 2) >>> 0;
    const lost = (now - this.#lost[thread]!) >>> 0;
    this.#lost[thread] = now;
    return lost;
  }

  #drainThread(thread: number, visit: (prompt: PlacedPrompt) => void, bytes: number): void {
    const { i32, u32, call } = this.#core;
    const ring = call.changesAddress(thread) >>> 0;
    const data = ring + CORE.CHANGE_HEAD_BYTES;
    const written = Atomics.load(i32, (ring + CORE.CHANGE_WRITTEN) >>> 2) >>> 0;
    let read = Atomics.load(i32, (ring + CORE.CHANGE_READ) >>> 2) >>> 0;
    let left = bytes;
    while (read !== written && left > 0) {
      const at = read & (this.#size - 1);
      const length = u32[(data + at) >>> 2] === CORE.CHANGE_SKIP ? this.#size - at : this.#readRecord(data + at, visit);
      read = (read + length) >>> 0;
      left -= length;
    }
    Atomics.store(i32, (ring + CORE.CHANGE_READ) >>> 2, read | 0);
  }

  /** @returns bytes of the record */
  #readRecord(at: number, visit: (prompt: PlacedPrompt) => void): number {
    const { u32 } = this.#core;
    const prompt = this.#prompt;
    const slot = u32[(at + CORE.CHANGE_SLOT) >>> 2]!;
    const blocks = u32[(at + CORE.CHANGE_BLOCKS) >>> 2]!;
    const count = blocks & (CORE.CHANGE_TAIL - 1);
    const first = (at + CORE.CHANGE_RECORD_BYTES) >>> 3;
    const tail = (blocks & CORE.CHANGE_TAIL) !== 0;
    prompt.slot = slot & ((1 << CORE.CHANGE_GENERATION_SHIFT) - 1);
    prompt.generation = slot >>> CORE.CHANGE_GENERATION_SHIFT;
    const isFirst = (blocks & CORE.CHANGE_PARENT) === 0;
    prompt.parent = isFirst ? undefined : this.#hashes[(at + CORE.CHANGE_PARENT_HASH) >>> 3]!;
    prompt.hashes = this.#hashes.subarray(first, first + count);
    prompt.tail = tail ? this.#hashes[first + count]! : undefined;
    visit(prompt);
    return CORE.CHANGE_RECORD_BYTES + 8 * (count + Number(tail));
  }
}
