// The tables of docs/performance.md, which `npm run performance` writes.
//
// Only the part between the two marks is replaced; the words around it are written by hand. Of several lines with one
// name the last one counts. The page describes the machine that it is written on.
import { cpus, release, totalmem, type } from 'node:os';
import { type BenchResult, figureText } from '../bench/bench.ts';
import type { ProcessFigure } from '../bench/process/figure.ts';

const BEGIN = '<!-- measured: begin -->';
const END = '<!-- measured: end -->';

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

const DOCUMENT_COLUMNS = 140;

/** Words of a page in lines of at most so many columns as documents have. */
export function inLines(words: string): string {
  const lines = [''];
  for (const word of words.split(' ')) {
    const line = lines.at(-1)!;
    if (line === '') lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= DOCUMENT_COLUMNS) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.join('\n');
}

/** The machine and the commit of a page. */
export function machine(commit: string): string {
  const processors = cpus();
  const gib = Math.round(totalmem() / 2 ** 30);
  const model = processors[0]?.model.trim() ?? 'unknown processor';
  return `Measured on ${processors.length} × ${model}, ${gib} GiB, ${type()} ${release()},\
 Node ${process.version}, commit ${commit}.
Benchmarks are per operation: the median and the 99th percentile of the runs.`;
}

/** Says which chapters the commit has no results of. */
export function missingText(chapters: readonly string[]): string {
  if (chapters.length === 0) return '';
  const commands = chapters.map((name) => `\`npm run performance -- ${name}\``).join(', ');
  return `## Not measured at this commit\n\n${inLines(`${commands}.`)}`;
}

/** How unsteady the machine was before and behind each chapter. */
export function noiseTable(chapters: readonly (readonly [string, Noise, Noise])[]): string {
  const cell = ({ p50, p99, load }: Noise) => `${p50.toFixed(2)} ms, ${(p99 / p50).toFixed(2)} ×, ${load.toFixed(1)}`;
  const rows = chapters.map(([name, before, after]) => `| ${name} | ${cell(before)} | ${cell(after)} |`);
  return [
    '## Noise of the machine',
    '',
    'A fixed piece of work: its median, 99th percentile ÷ median, and the load average of the minute.',
    '',
    '| chapter | before | after |',
    '| --- | ---: | ---: |',
    ...rows,
  ].join('\n');
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
