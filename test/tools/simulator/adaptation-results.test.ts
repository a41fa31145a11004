import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { compare } from '../../../dist/tools/simulator/suite/comparison.js';
import { suiteSchema } from '../../../dist/tools/simulator/suite/schema.js';
import type { RunResult } from '../../../dist/tools/simulator/suite/suite-run.js';
import { workloadOf } from '../../../dist/tools/simulator/suite/workload-of.js';
import { cellsOf, missingCells } from '../../../scripts/adaptation-results/cells.ts';
import { againstBestRule, againstDefault, atLoads, goalVerdict } from '../../../scripts/adaptation-results/goal.ts';
import { wrapped } from '../../../scripts/adaptation-results/page.ts';
import { guardVerdict, switchedAt, switching } from '../../../scripts/adaptation-results/switching.ts';
import { metrics, type Results } from '../../../scripts/adaptation-results/tables.ts';

const suite = suiteSchema.parse({
  workloads: [
    { name: 'W', kind: 'chat', rate: 2, seconds: 60 },
    { name: 'half', kind: 'variant', of: 'W', load: 0.5, fleet: { endpoints: 4 } },
  ],
  policies: [{ name: 'default' }, { name: 'sticky' }, { name: 'learned' }],
  seeds: 3,
});

/** A run with just what the tables read. */
function run(workload: string, policy: string, seed: number, cost: number, p99 = 100): RunResult {
  const summary = { cost, uncappedCost: cost, ttft: { p99 }, timeline: { windowMs: 1000, cost: [cost, cost] } };
  return { workload, policy, seed, summary, simulated: 100, tookMs: 10 } as unknown as RunResult;
}

/** Runs of three seeds that differ by 10 % from each other, for every policy alike. */
function runsOf(workload: string, costs: Readonly<Record<string, number>>, p99: Readonly<Record<string, number>> = {}) {
  return Object.entries(costs).flatMap(([policy, cost]) =>
    [1, 1.1, 0.9].map((factor, seed) => run(workload, policy, seed + 1, cost * factor, p99[policy])),
  );
}

const resultsOf = (runs: readonly RunResult[], of = suite): Results => ({
  suite: of,
  runs,
  comparisons: compare(runs, of),
  speeds: [],
});

test('the table of all metrics has no row of a policy that was not run', () => {
  const times = { mean: 20, p50: 20, p90: 30, p99: 40 };
  const rest = { tpot: times, e2e: times, goodput: 1, hitRatio: 0.5, imbalance: 1, preemptions: 0 };
  const runs = runsOf('W', { default: 1, sticky: 0.9, learned: 0.8 }).map((each) => {
    return { ...each, summary: { ...each.summary, ttft: times, ...rest } } as RunResult;
  });
  const policies = metrics(resultsOf(runs))
    .split('\n')
    .slice(2)
    .map((line) => line.split('|')[2]!.trim());
  expect(policies).toEqual(['default', 'sticky', 'learned']);
});

describe('the goal of learned costs', () => {
  test('the goal is played at every load, of a variant at the product of both', () => {
    const loaded = atLoads(suite, [0.6, 1]);
    expect(loaded.run).toEqual(['W at 60 %', 'W', 'half at 60 %', 'half']);
    expect(loaded.workloads.find(({ name }) => name === 'half at 60 %')).toMatchObject({
      of: 'W',
      load: 0.3,
      fleet: { endpoints: 4 },
    });
    expect(() => workloadOf(loaded, 'half at 60 %', 1, () => '')).not.toThrow();
  });

  test('the goal is played at every load on the own fleet of a workload', () => {
    const four = { ...suite, workloads: [{ ...suite.workloads[0]!, fleet: { endpoints: 4 } }], run: ['W'] };
    expect(atLoads(four, [0.6]).workloads.at(-1)).toMatchObject({ of: 'W', fleet: { endpoints: 4 } });
  });

  test('the goal that holds is said in one sentence', () => {
    const results = resultsOf(runsOf('W', { default: 1, sticky: 0.99, learned: 0.95 }));
    expect(goalVerdict(results)).toBe(
      'Of 1 pairs of workload and load (up to 3 seeds) the goal holds on **1**, is missed by the mean alone ' +
        'on **0**, and by the whole interval on **0**.',
    );
  });

  test('the goal that is missed names workload, load, and by how much in which part', () => {
    const results = resultsOf(
      runsOf('W', { default: 1, sticky: 0.9, learned: 1.05 }, { default: 100, sticky: 100, learned: 160 }),
    );
    expect(goalVerdict(results)).toContain(
      '- W at 100 %: cost +5.0 % against the default, cost +16.7 % against `sticky`, TTFT p99 ×1.60 of the default',
    );
    expect(againstDefault(results)).toContain('| W | **+5.0 % ✗** · **×1.60 ✗** |');
    expect(againstBestRule(results)).toContain('| W | **+16.7 % ✗** sticky |');
  });

  test('the goal that is missed in the mean alone, with seeds on both sides, is marked as chance', () => {
    const runs = [1.2, 0.95, 0.95].map((cost, seed) => run('W', 'learned', seed + 1, cost));
    const results = resultsOf([...runsOf('W', { default: 1, sticky: 1 }).map((each) => withCost(each, 1)), ...runs]);
    expect(againstDefault(results)).toMatch(/\| W \| \+2\.\d % \? · ×1\.00 \|/);
    expect(goalVerdict(results)).toContain('is missed by the mean alone on **1**');
  });
});

function withCost(of: RunResult, cost: number): RunResult {
  return run(of.workload, of.policy, of.seed, cost);
}

describe('the time until the guard switches learned costs on', () => {
  const guarded = (cost: readonly number[], activeMs?: number): RunResult => ({
    ...run('W', 'guarded', 1, 1),
    summary: { ...run('W', 'guarded', 1, 1).summary, timeline: { windowMs: 1000, cost } },
    transitions: activeMs === undefined ? [] : [{ timeMs: activeMs, to: 'active', reason: 'proven' }],
  });
  const reference = { ...guarded([1, 1, 1, 1]), policy: 'default' };

  test('the time until learned costs decide parts a run into undecided and decided', () => {
    const { atMs, before, after } = switchedAt(guarded([1.1, 1.1, 0.8, 0.8], 2000), reference);
    expect([atMs, Math.exp(before!), Math.exp(after!)]).toEqual([2000, expect.closeTo(1.1), expect.closeTo(0.8)]);
  });

  test('the time of a run that never switches is all undecided', () => {
    const { atMs, before, after } = switchedAt(guarded([1.1, 1.1, 1.1, 1.1]), reference);
    expect([atMs, Math.exp(before!), after]).toEqual([undefined, expect.closeTo(1.1), undefined]);
  });

  test('the time beyond three minutes is marked where learned costs gain a tenth, and a dear wait always', () => {
    const runs = [reference, run('W', 'learned', 1, 0.8), guarded([1.02, 1.02, 1.02, 1.02], 200_000)];
    const of = { ...suite, policies: [{ name: 'default' }, { name: 'learned' }, { name: 'guarded' }] };
    const line = switching(resultsOf(runs, of as typeof suite))
      .split('\n')
      .at(-1);
    expect(line).toBe('| W | −20.0 % | **200 s ✗** | **+2.0 % ✗** | – | 0.0 |');
  });

  test('the time beyond three minutes and a dear wait are said at the beginning of the page', () => {
    const of = { ...suite, policies: [{ name: 'default' }, { name: 'learned' }, { name: 'guarded' }] };
    const verdict = (costs: readonly number[], atMs: number) =>
      guardVerdict(
        resultsOf([reference, run('W', 'learned', 1, 0.8), guarded(costs, atMs)], of as unknown as typeof suite),
      );
    expect(verdict([1.02, 1.02, 1.02, 1.02], 200_000)).toMatch(
      /on \*\*0\*\* of 1 kinds of traffic, and not on:\n\n- W: switched on after 200 s, cost \+2\.0 % while undecided$/,
    );
    expect(verdict([1, 1, 0.8, 0.8], 2000)).toMatch(/on \*\*1\*\* of 1 kinds of traffic\.$/);
  });
});

describe('the runs of the page', () => {
  test('the runs of first seeds come before second ones of any chapter, late chapters behind', () => {
    const two = { ...suite, seeds: 2, policies: [{ name: 'default' }], run: ['W'] };
    const chapters = [
      { name: 'late', suite: two, late: true },
      { name: 'a', suite: two },
      { name: 'b', suite: two },
    ];
    const order = cellsOf(chapters as never).map(({ chapter, run: { seed } }) => `${chapter} ${seed}`);
    expect(order).toEqual(['a 1', 'b 1', 'a 2', 'b 2', 'late 1', 'late 2']);
  });

  test('the runs that a chapter shares with one that is not named are missing all the same, and once', () => {
    const one = { ...suite, seeds: 1, run: ['W'] };
    const cells = cellsOf(['goal', 'metrics', 'rivals'].map((name) => ({ name, suite: one })) as never);
    const keyOf = ({ run: { policy } }: (typeof cells)[number]) => policy;
    const missing = (chapters: readonly string[]) =>
      missingCells(cells, chapters, { keyOf, has: (cell) => keyOf(cell) === 'sticky' }).map(
        ({ chapter, run: { policy } }) => `${chapter} ${policy}`,
      );
    expect(missing(['rivals'])).toEqual(['rivals default', 'rivals learned']);
    expect(missing(['metrics', 'rivals'])).toEqual(['metrics default', 'metrics learned']);
  });

  test('the runs that are missing are counted before any begins', () => {
    const { stdout, status } = command('--estimate', '--short', '--chapters', 'guard', '--runs', '/nonexistent.jsonl');
    expect(stdout).toMatch(/guard: 54 runs are missing, about \d+\.\d h of a processor \(2 seeds\)/);
    expect(stdout).toMatch(/goal: 0 runs are missing/);
    expect(status).toBe(0);
  }, 60_000);

  test.each([
    [['--chapters', 'goals'], /--chapters: there is no chapter "goals": the page has goal, /],
    [['--jobs', '3'], /--jobs: expected a number above 0 and of at most 2, got "3"/],
    [['--traces', '/nonexistent'], /--traces: there is no folder \/nonexistent/],
  ])(
    'the runs are refused with the flag and the remedy: %s',
    (flags, message) => {
      const { stderr, status } = command('--estimate', ...flags);
      expect(stderr).toMatch(message);
      expect(status).toBe(1);
    },
    60_000,
  );
});

function command(...flags: readonly string[]) {
  const script = fileURLToPath(new URL('../../../scripts/adaptation-results.ts', import.meta.url));
  return spawnSync(process.execPath, [script, ...flags], { encoding: 'utf8' });
}

test('the page breaks its lines at 140 columns, and rows of tables not at all', () => {
  const sentence = 'word '.repeat(60).trim();
  const lines = wrapped(`${sentence}\n| ${sentence} |\n- ${sentence}`).split('\n');
  expect(Math.max(...lines.filter((line) => !line.startsWith('|')).map((line) => line.length))).toBeLessThanOrEqual(
    140,
  );
  expect(lines).toContain(`| ${sentence} |`);
  expect(lines.at(-1)).toMatch(/^ {2}word/);
});
