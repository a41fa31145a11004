import { describe, expect, it } from 'vitest';
import { check, match, openPool, run, stress } from './index-pool.ts';
import { reportOf, startThread } from './index-threads.ts';
import type { IndexWorkerData } from './index-worker.ts';
import { PrefixOracle } from './prefix-oracle.ts';
import { SharedChains } from './shared-chains.ts';

const slots = 64;

async function hammer(role: IndexWorkerData['role'], threads: number, seed: number, indexBlocks: number) {
  const { pool, core, index } = openPool({ endpoints: slots, indexBlocks });
  const chains = { seed, count: 30, longest: 200 };
  const shared = new SharedArrayBuffer(4096);
  const workers = run(1, threads).map((thread) =>
    startThread({
      pool,
      thread,
      seed: seed * 100 + thread,
      role,
      threads,
      slots,
      chains,
      shared,
      steps: 1500 * Math.min(stress, 10),
    }),
  );
  const reports = await Promise.all(workers.map(reportOf));
  expect(reports.flatMap((report) => report.wrong)).toEqual([]);
  expect(check(core)).toBe(0);
  return { core, index, reports, family: new SharedChains(seed, chains.count, chains.longest, slots) };
}

describe('prefix index under several threads', () => {
  for (const threads of [2, 4]) {
    for (let seed = 1; seed <= Math.min(stress, 20); seed++) {
      it(`the prefix index under several threads is exact for shared chains of ${threads} threads (seed ${seed})`, async () => {
        const { index, reports, family } = await hammer('own-slots', threads, seed, 60_000);
        const truth = new PrefixOracle();
        // A tree made of whole chains, from which the blocks that nobody holds are missing, holds the same as each
        // thread's own oracle.
        for (const chain of family.chains) truth.insert(-1, chain);
        for (const [slot, hashes] of reports.flatMap((report) => report.held)) {
          for (const hash of hashes) truth.hold(slot, hash);
        }
        for (const chain of family.chains) expect(match(index, chain)).toEqual(truth.match(chain, slots));
        expect(run(0, slots).map((slot) => index.held(slot))).toEqual(run(0, slots).map((slot) => truth.held(slot)));
      });

      it(`the prefix index under several threads invents nothing when ${threads} change one endpoint (seed ${seed})`, async () => {
        await hammer('same-slots', threads, seed, 60_000);
      });

      it(`the prefix index under several threads invents nothing while ${threads} evict (seed ${seed})`, async () => {
        const { index } = await hammer('same-slots', threads, seed, 1200);
        expect(index.counters().evicted).toBeGreaterThan(0);
      });
    }
  }
});
