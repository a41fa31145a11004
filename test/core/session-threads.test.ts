import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { makeGate } from './gate-pool.ts';
import { plainRequest, scorer } from './pool.ts';

/** Kills grow with POINTSMAN_STRESS (1 by default; thousands at 50). */
const stress = Number(process.env.POINTSMAN_STRESS ?? 1);
const ENDPOINTS = 4;
const operations = [scorer('OP_SCORE_PREFIX', 3, 0, 8192, 64), scorer('OP_PICK_MAX_SCORE', 1, 1)];

function startPool(mode: 'shadow' | 'on', program: string) {
  // Caches of 200 blocks: sessions of up to 90 push each other out.
  const idle = { waiting: 0, running: 0, kvUsage: 0, blockTokens: 64, blockCount: 200 };
  const settings = { mode: 'requests', maxRequests: 1_000, maxTokens: 1 } as const;
  const pool = makeGate(
    settings,
    Array.from({ length: ENDPOINTS }, () => idle),
    operations,
  );
  pool.programs.publish(0, operations, { inserts: true });
  pool.gate.sessions.configure({ mode, smallPrompt: 0.02, stretch: 0.1, maxWaitMs: 300_000 });
  const state = new SharedArrayBuffer(64);
  const flags = new Int32Array(state);
  const spawn = async (thread: number) => {
    const worker = new Worker(new URL(program, import.meta.url), {
      workerData: { pool: pool.memory, thread, request: plainRequest, rounds: Number.MAX_SAFE_INTEGER, state },
    });
    await once(worker, 'message');
    return worker;
  };
  Atomics.store(flags, 0, 1);
  return { ...pool, flags, spawn };
}

/** Looked at while others work: under the commit lock. */
function found({ control: { call } }: ReturnType<typeof startPool>): readonly number[] {
  const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
  expect(call.lockAcquire(lock, 1_000)).toBe(1);
  const checks = [call.sessionsCheck(), call.turnsCheck(), call.ledgerCheck(), call.gateCheck()];
  call.lockRelease(lock);
  return checks;
}

describe('sessions of several threads', () => {
  it('sessions of several threads add up when shards are killed at any moment, and no turn is left over', async () => {
    const pool = startPool('shadow', './decide-worker.ts');
    const survivor = await pool.spawn(1);
    for (let kill = 0; kill < 40 * stress; kill++) {
      const victim = await pool.spawn(2);
      const before = Atomics.load(pool.flags, 2);
      while (Atomics.load(pool.flags, 2) < before + (kill % 50)) await new Promise((resolve) => setImmediate(resolve));
      await victim.terminate();
      pool.control.call.reclaimThread(2);
      expect(found(pool)).toEqual([0, 0, 0, 0]);
    }
    Atomics.store(pool.flags, 1, 1);
    await once(survivor, 'exit');
    expect(found(pool)).toEqual([0, 0, 0, 0]);
    const { recognised } = pool.gate.sessions.counts();
    expect(Math.min(recognised.new, recognised.prompt, recognised.fork)).toBeGreaterThan(0);
  }, 120_000);

  it('held turns of several threads add up when shards are killed at any moment, and a dispatch is always used', async () => {
    const pool = startPool('on', './session-worker.ts');
    let waiting: { thread: number; slot: number }[] = [];
    const serve = () => {
      for (const thread of [1, 2]) {
        pool.gate.takeEnqueued(
          thread,
          (slot) => waiting.push({ thread, slot }),
          (slot) => {
            waiting = waiting.filter((other) => other.thread !== thread || other.slot !== slot);
            pool.gate.forgotten(thread, slot);
          },
        );
      }
      const now = 1_000 + Atomics.load(pool.flags, 2);
      waiting = waiting.filter(({ thread, slot }) => {
        const answer = pool.gate.dispatch(thread, slot, -1, now);
        // One that is gone was given up: its number in the ring frees it.
        return answer !== 'done' && answer !== 'gone';
      });
    };
    const survivor = await pool.spawn(1);
    for (let kill = 0; kill < 20 * stress; kill++) {
      const victim = await pool.spawn(2);
      const before = Atomics.load(pool.flags, 2);
      while (Atomics.load(pool.flags, 2) < before + 20 + (kill % 50)) {
        serve();
        pool.gate.sessions.tick(1_000 + Atomics.load(pool.flags, 2));
        await new Promise((resolve) => setImmediate(resolve));
      }
      await victim.terminate();
      pool.control.call.reclaimThread(2);
      waiting = waiting.filter(({ thread }) => thread !== 2);
      expect(found(pool)).toEqual([0, 0, 0, 0]);
    }
    Atomics.store(pool.flags, 1, 1);
    await once(survivor, 'exit');
    serve();
    expect(found(pool)).toEqual([0, 0, 0, 0]);
    expect(pool.gate.sessions.held).toBe(0);
    const [gone, unused] = [Atomics.load(pool.flags, 3), Atomics.load(pool.flags, 4)];
    expect(gone).toBeGreaterThan(0);
    expect(unused).toBe(0);
  }, 120_000);
});
