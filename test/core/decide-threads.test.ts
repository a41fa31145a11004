import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { makePool, pickMax, plainRequest, scorer, smallSizes } from './pool.js';

/** Kills and rounds grow with POINTSMAN_STRESS (1 by default; thousands of kills at 50). */
const stress = Number(process.env.POINTSMAN_STRESS ?? 1);
const sizes = { ...smallSizes, threads: 8, requests: 512, indexBlocks: 2048 };
const operations = [
  scorer('OP_SCORE_QUEUE', 2),
  scorer('OP_SCORE_PREFIX', 3, 0, 8192, 64),
  scorer('OP_SCORE_ACTIVE_BLOCKS', 1, 1, 0),
  pickMax,
];

function startPool() {
  const pool = makePool(
    operations,
    Array.from({ length: 8 }, () => ({ waiting: 0, running: 0, kvUsage: 0 })),
    sizes,
  );
  pool.programs.publish(0, operations, { inserts: true });
  const state = new SharedArrayBuffer(64);
  const flags = new Int32Array(state);
  const spawn = async (thread: number, rounds: number) => {
    const worker = new Worker(new URL('./decide-worker.ts', import.meta.url), {
      workerData: { pool: pool.memory, thread, request: plainRequest, rounds, state },
    });
    await once(worker, 'message');
    return worker;
  };
  const go = () => {
    Atomics.store(flags, 0, 1);
    Atomics.notify(flags, 0);
  };
  return { ...pool, flags, spawn, go };
}

/** The ledger's sums, looked at while others work: under the commit lock. */
function checkLedger({ control }: ReturnType<typeof startPool>): number {
  const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
  if (control.call.lockAcquire(lock, 1000) !== 1) return -1;
  const found = control.call.ledgerCheck();
  control.call.lockRelease(lock);
  return found;
}

describe('four threads deciding on one memory', () => {
  it('four threads deciding on one memory leave nothing charged when all their requests have ended', async () => {
    const pool = startPool();
    const workers = await Promise.all([1, 2, 3, 4].map((thread) => pool.spawn(thread, 4000 * stress)));
    const ended = workers.map((worker) => once(worker, 'exit'));
    pool.go();
    while (Atomics.load(pool.flags, 2) < 8000 * stress) {
      expect(checkLedger(pool)).toBe(0);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(ended);
    expect(checkLedger(pool)).toBe(0);
    for (let slot = 0; slot < 8; slot++) {
      const { inflight, inflightTokens, activeBlocks, outputBlocks } = pool.table.read(slot);
      expect({ inflight, inflightTokens, activeBlocks, outputBlocks }).toEqual({
        inflight: 0,
        inflightTokens: 0,
        activeBlocks: 0,
        outputBlocks: 0,
      });
    }
    expect(pool.control.call.prefixCheck()).toBe(0);
  });

  it('four threads deciding on one memory leave nothing charged when two die together, one of them inside a lock', async () => {
    const pool = startPool();
    pool.go();
    for (let round = 0; round < 20 * stress; round++) {
      const victims = await Promise.all([1, 2].map((thread) => pool.spawn(thread, Number.MAX_SAFE_INTEGER)));
      const before = Atomics.load(pool.flags, 2);
      while (Atomics.load(pool.flags, 2) < before + (round % 40)) await new Promise((resolve) => setImmediate(resolve));
      await Promise.all(victims.map((victim) => victim.terminate()));
      for (const thread of [1, 2, 1]) pool.control.call.reclaimThread(thread);
      expect([1, 2].map((thread) => pool.control.call.threadCharges(thread))).toEqual([0, 0]);
      expect(checkLedger(pool)).toBe(0);
    }
    expect(pool.control.call.prefixCheck()).toBe(0);
  }, 120_000);

  it('four threads deciding on one memory lose no charge and leak none when shards are killed at any moment', async () => {
    const pool = startPool();
    pool.go();
    const survivors = await Promise.all([1, 2].map((thread) => pool.spawn(thread, Number.MAX_SAFE_INTEGER)));
    const kills = 60 * stress;
    for (let kill = 0; kill < kills; kill++) {
      const victim = await pool.spawn(3, Number.MAX_SAFE_INTEGER);
      const before = Atomics.load(pool.flags, 2);
      while (Atomics.load(pool.flags, 2) < before + (kill % 50)) await new Promise((resolve) => setImmediate(resolve));
      await victim.terminate();
      pool.control.call.reclaimThread(3);
      expect(checkLedger(pool)).toBe(0);
    }
    Atomics.store(pool.flags, 1, 1);
    await Promise.all(survivors.map((worker) => once(worker, 'exit')));
    expect(checkLedger(pool)).toBe(0);
    for (let slot = 0; slot < 8; slot++) {
      expect(pool.table.read(slot)).toMatchObject({ inflight: 0, inflightTokens: 0, activeBlocks: 0, outputBlocks: 0 });
    }
    expect(pool.control.call.prefixCheck()).toBe(0);
  }, 120_000);
});
