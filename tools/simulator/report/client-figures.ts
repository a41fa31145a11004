import type { Suite } from '../suite/schema.js';
import type { RunResult } from '../suite/suite-run.js';

/** Figures of one policy under a fixed number of clients: means over its seeds. Times in seconds. */
export interface ClientRow {
  readonly workload: string;
  readonly policy: string;
  readonly clients: number;
  readonly turnsPerMinute: number;
  /** Geometric mean over the seeds against the reference - 1. */
  readonly change: number;
  readonly hitRatio: number;
  readonly progress: number;
  readonly fairness: number;
  /** Largest number over the seeds of clients without a turn. */
  readonly withoutTurn: number;
  readonly turnP50: number;
  readonly turnP99: number;
  readonly firstTokenP50: number;
  readonly firstTokenP99: number;
  readonly heldShare: number;
  readonly heldP99: number;
}

/** Rows of all workloads with a fixed number of clients, in the suite's order. */
export function clientRows(results: readonly RunResult[], suite: Suite): readonly ClientRow[] {
  const workloads = [...new Set(results.map(({ workload }) => workload))];
  return workloads.flatMap((workload) =>
    suite.policies.flatMap(({ name }) => {
      const own = runsOf(results, workload, name);
      if (own.length === 0) return [];
      const reference = runsOf(results, workload, suite.reference);
      return [rowOf(workload, name, own, reference)];
    }),
  );
}

type Measured = RunResult['summary'] & { readonly clients: NonNullable<RunResult['summary']['clients']> };

function runsOf(results: readonly RunResult[], workload: string, policy: string): readonly Measured[] {
  return results
    .filter((run) => run.workload === workload && run.policy === policy)
    .map(({ summary }) => summary)
    .filter((summary): summary is Measured => summary.clients !== null);
}

function rowOf(workload: string, policy: string, own: readonly Measured[], reference: readonly Measured[]): ClientRow {
  const over = (read: (summary: Measured) => number) => mean(own.map(read));
  const ratios = own.map((run, i) => Math.log(run.clients.turnsPerMinute / reference[i]!.clients.turnsPerMinute));
  return {
    workload,
    policy,
    clients: own[0]!.clients.clients,
    turnsPerMinute: over(({ clients }) => clients.turnsPerMinute),
    change: Math.expm1(mean(ratios)),
    hitRatio: over(({ hitRatio }) => hitRatio),
    progress: over(({ clients }) => clients.progress),
    fairness: over(({ clients }) => clients.fairness),
    withoutTurn: Math.max(...own.map(({ clients }) => clients.withoutTurn)),
    turnP50: over(({ e2e }) => e2e.p50) / 1e3,
    turnP99: over(({ e2e }) => e2e.p99) / 1e3,
    firstTokenP50: over(({ ttft }) => ttft.p50) / 1e3,
    firstTokenP99: over(({ ttft }) => ttft.p99) / 1e3,
    heldShare: over(({ heldShare }) => heldShare),
    heldP99: over(({ held }) => held.p99) / 1e3,
  };
}

/** One cell of a row: its head, and the text. */
export type ClientCell = readonly [head: string, text: (row: ClientRow) => string];

const share = (value: number, digits = 0) => `${(100 * value).toFixed(digits)} %`;

/** Columns of the table, for terminals and for the page alike. */
export const clientCells: readonly ClientCell[] = [
  ['turns/min', ({ turnsPerMinute }) => turnsPerMinute.toFixed(1)],
  ['change', ({ change }) => `${change >= 0 ? '+' : ''}${share(change, 1)}`],
  ['hits', ({ hitRatio }) => share(hitRatio)],
  ['progress', ({ progress }) => share(progress)],
  ['fairness', ({ fairness }) => fairness.toFixed(2)],
  ['no turn', ({ withoutTurn }) => `${withoutTurn}`],
  ['turn p50 s', ({ turnP50 }) => turnP50.toFixed(1)],
  ['p99 s', ({ turnP99 }) => turnP99.toFixed(0)],
  ['TTFT p50 s', ({ firstTokenP50 }) => firstTokenP50.toFixed(1)],
  ['p99 s', ({ firstTokenP99 }) => firstTokenP99.toFixed(0)],
  ['held', ({ heldShare }) => share(heldShare)],
  ['p99 s', ({ heldP99 }) => heldP99.toFixed(0)],
];

const NAME_CHARACTERS = 16;

/** One block of lines per workload with a fixed number of clients, policies in the suite's order; '' without any. */
export function clientText(rows: readonly ClientRow[]): string {
  const workloads = [...new Set(rows.map(({ workload }) => workload))];
  return workloads.map((workload) => blockOf(rows.filter((row) => row.workload === workload))).join('');
}

function blockOf(rows: readonly ClientRow[]): string {
  const { workload, clients } = rows[0]!;
  const lines = [
    ['policy', ...clientCells.map(([head]) => head)],
    ...rows.map((row) => [row.policy, ...clientCells.map(([, text]) => text(row))]),
  ];
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const text = lines.map((line) => {
    const [name = '', ...numbers] = line;
    const cells = numbers.map((cell, i) => cell.padStart(widths[i + 1]!));
    return `  ${name.slice(0, NAME_CHARACTERS).padEnd(NAME_CHARACTERS)} ${cells.join('  ')}\n`;
  });
  return `\n${workload}: ${clients} clients\n${text.join('')}`;
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}
