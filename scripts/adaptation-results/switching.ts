// How long the guard takes until it lets learned costs decide, and what its tries cost until then.
import { interval } from '../../dist/tools/simulator/suite/comparison.js';
import type { RunResult } from '../../dist/tools/simulator/suite/suite-run.js';
import { mean, percent, type Results, table, unique } from './tables.ts';

/** Aims: seconds until learned costs decide where they gain a tenth, and cost above the default's until then. */
export const SWITCH_SECONDS_MAX = 180;
const GAIN_MIN = 0.1;
const UNDECIDED_COST_MAX = 0.01;

interface Switched {
  /** Milliseconds at which the state became `active`; undefined = not within the run. */
  readonly atMs: number | undefined;
  /** ln(cost/cost of the default) of the time before and after; undefined = no request in it. */
  readonly before: number | undefined;
  readonly after: number | undefined;
}

/** A row of the table: times at which the guard switched on, ascending, and changes of cost against the default. */
interface SwitchedRow {
  readonly workload: string;
  readonly gain: number;
  readonly times: readonly number[];
  readonly of: number;
  readonly before: readonly number[];
  readonly after: readonly number[];
  readonly fallbacks: number;
  /** Whether it missed the aim of its time, and that of the cost until then. */
  readonly late: boolean;
  readonly costly: boolean;
}

function switchedRows({ runs }: Results): readonly SwitchedRow[] {
  return unique(runs.map(({ workload }) => workload)).map((workload) => {
    const of = (policy: string) => runs.filter((run) => run.workload === workload && run.policy === policy);
    const [reference, learned] = [of('default'), of('learned')];
    const switched = of('guarded').map((run, seed) => switchedAt(run, reference[seed]!));
    const gain = Math.expm1(mean(learned.map(({ summary }, i) => Math.log(summary.cost / reference[i]!.summary.cost))));
    const times = switched.flatMap(({ atMs }) => atMs ?? []).sort((a, b) => a - b);
    const before = switched.flatMap((each) => each.before ?? []);
    return {
      workload,
      gain,
      times,
      of: switched.length,
      before,
      after: switched.flatMap((each) => each.after ?? []),
      fallbacks: mean(of('guarded').map(fallbacksOf)),
      late: gain < -GAIN_MIN && (times.length < switched.length || median(times) > SWITCH_SECONDS_MAX * 1e3),
      costly: mean(before) > Math.log1p(UNDECIDED_COST_MAX),
    };
  });
}

export function switching(results: Results): string {
  const rows = switchedRows(results).map(({ workload, gain, times, of, before, after, fallbacks, late, costly }) => [
    workload,
    percent(gain),
    marked(timesText(times, of), late),
    marked(changeText(before, `${workload} before`), costly),
    changeText(after, `${workload} after`),
    fallbacks.toFixed(1),
  ]);
  return table(['workload', 'always', 'switched on', 'while undecided', 'after', 'fallbacks'], rows);
}

/** What the page says first of the guard: where it misses its aims. */
export function guardVerdict(results: Results): string {
  const rows = switchedRows(results);
  const missed = rows.filter(({ late, costly }) => late || costly);
  const aims =
    `The guard is to switch on within ${SWITCH_SECONDS_MAX} s where learned costs gain more than a tenth, at ` +
    `${percent(UNDECIDED_COST_MAX)} of cost at most until then: it does on **${rows.length - missed.length}** of ` +
    `${rows.length} kinds of traffic`;
  if (missed.length === 0) return `${aims}.`;
  const lines = missed.map(({ workload, times, of, before, late, costly }) => {
    const misses = [
      ...(late ? [`switched on after ${timesText(times, of)}`] : []),
      ...(costly ? [`cost ${percent(Math.expm1(mean(before)))} while undecided`] : []),
    ];
    return `- ${workload}: ${misses.join(', ')}`;
  });
  return `${aims}, and not on:\n\n${lines.join('\n')}`;
}

const marked = (text: string, missed: boolean) => (missed ? `**${text} ✗**` : text);
const median = (sorted: readonly number[]) => sorted[(sorted.length - 1) >> 1] ?? Number.POSITIVE_INFINITY;

function timesText(times: readonly number[], of: number): string {
  if (times.length === 0) return 'never';
  const seconds = (ms: number) => (ms / 1e3).toFixed(0);
  const range = times.length === 1 ? '' : ` (${seconds(times[0]!)} … ${seconds(times.at(-1)!)})`;
  return `${seconds(median(times))} s${range}${times.length === of ? '' : `, ${times.length} of ${of}`}`;
}

function changeText(logs: readonly number[], name: string): string {
  if (logs.length === 0) return '–';
  if (logs.length === 1) return percent(Math.expm1(logs[0]!));
  const { low, high } = interval(logs, name);
  return `${percent(Math.expm1(mean(logs)))} (${percent(Math.expm1(low))} … ${percent(Math.expm1(high))})`;
}

function fallbacksOf({ transitions = [] }: RunResult): number {
  return (transitions ?? []).filter(({ to }) => to === 'fallback').length;
}

export function switchedAt(guarded: RunResult, reference: RunResult): Switched {
  const atMs = guarded.transitions?.find(({ to }) => to === 'active')?.timeMs;
  const end = atMs ?? Number.POSITIVE_INFINITY;
  return {
    atMs,
    before: changeBetween(guarded, reference, 0, end),
    after: atMs === undefined ? undefined : changeBetween(guarded, reference, atMs, Number.POSITIVE_INFINITY),
  };
}

/** ln of the ratio of the mean costs of two runs over the windows whose middle lies in a time. */
function changeBetween(own: RunResult, reference: RunResult, fromMs: number, toMs: number): number | undefined {
  const { windowMs, cost } = own.summary.timeline;
  const pairs = cost.flatMap((value, window) => {
    const middle = (window + 0.5) * windowMs;
    const base = reference.summary.timeline.cost[window];
    return middle >= fromMs && middle < toMs && value !== null && base ? [[value, base] as const] : [];
  });
  if (pairs.length === 0) return undefined;
  return Math.log(mean(pairs.map(([value]) => value)) / mean(pairs.map(([, base]) => base)));
}
