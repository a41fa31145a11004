import { costTerms } from '../../../src/core/coefficients.js';
import type { Comparison } from '../suite/comparison.js';
import type { RunResult } from '../suite/suite-run.js';
import { hue } from './style.js';
import {
  at,
  type Canvas,
  escaped,
  figure,
  figures,
  linear,
  logarithmic,
  percent,
  rule,
  spaced,
  text,
  ticks,
} from './svg.js';

/**
 * Distance of every policy from the best one of each workload: a dot per workload, policies by their worst. The scale
 * is logarithmic in 1 + regret, so that a policy at ten times the cost still fits.
 */
export function regretFigure(comparisons: readonly Comparison[], policies: readonly string[]): string {
  return figures((canvas) => drawRegret(canvas, comparisons, policies));
}

function drawRegret(canvas: Canvas, comparisons: readonly Comparison[], policies: readonly string[]): string {
  const { width } = canvas;
  const names = canvas.names(150);
  const rows = policies
    .map((policy) => ({ policy, own: comparisons.filter((row) => row.policy === policy) }))
    .map((row) => ({ ...row, worst: Math.max(...row.own.map(({ regret }) => regret)) }))
    .sort((a, b) => a.worst - b.worst);
  const most = Math.max(0.1, ...rows.map(({ worst }) => worst));
  const x = logarithmic([1, 1 + most * 1.05], [names, width - 90]);
  const height = 34 + rows.length * 24;
  const marks = [0, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 50].filter((mark) => mark <= most * 1.05);
  const grid = spaced(marks, (mark) => x(1 + mark), 50).map(
    (mark) =>
      rule(x(1 + mark), 20, x(1 + mark), height - 4) +
      text(x(1 + mark), 14, mark === 0 ? 'best' : percent(mark), 'text-anchor="middle" class="soft"'),
  );
  const lines = rows.map(({ policy, own, worst }, i) => {
    const y = 38 + i * 24;
    const mean = own.reduce((sum, { regret }) => sum + regret, 0) / own.length;
    const dots = own.map(
      ({ workload, regret }) =>
        `<circle cx="${at(x(1 + Math.max(0, regret)))}" cy="${y}" r="5" fill="${hue(0)}" ` +
        `fill-opacity=".5"><title>${escaped(workload)}: ${percent(regret)}</title></circle>`,
    );
    return [
      text(names - 12, y + 4, canvas.fit(policy, names - 12), 'text-anchor="end"'),
      rule(x(1), y, x(1 + worst), y, 'class="axis" stroke-opacity=".45"'),
      ...dots,
      `<path d="M${at(x(1 + mean))} ${y - 8}v16" stroke="var(--c1)" stroke-width="3"><title>mean ` +
        `${percent(mean)}</title></path>`,
      text(width - 84, y + 4, `worst ${percent(worst)}`, 'class="soft"'),
    ].join('');
  });
  return figure(
    width,
    height,
    'Distance to the best policy of each workload, by policy',
    grid.join('') + lines.join(''),
  );
}

interface Line {
  readonly name: string;
  readonly values: readonly (number | null)[];
}

/** Mean over the seeds of each window. */
function meanTimeline(runs: readonly RunResult[]): { readonly windowMs: number; readonly cost: (number | null)[] } {
  const windows = runs[0]!.summary.timeline.cost.length;
  const cost = Array.from({ length: windows }, (_, i) => {
    const known = runs.flatMap(({ summary }) => summary.timeline.cost[i] ?? []);
    return known.length === 0 ? null : known.reduce((a, b) => a + b, 0) / known.length;
  });
  return { windowMs: runs[0]!.summary.timeline.windowMs, cost };
}

/** Cost over the time of arrival, a line per policy, with the borders of the parts. */
export function timelineFigure(
  results: readonly RunResult[],
  workload: string,
  policies: readonly string[],
  parts: readonly { readonly name: string; readonly seconds: number }[],
): string {
  const lines: Line[] = [];
  let windowMs = 1;
  for (const policy of policies) {
    const runs = results.filter((run) => run.workload === workload && run.policy === policy);
    const timeline = meanTimeline(runs);
    windowMs = timeline.windowMs;
    lines.push({ name: policy, values: timeline.cost });
  }
  // Requests that sessions of the last part send after its end are left out.
  const seconds = parts.reduce((sum, part) => sum + part.seconds, 0);
  const windows = Math.ceil((seconds * 1e3) / windowMs);
  const values = lines.flatMap(({ values: own }) => own.slice(0, windows).filter((value) => value !== null));
  return (
    legend(policies) + figures((canvas) => drawTimeline(canvas, { lines, values, windows, windowMs, workload, parts }))
  );
}

interface Timeline {
  readonly lines: readonly Line[];
  /** Every value that is shown. */
  readonly values: readonly number[];
  readonly windows: number;
  readonly windowMs: number;
  readonly workload: string;
  readonly parts: readonly { readonly name: string; readonly seconds: number }[];
}

function drawTimeline(canvas: Canvas, { lines, values, windows, windowMs, workload, parts }: Timeline): string {
  const { width } = canvas;
  const seconds = parts.reduce((sum, part) => sum + part.seconds, 0);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = linear([0, seconds], [40, width - 20]);
  const y = high / low > 8 ? logarithmic([low, high], [300, 40]) : linear([0, high], [300, 40]);
  const levels =
    high / low > 8 ? [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 40].filter((v) => v >= low && v <= high) : ticks(0, high, 4);
  const grid = levels.map(
    (v) =>
      rule(40, y(v), width - 20, y(v)) +
      text(34, y(v) + 4, Number(v.toPrecision(3)).toString(), 'text-anchor="end" class="soft"'),
  );
  const times = ticks(0, seconds, canvas.ticks(8)).map((t) =>
    text(x(t), 320, `${Math.round(t)} s`, 'text-anchor="middle" class="soft"'),
  );
  let start = 0;
  const borders = parts.map(({ name, seconds: own }, i) => {
    const from = start;
    start += own;
    return (
      (from === 0 ? '' : rule(x(from), 4, x(from), 300, 'class="axis" stroke-dasharray="3 3"')) +
      text(x(from) + 6, i % 2 === 0 ? 12 : 26, name, 'class="soft"')
    );
  });
  const drawn = lines.map(
    ({ values: own }, i) =>
      `<path d="${pathOf(own.slice(0, windows), (n) => x(((n + 0.5) * windowMs) / 1e3), y)}" fill="none" ` +
      `stroke="${hue(i)}" stroke-width="1.8" stroke-linejoin="round"/>`,
  );
  return figure(width, 326, `Cost over time of ${workload}`, [...grid, ...times, ...borders, ...drawn].join(''));
}

function pathOf(
  values: readonly (number | null)[],
  x: (index: number) => number,
  y: (value: number) => number,
): string {
  let pen = 'M';
  return values
    .map((value, i) => {
      if (value === null) {
        pen = 'M';
        return '';
      }
      const step = `${pen}${at(x(i))} ${at(y(value))}`;
      pen = 'L';
      return step;
    })
    .join('');
}

export function legend(names: readonly string[]): string {
  const keys = names.map(
    (name, i) => `<span class="item"><span class="key" style="background:${hue(i)}"></span>${escaped(name)}</span> `,
  );
  return `<p class="note">${keys.join('')}</p>`;
}

/** Price of less or older knowledge: a variant's cost over that of the workload it varies, a bar per policy. */
export function variantsFigure(
  comparisons: readonly Comparison[],
  base: string,
  variants: readonly string[],
  policies: readonly string[],
): string {
  const cost = (workload: string, policy: string) =>
    comparisons.find((row) => row.workload === workload && row.policy === policy)!.cost;
  return legend(policies) + figures((canvas) => drawVariants(canvas, base, variants, policies, cost));
}

function drawVariants(
  canvas: Canvas,
  base: string,
  variants: readonly string[],
  policies: readonly string[],
  cost: (workload: string, policy: string) => number,
): string {
  const { width } = canvas;
  const names = canvas.names(240);
  const ratios = variants.flatMap((variant) => policies.map((policy) => cost(variant, policy) / cost(base, policy)));
  const most = Math.max(1.1, ...ratios);
  const x = logarithmic([Math.min(0.9, ...ratios), most], [names, width - 70]);
  const band = 16 * policies.length + 14;
  const height = 26 + variants.length * band;
  const inside = [0.5, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50].filter(
    (mark) => mark <= most && x(mark) >= names,
  );
  const marks = spaced(inside, x, 44);
  const grid = marks.map(
    (mark) => rule(x(mark), 20, x(mark), height) + text(x(mark), 14, `×${mark}`, 'text-anchor="middle" class="soft"'),
  );
  const bars = variants.flatMap((variant, v) => [
    text(names - 12, 26 + v * band + band / 2, canvas.fit(variant, names - 12), 'text-anchor="end"'),
    ...policies.map((policy, p) => {
      const ratio = cost(variant, policy) / cost(base, policy);
      const [from, to] = [Math.min(x(1), x(ratio)), Math.max(x(1), x(ratio))];
      const y = 28 + v * band + p * 16;
      return (
        `<rect x="${at(from)}" y="${y}" width="${at(Math.max(1.5, to - from))}" height="12" rx="2" ` +
        `fill="${hue(p)}"><title>${escaped(policy)}: ` +
        `×${ratio.toFixed(2)}</title></rect>${text(to + 6, y + 10, `×${ratio.toFixed(2)}`, 'class="soft"')}`
      );
    }),
  ]);
  return figure(width, height, `Cost of the variants of ${base}`, [...grid, ...bars].join(''));
}

/** Reasons of the picks over time: the shares of the terms of the learned cost, one above the other. */
export function sharesFigure(
  samples: NonNullable<RunResult['learning']>,
  workload: string,
  parts: readonly { readonly name: string; readonly seconds: number }[],
): string {
  const seconds = parts.reduce((sum, part) => sum + part.seconds, 0);
  const known = samples.filter(({ timeMs, shares }) => shares !== undefined && timeMs <= seconds * 1e3);
  if (known.length < 2) return '<p class="note">Too short: nothing was sampled.</p>';
  return legend(costTerms) + figures((canvas) => drawShares(canvas, known, workload, parts));
}

function drawShares(
  canvas: Canvas,
  known: NonNullable<RunResult['learning']>,
  workload: string,
  parts: readonly { readonly name: string; readonly seconds: number }[],
): string {
  const { width } = canvas;
  const seconds = parts.reduce((sum, part) => sum + part.seconds, 0);
  const x = linear([0, seconds], [46, width - 20]);
  const y = linear([0, 1], [220, 34]);
  const below = new Float64Array(known.length);
  // Terms may tell the same endpoints apart, so that their shares add up to more than one.
  const totals = known.map(({ shares }) => costTerms.reduce((sum, term) => sum + shares![term], 0) || 1);
  const areas = costTerms.map((term, number) => {
    const lower = known.map(({ timeMs }, i) => `${at(x(timeMs / 1e3))} ${at(y(below[i]!))}`);
    for (const [i, { shares }] of known.entries()) below[i]! += shares![term] / totals[i]!;
    const upper = known.map(({ timeMs }, i) => `${at(x(timeMs / 1e3))} ${at(y(below[i]!))}`);
    return (
      `<path d="M${upper.join('L')}L${lower.reverse().join('L')}Z" fill="${hue(number)}" ` +
      `fill-opacity=".8"><title>${term}</title></path>`
    );
  });
  const grid = [0, 0.5, 1].map((v) => text(40, y(v) + 4, `${100 * v} %`, 'text-anchor="end" class="soft"'));
  const times = ticks(0, seconds, canvas.ticks(8)).map((t) =>
    text(x(t), 240, `${Math.round(t)} s`, 'text-anchor="middle" class="soft"'),
  );
  let start = 0;
  const borders = parts.map(({ name, seconds: own }, i) => {
    const from = start;
    start += own;
    return (
      (from === 0 ? '' : rule(x(from), 4, x(from), 220, 'class="axis" stroke-dasharray="3 3"')) +
      text(x(from) + 6, i % 2 === 0 ? 12 : 26, name, 'class="soft"')
    );
  });
  const label = `Shares of the terms of the learned cost over time of ${workload}`;
  return figure(width, 246, label, [...areas, ...grid, ...times, ...borders].join(''));
}
