import type { CapacityComparison } from '../suite/capacity-comparison.js';
import type { Comparison } from '../suite/comparison.js';
import { legend } from './figures.js';
import { hue } from './style.js';
import { at, type Canvas, escaped, figure, figures, linear, logarithmic, percent, rule, spaced, text } from './svg.js';

/** Width of a mark's label. */
const LABEL = 50;

/** On what share of the workloads a policy is within how much of the best one: a curve per policy. */
export function regretCurves(comparisons: readonly Comparison[], policies: readonly string[]): string {
  const own = policies.map((policy) =>
    comparisons
      .filter((row) => row.policy === policy)
      .map(({ regret }) => Math.max(0, regret))
      .sort((a, b) => a - b),
  );
  return legend(policies) + figures((canvas) => drawCurves(canvas, own, policies));
}

function drawCurves(canvas: Canvas, own: readonly (readonly number[])[], policies: readonly string[]): string {
  const { width } = canvas;
  const most = Math.max(0.1, ...own.flat());
  const x = logarithmic([1.002, 1 + most * 1.1], [56, width - 30]);
  const place = (regret: number) => x(Math.max(1.002, 1 + regret));
  const y = linear([0, 1], [250, 34]);
  const marks = [0, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20].filter((mark) => mark <= most * 1.1);
  const grid = spaced(marks, place, LABEL).map(
    (mark) =>
      rule(place(mark), 34, place(mark), 250) +
      text(place(mark), 270, mark === 0 ? 'best' : percent(mark), 'text-anchor="middle" class="soft"'),
  );
  const shares = [0, 0.25, 0.5, 0.75, 1].map(
    (share) =>
      rule(56, y(share), width - 30, y(share)) +
      text(48, y(share) + 4, `${100 * share} %`, 'text-anchor="end" class="soft"'),
  );
  const curves = own.map((regrets, i) => {
    const steps = regrets.map((regret, n) => `H${at(place(regret))}V${at(y((n + 1) / regrets.length))}`);
    return (
      `<path d="M56 250${steps.join('')}H${width - 30}" fill="none" stroke="${hue(i)}" ` +
      `stroke-width="1.8"><title>${escaped(policies[i]!)}</title></path>`
    );
  });
  const label = 'Share of the workloads on which a policy is within so much of the best';
  return figure(width, 280, label, [...shares, ...grid, ...curves].join(''));
}

/** A change of one policy on one workload, with its interval if there is one. */
interface Change {
  readonly workload: string;
  readonly policy: string;
  /** Natural logarithms of the ratios to the reference; infinite ones are shown at the border. */
  readonly value: number;
  readonly low: number;
  readonly high: number;
  readonly seeds: readonly number[];
  readonly title: string;
}

/** Every seed as a dot: change of the cost against the reference, with the mean and its interval. */
export function seedDots(
  comparisons: readonly Comparison[],
  workloads: readonly string[],
  policies: readonly string[],
  reference: string,
): string {
  const changes = rowsOf(comparisons, workloads, policies, reference, (row, base) => ({
    value: Math.log1p(row.change),
    low: Math.log1p(row.low),
    high: Math.log1p(row.high),
    seeds: row.costs.map((cost, i) => Math.log(cost / base.costs[i]!)),
    title: `${percent(row.change)} [${percent(row.low)}, ${percent(row.high)}]`,
  }));
  return changesFigure(changes, workloads, policies, reference, 'Change of the cost by seed');
}

/** Change of the TTFT of the slowest hundredth against the reference, beside that of the cost. */
export function tailDots(
  comparisons: readonly Comparison[],
  workloads: readonly string[],
  policies: readonly string[],
  reference: string,
): string {
  const changes = rowsOf(comparisons, workloads, policies, reference, (row) => {
    const value = row.ttftP99 === 0 ? Number.NaN : Math.log(row.ttftP99Ratio);
    const title = Number.isNaN(value) ? '–' : percent(row.ttftP99Ratio - 1);
    return { value, low: value, high: value, seeds: [value], title };
  });
  return changesFigure(changes, workloads, policies, reference, 'Change of the TTFT p99');
}

function rowsOf(
  comparisons: readonly Comparison[],
  workloads: readonly string[],
  policies: readonly string[],
  reference: string,
  read: (row: Comparison, base: Comparison) => Omit<Change, 'workload' | 'policy'>,
): Change[] {
  const find = (workload: string, policy: string) =>
    comparisons.find((each) => each.workload === workload && each.policy === policy)!;
  return workloads.flatMap((workload) =>
    policies.map((policy) => ({
      workload,
      policy,
      ...read(find(workload, policy), find(workload, reference)),
    })),
  );
}

function changesFigure(
  changes: readonly Change[],
  workloads: readonly string[],
  policies: readonly string[],
  reference: string,
  label: string,
): string {
  return legend(policies) + figures((canvas) => drawChanges(canvas, changes, workloads, policies, reference, label));
}

/** Both signs on one axis: left of the reference is better, right of it is worse. */
function drawChanges(
  canvas: Canvas,
  changes: readonly Change[],
  workloads: readonly string[],
  policies: readonly string[],
  reference: string,
  label: string,
): string {
  const { width } = canvas;
  const names = canvas.names(190);
  const all = changes.flatMap(({ seeds }) => seeds).filter(Number.isFinite);
  const reach = Math.min(2, Math.max(0.1, ...all.map(Math.abs)));
  const x = linear([-reach, reach], [names, width - 30]);
  const inside = (value: number) => x(Math.min(reach, Math.max(-reach, value)));
  const band = 14 * policies.length + 12;
  const height = 30 + workloads.length * band;
  const place = (mark: number) => inside(Math.log1p(mark));
  const within = (mark: number) => Math.abs(Math.log1p(mark)) <= reach;
  const signed = [
    [-0.8, -0.5, -0.25, -0.1],
    [0.1, 0.25, 0.5, 1, 2, 5],
  ].map((side) => side.filter(within));
  // The reference has its label; labels of marks keep clear of it and of each other.
  const clear = 8 + LABEL / 2 + 3 * reference.length;
  const left = spaced([...signed[0]!].reverse(), (mark) => -place(mark), LABEL).filter(
    (mark) => place(0) - place(mark) > clear,
  );
  const right = spaced(signed[1]!, place, LABEL).filter((mark) => place(mark) - place(0) > clear);
  const grid = [...left, 0, ...right].map(
    (mark) =>
      rule(place(mark), 20, place(mark), height, mark === 0 ? 'class="axis"' : 'class="grid"') +
      text(place(mark), 14, mark === 0 ? reference : percent(mark), 'text-anchor="middle" class="soft"'),
  );
  const rows = workloads.flatMap((workload, w) => [
    text(names - 12, 30 + w * band + band / 2, canvas.fit(workload, names - 12), 'text-anchor="end"'),
    ...changes
      .filter((change) => change.workload === workload)
      .map((change) => drawChange(change, policies, 36 + w * band, inside)),
  ]);
  return figure(width, height, label, [...grid, ...rows].join(''));
}

function drawChange(
  change: Change,
  policies: readonly string[],
  top: number,
  inside: (value: number) => number,
): string {
  const p = policies.indexOf(change.policy);
  const y = top + p * 14;
  const title = `<title>${escaped(`${change.workload}, ${change.policy}: ${change.title}`)}</title>`;
  // Text for a comparison without a ratio, since one of the two served nothing.
  if (Number.isNaN(change.value)) return `<g>${title}${text(inside(0) + 6, y + 4, '–', 'class="soft"')}</g>`;
  const dots = change.seeds.map(
    (value) => `<circle cx="${at(inside(value))}" cy="${y}" r="2.6" fill="${hue(p)}" fill-opacity=".55"/>`,
  );
  const [low, high] = [inside(change.low), inside(change.high)];
  return (
    `<g>${title}${dots.join('')}<path d="M${at(low)} ${y}H${at(high)}M${at(inside(change.value))} ${y - 5}v10" ` +
    `stroke="${hue(p)}" stroke-width="2"/></g>`
  );
}

/** Requests per second that each policy carries, with the change against the reference. */
export function capacityTable(rows: readonly CapacityComparison[], reference: string): string {
  const workloads = [...new Set(rows.map(({ workload }) => workload))];
  const policies = [...new Set(rows.map(({ policy }) => policy))];
  const cell = ({ policy, rate, change, low, high }: CapacityComparison) => {
    const against =
      policy === reference || Number.isNaN(change)
        ? ''
        : `<br><span class="soft">${percent(change)} [${percent(low)}, ${percent(high)}]</span>`;
    return `<td>${rate.toFixed(2)}${against}</td>`;
  };
  const lines = workloads.map((workload) => {
    const cells = policies.map((policy) =>
      cell(rows.find((row) => row.workload === workload && row.policy === policy)!),
    );
    return `<tr><td>${escaped(workload)}</td>${cells.join('')}</tr>`;
  });
  const head = policies.map((policy) => `<th>${escaped(policy)}</th>`).join('');
  return `<table><thead><tr><th>workload</th>${head}</tr></thead><tbody>${lines.join('')}</tbody></table>`;
}
