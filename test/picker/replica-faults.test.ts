import { describe, expect, it } from 'vitest';
import { FaultRun } from '../replication/faults/fault-run.ts';
import { skipReason } from '../replication/nats-server.ts';

/** Cycles after which every kind of fault has been twice. */
const CYCLES = 5;

describe.skipIf(skipReason !== '')(`four pickers under faults${skipReason}`, () => {
  it('no charge outlives its request by a second, none counts twice, and views are equal a second after quiet', async () => {
    const run = new FaultRun({ replicas: 4, seed: 14, more: (cycles) => cycles < CYCLES, report: () => undefined });
    const { cycles, faults, requests, observations, violations } = await run.run();
    expect(violations).toEqual([]);
    expect(Object.values(faults).every((count) => count > 0)).toBe(true);
    expect([cycles, requests > 20, observations > 100]).toEqual([CYCLES, true, true]);
  }, 300_000);
});
