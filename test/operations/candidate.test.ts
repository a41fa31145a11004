import { beforeEach, describe, expect, it } from 'vitest';
import { attachCore, createPoolMemory, defaultPoolSizes, type PoolMemory } from '../../dist/src/core/memory.js';
import { candidateShown } from '../../dist/src/operations/page/candidate.js';
import { DecisionCounts } from '../../dist/src/operations/telemetry/decision-counts.js';
import { shadowKind } from '../../dist/src/operations/telemetry/metric-table.js';
import { SeriesTable } from '../../dist/src/operations/telemetry/series-table.js';
import { ShadowTotals } from '../../dist/src/operations/telemetry/shadow-totals.js';

let pool: PoolMemory;
let totals: ShadowTotals;

beforeEach(() => {
  pool = createPoolMemory({ ...defaultPoolSizes, endpoints: 64, indexBlocks: 1024, requests: 64, threads: 3 });
  totals = new ShadowTotals(attachCore(pool, 0));
});

function shard(thread: number): DecisionCounts {
  const core = attachCore(pool, thread);
  return new DecisionCounts(core.f64, new SeriesTable(core, [shadowKind]));
}

const picked = (slot: number, cost: number, pickCost: number) => ({ state: 'picked' as const, slot, cost, pickCost });
const unplaced = { state: 'none' as const, slot: -1, cost: Number.NaN, pickCost: 0.5 };
const shown = (state = {}) =>
  candidateShown({ file: '/c.yaml', every: 1, sinceMs: 2000, stopped: undefined, ...state }, totals.read(), 10_000);

describe('the candidate configuration on the page', () => {
  it('decisions of all shards are compared by objective, the busiest first', () => {
    const [one, two] = [shard(1), shard(2)];
    one.shadowed('batch', 1, picked(2, 0.25, 0.75));
    for (const counts of [one, two]) counts.shadowed('chat', 1, picked(1, 0.5, 0.5));
    two.shadowed('chat', 1, unplaced);
    expect(shown()).toMatchObject({
      all: { decisions: 4, different: 0.5, unplaced: 1, runningCost: 1.75 / 3, candidateCost: 1.25 / 3 },
      objectives: [
        { objective: 'chat', decisions: 3, different: 1 / 3, unplaced: 1, runningCost: 0.5, candidateCost: 0.5 },
        { objective: 'batch', decisions: 1, different: 1, unplaced: 0, runningCost: 0.75, candidateCost: 0.25 },
      ],
    });
  });

  it('a candidate without decisions has nothing to compare', () => {
    shard(1);
    expect(shown()).toEqual({ file: '/c.yaml', every: 1, seconds: 8, stopped: null, all: null, objectives: [] });
  });

  it('a candidate that never finds an endpoint has no cost', () => {
    shard(1).shadowed(undefined, 1, unplaced);
    expect(shown().objectives).toEqual([
      { objective: 'none', decisions: 1, different: 1, unplaced: 1, runningCost: null, candidateCost: null },
    ]);
  });

  it('another version of the candidate begins at nothing', () => {
    const counts = shard(1);
    counts.shadowed('chat', 1, picked(2, 0.25, 0.75));
    totals.restart();
    expect(shown().all).toBeNull();
    counts.shadowed('chat', 1, picked(1, 1, 1));
    expect(shown().all).toMatchObject({ decisions: 1, different: 0, runningCost: 1, candidateCost: 1 });
  });

  it('a candidate that decides no longer says why', () => {
    expect(shown({ stopped: 'other profiles' }).stopped).toBe('other profiles');
  });

  it('a page lists no more than 20 objectives, and all of them count', () => {
    const counts = shard(1);
    for (let i = 0; i < 30; i++) counts.shadowed(`objective-${i}`, 1, picked(1, 1, 1));
    expect(shown().objectives).toHaveLength(20);
    expect(shown().all!.decisions).toBe(30);
  });
});
