import { describe, expect, it } from 'vitest';
import { SlowTail } from '../../dist/src/core/held-columns.js';
import { DecisionLog, DecisionTrail, type PoolSizes } from '../../dist/src/core/index.js';
import { makePool, pickMax, plainRequest, scorer, smallSizes } from './pool.ts';

const MEASURES = {
  outcome: 'completed' as const,
  firstOutputMs: 10,
  perTokenMs: undefined,
  durationMs: 12,
  outputTokens: undefined,
  promptTokens: undefined,
  cachedTokens: undefined,
};

/** A log in which the 32nd of the next decisions is the first that keeps its columns whatever becomes of it. */
function rarely(sizes: Partial<PoolSizes> = {}, endpoints = 3) {
  const signals = Array.from({ length: endpoints }, (_, i) => ({ waiting: i, kvUsage: i / 100 }));
  const pool = makePool([scorer('OP_SCORE_QUEUE', 2), pickMax], signals, { ...smallSizes, ...sizes });
  const [trail, log] = [new DecisionTrail(pool.core, 1_000_000), new DecisionLog(pool.control)];
  const decide = (nowMs = 1) => {
    trail.begin(undefined, false, nowMs);
    const before = trail.made;
    const { record } = pool.decider.decide(plainRequest);
    trail.decided(before, 1, 0);
    return record!;
  };
  const columns = (record: number) => log.columns(log.at(1, record)!);
  for (let i = 0; i < 16; i++) trail.ended(decide(), MEASURES);
  return { ...pool, trail, log, decide, columns };
}

describe('the columns of a request in flight', () => {
  it('the columns of a request that failed are kept, with the scores of its decision', () => {
    const { trail, decide, columns } = rarely();
    const failed = decide();
    expect(columns(failed)).toBeUndefined();
    trail.ended(failed, { ...MEASURES, outcome: 'failed' });
    expect(columns(failed)!.endpoints).toMatchObject([
      { slot: 0, rank: 1, waiting: 0, scores: [1] },
      { slot: 1, rank: undefined, waiting: 1 },
      { slot: 2, rank: undefined, waiting: 2, scores: [0] },
    ]);
  });

  it('the columns of a request that ends as most do are dropped', () => {
    const { trail, decide, columns } = rarely();
    const usual = decide();
    trail.ended(usual, MEASURES);
    expect(columns(usual)).toBeUndefined();
  });

  it('the columns of a slow request are kept although thousands of decisions came behind it', () => {
    const { trail, decide, columns } = rarely({ decisions: 4096 });
    trail.ended(decide(), MEASURES);
    const slow = decide();
    for (let i = 0; i < 4_000; i++) trail.ended(decide(i * 10), MEASURES);
    trail.ended(slow, { ...MEASURES, firstOutputMs: 900 });
    expect(columns(slow)!.endpoints).toHaveLength(3);
  });

  it('the columns of a request that was answered by another endpoint, or is refused, or left, are kept', () => {
    const { trail, decide, columns } = rarely();
    const [moved, refused, left] = [decide(), decide(), decide()];
    trail.ended(moved, { ...MEASURES, outcome: 'diverted' });
    trail.refused(refused, { status: 503, priority: 0, waitedMs: 0, bound: undefined });
    trail.abandoned(left);
    expect([moved, refused, left].map((record) => columns(record)?.endpoints.length)).toEqual([3, 3, 3]);
  });

  it('the columns of a large pool are of 16 endpoints, the pick among them, and say how many are left out', () => {
    const { trail, decide, columns } = rarely({ endpoints: 64 }, 40);
    const failed = decide();
    trail.ended(failed, { ...MEASURES, outcome: 'failed' });
    const { endpoints, omitted } = columns(failed)!;
    expect([endpoints.length, omitted, endpoints[0]!.rank]).toEqual([16, 24, 1]);
  });

  it('the columns of at most 10,000 decisions a second are held', () => {
    const { trail, decide, columns } = rarely();
    for (let i = 0; i < 10_000; i++) trail.ended(decide(500), MEASURES);
    const beyond = decide(999);
    trail.ended(beyond, { ...MEASURES, outcome: 'failed' });
    const next = decide(1_000);
    trail.ended(next, { ...MEASURES, outcome: 'failed' });
    expect([columns(beyond), columns(next)?.endpoints.length]).toEqual([undefined, 3]);
  });
});

describe('the columns of a sample', () => {
  /** Numbers of the decisions that keep their columns although they end as most do. */
  const keptOf = (every: number, times: readonly number[]) => {
    const pool = makePool([scorer('OP_SCORE_QUEUE', 2), pickMax], [{ waiting: 0 }, { waiting: 1 }], smallSizes);
    const [trail, log] = [new DecisionTrail(pool.core, every), new DecisionLog(pool.control)];
    return times.flatMap((nowMs, i) => {
      trail.begin(undefined, false, nowMs);
      const { record } = pool.decider.decide(plainRequest);
      trail.ended(record!, MEASURES);
      return log.columns(log.at(1, record!)!) === undefined ? [] : [i + 1];
    });
  };

  it('the 1st, 2nd, 4th, 8th … decision of each ten seconds keep their columns', () => {
    const times = [...Array(20).fill(100), ...Array(5).fill(10_000)];
    expect(keptOf(1_000_000, times)).toEqual([1, 2, 4, 8, 16, 21, 22, 24]);
  });

  it('no decision is a sample where only refused ones are to keep their columns', () => {
    expect(keptOf(0, Array(20).fill(100))).toEqual([]);
  });
});

describe('the tail of slow requests', () => {
  it('the tail settles at the slowest of twenty', () => {
    const tail = new SlowTail();
    const times = Array.from({ length: 20_000 }, (_, i) => 1 + ((i * 7919) % 100));
    const slow = times.map((ms) => tail.isSlow(ms)).slice(10_000);
    const share = slow.filter(Boolean).length / slow.length;
    expect(share).toBeGreaterThan(0.02);
    expect(share).toBeLessThan(0.08);
  });
});
