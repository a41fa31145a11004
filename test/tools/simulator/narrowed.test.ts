import { describe, expect, test } from 'vitest';
import { narrowed } from '../../../dist/tools/simulator/suite/load-suite.js';
import { suiteSchema } from '../../../dist/tools/simulator/suite/schema.js';

const suite = suiteSchema.parse({
  workloads: [
    { name: 'a', kind: 'chat' },
    { name: 'b', kind: 'chat' },
  ],
  policies: [{ name: 'default' }, { name: 'lmetric' }, { name: 'smg' }],
  oracle: { scorers: { 'queue-scorer': [1] } },
  seeds: 10,
});
const all = { policies: undefined, workloads: undefined, seeds: undefined };

describe('a part of a suite', () => {
  test('a part of a suite is all of it when nothing is named', () => {
    expect(narrowed(suite, all)).toEqual(suite);
  });

  test('a part of a suite has the named policies, always the reference, and the oracle only by its name', () => {
    const names = (policies: string[]) => narrowed(suite, { ...all, policies }).policies.map(({ name }) => name);
    expect(names(['smg'])).toEqual(['default', 'smg']);
    expect(narrowed(suite, { ...all, policies: ['smg'] }).oracle).toBeUndefined();
    expect(narrowed(suite, { ...all, policies: ['grid-oracle'] }).oracle).toBe(suite.oracle);
  });

  test('a part of a suite has the named workloads and so many seeds', () => {
    const part = narrowed(suite, { ...all, workloads: ['b'], seeds: 3 });
    expect([part.run, part.seeds, part.workloads.length]).toEqual([['b'], 3, 2]);
  });

  test('a part of a suite is refused for a name that is not there', () => {
    expect(() => narrowed(suite, { ...all, policies: ['best'] })).toThrow(/no policy "best".*lmetric/);
    expect(() => narrowed(suite, { ...all, workloads: ['c'] })).toThrow(/no workload "c": it has a, b/);
  });
});
