import { describe, expect, it } from 'vitest';
import { ExchangePace, INTERVAL_MS_MAX, INTERVAL_MS_MIN } from '../../dist/src/replication/exchange-pace.js';
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
    expect(intervalAfter(5, 0.5)).toBe(INTERVAL_MS_MAX);
  });

  it('the pace of an exchange is as before when that takes less than half of its share, and stays in between', () => {
    const pace = new ExchangePace(0.25);
    intervalAfter(5, 0.5, pace);
    expect(intervalAfter(5, 0.2, pace)).toBe(INTERVAL_MS_MAX);
    expect(intervalAfter(5, 0.1, pace)).toBe(INTERVAL_MS_MIN);
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
    const busy = { cpuShare: 0.25, workMs: () => (workMs += 4) };
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
});

function placementsOf(bytes: Uint8Array): readonly Placement[] {
  const message = decodeMessage(bytes);
  return message.kind === 'update' ? message.placements : [];
}
