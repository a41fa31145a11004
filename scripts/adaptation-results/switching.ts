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

export function switching({ runs }: Results): string {
  const rows = unique(runs.map(({ workload }) => workload)).map((workload) => {
    const of = (policy: string) => runs.filter((run) => run.workload === workload && run.policy === policy);
    const [reference, learned] = [of('default'), of('learned')];
    const switched = of('guarded').map((run, seed) => switchedAt(run, reference[seed]!));
    const gain = Math.expm1(mean(learned.map(({ summary }, i) => Math.log(summary.cost / reference[i]!.summary.cost))));
    const times = switched.flatMap(({ atMs }) => atMs ?? []).sort((a, b) => a - b);
    const late = gain < -GAIN_MIN && (times.length < switched.length || median(times) > SWITCH_SECONDS_MAX * 1e3);
    const before = switched.flatMap((each) => each.before ?? []);
    const costly = mean(before) > Math.log1p(UNDECIDED_COST_MAX);
    return [
      workload,
      percent(gain),
      marked(timesText(times, switched.length), late),
      marked(changeText(before, `${workload} before`), costly),
      changeText(
        switched.flatMap((each) => each.after ?? []),
        `${workload} after`,
      ),
      `${mean(of('guarded').map(fallbacksOf)).toFixed(1)}`,
    ];
  });
  return table(['workload', 'always', 'switched on', 'while undecided', 'after', 'fallbacks'], rows);
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
