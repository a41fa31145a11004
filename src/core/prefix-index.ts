import type { BlockPlace, LowerPlace, TierPrices } from '../contract/block-place.js';
import { BLOCK_LOSSES, type BlockLoss, TOLD_LOSSES, type ToldLoss } from './cache-loss.js';
import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

/** Counters of the prefix index; their numbers are `PREFIX_COUNTER_*` in assembly/prefix/counters.ts. */
export interface PrefixCounters {
  /** Unique blocks held. */
  readonly blocks: number;
  readonly segments: number;
  /** Distinct sets of holders. */
  readonly sets: number;
  /** Held (block, endpoint) pairs. */
  readonly memberships: number;
  readonly stored: number;
  readonly removed: number;
  readonly evicted: number;
  /** Pairs lost to a full table of sets or extents, or to a repair. */
  readonly dropped: number;
  /** Blocks of events with an unknown parent. */
  readonly orphans: number;
  /** Blocks not stored because their hash has another place already. */
  readonly conflicts: number;
  /** Blocks not stored because the index was full. */
  readonly refused: number;
  /** Lookups cut short after too many concurrent writes. */
  readonly giveUps: number;
  readonly retries: number;
  readonly tails: number;
  readonly activeEntries: number;
  /** Requests whose active blocks were not counted. */
  readonly activeRefused: number;
  readonly repairs: number;
  readonly cleared: number;
}

const counterWords: ReadonlyArray<readonly [keyof PrefixCounters, number]> = [
  ['blocks', CORE.PREFIX_COUNTER_BLOCKS],
  ['segments', CORE.PREFIX_COUNTER_SEGMENTS],
  ['sets', CORE.PREFIX_COUNTER_SETS],
  ['memberships', CORE.PREFIX_COUNTER_MEMBERSHIPS],
  ['stored', CORE.PREFIX_COUNTER_STORED],
  ['removed', CORE.PREFIX_COUNTER_REMOVED],
  ['evicted', CORE.PREFIX_COUNTER_EVICTED],
  ['dropped', CORE.PREFIX_COUNTER_DROPPED],
  ['orphans', CORE.PREFIX_COUNTER_ORPHANS],
  ['conflicts', CORE.PREFIX_COUNTER_CONFLICTS],
  ['refused', CORE.PREFIX_COUNTER_REFUSED],
  ['giveUps', CORE.PREFIX_COUNTER_GIVE_UPS],
  ['retries', CORE.PREFIX_COUNTER_RETRIES],
  ['tails', CORE.PREFIX_COUNTER_TAILS],
  ['activeEntries', CORE.PREFIX_COUNTER_ACTIVE_ENTRIES],
  ['activeRefused', CORE.PREFIX_COUNTER_ACTIVE_REFUSED],
  ['repairs', CORE.PREFIX_COUNTER_REPAIRS],
  ['cleared', CORE.PREFIX_COUNTER_CLEARED],
];

/** Numbers of the places of blocks, nearest first. */
export const BLOCK_PLACES: Readonly<Record<BlockPlace, number>> = {
  gpu: CORE.PLACE_GPU,
  host: CORE.PLACE_HOST,
  disk: CORE.PLACE_DISK,
  remote: CORE.PLACE_REMOTE,
};

/** Reports that another thread holds the index lock for too long. Nothing has changed, and the call may be repeated. */
export class IndexBusyError extends Error {
  override name = 'IndexBusyError';
}

/**
 * One thread's access to the prefix index: which endpoint slot holds which blocks.
 *
 * A block is named by its chain hash, which stands for the block and everything before it. Lookups take no lock.
 * Changes take the index lock and throw IndexBusyError when it is not free within about 100 ms.
 */
export class PrefixIndex {
  readonly #core: CoreInstance;
  readonly #hashes: BigUint64Array;
  readonly #matched: Uint32Array;
  readonly #hashAddress: number;
  readonly #parent: BigUint64Array;
  readonly #parentAddress: number;

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#hashAddress = core.call.hashesAddress() >>> 0;
    const { buffer } = core.memory;
    this.#parentAddress = this.#hashAddress + (core.sizes.chainBlocks + CORE.SPARE_HASHES - 1) * 8;
    this.#hashes = new BigUint64Array(buffer, this.#hashAddress, core.sizes.chainBlocks);
    this.#parent = new BigUint64Array(buffer, this.#parentAddress, 1);
    this.#matched = new Uint32Array(buffer, core.call.matchAddress() >>> 0, core.sizes.endpoints);
  }

  /** Bound on the blocks of one call: the longest chain. */
  get longest(): number {
    return this.#hashes.length;
  }

  /**
   * Writes a chain's hashes for the next call.
   * @throws RangeError when there are more than `longest`.
   */
  writeHashes(hashes: BigUint64Array): void {
    if (hashes.length > this.#hashes.length) {
      throw new RangeError(`${hashes.length} blocks do not fit: chainBlocks is ${this.#hashes.length}`);
    }
    this.#hashes.set(hashes);
  }

  /**
   * Looks up the first `blocks` written hashes.
   * @returns for every slot the blocks it holds without a gap from the first one; a view, overwritten by the next
   * lookup
   */
  match(blocks: number): Uint32Array {
    this.#core.call.prefixMatch(blocks);
    return this.#matched;
  }

  /**
   * Looks up the first `blocks` written hashes.
   * @returns for every slot the blocks on the GPU that would save as much as what it holds; a view, overwritten by the
   * next lookup
   */
  worth(blocks: number): Uint32Array {
    this.#core.call.prefixMatch(blocks);
    this.#core.call.weighMatches(this.#matched.length);
    return this.#matched;
  }

  /** Of the blocks of the last lookup, those that a slot holds at a place below the GPU. */
  matchedBelow(slot: number, place: LowerPlace): number {
    return this.#core.call.matchedBelow(this.#slot(slot), BLOCK_PLACES[place]);
  }

  /** Sets what loading a block from each tier costs. @throws RangeError when a price is not from 0 to 1 */
  setPrices(prices: TierPrices): void {
    for (const [place, price] of Object.entries(prices)) {
      if (!(price >= 0 && price <= 1)) throw new RangeError(`the price of ${place} is ${price}, not from 0 to 1`);
    }
    this.#core.call.prefixSetPrices(prices.host, prices.disk, prices.remote);
  }

  /** Records that `slot` will hold the first `blocks` written hashes. @returns blocks new to the slot */
  insert(slot: number, blocks: number): number {
    return this.#answer(this.#core.call.prefixInsert(this.#slot(slot), blocks));
  }

  /**
   * Records that an engine stored the first `blocks` written hashes after `parent` (undefined = start of a prompt).
   * @param place the nearest one that has them now
   * @returns blocks new to the slot; 0 when the parent is not known
   */
  store(slot: number, parent: bigint | undefined, blocks: number, place: BlockPlace = 'gpu'): number {
    if (parent !== undefined) this.#parent[0] = parent;
    const hasParent = parent === undefined ? 0 : 1;
    const at = this.#slot(slot);
    return this.#answer(this.#core.call.prefixStore(at, hasParent, this.#parentAddress, blocks, BLOCK_PLACES[place]));
  }

  /** What the slot holds of the first `blocks` written hashes lies at `place` from now on. */
  move(slot: number, blocks: number, place: BlockPlace): void {
    this.#answer(this.#core.call.prefixMove(this.#slot(slot), blocks, BLOCK_PLACES[place]));
  }

  /** Removes the first `blocks` written hashes from what the slot holds. @returns blocks held before */
  remove(slot: number, blocks: number, lost: BlockLoss): number {
    return this.#answer(this.#core.call.prefixRemove(this.#slot(slot), blocks, BLOCK_LOSSES[lost]));
  }

  /** Removes all blocks of an endpoint that stays. @returns blocks held before */
  clearEndpoint(slot: number, lost: ToldLoss): number {
    return this.#answer(this.#core.call.prefixClear(this.#slot(slot), TOLD_LOSSES[lost]));
  }

  /** Removes all blocks of an endpoint that left, and its capacity. @returns blocks held before */
  removeEndpoint(slot: number): number {
    return this.#answer(this.#core.call.prefixRemoveEndpoint(this.#slot(slot)));
  }

  /** Bounds the blocks of one endpoint; 0 = only the bound of the index. */
  setCapacity(slot: number, blocks: number): void {
    this.#answer(this.#core.call.prefixSetCapacity(this.#slot(slot), blocks));
  }

  /** Blocks of the slot according to the index. */
  held(slot: number): number {
    return this.#core.call.prefixHeld(this.#slot(slot)) >>> 0;
  }

  counters(): PrefixCounters {
    const { call } = this.#core;
    const values = counterWords.map(([name, word]) => [name, call.prefixCounter(word)]);
    return Object.fromEntries(values) as PrefixCounters;
  }

  #slot(slot: number): number {
    if (!(Number.isInteger(slot) && slot >= 0 && slot < this.#matched.length)) {
      throw new RangeError(`slot ${slot} is out of range: the pool has ${this.#matched.length} endpoint slots`);
    }
    return slot;
  }

  #answer(result: number): number {
    if (result === CORE.PREFIX_BUSY) throw new IndexBusyError('the index lock could not be had in time');
    return result;
  }
}
