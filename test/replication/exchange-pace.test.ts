import { describe, expect, it } from 'vitest';
import {
  BLOCKS_TOLD_MAX,
  ExchangePace,
  INTERVAL_MS_LAST,
  INTERVAL_MS_MAX,
  INTERVAL_MS_MIN,
} from '../../dist/src/replication/exchange-pace.js';
import { decodeMessage, type Placement } from '../../dist/src/replication/messages.js';
import { HeardPool, replicaAt } from './replicator-parts.ts';

describe('the pace of an exchange', () => {
  /** Interval after so many seconds in which the exchange takes this share of a core. */
  function intervalAfter(seconds: number, share: number, pace = new ExchangePace(0.25)): number {
    for (let ms = 0; ms <= 1_000 * seconds; ms += 5) {
      pace.spent(5 * share);
      pace.look(clockMs + ms);
    }
    clockMs += 1_000 * seconds;
    return pace.intervalMs;
  }
  let clockMs = 0;

  it('the pace of an exchange has the least interval while the exchange takes less than its share', () => {
    expect(intervalAfter(2, 0.2)).toBe(INTERVAL_MS_MIN);
  });

  it('the pace of an exchange slows down while the exchange takes more than its share, to a bound', () => {
    expect(intervalAfter(0.3, 0.5)).toBe(2 * INTERVAL_MS_MIN);
    expect(intervalAfter(0.6, 0.5)).toBe(INTERVAL_MS_MAX);
    expect(intervalAfter(5, 0.5)).toBe(INTERVAL_MS_LAST);
  });

  it('the pace of an exchange leaves out short placements before updates come too rarely', () => {
    const pace = new ExchangePace(0.25);
    expect(intervalAfter(1.6, 0.5, pace)).toBe(INTERVAL_MS_MAX);
    expect([pace.leastBlocks, pace.isOver]).toEqual([16, false]);
    const told = (blocks: number) => [0, 0.25, 0.5, 0.99].map((lot) => pace.tells(blocks, lot));
    expect(told(16)).toEqual([true, true, true, true]);
    expect(told(8)).toEqual([true, true, false, false]);
    expect(told(1)).toEqual([true, false, false, false]);
    expect(told(0)).toEqual([false, false, false, false]);
    intervalAfter(5, 0.5, pace);
    expect([pace.leastBlocks, pace.isOver]).toEqual([BLOCKS_TOLD_MAX, true]);
  });

  it('the pace of an exchange tells placements without blocks, too, while it leaves none out', () => {
    expect(new ExchangePace(0.25).tells(0, 0.5)).toBe(true);
  });

  it('the pace of an exchange is as before when that takes less than half of its share, and stays in between', () => {
    const pace = new ExchangePace(0.25);
    intervalAfter(5, 0.5, pace);
    expect(intervalAfter(5, 0.2, pace)).toBe(INTERVAL_MS_LAST);
    expect(intervalAfter(5, 0.1, pace)).toBe(INTERVAL_MS_MIN);
    expect(pace.leastBlocks).toBe(0);
  });
});

describe('a replica whose exchange takes more than its share', () => {
  it('a replica whose exchange takes more than its share sends updates less often, with every placement in between', () => {
    const pool = new HeardPool();
    let next = 0n;
    pool.placements = (visit) => {
      visit({ endpoint: 1n, parent: undefined, hashes: BigUint64Array.of(next++), tail: undefined });
      return 0;
    };
    let workMs = 0;
    // Every tick is said to take 4 ms.
    const busy = { cpuShare: 0.25, workMs: () => (workMs += 4), random: () => 0 };
    const { replicator, link, log, clock } = replicaAt({ pool, ...busy });
    for (let tick = 0; tick < 400; tick++, clock.ms += 5) replicator.tick(clock.ms);
    link.sent.length = 0;
    const first = next;
    for (let tick = 0; tick < 40; tick++, clock.ms += 5) replicator.tick(clock.ms);
    expect(replicator.intervalMs).toBe(INTERVAL_MS_MAX);
    expect(log.filter((line) => line.includes('--replication-cpu-percent'))).toHaveLength(1);
    expect(link.sent.length).toBeGreaterThan(5);
    expect(link.sent.length).toBeLessThanOrEqual(11);
    const told = link.sent.flatMap((bytes) => placementsOf(bytes)).map(({ hashes }) => hashes[0]!);
    expect(told).toEqual(Array.from({ length: told.length }, (_, i) => told[0]! + BigInt(i)));
    expect(told.at(-1)! - first).toBeGreaterThan(35n);
  });

  it('a replica whose exchange takes more than its share leaves out short placements, and counts them', () => {
    const pool = new HeardPool();
    const hashes = (count: number) => BigUint64Array.from({ length: count }, (_, i) => BigInt(i));
    pool.placements = (visit) => {
      for (const count of [1, 200]) visit({ endpoint: 1n, parent: undefined, hashes: hashes(count), tail: undefined });
      return 0;
    };
    let workMs = 0;
    const busy = { cpuShare: 0.25, workMs: () => (workMs += 4), random: () => 0.5 };
    const { replicator, link, log, clock } = replicaAt({ pool, ...busy });
    for (let tick = 0; tick < 400; tick++, clock.ms += 5) replicator.tick(clock.ms);
    link.sent.length = 0;
    const before = replicator.counts.untoldPlacements;
    for (let tick = 0; tick < 40; tick++, clock.ms += 5) replicator.tick(clock.ms);
    const told = link.sent.flatMap((bytes) => placementsOf(bytes)).map((placement) => placement.hashes.length);
    expect(new Set(told)).toEqual(new Set([200]));
    expect(replicator.counts.untoldPlacements - before).toBe(40);
    expect(log.filter((line) => line.includes('not told to other replicas'))).toHaveLength(1);
  });
});

function placementsOf(bytes: Uint8Array): readonly Placement[] {
  const message = decodeMessage(bytes);
  return message.kind === 'update' ? message.placements : [];
}
