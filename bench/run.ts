// Runs the benchmarks: `npm run bench [-- part-of-a-name …] [-- --json file] [-- --time milliseconds]`.
//
// Every other file in this folder that exports `benches` or `measurements` takes part. A table goes to standard error while they run, one
// JSON line per benchmark to standard output (and to the file of --json, added at its end).
import { execFileSync } from 'node:child_process';
import { appendFileSync, readdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Bench as Tinybench } from 'tinybench';
import { type Bench, type BenchResult, type Figure, figureText, type Measurement, round } from './bench.ts';

const NAME_WIDTH = 36;
const DEFAULT_TIME_MS = 1_000;

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    return 'unknown';
  }
}

async function collect(filters: readonly string[]): Promise<(Bench | Measurement)[]> {
  const found: (Bench | Measurement)[] = [];
  for (const file of readdirSync(import.meta.dirname).sort()) {
    if (!file.endsWith('.ts') || file === 'run.ts' || file === 'bench.ts') continue;
    const module = (await import(new URL(file, import.meta.url).href)) as {
      benches?: readonly Bench[];
      measurements?: readonly Measurement[];
    };
    found.push(...(module.benches ?? []), ...(module.measurements ?? []));
  }
  return found.filter(({ name }) => filters.length === 0 || filters.some((filter) => name.includes(filter)));
}

async function measure(bench: Bench | Measurement, timeMs: number): Promise<readonly Figure[]> {
  return 'measure' in bench ? bench.measure() : [await time(bench, timeMs)];
}

async function time(bench: Bench, timeMs: number): Promise<Figure> {
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
    };
  } finally {
    await prepared.teardown?.();
  }
}

function print(figure: Figure, at: string, file: string | undefined): void {
  const { name, median, p99, unit, runs } = figure;
  const cells = [figureText(median, unit), figureText(p99, unit), runs.toLocaleString('en-US')];
  console.error(name.padEnd(NAME_WIDTH) + cells.map((cell) => cell.padStart(12)).join(''));
  const line = JSON.stringify({ ...figure, node: process.version, commit: at } satisfies BenchResult);
  console.log(line);
  if (file) appendFileSync(file, `${line}\n`);
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { json: { type: 'string' }, time: { type: 'string' } },
  });
  const timeMs = Number(values.time ?? DEFAULT_TIME_MS);
  if (!(timeMs > 0)) throw new Error(`--time: "${values.time}" is no number of milliseconds above 0`);
  const benches = await collect(positionals);
  if (benches.length === 0) throw new Error(`no benchmark has ${positionals.join(' or ')} in its name`);
  const at = commit();
  console.error(`${'bench'.padEnd(NAME_WIDTH)}${'median'.padStart(12)}${'p99'.padStart(12)}${'runs'.padStart(12)}`);
  for (const bench of benches) {
    for (const figure of await measure(bench, timeMs)) print(figure, at, values.json);
  }
}

if (process.argv[1] === import.meta.filename) {
  main().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}
