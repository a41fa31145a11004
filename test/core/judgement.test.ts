import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { explore } from './explorer.ts';
import { type JournalScene, journalProtocol } from './journal-protocol.ts';
import { makePool, pickMax, plainRequest, scorer, smallSizes } from './pool.ts';

const MOST = 400_000;

const SCENES: Readonly<Record<string, JournalScene>> = {
  'three that decide': { threads: ['decide', 'decide', 'decide'], ring: 2 },
  'a release meanwhile': { threads: ['decide', 'decide', 'release'], ring: 2 },
  'signals that come meanwhile': { threads: ['decide', 'decide', 'publish'], ring: 2 },
  'more changes than the ring holds': { threads: ['decide', 'release', 'decide'], ring: 1 },
  'scores that stand': { threads: ['stand', 'decide', 'release'], ring: 2 },
  'scores that stand while signals come': { threads: ['stand', 'signals', 'stand'], ring: 3 },
  'scores that stand, and a ring that goes round': { threads: ['stand', 'signals', 'decide'], ring: 1 },
  'scores that stand, and a thread that is killed': { threads: ['stand', 'decide', 'release'], ring: 3, deaths: 1 },
  'a thread that is killed at any moment': { threads: ['decide', 'decide', 'release'], ring: 2, deaths: 1 },
};

describe('the load journal, in every order of its steps', () => {
  it.each(Object.keys(SCENES))('the load journal lets every pick see every charge before it: %s', (name) => {
    expect(explore(journalProtocol(SCENES[name]!), MOST)).toBeGreaterThan(300);
  });
});

describe('the explorer finds a load journal that', () => {
  const killed = SCENES['a thread that is killed at any moment']!;
  const faulty = (fault: NonNullable<JournalScene['fault']>, scene = killed) => {
    return () => explore(journalProtocol({ ...scene, fault }), MOST);
  };
  const unseen = /^a pick of [01] does not see the loads/;

  it('the explorer finds a load journal that notes a change before it is written', () => {
    expect(faulty('notes before it writes')).toThrow(unseen);
  });

  it('the explorer finds a load journal that is counted after the columns are read', () => {
    expect(faulty('counts after it reads')).toThrow(unseen);
  });

  it('the explorer finds a load journal that says nothing of a repair', () => {
    expect(faulty('repairs without a note')).toThrow(unseen);
  });

  it('the explorer finds a load journal that trusts entries which were overwritten while it read them', () => {
    const round = SCENES['scores that stand, and a ring that goes round'];
    expect(faulty('trusts overwritten entries', round)).toThrow(unseen);
  });

  it('the explorer finds a load journal that counts a change before it enters its slot', () => {
    expect(faulty('counts before it enters', SCENES['scores that stand'])).toThrow(unseen);
  });

  it('the explorer finds a load journal that forgets what its ring has lost', () => {
    expect(faulty('forgets overflow', SCENES['signals that come meanwhile'])).toThrow(unseen);
  });
});

/** Kills and rounds grow with POINTSMAN_STRESS (1 by default). */
const stress = Number(process.env.POINTSMAN_STRESS ?? 1);
const sizes = { ...smallSizes, threads: 8, requests: 2048, indexBlocks: 4096 };
const ENDPOINTS = 8;

/** A pool whose engines have `waiting` requests, and threads that decide on it (decide-worker.ts). */
function startPool(weights: readonly ReturnType<typeof scorer>[], waiting: (slot: number) => number) {
  const signals = Array.from({ length: ENDPOINTS }, (_, slot) => ({ waiting: waiting(slot), running: 0, kvUsage: 0 }));
  const pool = makePool([...weights, pickMax], signals, sizes);
  pool.programs.publish(0, [...weights, pickMax], { inserts: true });
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
  const inflight = () => Array.from({ length: ENDPOINTS }, (_, slot) => pool.table.read(slot).inflight);
  return { ...pool, flags, spawn, go, inflight };
}

const three = [scorer('OP_SCORE_QUEUE', 2), scorer('OP_SCORE_KV_USAGE', 2), scorer('OP_SCORE_PREFIX', 3, 0, 8192, 64)];

describe('judgements of several threads', () => {
  it('judgements of four threads pick as the program does under the lock while queues change', async () => {
    // The debug core runs the program under the lock behind each judgement, and compares.
    const pool = startPool(three, (slot) => slot % 3);
    const workers = await Promise.all([1, 2, 3, 4].map((thread) => pool.spawn(thread, 4_000 * stress)));
    const ended = workers.map((worker) => once(worker, 'exit'));
    pool.go();
    for (let turn = 0; Atomics.load(pool.flags, 2) < 16_000 * stress; turn++) {
      const slot = turn % ENDPOINTS;
      pool.table.publish(slot, { waiting: turn % 5, running: turn % 7, kvUsage: (turn % 9) / 10 }, turn);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(ended);
    expect(pool.control.call.ledgerCheck()).toBe(0);
    expect(pool.inflight()).toEqual(new Array(ENDPOINTS).fill(0));
  });

  it('judgements lose no charge and see every repair when shards are killed at any moment', async () => {
    const pool = startPool(three, (slot) => slot % 3);
    pool.go();
    const survivors = await Promise.all([1, 2].map((thread) => pool.spawn(thread, Number.MAX_SAFE_INTEGER)));
    for (let kill = 0; kill < 40 * stress; kill++) {
      const victim = await pool.spawn(3, Number.MAX_SAFE_INTEGER);
      const before = Atomics.load(pool.flags, 2);
      while (Atomics.load(pool.flags, 2) < before + (kill % 50)) await new Promise((resolve) => setImmediate(resolve));
      await victim.terminate();
      pool.control.call.reclaimThread(3);
    }
    Atomics.store(pool.flags, 1, 1);
    await Promise.all(survivors.map((worker) => once(worker, 'exit')));
    expect(pool.control.call.ledgerCheck()).toBe(0);
    expect(pool.control.call.lockOwner(CORE.HEADER + CORE.HEADER_COMMIT_LOCK)).toBe(0);
    expect(pool.inflight()).toEqual(new Array(ENDPOINTS).fill(0));
  }, 120_000);
});
