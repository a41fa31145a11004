import { parentPort, workerData } from 'node:worker_threads';
import type { BlockPlace } from '../../dist/src/contract/block-place.js';
import { CORE } from '../../dist/src/core/core-names.js';
import { attachCore, type CoreInstance, type PoolMemory } from '../../dist/src/core/memory.js';
import { BLOCK_PLACES, IndexBusyError, PrefixIndex } from '../../dist/src/core/prefix-index.js';
import { match, put } from './index-pool.ts';
import { Lot, PrefixOracle } from './prefix-oracle.ts';
import { SharedChains } from './shared-chains.ts';

/** What a thread of the concurrency tests is told. */
export interface IndexWorkerData {
  readonly pool: PoolMemory;
  readonly thread: number;
  readonly seed: number;
  readonly role: 'own-slots' | 'same-slots' | 'until-killed' | 'lock-counters' | 'lock-and-stay' | 'lock-try';
  readonly threads: number;
  readonly steps: number;
  readonly slots: number;
  readonly chains: { readonly seed: number; readonly count: number; readonly longest: number };
  /** Progress per thread, then whatever the role shares. */
  readonly shared: SharedArrayBuffer;
}

/** The outcome of a thread that ended by itself. */
export interface IndexWorkerReport {
  /** Lookups that said more than is possible, or about an own slot anything but the truth. */
  readonly wrong: readonly string[];
  readonly lookups: number;
  /** What each own slot holds in the end. */
  readonly held: readonly (readonly [number, readonly bigint[]])[];
}

/** Requests that a thread may have live, and the words of each: handle, slot, blocks. */
export const livePerThread = 16;
export const liveWords = 3;
export const sharedHead = 64;

const data = workerData as IndexWorkerData;

/** Again, until the lock can be had: a test machine may stop the owner for longer than the wait. */
function insist<T>(change: () => T): T {
  for (;;) {
    try {
      return change();
    } catch (error) {
      if (!(error instanceof IndexBusyError)) throw error;
    }
  }
}

const PLACES = Object.keys(BLOCK_PLACES) as readonly BlockPlace[];
const LOWER = ['host', 'disk', 'remote'] as const;

class Hammer {
  readonly core: CoreInstance;
  readonly index: PrefixIndex;
  readonly lot: Lot;
  readonly chains: SharedChains;
  readonly words = new Int32Array(data.shared);
  readonly wrong: string[] = [];
  readonly truth = new PrefixOracle();
  lookups = 0;

  constructor() {
    this.core = attachCore(data.pool, data.thread);
    this.index = new PrefixIndex(this.core);
    this.lot = new Lot(data.seed);
    this.chains = new SharedChains(data.chains.seed, data.chains.count, data.chains.longest, data.slots);
  }

  anyChain(): number {
    return this.lot.below(this.chains.chains.length);
  }

  ownSlot(): number {
    const own = data.slots / data.threads;
    return data.role === 'own-slots' ? (data.thread - 1) * own + this.lot.below(own) : this.lot.below(data.slots);
  }

  change(): void {
    const slot = this.ownSlot();
    const kind = this.lot.below(12);
    const share = this.chains.share(slot, this.anyChain());
    const place = PLACES[this.lot.below(PLACES.length)]!;
    if (kind < 5) {
      put(this.index, share);
      insist(() => this.index.insert(slot, share.length));
      this.truth.insert(slot, share);
    } else if (kind < 6) {
      put(this.index, share);
      insist(() => this.index.store(slot, undefined, share.length, place));
      this.truth.store(slot, undefined, share, place);
    } else if (kind < 8) {
      const from = this.lot.below(share.length + 1);
      const moved = share.slice(from, from + 1 + this.lot.below(40));
      put(this.index, moved);
      insist(() => this.index.move(slot, moved.length, place));
      this.truth.move(slot, moved, place);
    } else if (kind < 11) {
      const from = this.lot.below(share.length + 1);
      const gone = share.slice(from, from + 1 + this.lot.below(4));
      put(this.index, gone);
      insist(() => this.index.remove(slot, gone.length, 'evicted-told'));
      this.truth.remove(slot, gone);
    } else if (this.lot.below(4) === 0) {
      insist(() => this.index.removeEndpoint(slot));
      this.truth.removeEndpoint(slot);
    }
  }

  look(): void {
    const chain = this.anyChain();
    const giveUps = this.index.counters().giveUps;
    const matched = match(this.index, this.chains.chains[chain]!);
    const bound = this.chains.bound(chain);
    const truth = data.role === 'own-slots' ? this.truth.match(this.chains.chains[chain]!, data.slots) : undefined;
    const mayBeLess = this.index.counters().giveUps !== giveUps;
    const own = data.slots / data.threads;
    this.lookups++;
    for (let slot = 0; slot < data.slots; slot++) {
      const said = matched[slot]!;
      if (said > bound[slot]!) this.wrong.push(`slot ${slot} chain ${chain}: ${said} > ${bound[slot]}`);
      if (!truth || Math.floor(slot / own) !== data.thread - 1) continue;
      if (said > truth[slot]! || (said < truth[slot]! && !mayBeLess)) {
        this.wrong.push(`own slot ${slot} chain ${chain}: ${said}, not ${truth[slot]}`);
      }
      if (mayBeLess) continue;
      const places = this.truth.matchedAt(this.chains.chains[chain]!, slot);
      for (const place of LOWER) {
        const below = this.index.matchedBelow(slot, place);
        if (below !== places[place]) {
          this.wrong.push(`own slot ${slot} chain ${chain}: ${below} on ${place}, not ${places[place]}`);
        }
      }
    }
  }

  progress(): void {
    Atomics.add(this.words, data.thread, 1);
  }

  report(): void {
    const held = Array.from({ length: data.slots }, (_, slot) => [slot, this.truth.heldHashes(slot)] as const);
    const report: IndexWorkerReport = {
      wrong: this.wrong.slice(0, 5),
      lookups: this.lookups,
      held: held.filter(([, hashes]) => hashes.length > 0),
    };
    parentPort!.postMessage(report);
  }
}

function hammer(): void {
  const at = new Hammer();
  for (let i = 0; i < data.steps; i++) {
    at.change();
    at.look();
  }
  at.report();
}

/** Words of a live request of this thread in the shared list. */
function liveAt(thread: number, request: number): number {
  return sharedHead + (thread * livePerThread + request) * liveWords;
}

/**
 * Charges or releases one of this thread's requests; the shared list is written under the same lock, as the ledger is.
 */
function changeLive(at: Hammer, hashes: BigUint64Array): void {
  const { call } = at.core;
  const word = liveAt(data.thread, at.lot.below(livePerThread));
  const slot = at.lot.below(data.slots);
  at.index.writeHashes(hashes);
  const handle = Atomics.load(at.words, word);
  if (handle === 0) {
    const fresh = call.activeAddLocked(slot, hashes.length);
    Atomics.store(at.words, word + 1, slot);
    Atomics.store(at.words, word + 2, hashes.length);
    Atomics.store(at.words, word, fresh);
  } else {
    call.activeRemoveLocked(at.words[word + 1]!, handle, at.words[word + 2]!);
    Atomics.store(at.words, word, 0);
  }
}

/** A change of what some slot holds. */
function changeHeld(at: Hammer, share: BigUint64Array, slot: number): void {
  const { call } = at.core;
  const kind = at.lot.below(12);
  if (kind < 5) {
    at.index.writeHashes(share);
    call.prefixInsertLocked(slot, share.length);
  } else if (kind < 7) {
    const from = at.lot.below(share.length + 1);
    const moved = share.subarray(from, from + 1 + at.lot.below(40));
    at.index.writeHashes(moved);
    call.prefixMoveLocked(slot, moved.length, CORE.PLACE_GPU + at.lot.below(4));
  } else if (kind < 11) {
    const from = at.lot.below(share.length + 1);
    const gone = share.subarray(from, from + 1 + at.lot.below(8));
    at.index.writeHashes(gone);
    call.prefixRemoveLocked(slot, gone.length, CORE.LOSS_TOLD);
  } else {
    call.prefixRemoveEndpointLocked(slot, CORE.LOSS_GONE);
  }
}

/** Many changes under one hold of the lock, so that a kill mostly hits inside. */
function untilKilled(): void {
  const at = new Hammer();
  const { call } = at.core;
  const lock = CORE.HEADER + CORE.HEADER_INDEX_LOCK;
  const whole = at.chains.chains.map((chain) => BigUint64Array.from(chain));
  const shares = Array.from({ length: data.slots }, (_, slot) =>
    whole.map((_, i) => BigUint64Array.from(at.chains.share(slot, i))),
  );
  for (;;) {
    if (call.lockAcquire(lock, 1000) === 0) continue;
    for (let i = 0; i < 30; i++) {
      const slot = at.lot.below(data.slots);
      changeHeld(at, shares[slot]![at.anyChain()]!, slot);
      changeLive(at, whole[at.anyChain()]!);
    }
    call.lockRelease(lock);
    if (at.lot.below(8) === 0) at.look();
    if (at.wrong.length > 0) throw new Error(at.wrong[0]);
    at.progress();
  }
}

/** Two plain counters that are equal whenever the lock is free. */
function lockCounters(): void {
  const core = attachCore(data.pool, data.thread);
  const words = new Int32Array(data.shared);
  const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
  for (let i = 0; i < data.steps; ) {
    if (!core.call.lockAcquire(lock, 1000)) continue;
    words[sharedHead] = words[sharedHead]! + 1;
    for (let spin = i & 63; spin > 0; spin--) words[sharedHead + 8] = spin;
    words[sharedHead + 4] = words[sharedHead + 4]! + 1;
    core.call.lockRelease(lock);
    Atomics.add(words, data.thread, 1);
    i++;
  }
  parentPort!.postMessage('done');
}

function lockAndStay(): void {
  const core = attachCore(data.pool, data.thread);
  const words = new Int32Array(data.shared);
  core.call.lockAcquire(CORE.HEADER + CORE.HEADER_COMMIT_LOCK, 1000);
  parentPort!.postMessage('inside');
  Atomics.wait(words, sharedHead, 0);
}

function lockTry(): void {
  const core = attachCore(data.pool, data.thread);
  const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
  parentPort!.postMessage(core.call.lockAcquire(lock, data.steps));
}

const roles = {
  'own-slots': hammer,
  'same-slots': hammer,
  'until-killed': untilKilled,
  'lock-counters': lockCounters,
  'lock-and-stay': lockAndStay,
  'lock-try': lockTry,
};

// Imported by the tests for its types and constants, this file does nothing.
if (parentPort) roles[data.role]();
