import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { comparisonText, runSimulate } from '../../../dist/tools/simulator/simulate.js';
import { compare, interval } from '../../../dist/tools/simulator/suite/comparison.js';
import { fleetOf } from '../../../dist/tools/simulator/suite/fleet-of.js';
import { loadSuite } from '../../../dist/tools/simulator/suite/load-suite.js';
import { baselines } from '../../../dist/tools/simulator/suite/policies.js';
import { fleetSchema, suiteSchema } from '../../../dist/tools/simulator/suite/schema.js';
import { runOne } from '../../../dist/tools/simulator/suite/suite-run.js';

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
  ])('a suite is refused with the place: %s', (_what, data, message) => {
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
    const { summary } = runOne(suite, { workload: 'w', policy: name, seed: 1 }, { suite: folder, traces: folder });
    expect([summary.lost, summary.requests > 100]).toEqual([0, true]);
    expect(summary.cost).toBeGreaterThan(0);
  });

  test('an unknown baseline is refused with those that there are', () => {
    const suite = suiteSchema.parse({ ...small, policies: [{ name: 'best' }], reference: 'best' });
    const run = () => runOne(suite, { workload: 'w', policy: 'best', seed: 1 }, { suite: folder, traces: folder });
    expect(run).toThrow(/there is no baseline "best".*lmetric/);
  });

  describe('what a suite names is checked before the first run', () => {
    const refusal = async (change: object, ...flags: string[]) => {
      const path = suiteFile(JSON.stringify({ ...small, ...change }));
      return runSimulate([path, '--quiet', ...flags]).then(
        () => 'ran',
        (error: Error) => error.message,
      );
    };

    test.each([
      ['mooncake', 'https://github.com/kvcache-ai/Mooncake'],
      ['azure', 'https://github.com/Azure/AzurePublicDataset'],
      ['jsonl', 'put it there'],
    ])('a missing trace of kind %s is one line that says where to get it', async (kind, source) => {
      const message = await refusal({ workloads: [...small.workloads, { name: 'real', kind, path: 'no-such-trace' }] });
      expect(message).toContain(`workload "real": the trace ${join(folder, 'no-such-trace')} is missing: `);
      expect(message).toContain(source);
      expect(message).toContain('or name its folder with --traces');
      expect(message).not.toContain('\n');
    });

    test('a policy that cannot be simulated is refused by its name', async () => {
      const two =
        'plugins:\n- type: queue-scorer\nschedulingProfiles:\n- {name: a, plugins: [{pluginRef: queue-scorer}]}\n- ' +
        '{name: b, plugins: [{pluginRef: queue-scorer}]}\n';
      const head = 'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n';
      writeFileSync(join(folder, 'two.yaml'), `${head}${two}`);
      const policies = [{ name: 'default' }, { name: 'mine', configuration: 'two.yaml' }];
      expect(await refusal({ policies })).toMatch(/^policy "mine": /);
      expect(await refusal({ policies: [{ name: 'default' }, { name: 'best' }] })).toContain('no baseline "best"');
    });

    test('a trace that ends within the warm-up is refused with the remedy', async () => {
      const short = [0, 1000, 2000].map((timestamp_ms) =>
        JSON.stringify({ timestamp_ms, prompt_tokens: 10, output_tokens: 5 }),
      );
      writeFileSync(join(folder, 'short.jsonl'), short.join('\n'));
      const workloads = [{ name: 'brief', kind: 'jsonl', path: 'short.jsonl' }];
      const message = await refusal({ workloads, warmup: {} });
      expect(message).toContain('workload "brief": all of its 3 requests lie in the warm-up');
      expect(message).toContain('take a longer trace, or set warmup of the suite lower');
      expect(await refusal({ workloads, warmup: { requests: 2 }, seeds: 1, policies: [{ name: 'default' }] })).toBe(
        'ran',
      );
    });

    test.each(['report', 'json', 'csv', 'resume'])('--%s in a folder that there is not is refused', async (flag) => {
      const message = await refusal({}, `--${flag}`, join(folder, 'none', 'out'));
      expect(message).toBe(`--${flag}: there is no folder ${join(folder, 'none')}: make it first`);
      expect(await refusal({}, `--${flag}`, folder)).toBe(`--${flag}: ${folder} is a folder: name a file`);
    });
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

describe('a sweep that is resumed', () => {
  const runs = async (suite: object, name: string) => {
    const kept = join(folder, name);
    const json = join(folder, 'resumed.json');
    await runSimulate([suiteFile(JSON.stringify(suite)), '--json', json, '--quiet', '--jobs', '1', '--resume', kept]);
    const { runs: results } = JSON.parse(readFileSync(json, 'utf8')) as { runs: { tookMs: number }[] };
    return { results, lines: readFileSync(kept, 'utf8').trim().split('\n').length };
  };

  test('a sweep that is resumed runs nothing again, and only what is new when it has grown', async () => {
    const first = await runs(small, 'kept');
    const again = await runs(small, 'kept');
    // A run that was made again would have taken another time.
    expect(again).toEqual(first);
    const grown = await runs({ ...small, policies: [...small.policies, { name: 'lmetric' }], seeds: 3 }, 'kept');
    expect([first.lines, grown.lines, grown.results.length]).toEqual([4, 9, 9]);
    const other = { ...small, fleet: { ...small.fleet, endpoints: 3 }, policies: [{ name: 'default' }], seeds: 1 };
    expect((await runs(other, 'kept')).lines).toBe(10);
  });

  test('a sweep that is resumed goes on behind a line that was cut off, and refuses a file of something else', async () => {
    await runs(small, 'cut');
    const path = join(folder, 'cut');
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, text.slice(0, -40));
    expect((await runs(small, 'cut')).results).toHaveLength(4);
    writeFileSync(path, 'workload,policy\nw,default\n');
    await expect(runs(small, 'cut')).rejects.toThrow(/cut:1: this is no result of a run/);
  });
});

describe('a suite with an oracle', () => {
  test('a suite with an oracle shows the best of the grid as one more policy, with the weights that were chosen', async () => {
    const json = join(folder, 'oracle.json');
    const oracle = { scorers: { 'queue-scorer': [0, 1], 'prefix-cache-scorer': [1] }, seeds: 1 };
    const path = suiteFile(JSON.stringify({ ...small, oracle }));
    await runSimulate([path, '--json', json, '--quiet', '--jobs', '1']);
    const { suite, comparisons } = JSON.parse(readFileSync(json, 'utf8'));
    expect(comparisons.map(({ policy }: { policy: string }) => policy)).toContain('grid-oracle');
    expect(suite.policies.at(-1).weightsByWorkload.w['prefix-cache-scorer']).toBe(1);
  });
});

describe('a suite that looks for capacity', () => {
  test('a suite that looks for capacity finds the load at which goodput falls below the mark, and more of it for a larger fleet', () => {
    const [two, four] = [2, 4].map((endpoints) => {
      const suite = suiteSchema.parse({
        ...small,
        fleet: { ...small.fleet, endpoints },
        workloads: [{ ...small.workloads[0]!, rate: 20, seconds: 15 }],
        capacity: { from: 0.5, to: 16, steps: 5 },
        slo: { ttftMs: 300, tpotMs: 30 },
      });
      return runOne(suite, { workload: 'w', policy: 'default', seed: 1 }, { suite: folder, traces: folder });
    });
    expect(two!.capacity!.load).toBeGreaterThan(0.5);
    expect(four!.capacity!.load).toBeGreaterThan(1.4 * two!.capacity!.load);
    expect(four!.summary.goodput).toBeGreaterThanOrEqual(0.9);
    expect(four!.capacity!.requestsPerSecond).toBeGreaterThan(two!.capacity!.requestsPerSecond);
  });
});

describe('a comparison', () => {
  const result = (policy: string, seed: number, cost: number, uncappedCost = cost, p99 = 100) => {
    const summary = { cost, uncappedCost, ttft: { p99 } };
    return { workload: 'w', policy, seed, summary, simulated: 1, tookMs: 1 } as never;
  };
  const suite = suiteSchema.parse({
    ...small,
    policies: [{ name: 'default' }, { name: 'a' }, { name: 'b' }, { name: 'c' }, { name: 'd' }],
  });

  test('a comparison is paired by seed: a policy that is always a tenth better wins although seeds differ by far', () => {
    const costs = [1, 5, 2, 9];
    const rows = compare(
      costs.flatMap((cost, seed) => [
        result('default', seed, cost),
        result('a', seed, 0.9 * cost),
        result('b', seed, 1.01 * cost),
        result('c', seed, 1.3 * cost),
        result('d', seed, (seed % 2 === 0 ? 0.7 : 1.4) * cost),
      ]),
      suite,
    );
    expect(rows.map(({ verdict }) => verdict)).toEqual(['reference', 'win', 'tie', 'loss', 'open']);
    expect(rows[1]!.change).toBeCloseTo(-0.1, 6);
    expect(rows.map(({ regret }) => Number(regret.toFixed(3)))).toEqual([0.111, 0, 0.122, 0.444, 0.418]);
  });

  test('a comparison shows the uncapped cost beside the capped one, and marks a p99 of 1.5 times that of the reference', () => {
    const rows = compare(
      [1, 2].flatMap((seed) => [
        result('default', seed, 1, 1.2, 100 * seed),
        result('a', seed, 0.5, 3.6, 150 * seed),
        result('b', seed, 0.9, 0.9, 149 * seed),
      ]),
      suiteSchema.parse({ ...small, policies: [{ name: 'default' }, { name: 'a' }, { name: 'b' }] }),
    );
    expect(rows.map(({ slowTail }) => slowTail)).toEqual([false, true, false]);
    expect(rows[1]).toMatchObject({ verdict: 'win', uncapped: 3.6, ttftP99: 225 });
    expect(rows[1]!.uncappedChange).toBeCloseTo(2, 6);
    expect(rows[1]!.ttftP99Ratio).toBeCloseTo(1.5, 6);
    const lines = comparisonText(rows).split('\n');
    expect(lines.find((line) => line.startsWith('  a'))).toMatch(/0\.500 +3\.600 +225 {2}-50\.0 % .* win ▲$/);
    expect(lines).toContainEqual('  ▲ TTFT p99 at least 1.5 times that of the reference');
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
  });

  test('a comparison fits 80 columns however large its numbers and long its names, and says – where nothing was served', () => {
    const long = 'a-policy-with-a-very-long-name';
    const rows = compare(
      [1, 2, 3].flatMap((seed) => [
        result('default', seed, 0.1, 0.1, 0),
        result(long, seed, 40 * seed, 123_456 * seed, 9_999_999),
      ]),
      suiteSchema.parse({ ...small, policies: [{ name: 'default' }, { name: long }] }),
    );
    const lines = comparisonText(rows.map((row) => ({ ...row, slowTail: true }))).split('\n');
    for (const line of lines) expect([line, line.length <= 80]).toEqual([line, true]);
    expect(lines.find((line) => line.startsWith('  default'))).toMatch(/0\.100 +– +reference/);
  });

  test('a comparison of many workloads asks for more than one of few', () => {
    const shaky = [0.9, 0.97, 0.92, 0.99, 0.93];
    const rows = (workloads: number) =>
      compare(
        Array.from({ length: workloads }, (_, w) =>
          shaky.flatMap((factor, seed) => [
            { ...(result('default', seed, 1) as object), workload: `w${w}` } as never,
            { ...(result('a', seed, factor) as object), workload: `w${w}` } as never,
          ]),
        ).flat(),
        suiteSchema.parse({ ...small, policies: [{ name: 'default' }, { name: 'a' }] }),
      );
    expect(rows(1).map(({ verdict }) => verdict)).toEqual(['reference', 'win']);
    expect(rows(8).map(({ verdict }) => verdict)).toEqual(
      Array.from({ length: 8 }, () => ['reference', 'open']).flat(),
    );
  });

  test('a comparison leaves out a policy that did not run on a workload', () => {
    const other = { ...(result('default', 1, 2) as object), workload: 'other' } as never;
    const rows = compare([result('default', 1, 1), result('a', 1, 2), other], suite);
    expect(rows.map(({ workload, policy, regret }) => [workload, policy, regret])).toEqual([
      ['w', 'default', 0],
      ['w', 'a', 1],
      ['other', 'default', 0],
    ]);
  });

  test('a comparison of a single seed is open, however small the change', () => {
    const rows = compare([result('default', 1, 1), result('a', 1, 1.001)], {
      ...suite,
      policies: suite.policies.slice(0, 2),
    });
    expect(rows.map(({ verdict }) => verdict)).toEqual(['reference', 'open']);
  });

  test('the interval of equal values is that value; that of different ones lies around their mean', () => {
    expect(interval([0.5, 0.5, 0.5], 'x')).toEqual({ low: 0.5, high: 0.5 });
    const { low, high } = interval([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 'y');
    expect(low).toBeLessThan(4.5);
    expect(high).toBeGreaterThan(4.5);
    expect(high - low).toBeLessThan(5);
  });
});
