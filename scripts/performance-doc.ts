// Writes the tables of docs/performance.md. `npm run performance` does it all; this does it from JSON lines of the
//   benchmarks: npm run bench -- --json bench-results.jsonl && npm run performance-doc [-- bench-results.jsonl]
//
// Only the part between the two marks is replaced; the words around it are written by hand. Of several lines with one
// name the last one counts. Run it on the machine that measured: the page describes it.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { type BenchResult, figureText } from '../bench/bench.ts';
import type { ProcessFigure } from '../bench/process/figure.ts';

const BEGIN = '<!-- measured: begin -->';
const END = '<!-- measured: end -->';
const NEW_PAGE = `# Performance\n\n${BEGIN}\n${END}\n`;

/** @throws with the line's number when a line is no result. */
export function readResults(text: string): BenchResult[] {
  const byName = new Map<string, BenchResult>();
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const result = parse(line);
    if (!result) throw new Error(`line ${index + 1} is no benchmark result`);
    byName.set(result.name, result);
  }
  return [...byName.values()];
}

function parse(line: string): BenchResult | undefined {
  try {
    const value = JSON.parse(line) as BenchResult;
    return typeof value.name === 'string' && typeof value.median === 'number' ? value : undefined;
  } catch {
    return undefined;
  }
}

/** One table per area (the part of a name before the first slash). */
export function tables(results: readonly BenchResult[]): string {
  const areas = new Map<string, BenchResult[]>();
  for (const result of results) {
    const area = result.name.split('/', 1)[0]!;
    areas.set(area, [...(areas.get(area) ?? []), result]);
  }
  return [...areas].map(([area, rows]) => `## ${area}\n\n${areaTable(rows)}`).join('\n\n');
}

function areaTable(rows: readonly BenchResult[]): string {
  const lines = rows.map(
    ({ name, median, p99, unit, runs }) =>
      `| \`${name}\` | ${figureText(median, unit)} | ${figureText(p99, unit)} | ${runs.toLocaleString('en-US')} |`,
  );
  return ['| bench | median | p99 | runs |', '| --- | ---: | ---: | ---: |', ...lines].join('\n');
}

/** Time of one fixed piece of work in milliseconds, and the load of the machine: before and behind a run. */
export interface Noise {
  readonly p50: number;
  readonly p99: number;
  /** Load average of the last minute. */
  readonly load: number;
}

/** The machine, the commit and the noise of a run. */
export function machine(results: readonly BenchResult[], noise: readonly Noise[] = []): string {
  const processors = cpus();
  const gib = Math.round(totalmem() / 2 ** 30);
  const nodes = [...new Set(results.map(({ node }) => node))].join(', ');
  const commits = [...new Set(results.map(({ commit }) => commit))].join(', ');
  const model = processors[0]?.model.trim() ?? 'unknown processor';
  return `Measured on ${processors.length} × ${model}, ${gib} GiB, ${type()} ${release()},\
 Node ${nodes}, commit ${commits}.
Times are per operation: the median and the 99th percentile of the runs.${noiseText(noise)}`;
}

function noiseText(noise: readonly Noise[]): string {
  if (noise.length === 0) return '';
  const texts = noise.map(({ p50, p99, load }) => `${(p99 / p50).toFixed(2)} at load ${load.toFixed(1)}`);
  return `\nNoise: a fixed piece of work took, 99th percentile ÷ median, ${texts.join(' before and ')} after the run.`;
}

/** Figures of whole processes: a line for each scenario, and the ratio where both pickers took part. */
export function processTable(figures: readonly ProcessFigure[]): string {
  const scenarios = [...new Set(figures.map(({ scenario }) => scenario))];
  const of = (scenario: string, picker: string) =>
    figures.find((figure) => figure.scenario === scenario && figure.picker === picker);
  const text = (figure: ProcessFigure | undefined) =>
    figure === undefined
      ? '–'
      : Number(figure.value.toPrecision(3)).toLocaleString('en-US') +
        (figure.unit === '/s' ? figure.unit : ` ${figure.unit}`);
  const lines = scenarios.map((scenario) => {
    const [own, peer] = [of(scenario, 'pointsman'), of(scenario, 'llm-d-router')];
    const ratio = own === undefined || peer === undefined ? '–' : `${advantage(own, peer).toFixed(1)} ×`;
    return `| ${scenario} | ${text(own)} | ${text(peer)} | ${ratio} |`;
  });
  return ['| | Pointsman | llm-d-router | ratio |', '| --- | ---: | ---: | ---: |', ...lines].join('\n');
}

/** How many times better the first figure is: larger where it counts by the second, otherwise smaller. */
function advantage(own: ProcessFigure, peer: ProcessFigure): number {
  return own.unit === '/s' ? own.value / peer.value : peer.value / own.value;
}

/** The page with its measured part renewed. @throws when the marks are missing. */
export function renew(page: string, measured: string): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`docs/performance.md needs the marks "${BEGIN}" and "${END}"`);
  return `${page.slice(0, begin + BEGIN.length)}\n\n${measured}\n\n${page.slice(end)}`;
}

if (process.argv[1] === import.meta.filename) {
  const results = readResults(readFileSync(process.argv[2] ?? 'bench-results.jsonl', 'utf8'));
  const path = new URL('../docs/performance.md', import.meta.url);
  const page = existsSync(path) ? readFileSync(path, 'utf8') : NEW_PAGE;
  writeFileSync(path, renew(page, `${machine(results)}\n\n${tables(results)}`));
}
