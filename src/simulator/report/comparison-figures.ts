import type { CapacityComparison } from '../suite/capacity-comparison.js';
import type { Comparison } from '../suite/comparison.js';
import { legend } from './figures.js';
import { hue } from './style.js';
import { at, escaped, figure, linear, logarithmic, percent, rule, spaced, text } from './svg.js';

const WIDTH = 1080;
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
  const most = Math.max(0.1, ...own.flat());
  const x = logarithmic([1.002, 1 + most * 1.1], [56, WIDTH - 30]);
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
      rule(56, y(share), WIDTH - 30, y(share)) +
      text(48, y(share) + 4, `${100 * share} %`, 'text-anchor="end" class="soft"'),
  );
  const curves = own.map((regrets, i) => {
    const steps = regrets.map((regret, n) => `H${at(place(regret))}V${at(y((n + 1) / regrets.length))}`);
    return `<path d="M56 250${steps.join('')}H${WIDTH - 30}" fill="none" stroke="${hue(i)}" stroke-width="1.8"><title>${escaped(policies[i]!)}</title></path>`;
  });
  const label = 'Share of the workloads on which a policy is within so much of the best';
  return legend(policies) + figure(WIDTH, 280, label, [...shares, ...grid, ...curves].join(''));
}

/** Every seed as a dot: change of the cost against the reference, with the mean and its interval. */
export function seedDots(
  comparisons: readonly Comparison[],
  workloads: readonly string[],
  policies: readonly string[],
  reference: string,
): string {
  const changes = (workload: string, policy: string) => {
    const [row, base] = [policy, reference].map(
      (name) => comparisons.find((each) => each.workload === workload && each.policy === name)!,
    );
    return { row: row!, seeds: row!.costs.map((cost, i) => Math.log(cost / base!.costs[i]!)) };
  };
  const all = workloads.flatMap((workload) => policies.flatMap((policy) => changes(workload, policy).seeds));
  const reach = Math.min(1, Math.max(0.1, ...all.map(Math.abs)));
  const x = linear([-reach, reach], [190, WIDTH - 30]);
  const inside = (value: number) => x(Math.min(reach, Math.max(-reach, value)));
  const band = 14 * policies.length + 12;
  const height = 30 + workloads.length * band;
  const marks = [-0.5, -0.25, -0.1, 0, 0.1, 0.25, 0.5].filter((mark) => Math.abs(Math.log(1 + mark)) <= reach);
  const grid = marks.map(
    (mark) =>
      rule(
        inside(Math.log(1 + mark)),
        20,
        inside(Math.log(1 + mark)),
        height,
        mark === 0 ? 'class="axis"' : 'class="grid"',
      ) +
      text(inside(Math.log(1 + mark)), 14, mark === 0 ? reference : percent(mark), 'text-anchor="middle" class="soft"'),
  );
  const rows = workloads.flatMap((workload, w) => [
    text(178, 30 + w * band + band / 2, workload, 'text-anchor="end"'),
    ...policies.map((policy, p) => {
      const y = 36 + w * band + p * 14;
      const { row, seeds } = changes(workload, policy);
      const dots = seeds.map(
        (value) => `<circle cx="${at(inside(value))}" cy="${y}" r="2.6" fill="${hue(p)}" fill-opacity=".55"/>`,
      );
      const [low, high] = [inside(Math.log1p(row.low)), inside(Math.log1p(row.high))];
      const title = `<title>${escaped(`${workload}, ${policy}: ${percent(row.change)} [${percent(row.low)}, ${percent(row.high)}]`)}</title>`;
      return `<g>${title}${dots.join('')}<path d="M${at(low)} ${y}H${at(high)}M${at(inside(Math.log1p(row.change)))} ${y - 5}v10" stroke="${hue(p)}" stroke-width="2"/></g>`;
    }),
  ]);
  return legend(policies) + figure(WIDTH, height, 'Change of the cost by seed', [...grid, ...rows].join(''));
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
