import type { CellResult } from '../suite/cell.js';
import type { Comparison } from '../suite/comparison.js';
import type { Suite, SuiteWorkload } from '../suite/schema.js';
import { regretFigure, sharesFigure, timelineFigure, variantsFigure } from './figures.js';
import { style } from './style.js';
import { escaped, percent } from './svg.js';

/** Lines in one figure that the eye can follow. */
const MOST_LINES = 6;

/** Everything of a sweep as one HTML page that needs nothing else. */
export function htmlReport(
  title: string,
  suite: Suite,
  results: readonly CellResult[],
  comparisons: readonly Comparison[],
): string {
  const workloads = [...new Set(results.map(({ workload }) => workload))];
  const policies = byMeanRegret(comparisons, suite);
  const sections = [
    facts(suite, results, workloads),
    heatTable(comparisons, workloads, policies, suite),
    regretSection(comparisons, policies),
    ...timelineSections(suite, results, workloads, policies),
    ...variantSections(suite, comparisons, workloads, policies),
    changeTable(comparisons, workloads, suite),
    metricsTables(results, workloads, policies),
    suiteSection(suite),
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${escaped(title)} · Pointsman simulation</title><style>${style}</style></head>
<body><main><h1>${escaped(title)}</h1>
<p class="soft">Policies against each other on a simulated fleet, decided by the picker's own core. Cost = TTFT / ${suite.slo.ttftMs} ms + time per output token / ${suite.slo.tpotMs} ms, mean over the requests; lower is better.</p>
${sections.join('\n')}
</main></body></html>
`;
}

function byMeanRegret(comparisons: readonly Comparison[], suite: Suite): string[] {
  const regret = (name: string) => mean(comparisons.filter(({ policy }) => policy === name).map((row) => row.regret));
  return suite.policies.map(({ name }) => name).sort((a, b) => regret(a) - regret(b));
}

function facts(suite: Suite, results: readonly CellResult[], workloads: readonly string[]): string {
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
  return `${count} × ${fleet.constants === undefined ? (fleet.hardware ?? 'qwen3-32b-h100-tp2') : 'own engine'}`;
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
    const hint = `cost ${row.cost.toFixed(3)}; against ${suite.reference} ${percent(row.change)} [${percent(row.low)}, ${percent(row.high)}]`;
    return `<td${best} title="${escaped(hint)}" style="background:rgba(var(--heat),${(0.75 * strength).toFixed(2)})">${row.regret === 0 ? row.cost.toFixed(3) : percent(row.regret)}</td>`;
  };
  const rows = workloads.map((workload) => {
    const cells = policies.map((policy) => cell(find(comparisons, workload, policy))).join('');
    return `<tr><td>${escaped(workload)}</td>${cells}</tr>`;
  });
  const means = policies.map(
    (policy) => `<td>${percent(mean(comparisons.filter((r) => r.policy === policy).map((r) => r.regret)))}</td>`,
  );
  return `<h2>Who is best where</h2>
<p>The best policy of each workload shows its cost; the others show how much dearer they are. Policies stand in the order of their mean.</p>
<div class="card"><table class="heat"><thead><tr><th>workload</th>${head}</tr></thead><tbody>${rows.join('')}<tr><td>mean</td>${means.join('')}</tr></tbody></table></div>`;
}

function regretSection(comparisons: readonly Comparison[], policies: readonly string[]): string {
  return `<h2>How wrong a choice can be</h2>
<p>A dot per workload: how much dearer the policy is than the best one there. The bar is the mean; policies stand in the order of their worst workload.</p>
<div class="card">${regretFigure(comparisons, policies)}</div>`;
}

/** Policies worth a line: the best ones, and always the reference. */
function lines(policies: readonly string[], suite: Suite): string[] {
  const best = policies.slice(0, MOST_LINES);
  return best.includes(suite.reference) ? best : [...best.slice(0, MOST_LINES - 1), suite.reference];
}

function timelineSections(
  suite: Suite,
  results: readonly CellResult[],
  workloads: readonly string[],
  policies: readonly string[],
): string[] {
  return workloads.flatMap((name) => {
    const workload = suite.workloads.find((candidate) => candidate.name === name)!;
    if (workload.kind !== 'sequence') return [];
    const { parts } = workload as Extract<SuiteWorkload, { kind: 'sequence' }>;
    const named = parts.map(({ workload: part, seconds }) => ({ name: part, seconds }));
    const figure = timelineFigure(results, name, lines(policies, suite), named);
    return [
      `<h2>When traffic shifts: ${escaped(name)}</h2><p>Cost by time of arrival, mean over the seeds.</p><div class="card">${figure}</div>`,
      ...learnedSections(suite, results, name, named),
    ];
  });
}

/** Effective weights of every policy that learns, in the first seed. */
function learnedSections(
  suite: Suite,
  results: readonly CellResult[],
  workload: string,
  parts: readonly { readonly name: string; readonly seconds: number }[],
): string[] {
  return results
    .filter((run) => run.workload === workload && run.seed === suite.firstSeed && run.learning !== undefined)
    .map(
      ({ policy, learning }) =>
        `<h3>What decided under ${escaped(policy)}</h3><p class="note">Share of each term of the learned cost in telling endpoints apart, seed ${suite.firstSeed}.</p><div class="card">${sharesFigure(learning!, workload, parts)}</div>`,
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
      `<h2>The same traffic under other conditions: ${escaped(base)}</h2><p>Cost of each variant over the cost of ${escaped(base)} itself, policy by policy.</p><div class="card">${variantsFigure(comparisons, base, variants, lines(policies, suite))}</div>`,
    ];
  });
}

function changeTable(comparisons: readonly Comparison[], workloads: readonly string[], suite: Suite): string {
  const rows = workloads.flatMap((workload) =>
    comparisons
      .filter((row) => row.workload === workload && row.verdict !== 'reference')
      .map(
        (row) =>
          `<tr><td>${escaped(workload)}</td><td style="text-align:left">${escaped(row.policy)}</td><td>${percent(row.change)}</td><td>${percent(row.low)} … ${percent(row.high)}</td><td class="${row.verdict}">${row.verdict}</td><td>${row.costs.map((cost) => cost.toFixed(3)).join('&ensp;')}</td></tr>`,
      ),
  );
  return `<h2>Against ${escaped(suite.reference)}</h2>
<p>Mean of the paired log ratios over ${suite.seeds} seeds with its 95 % bootstrap interval. A tie is an interval within ±2 % or over zero.</p>
<details><summary>all pairs, with the cost of every seed</summary><div class="card"><table><thead><tr><th>workload</th><th style="text-align:left">policy</th><th>change</th><th>95 % interval</th><th>verdict</th><th>cost by seed</th></tr></thead><tbody>${rows.join('')}</tbody></table></div></details>`;
}

function metricsTables(
  results: readonly CellResult[],
  workloads: readonly string[],
  policies: readonly string[],
): string {
  const head = [
    'policy',
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
      const ms = (read: (summary: (typeof runs)[number]) => number) => over(read).toFixed(0);
      const cells = [
        ms((s) => s.ttft.mean),
        ms((s) => s.ttft.p50),
        ms((s) => s.ttft.p90),
        ms((s) => s.ttft.p99),
        over((s) => s.tpot.mean).toFixed(1),
        over((s) => s.tpot.p90).toFixed(1),
        ms((s) => s.e2e.mean),
        ms((s) => s.e2e.p99),
        `${(100 * over((s) => s.goodput)).toFixed(1)} %`,
        `${(100 * over((s) => s.hitRatio)).toFixed(1)} %`,
        percent(over((s) => s.overBelief)),
        over((s) => s.preemptions).toFixed(0),
        over((s) => s.imbalance).toFixed(2),
        over((s) => s.lost).toFixed(0),
      ];
      return `<tr><td>${escaped(policy)}</td>${cells.map((value) => `<td>${value}</td>`).join('')}</tr>`;
    });
    return `<details><summary>${escaped(workload)}</summary><div class="card"><table><thead><tr>${head.map((h) => `<th>${h}</th>`).join('')}</tr></thead><tbody>${rows.join('')}</tbody></table></div></details>`;
  });
  return `<h2>All metrics</h2><p class="note">Milliseconds, mean over the seeds. Goodput: share of requests that met both objectives. Index off by: cached tokens that the picker expected over those that were there.</p>${tables.join('')}`;
}

function suiteSection(suite: Suite): string {
  return `<h2>The suite</h2><details><summary>with all defaults, as it ran</summary><div class="card"><pre class="note">${escaped(JSON.stringify(suite, null, 2))}</pre></div></details>`;
}

function find(comparisons: readonly Comparison[], workload: string, policy: string): Comparison {
  return comparisons.find((row) => row.workload === workload && row.policy === policy)!;
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}
