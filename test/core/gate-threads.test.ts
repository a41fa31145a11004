import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { plainBound } from '../../dist/src/contract/refusing-bound.js';
import { Bell } from '../../dist/src/core/bell.js';
import type { CapacityGate } from '../../dist/src/core/capacity-gate.js';
import { makeGate } from './gate-pool.ts';

const REJECTION = { outcome: 3, retryAfterSeconds: 2, bound: plainBound('shutting-down') };

/** Requests and kills grow with POINTSMAN_STRESS (1 by default; 10⁷ requests at 500). */
const stress = Number(process.env.POINTSMAN_STRESS ?? 1);
const TIMEOUT_MS = 120_000 * stress;
const PLACES = 3;
const ENDPOINTS = 2;

/** The queue of the test's control thread: first in, first out, every tenth turned away. */
class PlainQueue {
  readonly #gate: CapacityGate;
  readonly #threads: readonly number[];
  #waiting: { thread: number; slot: number }[] = [];
  #turn = 0;

  constructor(gate: CapacityGate, threads: readonly number[]) {
    this.#gate = gate;
    this.#threads = threads;
  }

  get length(): number {
    return this.#waiting.length;
  }

  serve(): void {
    for (const thread of this.#threads) {
      this.#gate.takeEnqueued(
        thread,
        (slot) => this.#waiting.push({ thread, slot }),
        (slot) => {
          this.forget((waiting) => waiting.thread === thread && waiting.slot === slot);
          this.#gate.forgotten(thread, slot);
        },
      );
    }
    for (let head = this.#waiting[0]; head !== undefined; head = this.#waiting[0]) {
      const { thread, slot } = head;
      const reject = ++this.#turn % 10 === 0;
      const answer = reject ? this.#gate.reject(thread, slot, REJECTION) : this.#gate.dispatch(thread, slot, -1, 1);
      if (answer === 'closed' || answer === 'busy') return;
      // One that is gone was given up: its number in the ring gives the slot back.
      this.#waiting.shift();
    }
  }

  forget(which: (waiting: { thread: number; slot: number }) => boolean): void {
    this.#waiting = this.#waiting.filter((waiting) => !which(waiting));
  }
}

function startPool() {
  const pool = makeGate(
    { mode: 'requests', maxRequests: PLACES, maxTokens: 1 },
    Array.from({ length: ENDPOINTS }, () => ({ waiting: 0, running: 0, kvUsage: 0 })),
  );
  const state = new SharedArrayBuffer(64);
  const counts = new Int32Array(state);
  const spawn = async (thread: number, rounds: number) => {
    const worker = new Worker(new URL('./gate-worker.ts', import.meta.url), {
      workerData: { pool: pool.memory, thread, rounds, state },
    });
    await once(worker, 'message');
    return worker;
  };
  const go = () => {
    Atomics.store(counts, 0, 1);
    Atomics.notify(counts, 0);
  };
  return { ...pool, counts, spawn, go };
}

function inflight({ table }: ReturnType<typeof startPool>): number[] {
  return Array.from({ length: ENDPOINTS }, (_, slot) => table.read(slot).inflight);
}

const soon = () => new Promise((resolve) => setImmediate(resolve));

describe('three shards at one gate', () => {
  it(
    'three shards at one gate account for every request, and never have more in flight than there are places',
    async () => {
      const pool = startPool();
      const rounds = 6_000 * stress;
      const workers = await Promise.all([1, 2, 3].map((thread) => pool.spawn(thread, rounds)));
      const queue = new PlainQueue(pool.gate, [1, 2, 3]);
      const bell = new Bell(pool.control, () => queue.serve());
      bell.start();
      const ended = Promise.all(workers.map((worker) => once(worker, 'exit')));
      let over = false;
      void ended.then(() => {
        over = true;
      });
      pool.go();
      while (!over) {
        for (const requests of inflight(pool)) expect(requests).toBeLessThanOrEqual(PLACES);
        await soon();
      }
      bell.stop();
      const [, asked, atOnce, later, rejected, cancelled] = pool.counts;
      expect(asked).toBe(3 * rounds);
      expect(atOnce! + later! + rejected! + cancelled!).toBe(asked);
      expect(Math.min(atOnce!, later!, rejected!, cancelled!)).toBeGreaterThan(0);
      expect(queue.length).toBe(0);
      expect(pool.gate.waiting().map(({ requests }) => requests)).toEqual([0, 0, 0]);
      expect(inflight(pool)).toEqual([0, 0]);
      expect(pool.control.call.ledgerCheck() + pool.control.call.gateCheck()).toBe(0);
    },
    TIMEOUT_MS,
  );

  it(
    'three shards at one gate go on when one of them is killed at any moment, and leave no place taken',
    async () => {
      const pool = startPool();
      const queue = new PlainQueue(pool.gate, [1, 2, 3]);
      const bell = new Bell(pool.control, () => queue.serve());
      bell.start();
      pool.go();
      const survivor = await pool.spawn(1, Number.MAX_SAFE_INTEGER);
      for (let kill = 0; kill < 12 * stress; kill++) {
        const victim = await pool.spawn(2, Number.MAX_SAFE_INTEGER);
        const before = Atomics.load(pool.counts, 1);
        while (Atomics.load(pool.counts, 1) < before + kill * 7) await soon();
        await victim.terminate();
        // As the supervisor does: a lock that the survivor holds is tried again soon.
        do {
          pool.control.call.reclaimThread(2);
          await soon();
        } while (pool.control.call.threadCharges(2) > 0);
        queue.forget(({ thread }) => thread === 2);
      }
      await survivor.terminate();
      pool.control.call.reclaimThread(1);
      bell.stop();
      expect(pool.gate.waiting().map(({ requests }) => requests)).toEqual([0, 0, 0]);
      expect(inflight(pool)).toEqual([0, 0]);
      expect(pool.control.call.ledgerCheck() + pool.control.call.gateCheck()).toBe(0);
    },
    TIMEOUT_MS,
  );
});
