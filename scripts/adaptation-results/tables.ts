// Tables of docs/adaptation-results.md, each from the results of one suite.
import type { AdaptationSpeed } from '../../dist/tools/simulator/suite/adaptation-speed.js';
import type { CapacityComparison } from '../../dist/tools/simulator/suite/capacity-comparison.js';
import { type Comparison, interval } from '../../dist/tools/simulator/suite/comparison.js';
import type { Suite } from '../../dist/tools/simulator/suite/schema.js';
import { kendall } from '../../dist/tools/simulator/suite/significance.js';
import type { RunResult } from '../../dist/tools/simulator/suite/suite-run.js';

/** Results of the runs of a chapter, of which every policy has the same seeds. */
export interface Results {
  readonly suite: Suite;
  readonly comparisons: readonly Comparison[];
  readonly capacities?: readonly CapacityComparison[];
  readonly speeds: readonly (AdaptationSpeed & { readonly policy: string })[];
  readonly runs: readonly RunResult[];
}

/** Policies that learn, or that nobody could run: no rivals with fixed rules. */
const NOT_FIXED = new Set(['constant-oracle', 'learned', 'guarded', 'projected', 'shortest-ttft', 'gorgo', 'ducb-4']);

export const percent = (share: number) => {
  const text = Math.abs(100 * share).toFixed(1);
  return `${text === '0.0' ? '±' : share < 0 ? '−' : '+'}${text} %`;
};
/** With interval and verdict where there is more than one seed. */
export const change = ({ change: by, low, high, verdict, costs, slowTail }: Comparison) => {
  if (verdict === 'reference') return '';
  const tail = slowTail ? ' ▲' : '';
  return `${costs.length < 2 ? percent(by) : `${percent(by)} (${percent(low)} … ${percent(high)}) ${verdict}`}${tail}`;
};
export const mean = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
export const unique = (values: readonly string[]) => [...new Set(values)];
const workloadsOf = ({ runs }: Results) => unique(runs.map(({ workload }) => workload));
const policiesOf = ({ runs }: Results) => unique(runs.map(({ policy }) => policy));

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

export function row(comparisons: readonly Comparison[], workload: string, policy: string): Comparison | undefined {
  return comparisons.find((each) => each.workload === workload && each.policy === policy);
}

/** The fixed rule with the lowest mean cost of a workload, in hindsight. */
export function bestFixed(comparisons: readonly Comparison[], workload: string): Comparison {
  const own = comparisons.filter((each) => each.workload === workload && !NOT_FIXED.has(each.policy));
  return own.reduce((best, each) => (each.cost < best.cost ? each : best));
}

export function facts({ runs }: Results): string {
  const requests = runs.reduce((sum, { simulated }) => sum + simulated, 0);
  const seconds = runs.reduce((sum, { tookMs }) => sum + tookMs, 0) / 1e3;
  const policies = unique(runs.map(({ policy }) => policy)).length;
  const workloads = unique(runs.map(({ workload }) => workload)).length;
  const counts = unique(runs.map(({ workload }) => workload)).map(
    (of) => new Set(runs.filter(({ workload }) => workload === of).map(({ seed }) => seed)).size,
  );
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  const seeds = most === 1 ? 'one seed' : least === most ? `${most} seeds` : `${least} to ${most} seeds`;
  const full = runs.length === policies * counts.reduce((sum, count) => sum + count, 0);
  return (
    `${workloads === 1 ? 'one workload' : `${workloads} workloads`} × ${full ? '' : 'up to '}${policies} policies × ` +
    `${seeds}; ${requests.toLocaleString('en')} simulated requests, ` +
    `${Math.round(requests / seconds).toLocaleString('en')} a second on one thread of a machine that was busy with ` +
    'other things.'
  );
}

/** Every policy over all workloads. */
export function standing(results: Results): string {
  const { comparisons, suite } = results;
  const workloads = workloadsOf(results);
  const rows = policiesOf(results).map((policy) => {
    const own = workloads.flatMap((workload) => row(comparisons, workload, policy) ?? []);
    const regrets = own.map(({ cost, workload }) => cost / bestFixed(comparisons, workload).cost - 1);
    const count = (verdict: Comparison['verdict']) => `${own.filter((each) => each.verdict === verdict).length}`;
    const total = Math.exp(mean(own.map(({ change: each }) => Math.log1p(each)))) - 1;
    const worst = regrets.indexOf(Math.max(...regrets));
    const verdicts = ['win', 'tie', 'open', 'loss'] as const;
    const judged = [...verdicts.map(count), `${own.filter(({ slowTail }) => slowTail).length}`];
    const isReference = policy === suite.reference;
    return {
      worst: regrets[worst]!,
      cells: [
        policy,
        isReference ? '' : percent(total),
        percent(mean(regrets)),
        `${percent(regrets[worst]!)} (${own[worst]!.workload})`,
        ...(isReference ? judged.map(() => '') : judged),
      ],
    };
  });
  const sorted = rows.sort((a, b) => a.worst - b.worst).map(({ cells }) => cells);
  const verdicts = ['wins', 'ties', 'open', 'losses', 'slow tails ▲'];
  return table(['policy', 'against default', 'mean regret to the best rule', 'worst', ...verdicts], sorted);
}

export function metrics(results: Results): string {
  const head = [
    'workload',
    'policy',
    'cost',
    'uncapped',
    'TTFT mean',
    'p50',
    'p90',
    'p99',
    'TPOT mean',
    'p99',
    'E2E mean',
    'p99',
    'goodput',
    'hits',
    'imbalance',
    'preempted',
  ];
  const rows = workloadsOf(results).flatMap((workload) => {
    const best = bestFixed(results.comparisons, workload).policy;
    return unique(['default', best, 'learned', 'guarded']).flatMap((policy) => {
      const own = results.runs.filter((run) => run.workload === workload && run.policy === policy);
      if (own.length === 0) return [];
      const over = (read: (summary: RunResult['summary']) => number) => mean(own.map(({ summary }) => read(summary)));
      const cells = [
        policy === 'default' ? workload : '',
        policy,
        over((s) => s.cost).toFixed(3),
        over((s) => s.uncappedCost).toFixed(3),
        over((s) => s.ttft.mean).toFixed(0),
        over((s) => s.ttft.p50).toFixed(0),
        over((s) => s.ttft.p90).toFixed(0),
        over((s) => s.ttft.p99).toFixed(0),
        over((s) => s.tpot.mean).toFixed(1),
        over((s) => s.tpot.p99).toFixed(1),
        over((s) => s.e2e.mean).toFixed(0),
        over((s) => s.e2e.p99).toFixed(0),
        `${(100 * over((s) => s.goodput)).toFixed(1)} %`,
        `${(100 * over((s) => s.hitRatio)).toFixed(1)} %`,
        over((s) => s.imbalance).toFixed(2),
        over((s) => s.preemptions).toFixed(0),
      ];
      return [cells];
    });
  });
  return table(head, rows);
}

/** Change against the reference, all policies side by side; – where nothing was run. */
export function matrix(results: Results): string {
  const { comparisons, suite } = results;
  const workloads = workloadsOf(results);
  const policies = policiesOf(results).filter((policy) => policy !== suite.reference);
  const rows = policies.map((policy) => {
    const changes = workloads.map((workload) => row(comparisons, workload, policy)?.change);
    const known = changes.flatMap((each) => (each === undefined ? [] : [Math.log1p(each)]));
    const total = Math.exp(mean(known)) - 1;
    const cells = changes.map((each) => (each === undefined ? '–' : percent(each).replace(' %', '')));
    return {
      total,
      cells: [policy, ...cells, `${percent(total).replace(' %', '')}${known.length < workloads.length ? '*' : ''}`],
    };
  });
  const sorted = rows.sort((a, b) => a.total - b.total).map(({ cells }) => cells);
  return table([`% against ${suite.reference}`, ...workloads, 'mean'], sorted);
}

/** Every policy of each workload, the one with the lowest cost first. */
export function everyPolicy(results: Results): string {
  const { comparisons, runs, suite } = results;
  const rows = workloadsOf(results).flatMap((workload) => {
    const own = comparisons.filter((each) => each.workload === workload).sort((a, b) => a.cost - b.cost);
    return own.map((each, at) => {
      const of = runs.filter((run) => run.workload === workload && run.policy === each.policy);
      const over = (read: (summary: RunResult['summary']) => number) => mean(of.map(({ summary }) => read(summary)));
      return [
        at === 0 ? workload : '',
        each.policy,
        each.cost.toFixed(3),
        each.uncapped.toFixed(3),
        each.policy === suite.reference ? 'reference' : change(each),
        `×${each.ttftP99Ratio.toFixed(2)}`,
        `${(100 * over((s) => s.goodput)).toFixed(1)} %`,
        `${(100 * over((s) => s.hitRatio)).toFixed(1)} %`,
      ];
    });
  });
  const head = ['workload', 'policy', 'cost', 'uncapped', `against ${suite.reference}`];
  return table([...head, 'TTFT p99', 'goodput', 'hits'], rows);
}

/** Learned costs on pairs of workloads, the second with hardware classes. */
export function classes(results: Results): string {
  const { comparisons, suite } = results;
  const rows = workloadsOf(results).flatMap((workload, at, all) => {
    if (at % 2 !== 0) return [];
    const [without, withClasses] = [workload, all[at + 1]!].map((each) => row(comparisons, each, 'learned')!);
    const ratios = withClasses!.costs.map((cost, seed) => Math.log(cost / without!.costs[seed]!));
    const { low, high } = interval(ratios, workload);
    const [by, from, to] = [mean(ratios), low, high].map((value) => percent(Math.expm1(value)));
    return [
      [
        all[at + 1]!,
        row(comparisons, workload, suite.reference)!.cost.toFixed(3),
        percent(without!.change),
        percent(withClasses!.change),
        `${by} (${from} … ${to})`,
        `${without!.ttftP99.toFixed(0)} → ${withClasses!.ttftP99.toFixed(0)} ms`,
      ],
    ];
  });
  return table(['fleet', 'default', 'without classes', 'with classes', 'change by classes', 'TTFT p99'], rows);
}

export function speeds({ speeds: all }: Results): string {
  const rows = all
    .filter(({ policy }) => policy === 'learned')
    .map(({ workload, part, steady, seconds }) => [
      workload,
      part,
      percent(Math.exp(steady) - 1),
      seconds === undefined ? (steady > -0.02 ? 'no gain to reach' : 'not within the part') : `${seconds.toFixed(0)} s`,
    ]);
  return table(['shift', 'part', 'learned against default, second half', '90 % of it after'], rows);
}

export function conditions(results: Results): string {
  const { comparisons, suite } = results;
  const [base] = workloadsOf(results);
  const policies = policiesOf(results);
  const others = policies.filter((policy) => !['default', 'learned', 'guarded'].includes(policy));
  const times = (workload: string, policy: string) =>
    `×${(row(comparisons, workload, policy)!.cost / row(comparisons, base!, policy)!.cost).toFixed(2)}`;
  const rows = workloadsOf(results).map((workload) => [
    workload,
    row(comparisons, workload, suite.reference)!.cost.toFixed(3),
    change(row(comparisons, workload, 'learned')!),
    policies.includes('guarded') ? change(row(comparisons, workload, 'guarded')!) : '',
    times(workload, 'default'),
    times(workload, 'learned'),
    ...others.map((policy) => percent(row(comparisons, workload, policy)!.change)),
  ]);
  return table(['condition', 'default', 'learned', 'guarded', 'default ×', 'learned ×', ...others], rows);
}

export function guard(results: Results): string {
  const { comparisons, runs, suite } = results;
  const policies = policiesOf(results).filter((policy) => policy !== suite.reference);
  const first = (workload: string, state: string) => {
    const times = runs
      .filter((run) => run.workload === workload && run.policy === 'guarded')
      .map(({ transitions }) => transitions?.find(({ to }) => to === state)?.timeMs);
    const known = times.flatMap((time) => time ?? []);
    if (known.length === 0) return 'never';
    const seconds = (mean(known) / 1e3).toFixed(0);
    return known.length === times.length ? `${seconds} s` : `${seconds} s (${known.length} of ${times.length})`;
  };
  const fallbacks = (workload: string) =>
    mean(
      runs
        .filter((run) => run.workload === workload && run.policy === 'guarded')
        .map(({ transitions }) => transitions?.filter(({ to }) => to === 'fallback').length ?? 0),
    ).toFixed(1);
  const rows = workloadsOf(results).map((workload) => [
    workload,
    row(comparisons, workload, suite.reference)!.cost.toFixed(3),
    ...policies.map((policy) => change(row(comparisons, workload, policy)!)),
    first(workload, 'active'),
    fallbacks(workload),
  ]);
  return table(['half an hour of', 'default', ...policies, 'first active', 'fallbacks'], rows);
}

export function truths(results: Results): string {
  const workloads = workloadsOf(results);
  const policies = policiesOf(results);
  const rows = workloads.flatMap((workload) => {
    const other = `${workload} by the table`;
    if (!workloads.includes(other)) return [];
    const cost = (of: string) => policies.map((policy) => row(results.comparisons, of, policy)!.cost);
    const [learned, tabled] = [workload, other].map((of) => percent(row(results.comparisons, of, 'learned')!.change));
    return [[workload, kendall(cost(workload), cost(other)).toFixed(2), learned!, tabled!]];
  });
  return table(['workload', "Kendall's τ-b of the policies", 'learned against default, formula', 'table'], rows);
}

export function capacity({ capacities = [] }: Results): string {
  const policies = unique(capacities.map(({ policy }) => policy));
  const rows = unique(capacities.map(({ workload }) => workload)).map((workload) => [
    workload,
    ...policies.map((name) => {
      const { rate, change: by, low, high } = capacities.find((c) => c.workload === workload && c.policy === name)!;
      return name === 'default'
        ? rate.toFixed(2)
        : `${rate.toFixed(2)}, ${percent(by)} (${percent(low)} … ${percent(high)})`;
    }),
  ]);
  return table(['requests/s with 90 % within both objectives', ...policies], rows);
}
