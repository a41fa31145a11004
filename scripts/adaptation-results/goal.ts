// The goal of learned costs, row by row: workload and load, against the default and the best simple rule in hindsight.
import { type Comparison, interval } from '../../dist/tools/simulator/suite/comparison.js';
import type { Suite, SuiteWorkload } from '../../dist/tools/simulator/suite/schema.js';
import type { RunResult } from '../../dist/tools/simulator/suite/suite-run.js';
import { bestFixed, mean, percent, type Results, row, table, unique } from './tables.ts';

/** Loads of the goal, as shares of what the default carries. */
export const LOADS = [0.6, 0.8, 0.95, 1, 1.1] as const;
/** Cost above that of the best simple rule that the goal allows. */
const ABOVE_BEST_RULE_MAX = 0.03;
/** Distance from a bound at which means of two runs are equal in practice. */
const EQUAL = 0.0005;

/** Name of a workload at a load, by which rows of a table find their cells. */
export function atLoad(workload: string, load: number): string {
  return load === 1 ? workload : `${workload} at ${Math.round(100 * load)} %`;
}

/** The suite with every workload that it runs at each of the loads. */
export function atLoads(suite: Suite, loads: readonly number[]): Suite {
  const base = suite.run ?? suite.workloads.map(({ name }) => name);
  const others = base.flatMap((name) => loads.filter((load) => load !== 1).map((load) => loaded(suite, name, load)));
  const run = base.flatMap((name) => loads.map((load) => atLoad(name, load)));
  return { ...suite, workloads: [...suite.workloads, ...others], run };
}

/** A workload at a load, on its own fleet. A variant of a variant has the same traffic at the product of both loads. */
function loaded(suite: Suite, name: string, load: number): SuiteWorkload {
  const found = suite.workloads.find((workload) => workload.name === name)!;
  const own = { name: atLoad(name, load), kind: 'variant' as const };
  if (found.kind !== 'variant') return { ...own, of: name, load, fleet: found.fleet ?? {} };
  const variant = found as Extract<SuiteWorkload, { kind: 'variant' }>;
  return { ...variant, ...own, load: variant.load * load };
}

/** How far a row is from a part of the goal: by its mean, and by the kinder end of the 95 % interval. */
type Standing = 'holds' | 'misses within chance' | 'misses';

interface GoalRow {
  readonly workload: string;
  readonly load: number;
  readonly learned: Comparison;
  readonly best: Comparison;
  /** ln(cost/cost of the best rule), mean over the seeds. */
  readonly toBest: number;
  readonly standing: Readonly<Record<'mean' | 'rule' | 'tail', Standing>>;
}

function goalRows({ comparisons, runs }: Results, workloads: readonly string[]): readonly GoalRow[] {
  return workloads.flatMap((workload) =>
    LOADS.flatMap((load) => {
      const name = atLoad(workload, load);
      const learned = row(comparisons, name, 'learned');
      if (learned === undefined) return [];
      const best = bestFixed(comparisons, name);
      const reference = row(comparisons, name, 'default')!;
      const toDefault = learned.costs.map((cost, seed) => Math.log(cost / reference.costs[seed]!));
      const toBest = learned.costs.map((cost, seed) => Math.log(cost / best.costs[seed]!));
      const tails = tailRatios(runs, name);
      const standing = {
        mean: standingOf(toDefault, 0, name),
        rule: standingOf(toBest, Math.log1p(ABOVE_BEST_RULE_MAX), name),
        tail: standingOf(tails, 0, name),
      };
      return [{ workload, load, learned, best, toBest: mean(toBest), standing }];
    }),
  );
}

function standingOf(logs: readonly number[], bound: number, name: string): Standing {
  if (mean(logs) <= bound + EQUAL) return 'holds';
  // The interval of a single seed has no width, and says nothing.
  return logs.length > 1 && interval(logs, name).low > bound ? 'misses' : 'misses within chance';
}

/** ln(TTFT p99 of learned costs/TTFT p99 of the default) of every seed. */
function tailRatios(runs: readonly RunResult[], workload: string): readonly number[] {
  const p99 = (policy: string) =>
    runs.filter((run) => run.workload === workload && run.policy === policy).map(({ summary }) => summary.ttft.p99);
  const reference = p99('default');
  return p99('learned')
    .map((value, seed) => Math.log(value / reference[seed]!))
    .filter(Number.isFinite);
}

/** Workloads of the results without those at other loads. */
function baseOf({ suite, runs }: Results): readonly string[] {
  const names = unique(runs.map(({ workload }) => workload));
  return suite.workloads
    .map(({ name }) => name)
    .filter((base) => LOADS.some((load) => names.includes(atLoad(base, load))) && !/ at \d+ %$/.test(base));
}

const isMissed = ({ standing }: GoalRow) => Object.values(standing).includes('misses');
const isUnclear = (each: GoalRow) => !isMissed(each) && Object.values(each.standing).includes('misses within chance');

/** What the page says first: where the goal does not hold. */
export function goalVerdict(results: Results): string {
  const rows = goalRows(results, baseOf(results));
  const missed = rows.filter(isMissed);
  const unclear = rows.filter(isUnclear).length;
  const held = rows.length - missed.length - unclear;
  const seeds = unique(results.runs.map(({ seed }) => `${seed}`)).length;
  const counts =
    `Of ${rows.length} pairs of workload and load (${seeds === 1 ? 'one seed' : `up to ${seeds} seeds`}) the goal ` +
    `holds on **${held}**, is missed by the mean alone on **${unclear}**, and by the whole interval on ` +
    `**${missed.length}**`;
  if (missed.length === 0 && unclear === 0) return `${counts}.`;
  const lines = (kind: Standing, of: readonly GoalRow[]) =>
    of.map((each) => `- ${each.workload} at ${Math.round(100 * each.load)} %: ${missOf(each, kind).join(', ')}`);
  const chance = rows.filter(isUnclear);
  return [
    `${counts}${missed.length > 0 ? ':' : '.'}`,
    ...(missed.length > 0 ? [lines('misses', missed).join('\n')] : []),
    ...(chance.length > 0 ? ['By the mean alone:', lines('misses within chance', chance).join('\n')] : []),
  ].join('\n\n');
}

function missOf({ learned, best, toBest, standing }: GoalRow, kind: Standing): readonly string[] {
  return [
    ...(standing.mean === kind ? [`cost ${percent(learned.change)} against the default`] : []),
    ...(standing.rule === kind ? [`cost ${percent(Math.expm1(toBest))} against \`${best.policy}\``] : []),
    ...(standing.tail === kind ? [`TTFT p99 ×${learned.ttftP99Ratio.toFixed(2)} of the default's`] : []),
  ];
}

/** A mark behind a figure: ✗ = the goal is missed, ? = missed by no more than chance. */
function marked(text: string, standing: Standing): string {
  if (standing === 'holds') return text;
  return standing === 'misses' ? `**${text} ✗**` : `${text} ?`;
}

function byLoad(results: Results, cell: (row: GoalRow) => string): string {
  const rows = goalRows(results, baseOf(results));
  const loads = LOADS.filter((load) => rows.some((each) => each.load === load));
  const lines = unique(rows.map(({ workload }) => workload)).map((workload) => [
    workload,
    ...loads.map((load) => {
      const found = rows.find((each) => each.workload === workload && each.load === load);
      return found === undefined ? '–' : cell(found);
    }),
  ]);
  return table(['workload', ...loads.map((load) => `${Math.round(100 * load)} %`)], lines);
}

/** Cost of learned costs against the default, with the TTFT p99 as a multiple of the default's. */
export function againstDefault(results: Results): string {
  return byLoad(
    results,
    ({ learned, standing }) =>
      `${marked(percent(learned.change), standing.mean)} · ` +
      marked(`×${learned.ttftP99Ratio.toFixed(2)}`, standing.tail),
  );
}

/** Cost of learned costs against the rule that was best in hindsight, and that rule. */
export function againstBestRule(results: Results): string {
  return byLoad(
    results,
    ({ best, toBest, standing }) => `${marked(percent(Math.expm1(toBest)), standing.rule)} ${best.policy}`,
  );
}
