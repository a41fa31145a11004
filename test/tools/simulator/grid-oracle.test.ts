import { describe, expect, test } from 'vitest';
import { gridOf, tuningSuite, withOracle } from '../../../dist/tools/simulator/suite/grid-oracle.js';
import { suiteSchema } from '../../../dist/tools/simulator/suite/schema.js';

const suite = suiteSchema.parse({
  workloads: [
    { name: 'a', kind: 'azure', path: 'x.csv', half: 'second', tuning: { half: 'first' } },
    { name: 'b', kind: 'chat' },
  ],
  policies: [{ name: 'default' }],
  seeds: 4,
  oracle: { scorers: { 'queue-scorer': [0, 1, 2], 'prefix-cache-scorer': [1, 2] }, seeds: 2 },
});
const oracle = suite.oracle!;

describe('the oracle of a grid', () => {
  test('the oracle of a grid is all proportions of the weights, each once, and never none at all', () => {
    expect(gridOf(oracle)).toEqual([
      { 'queue-scorer': 0, 'prefix-cache-scorer': 1 },
      { 'queue-scorer': 1, 'prefix-cache-scorer': 1 },
      { 'queue-scorer': 1, 'prefix-cache-scorer': 2 },
      { 'queue-scorer': 2, 'prefix-cache-scorer': 1 },
    ]);
    expect(gridOf({ ...oracle, scorers: { 'queue-scorer': [0] } })).toEqual([]);
  });

  test('the oracle of a grid is chosen on other seeds, and on the halves that are for tuning', () => {
    const tuning = tuningSuite(suite, oracle);
    expect([tuning.firstSeed, tuning.seeds, tuning.policies.length]).toEqual([1001, 2, 4]);
    expect(tuning.workloads.map((workload) => 'half' in workload && workload.half)).toEqual(['first', false]);
    expect(tuning.oracle).toBeUndefined();
  });

  test('the oracle of a grid takes for each workload the vector that was the cheapest over the seeds', () => {
    const run = (workload: string, policy: string, seed: number, cost: number) =>
      ({ workload, policy, seed, summary: { cost } }) as never;
    const { policies } = withOracle(suite, oracle, [
      run('a', 'grid 1', 1, 1),
      run('a', 'grid 1', 2, 9),
      run('a', 'grid 3', 1, 4),
      run('a', 'grid 3', 2, 4),
      run('b', 'grid 1', 1, 2),
      run('b', 'grid 3', 1, 3),
    ]);
    expect(policies.at(-1)).toEqual({
      name: 'grid-oracle',
      weightsByWorkload: {
        a: { 'queue-scorer': 1, 'prefix-cache-scorer': 2 },
        b: { 'queue-scorer': 0, 'prefix-cache-scorer': 1 },
      },
    });
  });
});
