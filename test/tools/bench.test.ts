import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { loadConfiguration } from '../../dist/src/config/load.js';
import { definePlugin, type PluginDefinition, z } from '../../dist/src/scheduling/plugin.js';
import { benchText, compareText } from '../../dist/tools/bench/bench-text.js';
import {
  type BenchmarkOptions,
  compareRows,
  listRows,
  measuredRow,
  measureRows,
} from '../../dist/tools/bench/benchmark.js';
import { figure, ROUNDS_MIN, samplePaired } from '../../dist/tools/bench/paired-samples.js';
import { load } from '../config/configuration-text.ts';

const DEFAULT = loadConfiguration({}, { allowExperimental: false, registry: builtinPlugins });

/** Measures as little as possible. */
function quick(registry: readonly PluginDefinition[] = builtinPlugins): BenchmarkOptions {
  return { registry, endpoints: 8, blocks: 4, seed: 1n, rowTimeMs: 1, now: () => performance.now() };
}

function pluginWith(score: () => void): PluginDefinition {
  return definePlugin({
    type: 'own-scorer',
    kinds: ['scorer'],
    stability: 'Stable',
    doc: 'Scores by a function.',
    parameters: z.strictObject({}),
    host: () => ({ score }),
  });
}

function withOwn(score: () => void) {
  const registry = [...builtinPlugins, pluginWith(score)];
  const text = `apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins: [{type: own-scorer}, {type: queue-scorer}, {type: max-score-picker}]
schedulingProfiles:
- name: default
  plugins: [{pluginRef: own-scorer}, {pluginRef: queue-scorer}, {pluginRef: max-score-picker}]
`;
  return { registry, configuration: loadConfiguration({ text }, { allowExperimental: false, registry }) };
}

describe('rows of pointsman bench', () => {
  it('rows of pointsman bench are the decision, the match and the operations of a profile in their order', () => {
    const rows = listRows(DEFAULT, quick()).map(({ name, kind }) => `${kind} ${name}`);
    expect(rows).toEqual([
      'whole decision',
      'match match',
      'scorer queue-scorer',
      'scorer kv-cache-utilization-scorer',
      'scorer prefix-cache-scorer',
      'picker max-score-picker',
    ]);
  });

  it('rows of pointsman bench are named after their profile where there are several', () => {
    const two = load(
      `plugins: [{type: queue-scorer}, {type: max-score-picker}, {type: header-profile-handler}]
schedulingProfiles:
- {name: one, plugins: [{pluginRef: queue-scorer}, {pluginRef: max-score-picker}]}
- {name: two, plugins: [{pluginRef: max-score-picker}]}
`,
      true,
    );
    const names = listRows(two, quick()).map(({ name }) => name);
    expect(names).toEqual([
      ...['one/decision', 'one/queue-scorer', 'one/max-score-picker'],
      ...['two/decision', 'two/max-score-picker'],
    ]);
  });

  it('rows of pointsman bench hold the hooks of a plugin and the operation that adds its column apart', () => {
    const { registry, configuration } = withOwn(() => {});
    const { rows } = measureRows(configuration, quick(registry));
    const own = rows.filter(({ name }) => name === 'own-scorer').map(({ kind }) => kind);
    expect(own).toEqual(['hooks', 'scorer']);
  });

  it('rows of pointsman bench are refused when a hook of a plugin fails', () => {
    const { registry, configuration } = withOwn(() => {
      throw new Error('broken');
    });
    expect(() => measureRows(configuration, quick(registry))).toThrow(/^plugin "own-scorer": \d+ of its calls failed/);
  });

  it('rows of pointsman bench have times above 0 for a whole decision, and time for each endpoint', () => {
    const [whole] = measureRows(DEFAULT, quick()).rows;
    expect(whole!.nsPerDecision.low).toBeGreaterThan(0);
    expect(whole!.nsPerEndpoint).toBeCloseTo(whole!.nsPerDecision.median / 8, 6);
  });

  it('rows of pointsman bench have no negative time where a part takes less than the noise', () => {
    const row = { name: 'part', type: 'queue-scorer', kind: 'scorer' } as const;
    const { nsPerDecision, nsPerEndpoint } = measuredRow(row, Float64Array.from([-3, -2, -1, -4, 1]), 8);
    expect([nsPerDecision.median, nsPerDecision.low, nsPerEndpoint]).toEqual([0, 0, 0]);
    expect(nsPerDecision.high).toBeGreaterThanOrEqual(0);
  });

  it('rows of pointsman bench of two configurations are compared by name', () => {
    const other = load(`plugins: [{type: queue-scorer}, {type: max-score-picker}]
schedulingProfiles:
- {name: default, plugins: [{pluginRef: queue-scorer}, {pluginRef: max-score-picker}]}
`);
    const { rows } = compareRows(DEFAULT, other, quick());
    expect(rows.map(({ name }) => name)).toEqual(['decision', 'queue-scorer', 'max-score-picker']);
    expect(rows[0]!.ratio!.median).toBeGreaterThan(0);
  });

  it('rows of pointsman bench come with a note when no endpoint passes the filters', () => {
    const picky = load(
      `plugins:
- {type: endpoint-attribute-filter, parameters: {attribute: kv-cache-utilization, algorithm: {type: range, \
range: {min: 2, max: 3}}}}
- type: max-score-picker
schedulingProfiles:
- {name: default, plugins: [{pluginRef: endpoint-attribute-filter}, {pluginRef: max-score-picker}]}
`,
      true,
    );
    expect(measureRows(picky, quick()).notes).toEqual(['profile "default" places no request in this pool (filtered)']);
  });

  const samples = readdirSync('examples').filter((name) => name.endsWith('.yaml') && !name.startsWith('endpoints'));
  it.each(samples)('rows of pointsman bench of examples/%s decide in the bench pool', (sample) => {
    const options = { allowExperimental: true, registry: builtinPlugins };
    const { rows, notes } = measureRows(loadConfiguration({ file: `examples/${sample}` }, options), quick());
    expect(notes).toEqual([]);
    expect(rows.some(({ kind }) => kind === 'picker')).toBe(true);
  });
});

describe('paired samples', () => {
  /** A clock that moves only when a subject runs. */
  function simulated(costsNs: readonly number[]) {
    let nowMs = 0;
    const subjects = costsNs.map((ns) => ({
      prepare: () => {
        nowMs += 1;
      },
      run: (times: number) => {
        nowMs += (times * ns) / 1e6;
      },
    }));
    return { subjects, now: () => nowMs };
  }

  it('paired samples give the time of one run, without that of its preparation', () => {
    const { subjects, now } = simulated([100, 250]);
    const { ns } = samplePaired(subjects, { timeMs: 20, now });
    expect(figure(ns[0]!).median).toBeCloseTo(100, 3);
    expect(figure(ns[1]!).median).toBeCloseTo(250, 3);
  });

  it('paired samples take a fewest number of rounds however short the time', () => {
    const { subjects, now } = simulated([100]);
    expect(samplePaired(subjects, { timeMs: 0, now }).rounds).toBe(ROUNDS_MIN);
  });
});

describe('a figure', () => {
  it('a figure is the median with the ranks n/2 ± 0.98 √n', () => {
    expect(figure(Float64Array.from({ length: 100 }, (_, i) => i + 1))).toEqual({ median: 50.5, low: 41, high: 60 });
  });

  it('lies within its interval, whatever the samples', () => {
    fc.assert(
      fc.property(fc.float64Array({ minLength: 1, maxLength: 300, noNaN: true, noDefaultInfinity: true }), (values) => {
        const { median, low, high } = figure(values);
        expect(low).toBeLessThanOrEqual(median);
        expect(median).toBeLessThanOrEqual(high);
      }),
    );
  });
});

describe('the tables', () => {
  const one = { median: 123456.7, low: 111111.1, high: 234567.8 };
  const row = {
    ...{ name: 'a-profile-with-a-long-name/a-plugin-with-a-long-name', type: 'queue-scorer', kind: 'scorer' as const },
    ...{ nsPerDecision: one, nsPerEndpoint: 1928.4, otherNsPerDecision: one, ratio: one },
  };
  const conditions = { file: 'mine.yaml', other: 'other.yaml', endpoints: 4096, blocks: 1560 };
  const measured = { rounds: 1024, rows: [row], notes: [] };

  it.each([
    ['of one configuration', benchText(measured, conditions)],
    ['of two configurations', compareText(measured, conditions)],
  ])('%s fits 80 columns', (_, text) => {
    for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });
});

describe('pointsman bench', () => {
  const run = (...flags: string[]) =>
    spawnSync(process.execPath, ['bin/pointsman.js', 'bench', ...flags], { encoding: 'utf8' });

  it('pointsman bench measures a plugin of one’s own and prints one JSON document', () => {
    const { status, stdout } = run(
      ...['examples/plugins/tenants.yaml', '--plugin', './examples/plugins/tenant-filter.js'],
      ...['--plugin', './examples/plugins/short-first-scorer.js', '--json', '--time', '1', '--endpoints', '16'],
    );
    expect(status).toBe(0);
    const document = JSON.parse(stdout);
    expect(document).toMatchObject({ endpoints: 16, blocks: 64, unit: 'ns' });
    expect(document.rows.map((row: { name: string; kind: string }) => `${row.kind} ${row.name}`)).toEqual(
      expect.arrayContaining(['hooks tenant-filter', 'filter tenant-filter', 'hooks short-first-scorer']),
    );
  });

  it('pointsman bench names the flag that has no valid value', () => {
    const { status, stderr } = run('--endpoints', '5000');
    expect(status).toBe(1);
    expect(stderr).toContain('--endpoints');
    expect(stderr).toContain('from 1 to 4096');
  });
});

describe('examples/embedded/time-a-decision.js', () => {
  it('examples/embedded/time-a-decision.js times a decision that picks an endpoint with an empty queue', () => {
    const output = execFileSync(process.execPath, ['examples/embedded/time-a-decision.js'], { encoding: 'utf8' });
    const [, slot] = /^\d+ ns a decision, slot (\d+)\n$/.exec(output)!;
    expect(Number(slot) % 7).toBe(0);
  });
});
