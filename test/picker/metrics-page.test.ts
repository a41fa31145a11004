import { afterEach, describe, expect, it } from 'vitest';
import { dialPicker } from '../ingress/proxy-client.ts';
import { askAndEnd, type Ports, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly samples: { readonly name: string; readonly labels: string; readonly value: number }[];
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LABELS = '\\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\[\\\\n"])*",?)*\\}';
const SAMPLE = new RegExp(`^(${NAME})(${LABELS})? (-?[0-9.e+-]+|NaN|[+-]Inf)$`);
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
};

/** Reads a page as strictly as promtool: HELP, TYPE, then the samples of a family, each family once. */
function parse(page: string): Family[] {
  const families: Family[] = [];
  let help: RegExpExecArray | undefined;
  for (const line of page.split('\n').filter((text) => text !== '')) {
    if (line.startsWith('# HELP ')) help = new RegExp(`^# HELP (${NAME}) (.+)$`).exec(line) ?? undefined;
    else if (line.startsWith('# TYPE ')) {
      const [, name, type] =
        new RegExp(`^# TYPE (${NAME}) (counter|gauge|histogram|summary|untyped)$`).exec(line) ?? [];
      if (name === undefined || help?.[1] !== name) throw new Error(`no HELP before: ${line}`);
      if (families.some((family) => family.name === name)) throw new Error(`twice: ${line}`);
      families.push({ name, help: help[2]!, type: type!, samples: [] });
    } else {
      const [, name, labels = '', value] = SAMPLE.exec(line) ?? [];
      const family = families.at(-1);
      if (name === undefined || family === undefined) throw new Error(`no sample: ${line}`);
      const allowed = (SUFFIXES[family.type] ?? ['']).map((suffix) => family.name + suffix);
      if (!allowed.includes(name)) throw new Error(`outside its family ${family.name}: ${line}`);
      family.samples.push({ name, labels, value: Number(value!.replace('Inf', 'Infinity')) });
    }
  }
  return families;
}

async function page(): Promise<Family[]> {
  const setting = await Setting.create([
    { name: 'one"quoted"\\name', port: 20_001 },
    { name: 'two', port: 20_002 },
  ]);
  cleanups.push(() => setting.remove());
  const { picker, ports }: { picker: { stop(ms: number): Promise<void> }; ports: Ports } = await startPicker([
    ...setting.flags,
    '--shards=2',
    '--enable-grpc-stream-metrics',
  ]);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  await Promise.all(Array.from({ length: 20 }, (_, index) => askAndEnd(client, `prompt ${index}`)));
  return parse(await (await fetch(`http://127.0.0.1:${ports.metricsPort}/metrics`)).text());
}

describe('the metrics page of a running picker', () => {
  it('the metrics page of a running picker has every family once, with help and type, and no series twice', async () => {
    const families = await page();
    expect(families.length).toBeGreaterThan(20);
    for (const { name, help, samples } of families) {
      expect(help.length, name).toBeGreaterThan(5);
      const series = samples.map((sample) => sample.name + sample.labels);
      expect(new Set(series).size, name).toBe(series.length);
      for (const { value } of samples) expect(Number.isNaN(value), name).toBe(false);
    }
  });

  it('the metrics page of a running picker names its counters _total, nothing else so, and none is negative', async () => {
    for (const { name, type, samples } of await page()) {
      if (name.startsWith('pointsman_')) expect(name.endsWith('_total'), name).toBe(type === 'counter');
      if (type === 'counter') for (const { value } of samples) expect(value, name).toBeGreaterThanOrEqual(0);
    }
  });

  it('the metrics page of a running picker has histograms whose buckets rise to their count', async () => {
    const histograms = (await page()).filter(({ type }) => type === 'histogram');
    expect(histograms.length).toBeGreaterThan(3);
    for (const { name, samples } of histograms) {
      const bySeries = new Map<string, number[]>();
      for (const sample of samples.filter((candidate) => candidate.name === `${name}_bucket`)) {
        const series = sample.labels.replace(/,?le="[^"]*"/, '').replace('{,', '{');
        bySeries.set(series, [...(bySeries.get(series) ?? []), sample.value]);
      }
      for (const [series, buckets] of bySeries) {
        expect(buckets, name + series).toEqual([...buckets].sort((a, b) => a - b));
        const count = samples.find((sample) => sample.name === `${name}_count` && (sample.labels || '{}') === series);
        expect(buckets.at(-1), name + series).toBe(count?.value);
      }
    }
  });
});
