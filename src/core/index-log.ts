import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

/** Bytes of the records that are applied under one hold of the index lock: some 500 blocks. */
const HOLD_BYTES = 8_192;

/**
 * Collects entries for the prefix index from other replicas or an earlier run, and applies them in pieces: each piece
 * takes the index lock once. Bounded: a full buffer is applied at once.
 */
export class IndexLog {
  readonly #core: CoreInstance;
  readonly #address: number;
  readonly #hashes: BigUint64Array;
  readonly #size: number;
  #length = 0;
  /** Blocks whose record found the lock held by a dead thread. */
  #refused = 0;

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#address = core.call.inputAddress() >>> 0;
    this.#size = CORE.THREAD_INPUT_BYTES;
    this.#hashes = new BigUint64Array(core.memory.buffer);
  }

  /** Blocks not applied, because the lock was not had. */
  get refused(): number {
    return this.#refused;
  }

  /**
   * Adds the blocks `hashes` behind `parent` (undefined = they begin a prompt), and the tail behind them, as held by
   * `slot`. A record longer than the buffer is cut.
   * @param place nearest place of the blocks, PLACE_*
   */
  add(
    slot: number,
    parent: bigint | undefined,
    hashes: BigUint64Array,
    tail?: bigint,
    place: number = CORE.PLACE_GPU,
  ): void {
    const room = (this.#size - CORE.EVENT_HEAD_BYTES - 8) >>> 3;
    const count = Math.min(hashes.length, room);
    const bytes = CORE.EVENT_HEAD_BYTES + 8 * (count + 1);
    if (this.#length + bytes > Math.max(HOLD_BYTES, bytes)) this.apply();
    const at = this.#address + this.#length;
    const flags = (parent === undefined ? 0 : CORE.EVENT_PARENT) | (tail === undefined ? 0 : CORE.EVENT_TAIL);
    const tier = (place - CORE.PLACE_GPU) << CORE.EVENT_PLACE_SHIFT;
    this.#core.u32[(at + CORE.EVENT_SLOT) >>> 2] = slot;
    this.#core.u32[(at + CORE.EVENT_BLOCKS) >>> 2] = (count | flags | tier) >>> 0;
    this.#hashes[(at + CORE.EVENT_PARENT_HASH) >>> 3] = parent ?? 0n;
    const first = (at + CORE.EVENT_HEAD_BYTES) >>> 3;
    this.#hashes.set(count === hashes.length ? hashes : hashes.subarray(0, count), first);
    if (tail !== undefined) this.#hashes[first + count] = tail;
    this.#length += CORE.EVENT_HEAD_BYTES + 8 * (count + Number(tail !== undefined));
  }

  /**
   * Applies the added changes. The buffer is the thread's input area: nothing else may use it between `add` and
   * `apply`.
   */
  apply(): void {
    if (this.#length === 0) return;
    const applied = this.#core.call.prefixApply(this.#address, this.#length);
    if (applied === CORE.PREFIX_BUSY) this.#refused += (this.#length - CORE.EVENT_HEAD_BYTES) >>> 3;
    this.#length = 0;
  }
}
