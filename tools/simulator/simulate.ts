import { writeFileSync } from 'node:fs';
import { basename, dirname, extname, resolve } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { parsedCommand } from '../command-line/parsed-command.js';
import { clientRows, clientText } from './report/client-figures.js';
import { htmlReport } from './report/html-report.js';
import { resultsCsv, resultsJson } from './results-file.js';
import { type CapacityComparison, compareCapacity } from './suite/capacity-comparison.js';
import { checkOutput, checkSuite } from './suite/check-suite.js';
import { type Comparison, compare, SLOW_TAIL } from './suite/comparison.js';
import { loadSuite, narrowed, type Part } from './suite/load-suite.js';
import { SavedRuns } from './suite/saved-runs.js';
import { evaluate, type SweepProgress } from './suite/sweep.js';

interface SimulateFlags {
  readonly policies?: readonly string[];
  readonly workloads?: readonly string[];
  readonly seeds?: number;
  readonly json?: string;
  readonly csv?: string;
  readonly report?: string;
  readonly traces?: string;
  readonly jobs?: number;
  readonly resume?: string;
  readonly quiet: boolean;
}

/** `pointsman simulate`: policies against each other on a simulated fleet. @returns the exit code */
export async function runSimulate(argv: readonly string[]): Promise<number> {
  const parsed = parsedCommand<SimulateFlags>(simulateCommand(), argv);
  if (parsed === undefined) return 0;
  const path = parsed.args[0]!;
  const flags = parsed.options;
  const written = narrowed(loadSuite(path), partOf(flags));
  const folder = dirname(resolve(path));
  const folders = { suite: folder, traces: flags.traces === undefined ? folder : resolve(flags.traces) };
  checkOutputs(flags);
  checkSuite(written, folders);
  const { suite, results } = await evaluate(written, folders, {
    jobs: flags.jobs,
    kept: flags.resume === undefined ? undefined : new SavedRuns(flags.resume),
    progress: flags.quiet ? () => {} : showProgress,
  });
  const comparisons = compare(results, suite);
  if (flags.json !== undefined) writeFileSync(flags.json, resultsJson(suite, results, comparisons));
  if (flags.report !== undefined) {
    writeFileSync(flags.report, htmlReport(basename(path, extname(path)), suite, results, comparisons));
  }
  if (flags.csv !== undefined) writeFileSync(flags.csv, resultsCsv(results));
  process.stdout.write(
    suite.capacity === undefined ? comparisonText(comparisons) : capacityText(compareCapacity(results, suite)),
  );
  process.stdout.write(clientText(clientRows(results, suite)));
  return 0;
}

function checkOutputs({ report, json, csv, resume }: SimulateFlags): void {
  for (const [flag, path] of Object.entries({ report, json, csv, resume })) {
    if (path !== undefined) checkOutput(path, flag);
  }
}

function simulateCommand(): Command {
  return new Command('pointsman simulate')
    .description('Run policies against each other on a simulated fleet and traffic; docs/simulation.md tells how.')
    .argument('<suite>', 'fleet, workloads and policies, YAML or JSON')
    .option('--report <file>', 'write a self-contained HTML page')
    .option('--json <file>', 'write all results as one JSON document')
    .option('--csv <file>', 'write a line per run')
    .option('--traces <folder>', 'where the traces lie that the suite names; default: beside the suite')
    .option('--jobs <number>', 'runs at the same time; default: one per core', wholeNumber)
    .option('--policies <names>', 'run only these of its policies, separated by commas, and the reference', names)
    .option('--workloads <names>', 'run only these of its workloads, separated by commas', names)
    .option('--seeds <number>', 'run so many seeds', wholeNumber)
    .option('--resume <file>', 'keep the result of every run in this file, and take from it what was run before')
    .option('--quiet', 'show no progress', false);
}

function partOf({ policies, workloads, seeds }: SimulateFlags): Part {
  return { policies, workloads, seeds };
}

function names(text: string): readonly string[] {
  return text.split(',').map((name) => name.trim());
}

function wholeNumber(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1) throw new InvalidArgumentError('expected a whole number of at least 1');
  return number;
}

const BAR = 30;

/** Shows a bar with an estimate of the time left; without a terminal, one line for every tenth. */
function showProgress({ done, of, leftSeconds }: SweepProgress): void {
  const left = leftSeconds === undefined ? '' : `, about ${Math.ceil(leftSeconds)} s left`;
  if (process.stderr.isTTY) {
    const full = Math.round((BAR * done) / of);
    process.stderr.write(`\r[${'#'.repeat(full)}${'.'.repeat(BAR - full)}] ${done}/${of} runs${left}   `);
    if (done === of) process.stderr.write('\n');
  } else if (done === of || Math.floor((10 * done) / of) > Math.floor((10 * (done - 1)) / of)) {
    process.stderr.write(`${done}/${of} runs${left}\n`);
  }
}

/** One block of lines per workload, the policy that carries most first. */
function capacityText(rows: readonly CapacityComparison[]): string {
  const workloads = [...new Set(rows.map(({ workload }) => workload))];
  return workloads
    .map((workload) => {
      const own = rows.filter((row) => row.workload === workload).sort((a, b) => b.rate - a.rate);
      const lines = own.map(({ policy, rate, change, low, high }) => {
        const against = Number.isNaN(change) ? '' : `${percent(change)}  [${percent(low)}, ${percent(high)}]`;
        return `  ${nameCell(policy)} ${numberCell(rate, 2, 8)} requests/s  ${against}`;
      });
      return `${workload}\n${lines.join('\n')}\n`;
    })
    .join('\n');
}

/** One digit behind the point below 100 %, a factor from ten times on, so that an interval fits a line. */
function percent(share: number): string {
  if (!Number.isFinite(share)) return NOTHING;
  if (share >= 9) return `×${(1 + share).toFixed(0)}`;
  const value = 100 * share;
  return `${share >= 0 ? '+' : ''}${value.toFixed(Math.abs(value) < 99.95 ? 1 : 0)} %`;
}

/** Shown where there was nothing to measure. */
const NOTHING = '–';
const NAME_CHARACTERS = 16;

function nameCell(name: string): string {
  return name.length <= NAME_CHARACTERS ? name.padEnd(NAME_CHARACTERS) : `${name.slice(0, NAME_CHARACTERS - 1)}…`;
}

/** A number as wide as its column. Thousands are abbreviated where the digits would not fit. */
function numberCell(value: number, digits: number, width: number): string {
  if (!Number.isFinite(value)) return NOTHING.padStart(width);
  const text = value.toFixed(digits);
  return (text.length <= width ? text : `${(value / 1e3).toFixed(0)}k`).padStart(width);
}

const HEAD =
  `  ${nameCell('policy')} ${'cost'.padStart(7)} ${'uncapped'.padStart(8)} ${'p99 ms'.padStart(6)}  cost against the ` +
  'reference';
const TAIL_NOTE = `  ▲ TTFT p99 at least ${SLOW_TAIL} times that of the reference\n`;

/** One block of lines per workload, best policy first. */
export function comparisonText(comparisons: readonly Comparison[]): string {
  const workloads = [...new Set(comparisons.map(({ workload }) => workload))];
  return workloads
    .map((workload) => {
      const rows = comparisons.filter((row) => row.workload === workload).sort((a, b) => a.cost - b.cost);
      const note = rows.some(({ slowTail }) => slowTail) ? TAIL_NOTE : '';
      return `${workload}\n${HEAD}\n${rows.map(comparisonLine).join('\n')}\n${note}`;
    })
    .join('\n');
}

/** TTFT p99 is that of the seeds' mean. */
function comparisonLine({ policy, cost, uncapped, ttftP99, slowTail, ...row }: Comparison): string {
  const interval = `${percent(row.change)} [${percent(row.low)}, ${percent(row.high)}] ${row.verdict}`;
  const against = row.verdict === 'reference' ? 'reference' : interval;
  const p99 = ttftP99 === 0 ? Number.NaN : ttftP99;
  const numbers = [numberCell(cost, 3, 7), numberCell(uncapped, 3, 8), numberCell(p99, 0, 6)];
  return `  ${nameCell(policy)} ${numbers.join(' ')}  ${against}${slowTail ? ' ▲' : ''}`;
}
