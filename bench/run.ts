// Runs the benchmarks: `npm run bench [-- part-of-a-name …] [-- --json file] [-- --time milliseconds]`.
//
// Every other file in this folder that exports `benches` takes part. A table goes to standard error while they run, one
// JSON line per benchmark to standard output (and to the file of --json, added at its end). A file that exports
// `reports` drives whole processes; such a report runs when its name or its area is given.
import { execFileSync } from 'node:child_process';
import { appendFileSync, readdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Bench as Tinybench } from 'tinybench';
import { type Bench, type BenchResult, type Report, round, timeText } from './bench.ts';

const NAME_WIDTH = 36;
const DEFAULT_TIME_MS = 1_000;

interface Exports {
  readonly benches?: readonly Bench[];
  readonly reports?: readonly Report[];
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    return 'unknown';
  }
}

async function collect(filters: readonly string[]): Promise<{ benches: Bench[]; reports: Report[] }> {
  const found: Bench[] = [];
  const reports: Report[] = [];
  for (const file of readdirSync(import.meta.dirname).sort()) {
    if (!file.endsWith('.ts') || file === 'run.ts' || file === 'bench.ts') continue;
    const module = (await import(new URL(file, import.meta.url).href)) as Exports;
    found.push(...(module.benches ?? []));
    reports.push(...(module.reports ?? []));
  }
  return {
    benches: found.filter(({ name }) => filters.length === 0 || filters.some((filter) => name.includes(filter))),
    reports: reports.filter(({ name }) => filters.some((filter) => name === filter || name.startsWith(`${filter}/`))),
  };
}

async function measure(bench: Bench, timeMs: number, at: string): Promise<BenchResult> {
  const prepared = await bench.setup();
  try {
    const timer = new Tinybench({
      time: timeMs,
      warmupTime: timeMs / 4,
      retainSamples: false,
      throws: true,
      ...(bench.runsMin === undefined ? {} : { iterations: bench.runsMin, warmupIterations: 1 }),
    });
    timer.add(bench.name, () => prepared.run());
    await timer.run();
    const result = timer.tasks[0]!.result;
    if (!('latency' in result)) throw new Error(`${bench.name}: ended as ${result.state}`);
    const perOperation = 1e6 / (prepared.opsPerRun ?? 1);
    return {
      name: bench.name,
      median: round(result.latency.p50 * perOperation),
      p99: round(result.latency.p99 * perOperation),
      unit: 'ns',
      runs: result.latency.samplesCount,
      node: process.version,
      commit: at,
    };
  } finally {
    await prepared.teardown?.();
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { json: { type: 'string' }, time: { type: 'string' } },
  });
  const timeMs = Number(values.time ?? DEFAULT_TIME_MS);
  if (!(timeMs > 0)) throw new Error(`--time: "${values.time}" is no number of milliseconds above 0`);
  const { benches, reports } = await collect(positionals);
  if (benches.length + reports.length === 0)
    throw new Error(`no benchmark has ${positionals.join(' or ')} in its name`);
  const at = commit();
  const print = (result: object): void => {
    const line = JSON.stringify(result);
    console.log(line);
    if (values.json) appendFileSync(values.json, `${line}\n`);
  };
  for (const report of reports) {
    const figures = report.run(values.time === undefined ? report.timeMs : timeMs);
    for await (const figure of figures) print({ ...figure, node: process.version, commit: at });
  }
  if (benches.length === 0) return;
  console.error(`${'bench'.padEnd(NAME_WIDTH)}${'median'.padStart(12)}${'p99'.padStart(12)}${'runs'.padStart(12)}`);
  for (const bench of benches) {
    const result = await measure(bench, timeMs, at);
    const cells = [timeText(result.median), timeText(result.p99), result.runs.toLocaleString('en-US')];
    console.error(result.name.padEnd(NAME_WIDTH) + cells.map((cell) => cell.padStart(12)).join(''));
    print(result);
  }
}

if (process.argv[1] === import.meta.filename) {
  main().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    // A report that has failed leaves processes behind, which end with this one.
    process.exit(1);
  });
}
