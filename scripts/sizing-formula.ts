// The formula of docs/sizing.md: fitting it to measured rows, and its tables.
import type { LoadShape } from '../bench/process/load.ts';

export interface Measured {
  readonly shape: Omit<LoadShape, 'concurrency'>;
  /** CPU time of the picker for one exchange. */
  readonly cpuUs: number;
  readonly residentBytes: number;
}

/** CPU time of an exchange in microseconds: `request + perKiB × KiB + perEndpoint × endpoints + perChunk × chunks`. */
export interface Costs {
  readonly request: number;
  readonly perKiB: number;
  readonly perEndpoint: number;
  readonly perChunk: number;
}

/** Share of a core that a shard may use in the long run, so that bursts find room. */
export const UTILISATION = 0.6;
const DIMENSIONS = 4;
/** Added to the diagonal, relative to it, so that rows that do not vary in a dimension leave it at 0. */
const RIDGE = 1e-9;

function features({ promptBytes, endpoints, chunks }: Measured['shape']): readonly number[] {
  return [1, promptBytes / 1024, endpoints, chunks];
}

/** CPU time of an exchange by the formula, in microseconds. */
export function costOf(costs: Costs, shape: Measured['shape']): number {
  const [one, kib, endpoints, chunks] = features(shape) as [number, number, number, number];
  return one * costs.request + kib * costs.perKiB + endpoints * costs.perEndpoint + chunks * costs.perChunk;
}

/**
 * Least squares of relative errors; a cost below 0, which noise can give, becomes 0 and the others are fitted again.
 */
export function fitted(rows: readonly Measured[]): Costs {
  const kept = new Set(Array.from({ length: DIMENSIONS }, (_, i) => i));
  for (;;) {
    const solution = solve(rows, [...kept]);
    const below = [...kept].find((dimension, i) => dimension > 0 && solution[i]! < 0);
    if (below !== undefined) {
      kept.delete(below);
      continue;
    }
    const [request = 0, perKiB = 0, perEndpoint = 0, perChunk = 0] = Array.from(
      { length: DIMENSIONS },
      (_, dimension) => (kept.has(dimension) ? solution[[...kept].indexOf(dimension)]! : 0),
    );
    return { request, perKiB, perEndpoint, perChunk };
  }
}

/** Normal equations by Gauss-Jordan elimination with pivots. */
function solve(rows: readonly Measured[], dimensions: readonly number[]): readonly number[] {
  const n = dimensions.length;
  const matrix = Array.from({ length: n }, () => new Float64Array(n + 1));
  for (const { shape, cpuUs } of rows) {
    const all = features(shape);
    const x = dimensions.map((dimension) => all[dimension]! / cpuUs);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) matrix[i]![j]! += x[i]! * x[j]!;
      matrix[i]![n]! += x[i]!;
    }
  }
  for (let i = 0; i < n; i++) matrix[i]![i]! *= 1 + RIDGE;
  for (let i = 0; i < n; i++) {
    let pivot = i;
    for (let k = i + 1; k < n; k++) if (Math.abs(matrix[k]![i]!) > Math.abs(matrix[pivot]![i]!)) pivot = k;
    [matrix[i], matrix[pivot]] = [matrix[pivot]!, matrix[i]!];
    const scale = matrix[i]![i]!;
    if (scale === 0) continue;
    for (let j = i; j <= n; j++) matrix[i]![j]! /= scale;
    for (let k = 0; k < n; k++) {
      if (k === i) continue;
      const factor = matrix[k]![i]!;
      for (let j = i; j <= n; j++) matrix[k]![j]! -= factor * matrix[i]![j]!;
    }
  }
  return matrix.map((row) => row[n]!);
}

const TRAFFIC: readonly (readonly [number, Measured['shape']])[] = [
  [100, { promptBytes: 4_096, endpoints: 8, chunks: 1 }],
  [1_000, { promptBytes: 4_096, endpoints: 8, chunks: 1 }],
  [1_000, { promptBytes: 4_096, endpoints: 64, chunks: 200 }],
  [1_000, { promptBytes: 65_536, endpoints: 64, chunks: 200 }],
  [100, { promptBytes: 400_000, endpoints: 64, chunks: 1_000 }],
  [5_000, { promptBytes: 4_096, endpoints: 512, chunks: 200 }],
];

/** The measured part of the page. */
export function sizingText(rows: readonly Measured[], costs: Costs, idleBytes: number, machine: string): string {
  const { request, perKiB, perEndpoint, perChunk } = costs;
  const formula =
    `CPU of an exchange in µs = ${short(request)} + ${short(perKiB)} × KiB of the prompt + ${short(perEndpoint)} × ` +
    `endpoints + ${short(perChunk)} × chunks`;
  return [
    `Measured on ${machine}.`,
    `\`\`\`\n${formula}\n\`\`\``,
    table(
      ['prompt', 'endpoints', 'chunks', 'measured', 'by the formula', 'memory under load'],
      rows.map(({ shape, cpuUs, residentBytes }) => [
        ...[kib(shape.promptBytes), String(shape.endpoints), String(shape.chunks)],
        ...[`${short(cpuUs)} µs`, `${short(costOf(costs, shape))} µs`, `${short(residentBytes / 1e6)} MB`],
      ]),
    ),
    `Idle, a picker with one shard holds ${short(idleBytes / 1e6)} MB.`,
    table(
      ['requests a second', 'prompt', 'endpoints', 'chunks of an answer', 'busy cores', 'cores to plan'],
      TRAFFIC.map(([rate, shape]) => {
        const busy = (rate * costOf(costs, shape)) / 1e6;
        return [
          ...[rate.toLocaleString('en-US'), kib(shape.promptBytes), String(shape.endpoints), String(shape.chunks)],
          ...[short(busy), String(Math.max(1, Math.ceil(busy / UTILISATION)))],
        ];
      }),
    ),
  ].join('\n\n');
}

function kib(bytes: number): string {
  return `${Math.round(bytes / 1024)} KiB`;
}

function short(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US', { maximumFractionDigits: 3 });
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---:')), ...rows.map(line)].join('\n');
}
