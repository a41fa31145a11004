// Writes the tables of docs/adaptation-results.md from the results of the suites in examples/simulation/:
//   pointsman simulate examples/simulation/NAME.yaml ... --json FOLDER/NAME.json
//   node scripts/adaptation-results.ts FOLDER
// A suite that ran in parts has a file for each, NAME-PART.json: other workloads, or other policies on equal seeds.
//
// Only what stands between the marks of a table is replaced, and only where the folder has the results for it; the
// words around the tables are written by hand.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { AdaptationSpeed } from '../dist/tools/simulator/suite/adaptation-speed.js';
import type { CapacityComparison } from '../dist/tools/simulator/suite/capacity-comparison.js';
import { type Comparison, compare, interval } from '../dist/tools/simulator/suite/comparison.js';
import type { Suite } from '../dist/tools/simulator/suite/schema.js';
import { kendall } from '../dist/tools/simulator/suite/significance.js';
import type { RunResult } from '../dist/tools/simulator/suite/suite-run.js';

/** What `--json` writes. */
interface Results {
  readonly suite: Suite;
  readonly comparisons: readonly Comparison[];
  readonly capacities?: readonly CapacityComparison[];
  readonly speeds: readonly (AdaptationSpeed & { readonly policy: string })[];
  readonly runs: readonly RunResult[];
}

const ORACLE = 'grid-oracle';
/** Policies that learn, or that nobody could run: no rivals with fixed rules. */
const NOT_FIXED = new Set([
  ORACLE,
  'constant-oracle',
  'learned',
  'guarded',
  'projected',
  'shortest-ttft',
  'gorgo',
  'ducb-4',
]);

const percent = (share: number) => {
  const text = Math.abs(100 * share).toFixed(1);
  return `${text === '0.0' ? '±' : share < 0 ? '−' : '+'}${text} %`;
};
/** With interval and verdict where there is more than one seed. */
const change = ({ change: by, low, high, verdict, costs, slowTail }: Comparison) => {
  if (verdict === 'reference') return '';
  const tail = slowTail ? ' ▲' : '';
  return `${costs.length < 2 ? percent(by) : `${percent(by)} (${percent(low)} … ${percent(high)}) ${verdict}`}${tail}`;
};
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
const unique = (values: readonly string[]) => [...new Set(values)];
const workloadsOf = ({ runs }: Results) => unique(runs.map(({ workload }) => workload));
const policiesOf = ({ runs }: Results) => unique(runs.map(({ policy }) => policy));

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function row(comparisons: readonly Comparison[], workload: string, policy: string): Comparison | undefined {
  return comparisons.find((each) => each.workload === workload && each.policy === policy);
}

/** The fixed rule with the lowest mean cost of a workload, in hindsight. */
function bestFixed(comparisons: readonly Comparison[], workload: string): Comparison {
  const own = comparisons.filter((each) => each.workload === workload && !NOT_FIXED.has(each.policy));
  return own.reduce((best, each) => (each.cost < best.cost ? each : best));
}

function facts({ runs }: Results): string {
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

function costs(results: Results): string {
  const { comparisons, suite, runs } = results;
  const against = (reference: string) => compare(runs, { ...suite, reference });
  const toOracle = policiesOf(results).includes(ORACLE) ? against(ORACLE) : undefined;
  const rows = workloadsOf(results).map((workload) => {
    const best = bestFixed(comparisons, workload);
    const learned = row(comparisons, workload, 'learned')!;
    const oracle = toOracle && row(toOracle, workload, 'learned');
    const rivals = comparisons.filter((each) => each.workload === workload && !NOT_FIXED.has(each.policy)).length > 1;
    return [
      workload,
      row(comparisons, workload, suite.reference)!.cost.toFixed(3),
      rivals ? `${best.policy} ${percent(best.change)}${best.slowTail ? ' ▲' : ''}` : '–',
      change(learned),
      ...(oracle === undefined ? [] : [change(oracle)]),
      rivals ? percent(learned.cost / best.cost - 1) : '–',
      percent(learned.uncappedChange),
      `×${learned.ttftP99Ratio.toFixed(2)}`,
      change(row(comparisons, workload, 'guarded')!),
      `${learned.costs.length}`,
    ];
  });
  const head = ['workload', 'default', 'best fixed rule', 'learned against default'];
  const last = ['against best fixed', 'uncapped', 'TTFT p99', 'guarded against default', 'seeds'];
  return table([...head, ...(toOracle === undefined ? [] : ['against grid oracle']), ...last], rows);
}

/** Every policy over all workloads. */
function standing(results: Results): string {
  const { comparisons } = results;
  const workloads = workloadsOf(results);
  const measure = policiesOf(results).includes(ORACLE) ? ORACLE : undefined;
  const base = (workload: string) =>
    measure === undefined ? bestFixed(comparisons, workload).cost : row(comparisons, workload, measure)!.cost;
  const rows = policiesOf(results).map((policy) => {
    const own = workloads.flatMap((workload) => row(comparisons, workload, policy) ?? []);
    const regrets = own.map(({ cost, workload }) => cost / base(workload) - 1);
    const count = (verdict: Comparison['verdict']) => `${own.filter((each) => each.verdict === verdict).length}`;
    const total = Math.exp(mean(own.map(({ change: each }) => Math.log1p(each)))) - 1;
    const worst = regrets.indexOf(Math.max(...regrets));
    return {
      worst: regrets[worst]!,
      cells: [
        policy,
        policy === results.suite.reference ? '' : percent(total),
        percent(mean(regrets)),
        `${percent(regrets[worst]!)} (${own[worst]!.workload})`,
        ...(policy === results.suite.reference
          ? ['', '', '', '', '']
          : [
              ...['win', 'tie', 'open', 'loss'].map((v) => count(v as never)),
              `${own.filter(({ slowTail }) => slowTail).length}`,
            ]),
        `${own.length}`,
      ],
    };
  });
  const sorted = rows.sort((a, b) => a.worst - b.worst).map(({ cells }) => cells);
  const to = measure === undefined ? 'best fixed rule' : 'grid oracle';
  return table(
    [
      'policy',
      'against default',
      `mean regret to the ${to}`,
      'worst',
      'wins',
      'ties',
      'open',
      'losses',
      'slow tails ▲',
      'workloads',
    ],
    sorted,
  );
}

function metrics(results: Results): string {
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
    return unique(['default', best, 'learned', 'guarded']).map((policy) => {
      const own = results.runs.filter((run) => run.workload === workload && run.policy === policy);
      const over = (read: (summary: RunResult['summary']) => number) => mean(own.map(({ summary }) => read(summary)));
      return [
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
    });
  });
  return table(head, rows);
}

/** Change against the reference, all policies side by side; – where nothing was run. */
function matrix(results: Results): string {
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
function everyPolicy(results: Results): string {
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
function classes(results: Results): string {
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

function speeds({ speeds: all }: Results): string {
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

function settled({ runs }: Results): string {
  const rows = unique(runs.map(({ workload }) => workload)).flatMap((workload) => {
    const labels = runs
      .filter((run) => run.workload === workload && run.policy === 'learned')
      .flatMap(({ settledAfter }) => settledAfter ?? [])
      .sort((a, b) => a - b);
    if (labels.length === 0) return [];
    return [[workload, `${labels[(labels.length - 1) >> 1]}`, `${labels[0]} … ${labels.at(-1)}`]];
  });
  return table(['workload', 'labels (median)', 'range over the seeds'], rows);
}

function conditions(results: Results): string {
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

function guard(results: Results): string {
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

function truths(results: Results): string {
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

function capacity({ capacities = [] }: Results): string {
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

type Make = (results: Results) => string;

/** The table that a suite is named after, and its facts. */
function ofSuite(suite: string, make: Make): Readonly<Record<string, Make>> {
  return { [suite]: make, [`${suite}-facts`]: facts };
}

/** Tables of each suite, by their names in the document. */
const TABLES: Readonly<Record<string, Readonly<Record<string, Make>>>> = {
  protocol: { facts, costs, standing, metrics, speeds, settled },
  agents: ofSuite('agents', everyPolicy),
  oracle: ofSuite('oracle', everyPolicy),
  saturation: ofSuite('saturation', everyPolicy),
  classes: ofSuite('classes', classes),
  rivals: { ...ofSuite('rivals', matrix), 'rivals-standing': standing },
  conditions: ofSuite('conditions', conditions),
  guard: ofSuite('guard', guard),
  prior: ofSuite('prior', guard),
  ablations: ofSuite('ablations', matrix),
  levels: ofSuite('levels', matrix),
  truths: ofSuite('truths', truths),
  capacity: ofSuite('capacity', capacity),
};

/** Results of a suite from the files of its parts; undefined when there is none. */
function resultsIn(folder: string, suite: string): Results | undefined {
  const parts = readdirSync(folder)
    .filter((name) => name === `${suite}.json` || (name.startsWith(`${suite}-`) && name.endsWith('.json')))
    .sort()
    .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Results);
  const [first] = parts;
  if (first === undefined || parts.length === 1) return first;
  const cells = new Map(
    parts.flatMap(({ runs }) => runs.map((run) => [`${run.workload} ${run.policy} ${run.seed}`, run] as const)),
  );
  const order = unique(first.suite.workloads.map(({ name }) => name));
  const runs = [...cells.values()].sort(
    (a, b) => order.indexOf(a.workload) - order.indexOf(b.workload) || a.seed - b.seed,
  );
  const policies = [...new Map(parts.flatMap((part) => part.suite.policies.map((each) => [each.name, each]))).values()];
  const whole = { ...first.suite, policies };
  return {
    ...first,
    suite: whole,
    comparisons: compare(runs, whole),
    runs,
    speeds: parts.flatMap((part) => part.speeds),
  };
}

const folder = process.argv[2];
if (folder === undefined)
  throw new Error('name the folder with the results: node scripts/adaptation-results.ts FOLDER');
const page = resolve(import.meta.dirname, '../docs/adaptation-results.md');
let text = readFileSync(page, 'utf8');
for (const [suite, tables] of Object.entries(TABLES)) {
  const results = resultsIn(folder, suite);
  if (results === undefined) continue;
  for (const [name, make] of Object.entries(tables)) {
    const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
    const [from, to] = [text.indexOf(begin), text.indexOf(end)];
    if (from < 0 || to < from) continue;
    text = `${text.slice(0, from + begin.length)}\n${make(results)}\n${text.slice(to)}`;
    console.log(`${name}: from ${suite}`);
  }
}
writeFileSync(page, text);
