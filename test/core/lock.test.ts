import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { attachCore, type CoreInstance, createPoolMemory, type PoolMemory } from '../../dist/src/core/memory.js';
import { run, smallPool, stress } from './index-pool.ts';
import { progressed, startThread } from './index-threads.ts';
import { type IndexWorkerData, sharedHead } from './index-worker.ts';
import { Lot } from './prefix-oracle.ts';

function open() {
  const pool = createPoolMemory(smallPool);
  const core = attachCore(pool, 0);
  const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
  const shared = new SharedArrayBuffer(4096);
  return { pool, core, lock, shared, words: new Int32Array(shared) };
}

function start(pool: PoolMemory, shared: SharedArrayBuffer, role: IndexWorkerData['role'], thread: number, steps = 0) {
  return startThread({
    pool,
    shared,
    role,
    thread,
    steps,
    seed: thread,
    threads: 4,
    slots: 64,
    chains: { seed: 1, count: 1, longest: 1 },
  });
}

const acquire = (core: CoreInstance, lock: number, sleeps: number) => core.call.lockAcquire(lock, sleeps) !== 0;

describe('lock', () => {
  it('a lock names its owner and is free after the release', () => {
    const { core, lock } = open();
    expect(core.call.lockOwner(lock)).toBe(0);
    expect(acquire(core, lock, 10)).toBe(true);
    expect(core.call.lockOwner(lock)).toBe(1);
    core.call.lockRelease(lock);
    expect(core.call.lockOwner(lock)).toBe(0);
  });

  it('a lock lets one of four threads in at a time', async () => {
    const { pool, core, lock, shared, words } = open();
    const steps = 20_000 * Math.min(stress, 50);
    const workers = run(1, 4).map((thread) => start(pool, shared, 'lock-counters', thread, steps));
    await Promise.all(workers.map((worker) => once(worker, 'message')));
    expect([words[sharedHead], words[sharedHead + 4]]).toEqual([4 * steps, 4 * steps]);
    expect(core.call.lockOwner(lock)).toBe(0);
    await Promise.all(workers.map((worker) => worker.terminate()));
  });

  it('a lock gives up waiting after its bound and changes nothing', async () => {
    const { pool, core, lock, shared } = open();
    expect(acquire(core, lock, 10)).toBe(true);
    const worker = start(pool, shared, 'lock-try', 1, 5);
    expect((await once(worker, 'message'))[0]).toBe(0);
    expect(core.call.lockOwner(lock)).toBe(1);
    core.call.lockRelease(lock);
    await worker.terminate();
    const later = start(pool, shared, 'lock-try', 2, 5);
    expect((await once(later, 'message'))[0]).toBe(1);
    expect(core.call.lockOwner(lock)).toBe(3);
    await later.terminate();
  });

  it('the lock can be seized from a thread that died inside, and from no other', async () => {
    const { pool, core, lock, shared } = open();
    const worker = start(pool, shared, 'lock-and-stay', 2);
    await once(worker, 'message');
    expect(core.call.lockSeize(lock, 1)).toBe(0);
    await worker.terminate();
    expect(core.call.lockOwner(lock)).toBe(3);
    expect(acquire(core, lock, 3)).toBe(false);
    expect(core.call.lockSeize(lock, 2)).toBe(1);
    expect(core.call.lockOwner(lock)).toBe(1);
    core.call.lockRelease(lock);
    expect(acquire(core, lock, 3)).toBe(true);
  });

  it('the lock is not seized from a thread that died outside', async () => {
    const { pool, core, lock, shared } = open();
    const worker = start(pool, shared, 'lock-counters', 1, 10);
    await once(worker, 'message');
    await worker.terminate();
    expect(core.call.lockSeize(lock, 1)).toBe(0);
    expect(core.call.lockOwner(lock)).toBe(0);
  });

  it('a lock goes on after threads were killed anywhere, inside or outside', async () => {
    const { pool, core, lock, shared, words } = open();
    const lot = new Lot(11);
    const endless = 1 << 30;
    const workers = run(1, 4).map((thread) => start(pool, shared, 'lock-counters', thread, endless));
    await Promise.all(run(1, 4).map((thread) => progressed(words, thread, 1)));
    let inside = 0;
    let thread = 1;
    for (let kill = 0; kill < 150 * stress; kill++) {
      // Never the one that was started last: the start of one and the life of the others overlap.
      thread = 1 + ((thread + lot.below(3)) % 4);
      await progressed(words, thread, 1 + lot.below(300));
      await workers[thread - 1]!.terminate();
      if (core.call.lockSeize(lock, thread) === 1) {
        inside++;
        words[sharedHead + 4] = words[sharedHead]!;
        core.call.lockRelease(lock);
      }
      expect(acquire(core, lock, 10_000)).toBe(true);
      expect(words[sharedHead + 4]).toBe(words[sharedHead]);
      core.call.lockRelease(lock);
      workers[thread - 1] = start(pool, shared, 'lock-counters', thread, endless);
    }
    await Promise.all(run(1, 4).map((any) => progressed(words, any, 1)));
    await Promise.all(workers.map((worker) => worker.terminate()));
    expect(inside).toBeGreaterThan(0);
  }, 600_000);
});
