import { adaptationSpeed } from '../suite/adaptation-speed.js';
import { compareCapacity } from '../suite/capacity-comparison.js';
import { type Comparison, SLOW_TAIL } from '../suite/comparison.js';
import type { Suite, SuiteWorkload } from '../suite/schema.js';
import { kendall } from '../suite/significance.js';
import type { RunResult } from '../suite/suite-run.js';
import { clientCells, clientRows } from './client-figures.js';
import { capacityTable, regretCurves, seedDots, tailDots } from './comparison-figures.js';
import { regretFigure, sharesFigure, timelineFigure, variantsFigure } from './figures.js';
import { STYLE } from './style.js';
import { escaped, percent } from './svg.js';

/** Lines in one figure that the eye can follow. */
const LINES_MAX = 6;

/** Report of a sweep as one HTML page that needs no other file. */
export function htmlReport(
  title: string,
  suite: Suite,
  results: readonly RunResult[],
  comparisons: readonly Comparison[],
): string {
  const workloads = [...new Set(results.map(({ workload }) => workload))];
  const policies = byMeanRegret(comparisons, suite);
  const sections = [
    facts(suite, results, workloads),
    ...(suite.capacity === undefined
      ? [
          heatTable(comparisons, workloads, policies, suite),
          firstTokenSection(results, comparisons, workloads, policies, suite),
          regretSection(comparisons, policies, suite),
          ...timelineSections(suite, results, workloads, policies),
          ...variantSections(suite, comparisons, workloads, policies),
          changeTable(comparisons, workloads, policies, suite),
        ]
      : [capacitySection(suite, results)]),
    metricsTables(results, workloads, policies),
    clientSection(results, suite),
    suiteSection(suite),
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${escaped(title)} · Pointsman simulation</title><style>${STYLE}</style></head>
<body><main><h1>${escaped(title)}</h1>
<p class="soft">Policies against each other on a simulated fleet, decided by the picker's own core. \
Cost = TTFT / ${suite.slo.ttftMs} ms + time per output token / ${suite.slo.tpotMs} ms, mean over the \
requests; lower is better.</p>
${sections.join('\n')}
</main></body></html>
`;
}

function byMeanRegret(comparisons: readonly Comparison[], suite: Suite): string[] {
  const regret = (name: string) => mean(comparisons.filter(({ policy }) => policy === name).map((row) => row.regret));
  return suite.policies.map(({ name }) => name).sort((a, b) => regret(a) - regret(b));
}

function facts(suite: Suite, results: readonly RunResult[], workloads: readonly string[]): string {
  const requests = results.reduce((sum, { simulated }) => sum + simulated, 0);
  const took = results.reduce((sum, { tookMs }) => sum + tookMs, 0) / 1e3;
  const fact = (value: string, what: string) => `<div class="fact"><b>${value}</b>${what}</div>`;
  return `<div class="facts">${[
    fact(`${workloads.length} × ${suite.policies.length} × ${suite.seeds}`, 'workloads × policies × seeds'),
    fact(requests.toLocaleString('en'), 'simulated requests'),
    fact(Math.round(requests / Math.max(0.001, took)).toLocaleString('en'), 'requests per second of one core'),
    fact(escaped(fleetText(suite)), 'fleet'),
  ].join('')}</div>`;
}

function fleetText({ fleet }: Suite): string {
  const count = fleet.groups.length === 0 ? fleet.endpoints : fleet.groups.reduce((sum, group) => sum + group.count, 0);
  return (
    `${count} × ` +
    (fleet.constants === undefined && fleet.recipe === undefined
      ? (fleet.hardware ?? 'qwen3-32b-h100-tp2')
      : 'own engine')
  );
}

function heatTable(
  comparisons: readonly Comparison[],
  workloads: readonly string[],
  policies: readonly string[],
  suite: Suite,
): string {
  const head = policies
    .map((p) => `<th${p === suite.reference ? ' class="reference"' : ''}>${escaped(p)}</th>`)
    .join('');
  const cell = (row: Comparison) => {
    // Full colour at twice the cost of the best.
    const strength = Math.min(1, Math.max(0, Math.log2(1 + row.regret)));
    const best = row.regret === 0 ? ' class="best"' : '';
    const hint =
      `cost ${row.cost.toFixed(3)}, uncapped ${row.uncapped.toFixed(3)}, TTFT p99 ${row.ttftP99.toFixed(0)} ms; ` +
      `against ${suite.reference} ${percent(row.change)} [${percent(row.low)}, ${percent(row.high)}], p99 ` +
      `×${row.ttftP99Ratio.toFixed(2)}`;
    return (
      `<td${best} title="${escaped(hint)}" ` +
      `style="background:rgba(var(--heat),${(0.75 * strength).toFixed(2)})">` +
      `${row.regret === 0 ? row.cost.toFixed(3) : percent(row.regret)}${tailMark(row)}</td>`
    );
  };
  const rows = workloads.map((workload) => {
    const cells = policies.map((policy) => cell(find(comparisons, workload, policy))).join('');
    return `<tr><td>${escaped(workload)}</td>${cells}</tr>`;
  });
  const means = policies.map(
    (policy) => `<td>${percent(mean(comparisons.filter((r) => r.policy === policy).map((r) => r.regret)))}</td>`,
  );
  return `<h2>Who is best where</h2>
<p>The best policy of each workload shows its cost; the others show how much dearer they are. Policies stand in the \
order of their mean. ▲: the slowest hundredth waits ${SLOW_TAIL} × as long for its first token as \
under ${escaped(suite.reference)}, or longer, whatever the mean says.</p>
<div class="card"><table class="heat"><thead><tr><th>workload</th>${head}</tr></thead>\
<tbody>${rows.join('')}<tr><td>mean</td>${means.join('')}</tr></tbody></table></div>`;
}

/** Time to first token of the policies worth a line: mean, slowest hundredth, and its change against the reference. */
function firstTokenSection(
  results: readonly RunResult[],
  comparisons: readonly Comparison[],
  workloads: readonly string[],
  policies: readonly string[],
  suite: Suite,
): string {
  const shown = lines(policies, suite);
  const rows = workloads.flatMap((workload) => [
    `<tr><th colspan="4" scope="rowgroup">${escaped(workload)}</th></tr>`,
    ...shown.map((policy) => {
      const row = find(comparisons, workload, policy);
      const runs = servedRuns(results, workload, policy);
      const change = row.verdict === 'reference' || row.ttftP99 === 0 ? NOTHING : percent(row.ttftP99Ratio - 1);
      const ttft = [runs.map(({ ttft }) => ttft.mean), runs.map(({ ttft }) => ttft.p99)];
      const cells = ttft.map((values) => `<td>${values.length === 0 ? NOTHING : mean(values).toFixed(0)}</td>`);
      return `<tr><td>${escaped(policy)}</td>${cells.join('')}<td>${change}${tailMark(row)}</td></tr>`;
    }),
  ]);
  const compared = shown.filter((policy) => policy !== suite.reference);
  const figure =
    compared.length === 0
      ? ''
      : `<div class="card">${tailDots(comparisons, workloads, compared, suite.reference)}</div>`;
  return `<h2>Time to first token</h2>
<p>Milliseconds, mean over the seeds; p99 is the slowest hundredth. Left of ${escaped(suite.reference)} is faster.</p>
${figure}<div class="card"><table><thead><tr><th>policy</th><th>TTFT mean</th><th>TTFT p99</th><th>p99 \
change</th></tr></thead><tbody>${rows.join('')}</tbody></table></div>`;
}

/** Shown where there was nothing to measure. */
const NOTHING = '–';

/** Summaries of the runs in which anything was served. */
function servedRuns(results: readonly RunResult[], workload: string, policy: string) {
  return results
    .filter((run) => run.workload === workload && run.policy === policy)
    .map(({ summary }) => summary)
    .filter(({ requests, lost }) => requests > lost);
}

function regretSection(comparisons: readonly Comparison[], policies: readonly string[], suite: Suite): string {
  return `<h2>How wrong a choice can be</h2>
<p>A dot per workload: how much dearer the policy is than the best one there. The bar is the mean; \
policies stand in the order of their worst workload.</p>
<div class="card">${regretFigure(comparisons, policies)}</div>
<p>The same as a distribution: on what share of the workloads a policy is within how much of the best.</p>
<div class="card">${regretCurves(comparisons, lines(policies, suite))}</div>`;
}

function capacitySection(suite: Suite, results: readonly RunResult[]): string {
  return `<h2>How much load each policy carries</h2>
<p>Requests per second at which ${100 * suite.capacity!.goodput} % of the requests still met both objectives, \
found by bisection; mean over ${suite.seeds} seeds, and the change against ${escaped(suite.reference)} with \
its 95 % interval.</p>
<div class="card">${capacityTable(compareCapacity(results, suite), suite.reference)}</div>`;
}

/** Policies worth a line: the best ones, and always the reference. */
function lines(policies: readonly string[], suite: Suite): string[] {
  const best = policies.slice(0, LINES_MAX);
  return best.includes(suite.reference) ? best : [...best.slice(0, LINES_MAX - 1), suite.reference];
}

function timelineSections(
  suite: Suite,
  results: readonly RunResult[],
  workloads: readonly string[],
  policies: readonly string[],
): string[] {
  return workloads.flatMap((name) => {
    const workload = suite.workloads.find((candidate) => candidate.name === name)!;
    if (workload.kind !== 'sequence') return [];
    const { parts } = workload as Extract<SuiteWorkload, { kind: 'sequence' }>;
    const named = parts.map(({ workload: part, seconds }) => ({ name: part, seconds }));
    const shown = lines(policies, suite);
    const figure = timelineFigure(results, name, shown, named);
    return [
      `<h2>When traffic shifts: ${escaped(name)}</h2><p>Cost by time of arrival, mean over the seeds.</p><div ` +
        `class="card">${figure}</div>`,
      speedTable(suite, results, name, shown),
      ...learnedSections(suite, results, name, named, shown),
    ];
  });
}

/** Time in which the policies that learn had their gain after every shift. */
function speedTable(
  suite: Suite,
  results: readonly RunResult[],
  workload: string,
  policies: readonly string[],
): string {
  const learning = policies.filter((policy) => results.some((run) => run.policy === policy && run.learning));
  if (learning.length === 0) return '';
  const rows = learning.flatMap((policy) =>
    adaptationSpeed(results, suite, policy)
      .filter((speed) => speed.workload === workload)
      .map(({ part, steady, seconds }) => {
        const reached = seconds === undefined ? '–' : `${seconds.toFixed(0)} s`;
        return (
          `<tr><td>${escaped(policy)}</td><td>${escaped(part)}</td><td>${percent(Math.exp(steady) - 1)}</td>` +
          `<td>${reached}</td></tr>`
        );
      }),
  );
  return (
    `<h3>How soon</h3><p class="note">Change of the cost against ${escaped(suite.reference)} in the second half of ` +
    'each part, and the time after its beginning at which a span of 30 s first had 90 % of it. Without a gain of 2 % ' +
    'there is nothing to reach.</p><div class="card"><table><thead><tr><th>policy</th><th>part</th><th>steady ' +
    `change</th><th>reached after</th></tr></thead><tbody>${rows.join('')}</tbody></table></div>`
  );
}

/** Effective weights of every policy shown that learns, in the first seed. */
function learnedSections(
  suite: Suite,
  results: readonly RunResult[],
  workload: string,
  parts: readonly { readonly name: string; readonly seconds: number }[],
  policies: readonly string[],
): string[] {
  return results
    .filter((run) => run.workload === workload && run.seed === suite.firstSeed && run.learning !== undefined)
    .filter(({ policy }) => policies.includes(policy))
    .map(
      ({ policy, learning }) =>
        `<h3>What decided under ${escaped(policy)}</h3><p class="note">Share of each term of the learned cost in ` +
        `telling endpoints apart, seed ${suite.firstSeed}.</p><div ` +
        `class="card">${sharesFigure(learning!, workload, parts)}</div>`,
    );
}

function variantSections(
  suite: Suite,
  comparisons: readonly Comparison[],
  workloads: readonly string[],
  policies: readonly string[],
): string[] {
  return workloads.flatMap((base) => {
    const variants = suite.workloads
      .filter((w) => w.kind === 'variant' && (w as Extract<SuiteWorkload, { kind: 'variant' }>).of === base)
      .map(({ name }) => name)
      .filter((name) => workloads.includes(name));
    if (variants.length === 0) return [];
    return [
      `<h2>The same traffic under other conditions: ${escaped(base)}</h2><p>Cost of each variant over the cost of ` +
        `${escaped(base)} itself, policy by policy.</p><div ` +
        `class="card">${variantsFigure(comparisons, base, variants, lines(policies, suite))}</div>` +
        agreements(comparisons, base, variants, policies),
    ];
  });
}

/** Extent to which a variant ranks the policies as its base does. */
function agreements(
  comparisons: readonly Comparison[],
  base: string,
  variants: readonly string[],
  policies: readonly string[],
): string {
  if (policies.length < 3) return '';
  const costs = (workload: string) => policies.map((policy) => find(comparisons, workload, policy).cost);
  const texts = variants.map((variant) => `${escaped(variant)} ${kendall(costs(base), costs(variant)).toFixed(2)}`);
  return (
    `<p class="note">Rank agreement of the policies with ${escaped(base)} (Kendall's τ-b, 1 = the same order): ` +
    `${texts.join(' · ')}.</p>`
  );
}

/** Policies that are shown seed by seed. */
const SHOWN_MAX = 4;

function changeTable(
  comparisons: readonly Comparison[],
  workloads: readonly string[],
  policies: readonly string[],
  suite: Suite,
): string {
  const shown = policies.filter((policy) => policy !== suite.reference).slice(0, SHOWN_MAX);
  const dots =
    shown.length === 0 ? '' : `<div class="card">${seedDots(comparisons, workloads, shown, suite.reference)}</div>`;
  const rows = workloads.flatMap((workload) =>
    comparisons
      .filter((row) => row.workload === workload && row.verdict !== 'reference')
      .map(
        (row) =>
          `<tr><td>${escaped(workload)}</td><td ` +
          `style="text-align:left">${escaped(row.policy)}</td><td>${percent(row.change)}</td>` +
          `<td>${percent(row.low)} … ${percent(row.high)}</td><td class="${row.verdict}">${row.verdict}</td>` +
          `<td>${row.uncapped.toFixed(3)}</td><td>${percent(row.uncappedChange)}</td>` +
          `<td>${row.ttftP99.toFixed(0)}</td><td>×${row.ttftP99Ratio.toFixed(2)}${tailMark(row)}</td>` +
          `<td>${row.costs.map((cost) => cost.toFixed(3)).join('&ensp;')}</td></tr>`,
      ),
  );
  return `<h2>Against ${escaped(suite.reference)}</h2>
<p>Mean of the paired log ratios over ${suite.seeds} seeds with its 95 % bootstrap interval. Tie: the interval lies \
within ±2 %. Win or loss: it lies on one side, and the paired t-test agrees after Holm's correction for the number \
of workloads. Open: neither. The uncapped cost leaves out the bound of 20 on each part of a request.</p>
${verdictCounts(comparisons, policies, suite)}${dots}
<details><summary>all pairs, with the cost of every seed</summary><div class="card"><table><thead>\
<tr><th>workload</th><th style="text-align:left">policy</th><th>change</th><th>95 % interval</th>\
<th>verdict</th><th>uncapped cost</th><th>change</th><th>TTFT p99, ms</th><th>of the reference</th><th>cost by \
seed</th></tr></thead><tbody>${rows.join('')}</tbody></table></div></details>`;
}

function verdictCounts(comparisons: readonly Comparison[], policies: readonly string[], suite: Suite): string {
  const kinds = ['win', 'tie', 'open', 'loss'] as const;
  const rows = policies
    .filter((policy) => policy !== suite.reference)
    .map((policy) => {
      const own = comparisons.filter((row) => row.policy === policy);
      const counts = kinds.map((kind) => `<td>${own.filter(({ verdict }) => verdict === kind).length}</td>`);
      const tails = `<td>${own.filter(({ slowTail }) => slowTail).length}</td>`;
      return `<tr><td>${escaped(policy)}</td>${counts.join('')}${tails}</tr>`;
    });
  const head = ['wins', 'ties', 'open', 'losses', 'slow tails ▲'].map((name) => `<th>${name}</th>`).join('');
  return (
    '<div ' +
    `class="card"><table><thead><tr><th>policy</th>${head}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`
  );
}

function metricsTables(
  results: readonly RunResult[],
  workloads: readonly string[],
  policies: readonly string[],
): string {
  const head = [
    'policy',
    'cost',
    'uncapped',
    'TTFT mean',
    'p50',
    'p90',
    'p99',
    'TPOT mean',
    'p90',
    'E2E mean',
    'p99',
    'goodput',
    'cache hits',
    'index off by',
    'preemptions',
    'imbalance',
    'lost',
  ];
  const tables = workloads.map((workload) => {
    const rows = policies.map((policy) => {
      const runs = results
        .filter((run) => run.workload === workload && run.policy === policy)
        .map(({ summary }) => summary);
      const over = (read: (summary: (typeof runs)[number]) => number) => mean(runs.map(read));
      const served = servedRuns(results, workload, policy);
      const times = (read: (summary: (typeof runs)[number]) => number, digits: number) =>
        served.length === 0 ? NOTHING : mean(served.map(read)).toFixed(digits);
      const ms = (read: (summary: (typeof runs)[number]) => number) => times(read, 0);
      const cells = [
        over((s) => s.cost).toFixed(3),
        over((s) => s.uncappedCost).toFixed(3),
        ms((s) => s.ttft.mean),
        ms((s) => s.ttft.p50),
        ms((s) => s.ttft.p90),
        ms((s) => s.ttft.p99),
        times((s) => s.tpot.mean, 1),
        times((s) => s.tpot.p90, 1),
        ms((s) => s.e2e.mean),
        ms((s) => s.e2e.p99),
        `${(100 * over((s) => s.goodput)).toFixed(1)} %`,
        `${(100 * over((s) => s.hitRatio)).toFixed(1)} %`,
        overBelief(runs),
        over((s) => s.preemptions).toFixed(0),
        over((s) => s.imbalance).toFixed(2),
        over((s) => s.lost).toFixed(0),
      ];
      return `<tr><td>${escaped(policy)}</td>${cells.map((value) => `<td>${value}</td>`).join('')}</tr>`;
    });
    return (
      `<details><summary>${escaped(workload)}</summary><div ` +
      `class="card"><table><thead><tr>${head.map((h) => `<th>${h}</th>`).join('')}</tr></thead>` +
      `<tbody>${rows.join('')}</tbody></table></div></details>`
    );
  });
  return (
    '<h2>All metrics</h2><p class="note">Milliseconds, mean over the seeds. Goodput: share of requests that met both ' +
    'objectives. Index off by: cached tokens that the picker expected over those that were ' +
    `there.</p>${tables.join('')}`
  );
}

/** Error of the index, over the runs in which anything was cached. */
function overBelief(runs: readonly RunResult['summary'][]): string {
  const known = runs.flatMap((summary) => summary.overBelief ?? []);
  return known.length === 0 ? NOTHING : percent(mean(known));
}

/** What fixed numbers of clients got; '' when no workload has any. */
function clientSection(results: readonly RunResult[], suite: Suite): string {
  const rows = clientRows(results, suite);
  if (rows.length === 0) return '';
  const head = ['workload', 'clients', 'policy', ...clientCells.map(([name]) => name)];
  const cell = (text: string) => `<td>${text}</td>`;
  const lines = rows.map((row) => {
    const numbers = clientCells.map(([, text]) => cell(text(row))).join('');
    return `<tr>${cell(escaped(row.workload))}${cell(`${row.clients}`)}${cell(escaped(row.policy))}${numbers}</tr>`;
  });
  return (
    '<h2>Fixed numbers of clients</h2><p class="note">Turns that ended, behind the warm-up. Progress: time that the ' +
    'finished turns and their pauses would take on an idle fleet, over the time; fairness: Jain’s index of the ' +
    'clients’ progress. Held: requests that waited in the picker’s queues.</p><div class="card"><table><thead><tr>' +
    `${head.map((name) => `<th>${name}</th>`).join('')}</tr></thead><tbody>${lines.join('')}</tbody></table></div>`
  );
}

function suiteSection(suite: Suite): string {
  return (
    '<h2>The suite</h2><details><summary>with all defaults, as it ran</summary><div class="card"><pre ' +
    `class="note">${escaped(JSON.stringify(suite, null, 2))}</pre></div></details>`
  );
}

function tailMark({ slowTail }: Comparison): string {
  return slowTail ? ' <b title="slow tail">▲</b>' : '';
}

function find(comparisons: readonly Comparison[], workload: string, policy: string): Comparison {
  return comparisons.find((row) => row.workload === workload && row.policy === policy)!;
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}
