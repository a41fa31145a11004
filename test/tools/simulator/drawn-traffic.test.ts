import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { RunResult } from '../../../dist/tools/simulator/suite/suite-run.js';
import { type DrawnWorkload, drawWorkload } from '../../../scripts/drawn-traffic/draw.ts';
import { type DrawnResults, pageOf, pairsOf } from '../../../scripts/drawn-traffic/page.ts';
import { comparedSuite, guardedSuite, limitSuite, nameAt } from '../../../scripts/drawn-traffic/suites.ts';

const script = fileURLToPath(new URL('../../../scripts/drawn-traffic.ts', import.meta.url));
const drawnTraffic = (...args: readonly string[]) =>
  spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
const MANY = Array.from({ length: 300 }, (_, number) => drawWorkload(number));

describe('drawn traffic', () => {
  test('a number draws the same workload each time, and another number another one', () => {
    expect(drawWorkload(7)).toEqual(drawWorkload(7));
    expect(new Set(MANY.map(({ fields }) => JSON.stringify(fields))).size).toBe(MANY.length);
  });

  test('each of the ten kinds comes in turn', () => {
    expect(MANY.slice(0, 10).map(({ kind }) => kind)).toEqual([
      'chat',
      'agentic',
      'sub-agents',
      'tool-calls',
      'shared-prefix',
      'documents',
      'separate',
      'reasoning',
      'tenants',
      'crowd',
    ]);
    expect(MANY.every(({ kind }, number) => kind === MANY[number % 10]!.kind)).toBe(true);
  });

  test('every drawn workload makes suites that the simulator takes', () => {
    for (const drawn of MANY) {
      expect(limitSuite(drawn).capacity?.goodput).toBe(drawn.kind === 'sub-agents' ? 0.75 : 0.9);
      expect(comparedSuite(drawn, drawn.rate, 2).run).toEqual([0.6, 0.85, 1.1].map((load) => nameAt(drawn, load)));
      expect(guardedSuite(drawn, drawn.rate).policies.map(({ name }) => name)).toEqual(['default', 'guarded']);
    }
  });

  test('no drawn part of a prompt is longer than a quarter of the KV cache', () => {
    for (const { fields, fleet } of MANY) {
      const lengths = ['system', 'task', 'result', 'prompt', 'shared', 'document'].flatMap(
        (name) => fields[name] ?? [],
      );
      for (const { mean, most } of lengths as unknown as readonly { mean: number; most: number }[]) {
        expect(most).toBeLessThanOrEqual((fleet.kvTokens as number) / 4);
        expect(mean).toBeLessThanOrEqual(most);
      }
    }
  });

  test('fleets have machines that are slower, scrapes that are rare, and caches of other sizes than usual', () => {
    const share = (has: (drawn: DrawnWorkload) => boolean) => MANY.filter(has).length / MANY.length;
    expect(share(({ fleet }) => fleet.groups !== undefined)).toBeGreaterThan(0.1);
    expect(share(({ fleet }) => fleet.metrics !== undefined)).toBeGreaterThan(0.1);
    expect(new Set(MANY.map(({ fleet }) => fleet.kvTokens)).size).toBeGreaterThan(MANY.length * 0.9);
  });
});

describe('page of drawn traffic', () => {
  const workload = drawWorkload(4);
  const POLICIES = ['default', 'learned', 'sticky', 'fewest-tokens', 'lmetric', 'least-request'];
  const run = (name: string, policy: string, cost: number, p99 = 100): RunResult =>
    ({
      workload: name,
      policy,
      seed: 101,
      simulated: 1000,
      summary: { cost, goodput: 0.97, ttft: { p99 }, timeline: { windowMs: 1000, cost: [cost, cost] } },
    }) as unknown as RunResult;
  /** Costs of learned costs at 60, 85 and 110 %, beside 1 of every other policy. */
  const results = (costs: readonly number[], guarded = 1): DrawnResults => ({
    workload,
    limit: 5,
    compared: [0.6, 0.85, 1.1].flatMap((load, at) =>
      POLICIES.map((policy) =>
        run(nameAt(workload, load), policy, policy === 'learned' ? costs[at]! : policy === 'lmetric' ? 0.96 : 1),
      ),
    ),
    guarded: [run(workload.name, 'default', 1), run(workload.name, 'guarded', guarded)],
  });
  const pageWith = (...of: readonly DrawnResults[]) =>
    pageOf(of, { commit: '0123abcd', first: 4, drawn: of.length, seeds: 1 }).replaceAll('\n', ' ');

  test('a pair is compared with the default, and with the cheapest simple rule of its load', () => {
    const [first] = pairsOf(results([0.98, 0.9, 0.9]));
    expect(first!.cost).toBeCloseTo(Math.log(0.98), 10);
    expect(first!.bestRule).toBe('lmetric');
    expect(first!.toBest).toBeCloseTo(Math.log(0.98 / 0.96), 10);
  });

  test('the page says first on how many pairs learned costs are no dearer', () => {
    expect(pageWith(results([0.98, 0.9, 1.02]))).toContain(
      'Of 3 pairs of workload and load learned costs cost no more than the default on **2 of 3**',
    );
  });

  test('a pair that costs half a percent more is named with its fleet', () => {
    expect(pageWith(results([0.98, 0.9, 1.02]))).toMatch(
      /\| shared-prefix 4 at 110 % \| [^|]+ × llama-8b-a100, 668 k tokens of KV \| \+2\.0 % \| ×1\.00 \| 97 % \|/,
    );
    expect(pageWith(results([0.98, 0.9, 0.9]))).toContain('On no pair is the cost 0.5 % above');
  });

  test('a run under the guard that costs more than a percent is named', () => {
    expect(pageWith(results([1, 1, 1], 1.03))).toContain('- shared-prefix 4: +3.0 %, not switched on');
    expect(pageWith(results([1, 1, 1], 1.005))).not.toContain('- shared-prefix 4');
  });

  test('the page names its commit and the command that makes it again', () => {
    expect(pageWith(results([1, 1, 1]))).toContain(
      'Commit 0123abcd, `npm run drawn-traffic -- --first 4 --workloads 1 --seeds 1`: 20 runs',
    );
  });
});

describe('command of drawn traffic', () => {
  test('a workload is drawn, searched for its limit, compared and written to the page', () => {
    const folder = mkdtempSync(join(tmpdir(), 'drawn-'));
    const [runs, page] = [join(folder, 'runs.jsonl'), join(folder, 'page.md')];
    const args = ['--runs', runs, '--page', page, '--workloads', '1', '--first', '195', '--seeds', '1'];
    const { status, stderr } = drawnTraffic(...args);
    expect([status, stderr]).toEqual([0, '']);
    expect(readFileSync(page, 'utf8')).toContain('Of 3 pairs of workload and load');
    const again = drawnTraffic(...args);
    expect(again.stdout).not.toContain('compared:');
  }, 120_000);

  test('a number of workloads that is none is refused', () => {
    const { status, stderr } = drawnTraffic('--workloads', 'few');
    expect(stderr).toContain('--workloads: expected a whole number from 1 to 10000, got "few"');
    expect(status).toBe(1);
  }, 60_000);
});
