// The text of docs/drawn-traffic.md.
import type { RunResult } from '../../dist/tools/simulator/suite/suite-run.js';
import { wrapped } from '../adaptation-results/page.ts';
import { switchedAt } from '../adaptation-results/switching.ts';
import { mean, percent, table, unique } from '../adaptation-results/tables.ts';
import type { DrawnWorkload } from './draw.ts';
import { GUARDED_LOAD, LOADS, nameAt, SIMPLE_RULES } from './suites.ts';

/** Results of one drawn workload. */
export interface DrawnResults {
  readonly workload: DrawnWorkload;
  /** Arrivals per second that the default carries. */
  readonly limit: number;
  readonly compared: readonly RunResult[];
  readonly guarded: readonly RunResult[];
}

export interface DrawnSources {
  readonly commit: string;
  /** Number of the first workload. */
  readonly first: number;
  /** Workloads that were drawn, with those of which the default carries no load. */
  readonly drawn: number;
  readonly seeds: number;
}

/** A workload at a load: means over the seeds of logarithms of ratios to the default. */
export interface Pair {
  readonly workload: DrawnWorkload;
  readonly load: number;
  readonly cost: number;
  readonly tail: number;
  /** To the simple rule, or the default, with the lowest cost of the pair. */
  readonly toBest: number;
  readonly bestRule: string;
  /** Share of the default's requests within both objectives. */
  readonly goodput: number;
}

/** Cost above the default's from which on a pair is named, and the same of the TTFT p99. */
const NAMED_COST = Math.log(1.005);
const NAMED_TAIL = Math.log(1.1);
/** Cost above that of the best simple rule that the goal allows. */
const ABOVE_BEST_RULE_MAX = Math.log(1.03);

const INTRODUCTION = `How learned costs do on traffic and fleets that nobody chose, and on which nothing was tuned.
Kind, lengths, prompts in common, bursts, model, GPU, KV cache, number and speed of the endpoints and the
interval of scrapes are drawn at random ([draw.ts](../scripts/drawn-traffic/draw.ts)); a kind comes in turn. What
the default (queue 2, KV 2, prefix 3) carries with nine of ten requests within both objectives (three of four of
sub-agents, whose bursts wait for each other), 2 s to the first output and 60 ms per output token, is looked for by
bisection, and each workload is played at 60, 85 and 110 % of
it. [adaptation-results.md](adaptation-results.md) says what cost is, and has chosen traffic, with intervals.`;

/** The page. */
export function pageOf(results: readonly DrawnResults[], sources: DrawnSources): string {
  const pairs = results.flatMap(pairsOf);
  return wrapped(
    `${[
      '# Learned costs on drawn traffic',
      INTRODUCTION,
      '## Against the default',
      verdict(pairs),
      byLoad(pairs),
      byKind(pairs),
      '## Where learned costs lose',
      losses(pairs),
      '## Against simple rules',
      againstRules(results, pairs),
      '## Under the guard',
      underGuard(results),
      '## What was run',
      whatWasRun(results, sources),
    ].join('\n\n')}\n`,
  );
}

/** Pairs of a workload and its loads. */
export function pairsOf({ workload, compared }: DrawnResults): readonly Pair[] {
  return LOADS.flatMap((load) => {
    const runs = compared.filter((run) => run.workload === nameAt(workload, load));
    const reference = runs.filter(({ policy }) => policy === 'default');
    if (reference.length === 0) return [];
    const costs = (policy: string) => logRatios(runs, policy, ({ summary }) => summary.cost);
    const rules = ['default', ...SIMPLE_RULES].map((policy) => ({ policy, cost: mean(costs(policy)) }));
    const best = rules.reduce((lowest, each) => (each.cost < lowest.cost ? each : lowest));
    const cost = mean(costs('learned'));
    return [
      {
        workload,
        load,
        cost,
        tail: mean(logRatios(runs, 'learned', ({ summary }) => summary.ttft.p99)),
        toBest: cost - best.cost,
        bestRule: best.policy,
        goodput: mean(reference.map(({ summary }) => summary.goodput)),
      },
    ];
  });
}

/** ln(figure/figure of the default) of every seed. */
function logRatios(runs: readonly RunResult[], policy: string, figure: (run: RunResult) => number): readonly number[] {
  const reference = new Map(runs.filter((run) => run.policy === 'default').map((run) => [run.seed, figure(run)]));
  return runs.filter((run) => run.policy === policy).map((run) => Math.log(figure(run) / reference.get(run.seed)!));
}

const times = (log: number) => `×${Math.exp(log).toFixed(2)}`;
const change = (log: number) => percent(Math.expm1(log));
const count = (pairs: readonly Pair[], holds: (pair: Pair) => boolean) =>
  `${pairs.filter(holds).length} of ${pairs.length}`;
/** A miss of less than a twentieth of a percent is no difference in practice. */
const noDearer = ({ cost }: Pair) => cost <= 0.0005;
const noSlower = ({ tail }: Pair) => tail <= 0.0005;

function verdict(pairs: readonly Pair[]): string {
  const costs = pairs.map(({ cost }) => cost);
  const error = ((100 * deviation(costs)) / Math.sqrt(costs.length)).toFixed(1);
  const worst = pairs.reduce((dearest, pair) => (pair.cost > dearest.cost ? pair : dearest));
  return (
    `Of ${pairs.length} pairs of workload and load learned costs cost no more than the default on ` +
    `**${count(pairs, noDearer)}**, and their TTFT p99 is no higher on **${count(pairs, noSlower)}**. The mean ` +
    `change of cost is **${change(mean(costs))}** (± ${error} % of standard error over the pairs), ` +
    `the mean TTFT p99 **${times(mean(pairs.map(({ tail }) => tail)))}**; the worst pair costs ${change(worst.cost)}.`
  );
}

function deviation(values: readonly number[]): number {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)));
}

function rowOf(name: string, pairs: readonly Pair[]): readonly string[] {
  const sorted = pairs.map(({ cost }) => cost).sort((a, b) => a - b);
  return [
    name,
    `${pairs.length}`,
    change(mean(sorted)),
    `${change(sorted[0]!)} … ${change(sorted.at(-1)!)}`,
    times(mean(pairs.map(({ tail }) => tail))),
    count(pairs, noDearer),
    count(pairs, noSlower),
  ];
}

const head = (what: string) => [what, 'pairs', 'cost', 'best … worst', 'TTFT p99', 'no dearer', 'no slower'];

function byLoad(pairs: readonly Pair[]): string {
  const rows = LOADS.map((load) =>
    rowOf(
      `${Math.round(100 * load)} %`,
      pairs.filter((pair) => pair.load === load),
    ),
  );
  return table(head('load'), rows);
}

function byKind(pairs: readonly Pair[]): string {
  const kinds = unique(pairs.map(({ workload }) => workload.kind));
  const rows = kinds.map((kind) =>
    rowOf(
      kind,
      pairs.filter(({ workload }) => workload.kind === kind),
    ),
  );
  return table(head('kind'), rows);
}

function losses(pairs: readonly Pair[]): string {
  const named = pairs.filter(({ cost, tail }) => cost > NAMED_COST || tail > NAMED_TAIL);
  if (named.length === 0) return 'On no pair is the cost 0.5 % above the default’s, or the TTFT p99 a tenth.';
  const rows = named
    .sort((a, b) => b.cost - a.cost)
    .map(({ workload, load, cost, tail, goodput }) => [
      nameAt(workload, load),
      fleetText(workload),
      change(cost),
      times(tail),
      `${Math.round(100 * goodput)} %`,
    ]);
  const text =
    'Every pair with a cost of 0.5 % or a TTFT p99 of a tenth above the default’s. *Within objectives*: the share ' +
    'of the default’s requests.';
  return [text, table(['workload', 'fleet', 'cost', 'TTFT p99', 'within objectives'], rows)].join('\n\n');
}

function fleetText({ fleet }: DrawnWorkload): string {
  const { hardware, kvTokens, endpoints, groups, metrics } = fleet as {
    readonly hardware: string;
    readonly kvTokens: number;
    readonly endpoints?: number;
    readonly groups?: readonly { readonly count: number; readonly speed?: number }[];
    readonly metrics?: { readonly scrapeMs: number };
  };
  const machines =
    groups?.map(({ count: of, speed }) => `${of}${speed === undefined ? '' : ` at ${speed} of the speed`}`) ?? [];
  const counted = groups === undefined ? `${endpoints}` : machines.join(' and ');
  const scraped = metrics === undefined ? '' : `, scraped every ${metrics.scrapeMs} ms`;
  return `${counted} × ${hardware}, ${Math.round(kvTokens / 1000).toLocaleString('en')} k tokens of KV${scraped}`;
}

function againstRules(results: readonly DrawnResults[], pairs: readonly Pair[]): string {
  const runs = results.flatMap(({ compared }) => compared);
  const names = unique(runs.map(({ workload }) => workload));
  const costsOf = (policy: string) =>
    names.map((name) =>
      mean(
        logRatios(
          runs.filter(({ workload }) => workload === name),
          policy,
          ({ summary }) => summary.cost,
        ),
      ),
    );
  const rows = ['learned', ...SIMPLE_RULES].map((policy) => {
    const costs = costsOf(policy);
    const sorted = [...costs].sort((a, b) => a - b);
    return [policy, change(mean(costs)), change(sorted.at(-1)!), `${costs.filter((cost) => cost <= 0.0005).length}`];
  });
  const worst = pairs.reduce((furthest, pair) => (pair.toBest > furthest.toBest ? pair : furthest));
  const text =
    `Learned costs are at most 3 % above the best of default and simple rules, chosen in hindsight for each pair, on ` +
    `**${count(pairs, ({ toBest }) => toBest <= ABOVE_BEST_RULE_MAX)}** pairs; the worst is ` +
    `${nameAt(worst.workload, worst.load)}, ${change(worst.toBest)} against \`${worst.bestRule}\`. ` +
    'Each rule against the default:';
  return [text, table(['policy', 'mean cost', 'worst pair', 'pairs no dearer'], rows)].join('\n\n');
}

function underGuard(results: readonly DrawnResults[]): string {
  const judged = results.flatMap(({ workload, guarded }) => {
    const of = (policy: string) => guarded.find((run) => run.policy === policy);
    const [reference, own] = [of('default'), of('guarded')];
    if (reference === undefined || own === undefined) return [];
    const { atMs, before } = switchedAt(own, reference);
    const cost = Math.log(own.summary.cost / reference.summary.cost);
    return [{ workload, atMs, before: before ?? 0, cost }];
  });
  const switched = judged.flatMap(({ atMs }) => atMs ?? []).sort((a, b) => a - b);
  const costs = judged.map(({ cost }) => cost);
  const undecided = judged.map(({ before }) => before);
  const worst = judged.reduce((dearest, each) => (each.cost > dearest.cost ? each : dearest));
  const median = ((switched[(switched.length - 1) >> 1] ?? 0) / 1e3).toFixed(0);
  const dearer = judged.filter(({ cost }) => cost > Math.log(1.01));
  const list = dearer
    .sort((a, b) => b.cost - a.cost)
    .map(({ workload, cost, atMs }) => {
      const decided = atMs === undefined ? 'not switched on' : `switched on after ${(atMs / 1e3).toFixed(0)} s`;
      return `- ${workload.name}: ${change(cost)}, ${decided}`;
    });
  const text =
    `\`mode: auto\` from a cold start, ten minutes at ${Math.round(100 * GUARDED_LOAD)} %, one seed. Learned costs ` +
    `are switched on in **${switched.length} of ${judged.length}** runs, after ${median} s (median). The cost of the ` +
    `whole run changes by **${change(mean(costs))}**, that of the time while undecided by ` +
    `${change(mean(undecided))}; the worst run costs ${change(worst.cost)}.`;
  const many = dearer.length === 1 ? 'One run costs' : `${dearer.length} runs cost`;
  const named = `${many} more than 1 % above the default:`;
  return dearer.length === 0 ? text : [text, named, list.join('\n')].join('\n\n');
}

function whatWasRun(results: readonly DrawnResults[], { commit, first, drawn, seeds }: DrawnSources): string {
  const runs = results.flatMap(({ compared, guarded }) => [...compared, ...guarded]);
  const requests = runs.reduce((sum, { simulated }) => sum + simulated, 0);
  const left = drawn - results.length;
  return (
    `Commit ${commit}, \`npm run drawn-traffic -- --first ${first} --workloads ${drawn} --seeds ${seeds}\`: ` +
    `${runs.length.toLocaleString('en')} runs, ${requests.toLocaleString('en')} simulated requests. ` +
    (left === 0
      ? 'Of every workload the default carries some load.'
      : `Of ${left} of ${drawn} workloads the default does not carry a quarter of the usual rate: they are left out.`) +
    ' All policies of a pair meet the same requests and the same noise of the engines. Other numbers (`--first`) are ' +
    'other traffic.'
  );
}
