import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runSimulate } from '../../dist/cli/simulate.js';
import { runCell } from '../../dist/simulator/suite/cell.js';
import { compare, interval } from '../../dist/simulator/suite/comparison.js';
import { fleetOf } from '../../dist/simulator/suite/fleet-of.js';
import { loadSuite } from '../../dist/simulator/suite/load-suite.js';
import { baselines } from '../../dist/simulator/suite/policies.js';
import { fleetSchema, suiteSchema } from '../../dist/simulator/suite/schema.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'suite-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const small = {
  fleet: { hardware: 'llama-8b-h100', endpoints: 2 },
  workloads: [{ name: 'w', kind: 'shared-prefix', rate: 10, seconds: 20, groups: 5, output: { mean: 30 } }],
  policies: [{ name: 'default' }, { name: 'round-robin' }],
  warmup: { requests: 10 },
  seeds: 2,
};

function suiteFile(text: string): string {
  const path = join(folder, 'suite.yaml');
  writeFileSync(path, text);
  return path;
}

describe('a suite', () => {
  test.each([
    ['a misspelt field', { ...small, polices: [] }, /unknown field "polices".*policies/],
    ['an unknown kind', { ...small, workloads: [{ name: 'w', kind: 'chats' }] }, /workloads\[0\]/],
    ['no policy', { ...small, policies: [] }, /policies/],
    [
      'a name twice',
      { ...small, policies: [{ name: 'default' }, { name: 'default' }] },
      /policies\[1\]\.name.*must differ/,
    ],
    ['an unknown reference', { ...small, reference: 'best' }, /reference.*"best" is not among the policies/],
    ['an unknown workload to run', { ...small, run: ['x'] }, /run\[0\].*there is no workload "x"/],
    ['a negative rate', { ...small, workloads: [{ name: 'w', kind: 'separate', rate: -1 }] }, /rate.*greater than 0/],
  ])('is refused with the place: %s', (_what, data, message) => {
    expect(() => loadSuite(suiteFile(JSON.stringify(data)))).toThrow(message);
  });

  test('groups of endpoints take from the fleet what they leave out', () => {
    const text = fleetSchema.parse({
      hardware: 'llama-8b-a100',
      groups: [{ count: 3 }, { count: 1, speed: 0.5, kvTokens: 6400, joinSeconds: 5 }],
    });
    const { endpoints } = fleetOf(text, 64);
    expect(endpoints.map(({ speed }) => speed)).toEqual([1, 1, 1, 0.5]);
    expect(endpoints.map(({ limits }) => limits.blocks)).toEqual([6093, 6093, 6093, 100]);
    expect(endpoints[3]!.joinMs).toBe(5000);
  });

  test('an engine may have constants of its own', () => {
    const { endpoints } = fleetOf(fleetSchema.parse({ constants: { weightsMs: 3, tokenUs: 10 } }), 64);
    const work = { tokens: 1, prefillTokens: 0, prefillPairs: 0, decodes: 1, decodeContext: 0, rows: 1 };
    expect(endpoints[0]!.stepTime(work)).toBeCloseTo(4, 3);
  });

  test('a table that there is not is refused with those that there are', () => {
    expect(() => fleetOf(fleetSchema.parse({ truth: 'table' }), 64)).toThrow('llama-8b-rtx-pro-6000');
  });

  test('an incident at an endpoint that there is not is refused', () => {
    const text = fleetSchema.parse({ incidents: [{ kind: 'crash', endpoint: 8, atSeconds: 1, forSeconds: 1 }] });
    expect(() => fleetOf(text, 64)).toThrow('there is no endpoint 8');
  });

  test.each(baselines.map(({ name }) => name))('the baseline %s serves traffic', (name) => {
    const suite = suiteSchema.parse({ ...small, policies: [{ name }], reference: name });
    const { summary } = runCell(suite, { workload: 'w', policy: name, seed: 1 }, { suite: folder, traces: folder });
    expect([summary.lost, summary.requests > 100]).toEqual([0, true]);
    expect(summary.cost).toBeGreaterThan(0);
  });

  test('an unknown baseline is refused with those that there are', () => {
    const suite = suiteSchema.parse({ ...small, policies: [{ name: 'best' }], reference: 'best' });
    const run = () => runCell(suite, { workload: 'w', policy: 'best', seed: 1 }, { suite: folder, traces: folder });
    expect(run).toThrow(/there is no baseline "best".*lmetric/);
  });

  test('the command runs all cells on job threads and writes JSON and CSV', async () => {
    const [json, csv] = [join(folder, 'r.json'), join(folder, 'r.csv')];
    const path = suiteFile(JSON.stringify(small));
    expect(await runSimulate([path, '--json', json, '--csv', csv, '--quiet', '--jobs', '2'])).toBe(0);
    const { runs, comparisons } = JSON.parse(readFileSync(json, 'utf8'));
    expect(runs.map((run: { policy: string; seed: number }) => `${run.policy} ${run.seed}`)).toEqual([
      'default 1',
      'round-robin 1',
      'default 2',
      'round-robin 2',
    ]);
    expect(comparisons).toHaveLength(2);
    const lines = readFileSync(csv, 'utf8').trim().split('\n');
    expect(lines).toHaveLength(5);
    expect(lines[0]).toMatch(/^workload,policy,seed,cost,goodput/);
  });
});

describe('a comparison', () => {
  const result = (policy: string, seed: number, cost: number) =>
    ({ workload: 'w', policy, seed, summary: { cost }, simulated: 1, tookMs: 1 }) as never;
  const suite = suiteSchema.parse({
    ...small,
    policies: [{ name: 'default' }, { name: 'a' }, { name: 'b' }, { name: 'c' }],
  });

  test('is paired by seed: a policy that is always a tenth better wins although seeds differ by far', () => {
    const costs = [1, 5, 2, 9];
    const rows = compare(
      costs.flatMap((cost, seed) => [
        result('default', seed, cost),
        result('a', seed, 0.9 * cost),
        result('b', seed, 1.01 * cost),
        result('c', seed, 1.3 * cost),
      ]),
      suite,
    );
    expect(rows.map(({ verdict }) => verdict)).toEqual(['reference', 'win', 'tie', 'loss']);
    expect(rows[1]!.change).toBeCloseTo(-0.1, 6);
    expect(rows.map(({ regret }) => Number(regret.toFixed(3)))).toEqual([0.111, 0, 0.122, 0.444]);
  });

  test('the interval of equal values is that value; that of different ones lies around their mean', () => {
    expect(interval([0.5, 0.5, 0.5], 'x')).toEqual({ low: 0.5, high: 0.5 });
    const { low, high } = interval([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 'y');
    expect(low).toBeLessThan(4.5);
    expect(high).toBeGreaterThan(4.5);
    expect(high - low).toBeLessThan(5);
  });
});
