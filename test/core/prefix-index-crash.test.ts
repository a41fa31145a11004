import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { attachCore } from '../../dist/src/core/memory.js';
import { PrefixIndex } from '../../dist/src/core/prefix-index.js';
import { chain, check, insert, match, openPool, put, repair, run, stress } from './index-pool.ts';
import { progressed, startThread } from './index-threads.ts';
import { livePerThread, liveWords, sharedHead } from './index-worker.ts';
import { Lot } from './prefix-oracle.ts';
import { SharedChains } from './shared-chains.ts';

const threads = 4;
const slots = 16;
const chains = { seed: 3, count: 24, longest: 180 };

interface LiveRequest {
  readonly word: number;
  readonly thread: number;
  readonly handle: number;
  readonly slot: number;
  readonly blocks: number;
}

function liveRequests(words: Int32Array): LiveRequest[] {
  const live: LiveRequest[] = [];
  for (let i = 0; i < (threads + 1) * livePerThread; i++) {
    const word = sharedHead + i * liveWords;
    const handle = words[word]!;
    if (handle === 0) continue;
    live.push({
      word,
      thread: Math.floor(i / livePerThread),
      handle,
      slot: words[word + 1]!,
      blocks: words[word + 2]!,
    });
  }
  return live;
}

function openCrash(indexBlocks: number) {
  const { pool, core, index } = openPool({ endpoints: 64, indexBlocks, requests: 256, chainBlocks: 256 });
  const shared = new SharedArrayBuffer(4 * (sharedHead + (threads + 1) * livePerThread * liveWords));
  const words = new Int32Array(shared);
  const lock = CORE.HEADER + CORE.HEADER_INDEX_LOCK;
  let seed = 0;
  const start = (thread: number) =>
    startThread({
      pool,
      thread,
      seed: ++seed * 16 + thread,
      role: 'until-killed',
      threads,
      steps: 0,
      slots,
      chains,
      shared,
    });
  return { pool, core, index, words, lock, start };
}

type Crash = ReturnType<typeof openCrash>;

/** What the control thread does after a death: as in reclaimThread, with the shared list for the ledger. */
function reclaim({ core, words, lock }: Crash, dead: number): boolean {
  const { call } = core;
  const seized = call.lockSeize(lock, dead) === 1;
  if (seized) {
    call.activeRepairBegin();
    for (const live of liveRequests(words)) {
      words[live.word] = live.thread === dead ? 0 : call.activeRepairAdd(live.slot, live.handle, live.blocks);
    }
    call.prefixRepairRest();
    expect(check(core)).toBe(0);
  } else {
    if (call.lockAcquire(lock, 10_000) === 0) {
      throw new Error(`thread ${call.lockOwner(lock) - 1} keeps the lock, and ${dead} is the one that died`);
    }
    for (const live of liveRequests(words)) {
      if (live.thread !== dead) continue;
      call.activeRemoveLocked(live.slot, live.handle, live.blocks);
      words[live.word] = 0;
    }
  }
  return seized;
}

/** The blocks that live requests use, counted plainly from the chains themselves. */
function expectCharges({ core, words }: Crash, count: number): void {
  expect(check(core)).toBe(0);
  expect(core.call.activeRequests()).toBe(count);
  const any = liveRequests(words).some((live) => live.blocks > 0);
  const active = run(0, slots).reduce((sum, slot) => sum + core.call.activeOf(slot), 0);
  expect(active > 0).toBe(any);
}

describe('prefix index after a thread was killed', () => {
  for (const indexBlocks of [20_000, 1500]) {
    it(`the prefix index after a thread was killed repairs itself wherever that stood (${indexBlocks} blocks)`, async () => {
      const crash = openCrash(indexBlocks);
      const { core, words, lock, start } = crash;
      const lot = new Lot(5);
      const workers = run(1, threads).map(start);
      const failures: unknown[] = [];
      const watch = (worker: (typeof workers)[number]) => worker.on('error', (error) => failures.push(error));
      workers.forEach(watch);
      let seized = 0;
      let thread = 1;
      for (let kill = 0; kill < 50 * stress; kill++) {
        // Never the one that was started last: the start of one and the life of the others overlap.
        thread = 1 + ((thread + lot.below(threads - 1)) % threads);
        await progressed(words, thread, 1 + lot.below(20));
        await workers[thread - 1]!.terminate();
        if (reclaim(crash, thread)) seized++;
        expectCharges(crash, liveRequests(words).length);
        core.call.lockRelease(lock);
        expect(failures).toEqual([]);
        workers[thread - 1] = start(thread);
        watch(workers[thread - 1]!);
      }
      await Promise.all(workers.map((worker) => worker.terminate()));
      // The one that keeps the lock first: nobody else can be cleaned up before.
      const owner = core.call.lockOwner(lock) - 1;
      for (const dead of run(1, threads).sort((a, b) => Number(b === owner) - Number(a === owner))) {
        reclaim(crash, dead);
        core.call.lockRelease(lock);
      }
      expect(liveRequests(words)).toEqual([]);
      expect(run(0, slots).map((slot) => core.call.activeOf(slot))).toEqual(new Array(slots).fill(0));
      expect(check(core)).toBe(0);
      expect(seized).toBeGreaterThan(0);
      // What survived never says more than was ever stored.
      const family = new SharedChains(chains.seed, chains.count, chains.longest, slots);
      for (const [i, hashes] of family.chains.entries()) {
        const bound = family.bound(i);
        for (const [slot, said] of match(crash.index, hashes).slice(0, slots).entries()) {
          expect(said).toBeLessThanOrEqual(bound[slot]!);
        }
      }
    }, 600_000);
  }

  it('the prefix index after a thread was killed gives up half-changed segments and what hangs on them', () => {
    const { core, index, pool } = openPool();
    const [half, whole] = [chain(...run(0, 200)), chain(...run(1000, 100))];
    insert(index, 1, half);
    insert(index, 2, whole);
    // The second segment of the first chain is the one whose header says depth 64 and this first hash.
    const view = new DataView(pool.memory.buffer);
    const at = findBytes(pool.memory.buffer, half[64]!) - 16;
    view.setUint32(at, view.getUint32(at, true) | 1, true);
    repair(core);
    expect(check(core)).toBe(0);
    expect(match(index, half)[1]).toBe(64);
    expect(match(index, whole)[2]).toBe(100);
    expect(insert(index, 1, half)).toBe(136);
    expect(match(index, half)[1]).toBe(200);
    expect(index.counters()).toMatchObject({ repairs: 1, cleared: 0 });
  });

  it('the prefix index after a killed thread does not let a reader see half of a change', () => {
    const { index, pool } = openPool();
    const half = chain(...run(0, 200));
    insert(index, 1, half);
    const view = new DataView(pool.memory.buffer);
    const at = findBytes(pool.memory.buffer, half[64]!) - 16;
    view.setUint32(at, view.getUint32(at, true) | 1, true);
    const reader = new PrefixIndex(attachCore(pool, 1));
    expect(match(reader, half)[1]).toBe(64);
    expect(reader.counters()).toMatchObject({ giveUps: 1, retries: 64 });
  });

  it('the prefix index after a thread was killed changes nothing but the counter when nothing is broken', () => {
    const { core, index } = openPool();
    const lot = new Lot(9);
    for (let i = 0; i < 200; i++) insert(index, lot.below(64), chain(...run(lot.below(5) * 1000, 1 + lot.below(150))));
    const query = chain(...run(1000, 150));
    const before = { matched: match(index, query), counters: index.counters() };
    repair(core);
    expect(check(core)).toBe(0);
    expect(match(index, query)).toEqual(before.matched);
    expect(index.counters()).toEqual({ ...before.counters, repairs: 1 });
  });

  it('the prefix index after a thread was killed charges live requests again', () => {
    const { core, index } = openPool();
    const hashes = chain(...run(0, 150));
    put(index, hashes);
    const handle = core.call.activeAdd(3, 150) >>> 0;
    core.call.lockAcquire(CORE.HEADER + CORE.HEADER_INDEX_LOCK, 100);
    core.call.activeRepairBegin();
    expect(core.call.activeOf(3)).toBe(0);
    expect(core.call.activeRepairAdd(3, handle, 150) >>> 0).toBe(handle);
    expect(core.call.activeRepairAdd(3, handle + 64 * 50, 150)).toBe(0);
    core.call.prefixRepairRest();
    core.call.lockRelease(CORE.HEADER + CORE.HEADER_INDEX_LOCK);
    expect(core.call.activeOf(3)).toBe(150);
    expect(check(core)).toBe(0);
    core.call.activeRemove(3, handle, 150);
    expect(index.counters()).toMatchObject({ blocks: 0, activeEntries: 0 });
  });

  it('the prefix index after a thread was killed begins with an empty index when the head cannot be believed', () => {
    const { core, index } = openPool();
    const hashes = chain(...run(0, 150));
    insert(index, 1, hashes);
    core.view.setUint32(core.call.prefixHeadAddress() + CORE.HEAD_SEGMENT_TOP, 0x7fff_ffff, true);
    repair(core);
    expect(index.counters()).toMatchObject({ cleared: 1, blocks: 0, memberships: 0 });
    expect(match(index, hashes)[1]).toBe(0);
    expect(insert(index, 1, hashes)).toBe(150);
    expect(check(core)).toBe(0);
  });
});

/** Address of the first aligned place that holds a 64-bit number: in a segment's header it stands at +16. */
function findBytes(buffer: SharedArrayBuffer, wanted: bigint): number {
  const words = new BigUint64Array(buffer);
  for (let i = 0; i < words.length - 1; i++) {
    // A header has the first hash at +16 and the content's first hash at +64.
    if (words[i] === wanted && words[i + 6] === wanted) return i * 8;
  }
  throw new Error('the segment was not found');
}
