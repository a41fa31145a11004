// Runs examples/simulation/agents-results.yaml and writes the tables of docs/agents-results.md:
//   npm run build
//   node scripts/agents-results.ts --runs FILE [--jobs 2] [--workloads W7,W16] [--seeds 3] [--rival-seeds 1] [--no-run]
//     [--estimate]
// FILE keeps the result of every run, so that a run that was stopped goes on, and is only as good as the program that
// made it: results of another program are run again. With --no-run the tables are written from what the file has.
// With --estimate it says what is missing and how long that takes, and runs and writes nothing.
// The gate and the default rule run first, then the rivals, with fewer seeds.
//
// Only what stands between the marks of a table is replaced; the words around the tables are written by hand.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type ClientRow, clientRows } from '../dist/tools/simulator/report/client-figures.js';
import { loadSuite, narrowed } from '../dist/tools/simulator/suite/load-suite.js';
import { SavedRuns } from '../dist/tools/simulator/suite/saved-runs.js';
import type { Suite } from '../dist/tools/simulator/suite/schema.js';
import { type RunResult, runsOf } from '../dist/tools/simulator/suite/suite-run.js';
import { sweep } from '../dist/tools/simulator/suite/sweep.js';

const SUITE = resolve(import.meta.dirname, '../examples/simulation/agents-results.yaml');
const PAGE = resolve(import.meta.dirname, '../docs/agents-results.md');
const OURS = 'held';
const REFERENCE = 'default';
/** Seeds of the workloads on eight endpoints, and under other conditions. */
const SEEDS_OF_OTHERS = 3;
/** Workloads whose later turns are counted: the first sub-agent of a burst goes on with the session of its agent. */
const RECOGNISED = ['W7', 'W16'];
/** Seconds of a run of which none is kept, for the estimate. */
const RUN_SECONDS = 5;
const isEight = (workload: string) => workload.endsWith('of eight');
/** Several pickers, or engines with tiers: the gate against the default rule alone. */
const isCondition = (workload: string) => workload.includes(' with ');
const isPlain = (workload: string) => !isEight(workload) && !isCondition(workload);

const NAMES: Readonly<Record<string, string>> = {
  'thunder-agent': 'ThunderAgent',
  'thunder-agent-unreleased': 'ThunderAgent, no end told',
  'thunder-agent-llm-d': 'llm-d’s `thunder-agent`',
  held: '**sessions: on**',
};

/** Aims of one workload: least change of the turns and share of hits, most seconds of a turn's p50 and p99. */
interface Aim {
  readonly workload: string;
  readonly change: number;
  readonly hits: number;
  readonly p50?: number;
  readonly p99: number;
  readonly withoutTurn: number;
}

/** Set before the gate was built, on a prototype. */
const AIMS: readonly Aim[] = [
  { workload: 'W7', change: 0.02, hits: 0.92, p99: 1.12, withoutTurn: 0 },
  { workload: 'W7 at 150 %', change: 0.18, hits: 0.78, p50: 12, p99: 1.12, withoutTurn: 0 },
  { workload: 'W7 at 200 %', change: 0.28, hits: 0.7, p50: 18, p99: 1.12, withoutTurn: 0 },
  { workload: 'W7 at 300 %', change: 0.33, hits: 0.62, p50: 27, p99: 1.4, withoutTurn: 0 },
  { workload: 'W16 at 150 %', change: -0.03, hits: 0.74, p99: 1.12, withoutTurn: 0 },
  { workload: 'W16 at 200 %', change: 0.05, hits: 0.63, p50: 15, p99: 1.12, withoutTurn: 0 },
  { workload: 'W16 at 300 %', change: 0.3, hits: 0.56, p50: 25, p99: 1.12, withoutTurn: 0 },
];

const flags = parseArgs({
  options: {
    runs: { type: 'string' },
    jobs: { type: 'string', default: '2' },
    workloads: { type: 'string' },
    seeds: { type: 'string' },
    'rival-seeds': { type: 'string', default: '3' },
    'no-run': { type: 'boolean', default: false },
    estimate: { type: 'boolean', default: false },
  },
}).values;
if (flags.runs === undefined) throw new Error('name the file that keeps the results: --runs FILE');

const whole = loadSuite(SUITE);
const kept = new SavedRuns(flags.runs);
const folders = { suite: dirname(SUITE), traces: dirname(SUITE) };
const suites = parts(whole);
if (flags.estimate || !flags['no-run']) console.log(timeOf(suites));
if (!flags.estimate) {
  if (!flags['no-run']) for (const suite of suites) await run(suite);
  writePage(keptOf(suites));
}

/** The gate against the default rule: on four endpoints, on eight, under other conditions. Then the rivals. */
function parts(suite: Suite): Suite[] {
  const names = flags.workloads?.split(',') ?? suite.run!;
  const seeds = Number(flags.seeds ?? suite.seeds);
  const fewer = Math.min(seeds, SEEDS_OF_OTHERS);
  const rivalSeeds = Math.min(seeds, Number(flags['rival-seeds']));
  const [ours, rivals] = [[REFERENCE, OURS], suite.policies.map(({ name }) => name)];
  const groups = [
    { workloads: names.filter(isPlain), seeds, policies: ours },
    { workloads: names.filter((name) => !isPlain(name)), seeds: fewer, policies: ours },
    ...Array.from({ length: rivalSeeds }, (_, i) => {
      return { workloads: names.filter(isPlain), seeds: i + 1, policies: rivals };
    }),
    { workloads: names.filter(isEight), seeds: Math.min(fewer, rivalSeeds), policies: rivals },
  ];
  return groups.filter((group) => group.workloads.length > 0 && group.seeds > 0).map((group) => narrowed(suite, group));
}

async function run(suite: Suite): Promise<void> {
  await sweep(suite, folders, {
    jobs: Number(flags.jobs),
    kept,
    progress: ({ done, of, leftSeconds = 0 }) => console.log(`${done}/${of}, about ${Math.ceil(leftSeconds)} s left`),
  });
}

/** Results that the file has, each once, in the order of their seeds. */
function keptOf(all: readonly Suite[]): RunResult[] {
  const found = all.flatMap((suite) => runsOf(suite).flatMap((cell) => kept.find(suite, cell, folders) ?? []));
  const byCell = new Map(found.map((run) => [cellName(run), run]));
  return [...byCell.values()].sort((a, b) => a.seed - b.seed);
}

function cellName({ workload, policy, seed }: Pick<RunResult, 'workload' | 'policy' | 'seed'>): string {
  return `${workload}, ${policy}, seed ${seed}`;
}

/** What there is to run, and for how long, by the runs that the file has. */
function timeOf(all: readonly Suite[]): string {
  const done = keptOf(all);
  const missing = new Map(
    all.flatMap((suite) =>
      runsOf(suite)
        .filter((cell) => kept.find(suite, cell, folders) === undefined)
        .map((cell) => [cellName(cell), cell.policy]),
    ),
  );
  const secondsOf = (policy: string) => {
    const own = done.filter((run) => run.policy === policy);
    return own.length === 0 ? RUN_SECONDS : own.reduce((sum, { tookMs }) => sum + tookMs, 0) / own.length / 1e3;
  };
  const seconds = [...missing.values()].reduce((sum, policy) => sum + secondsOf(policy), 0) / Number(flags.jobs);
  return `${missing.size} runs, ${done.length} kept: about ${Math.ceil(seconds / 60)} minutes`;
}

function writePage(runs: readonly RunResult[]): void {
  let text = readFileSync(PAGE, 'utf8');
  for (const [name, make] of Object.entries(tables(runs))) {
    const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
    const [from, to] = [text.indexOf(begin), text.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`${PAGE}: the marks of the table "${name}" are missing`);
    const table = make();
    if (table === undefined) continue;
    text = `${text.slice(0, from + begin.length)}\n${table}\n${text.slice(to)}`;
    console.log(name);
  }
  writeFileSync(PAGE, text);
}

function tables(runs: readonly RunResult[]): Readonly<Record<string, () => string | undefined>> {
  const rows = completeRows(runs);
  const ofKind = (kind: string) => rows.filter(({ workload }) => workload.startsWith(kind) && isPlain(workload));
  return {
    facts: () => facts(runs),
    W7: () => rivals(ofKind('W7'), runs),
    W16: () => rivals(ofKind('W16'), runs),
    W17: () => rivals(ofKind('W17'), runs),
    W18: () => rivals(ofKind('W18'), runs),
    chat: () => chat(runs.filter(({ workload }) => workload.startsWith('W18'))),
    eight: () =>
      rivals(
        rows.filter(({ workload }) => isEight(workload)),
        runs,
      ),
    conditions: () =>
      conditions(
        rows.filter(({ workload }) => isCondition(workload)),
        runs,
      ),
    aims: () => aims(rows),
    recognised: () => recognised(runs),
  };
}

/** Rows of the workloads that the gate and the default rule have run with equally many seeds. */
function completeRows(runs: readonly RunResult[]): readonly ClientRow[] {
  const seedsOf = (workload: string, policy: string) => ofCell(runs, workload, policy).length;
  const isComplete = (workload: string) => {
    return seedsOf(workload, OURS) > 0 && seedsOf(workload, OURS) === seedsOf(workload, REFERENCE);
  };
  return clientRows(
    runs.filter(({ workload }) => isComplete(workload)),
    whole,
  );
}

function ofCell(runs: readonly RunResult[], workload: string, policy: string): RunResult[] {
  return runs.filter((run) => run.workload === workload && run.policy === policy);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string | undefined {
  if (rows.length === 0) return undefined;
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function percent(share: number, digits = 0): string {
  return `${(100 * share).toFixed(digits)} %`;
}

function signed(share: number): string {
  return `${share < 0 ? '−' : '+'}${percent(Math.abs(share), 1)}`;
}

/** Load of a workload by its name. */
function loadOf(workload: string): string {
  const found = / at (\d+) %/.exec(workload);
  return found === null ? '1' : `${Number(found[1]) / 100}`;
}

function nameOf(policy: string): string {
  return NAMES[policy] ?? policy;
}

function pair(p50: number, p99: number): string {
  return `${p50.toFixed(p50 < 9.95 ? 1 : 0)} / ${p99.toFixed(0)}`;
}

/** One line for each load and policy. */
function rivals(rows: readonly ClientRow[], runs: readonly RunResult[]): string | undefined {
  const kinds = new Set(rows.map(({ workload }) => workload.split(' ')[0]!));
  const head = ['turns a minute', 'hits', 'turn p50 / p99, s', 'first token p50 / p99, s', 'without a turn', 'held'];
  return table(
    [kinds.size > 1 ? 'workload, load' : 'load', 'clients', 'rule', 'seeds', ...head],
    rows.map((row) => [
      kinds.size > 1 ? `${row.workload.split(' ')[0]} ${loadOf(row.workload)}` : loadOf(row.workload),
      `${row.clients}`,
      nameOf(row.policy),
      `${ofCell(runs, row.workload, row.policy).length}`,
      `${row.turnsPerMinute.toFixed(1)}${row.policy === REFERENCE ? '' : ` (${signed(row.change)})`}`,
      percent(row.hitRatio),
      pair(row.turnP50, row.turnP99),
      pair(row.firstTokenP50, row.firstTokenP99),
      `${row.withoutTurn}`,
      row.heldShare === 0 ? '–' : `${percent(row.heldShare, 1)}, p99 ${row.heldP99.toFixed(0)} s`,
    ]),
  );
}

/** Agents and chat apart. */
function chat(runs: readonly RunResult[]): string | undefined {
  const workloads = [...new Set(runs.map(({ workload }) => workload))];
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const rows = workloads.flatMap((workload) =>
    whole.policies.flatMap(({ name }) => {
      const own = ofCell(runs, workload, name).map(({ summary }) => summary.byPart);
      const read = (part: number, of: (summary: NonNullable<(typeof own)[number][number]>) => number) =>
        mean(own.map((parts) => (parts[part] === null ? 0 : of(parts[part]!))));
      if (own.length === 0) return [];
      return [
        [
          loadOf(workload),
          nameOf(name),
          read(0, ({ turnsPerMinute }) => turnsPerMinute).toFixed(1),
          percent(read(0, ({ hitRatio }) => hitRatio)),
          read(1, ({ turnsPerMinute }) => turnsPerMinute).toFixed(1),
          `${read(1, ({ ttft }) => ttft.p50 / 1e3).toFixed(2)} / ${read(1, ({ ttft }) => ttft.p99 / 1e3).toFixed(1)}`,
        ],
      ];
    }),
  );
  const head = ['agents’ turns a minute', 'their hits', 'chat’s turns a minute', 'chat’s first token p50 / p99, s'];
  return table(['load', 'rule', ...head], rows);
}

/** The gate against the default rule, each under the same condition. */
function conditions(rows: readonly ClientRow[], runs: readonly RunResult[]): string | undefined {
  const ofRow = ({ workload, policy }: ClientRow) => ofCell(runs, workload, policy).map(({ summary }) => summary);
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  return table(
    ['workload', 'rule', 'turns a minute', 'hits', 'of these loaded', 'turn p50 / p99, s', 'held', 'recognised'],
    rows.map((row) => [
      row.workload,
      nameOf(row.policy),
      `${row.turnsPerMinute.toFixed(1)}${row.policy === REFERENCE ? '' : ` (${signed(row.change)})`}`,
      percent(row.hitRatio),
      percent(mean(ofRow(row).map(({ loadRatio }) => loadRatio))),
      pair(row.turnP50, row.turnP99),
      row.heldShare === 0 ? '–' : percent(row.heldShare, 1),
      row.policy === OURS && RECOGNISED.includes(row.workload.split(' ')[0]!)
        ? percent(mean(ofRow(row).map((summary) => summary.recognised ?? 0)), 2)
        : '–',
    ]),
  );
}

function verdict(isReached: boolean): string {
  return isReached ? 'reached' : '**missed**';
}

function aims(rows: readonly ClientRow[]): string | undefined {
  const find = (workload: string, policy: string) =>
    rows.find((row) => row.workload === workload && row.policy === policy);
  const lines = AIMS.flatMap(({ workload, change, hits, p50, p99, withoutTurn }) => {
    const own = find(workload, OURS);
    const reference = find(workload, REFERENCE);
    if (own === undefined || reference === undefined) return [];
    const tail = own.turnP99 / reference.turnP99;
    const half = p50 === undefined ? '–' : `≤ ${p50}: ${own.turnP50.toFixed(1)}, ${verdict(own.turnP50 <= p50)}`;
    return [
      [
        workload.split(' ')[0]!,
        loadOf(workload),
        `≥ ${signed(change)}: ${signed(own.change)}, ${verdict(own.change >= change)}`,
        `≥ ${percent(hits)}: ${percent(own.hitRatio)}, ${verdict(own.hitRatio >= hits)}`,
        half,
        `≤ ${p99} ×: ${tail.toFixed(2)} ×, ${verdict(tail <= p99)}`,
        `≤ ${withoutTurn}: ${own.withoutTurn}, ${verdict(own.withoutTurn <= withoutTurn)}`,
      ],
    ];
  });
  const head = ['turns', 'hits', 'turn p50, s', 'turn p99 against no gate', 'without a turn'];
  return table(['workload', 'load', ...head], lines);
}

/** Shares of the whole, so that one long run does not count as much as a short one. */
function recognised(runs: readonly RunResult[]): string | undefined {
  const lines = RECOGNISED.flatMap((kind) => {
    const own = runs.filter(
      ({ workload, policy, summary }) =>
        policy === OURS && isPlain(workload) && workload.split(' ')[0] === kind && summary.recognised !== null,
    );
    if (own.length === 0) return [];
    const shares = own.map(({ summary }) => summary.recognised!);
    const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
    const uncounted = own.reduce((sum, { sessions }) => sum + sessions!.recognised.uncounted, 0);
    return [[kind, `${own.length}`, percent(mean, 2), percent(Math.min(...shares), 2), `${uncounted}`]];
  });
  return table(['workload', 'runs', 'later turns recognised', 'least of a run', 'turns without an entry'], lines);
}

function facts(runs: readonly RunResult[]): string | undefined {
  if (runs.length === 0) return undefined;
  const seconds = runs.reduce((sum, { tookMs }) => sum + tookMs, 0) / 1e3;
  const requests = runs.reduce((sum, { simulated }) => sum + simulated, 0);
  const git = (...words: string[]) => execFileSync('git', words, { encoding: 'utf8' }).trim();
  return (
    `${runs.length.toLocaleString('en')} runs, ${requests.toLocaleString('en')} simulated requests, ` +
    `${(seconds / 60).toFixed(0)} minutes on one core; program of commit ${git('rev-parse', '--short=8', 'HEAD')}.`
  );
}
