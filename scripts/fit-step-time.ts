// Makes the step times of a fleet simulation from a profile of measured layers, in the form in which LLMServingSim 2.0
// publishes them (dense.csv, per_sequence.csv, attention.csv, and moe.csv of a mixture of experts): a table for
// interpolation, and the constants of the formula, fitted to it.
//
//   node scripts/fit-step-time.ts <profile folder> --layers 32 [--scale 1] [--overhead 1] > step-time.json
//
// `--scale` multiplies every time: 2 for a profile taken at half a model per GPU (tensor parallelism 2).
// Several GPUs: `--gpus 4 --link 450 --hidden 8192 [--link-latency 5]` adds the all-reduce (GB/s in one direction, µs).
// Experts: `--experts 128 --active 8 [--expert-gpus 1]` reads moe.csv.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { StepTable } from '../tools/simulator/fleet/step-table.ts';
import type { StepConstants } from '../tools/simulator/fleet/step-time.ts';
import { expertRows, expertTimes, layerTimes, reduceTimes, rowsOf } from './step-profile.ts';

const round = (x: number) => Number(x.toPrecision(4));

/** Points of a curve that straight lines between them miss by at most `error`. */
function thinned(points: ReadonlyMap<number, number>, error: number): [number, number][] {
  const sorted = [...points].sort(([a], [b]) => a - b);
  const kept: [number, number][] = [sorted[0]!];
  let from = 0;
  for (let to = 2; to <= sorted.length; to++) {
    const end = sorted[Math.min(to, sorted.length - 1)]!;
    const [x0, y0] = sorted[from]!;
    const fits = sorted.slice(from + 1, to).every(([x, y]) => {
      const guess = y0 + ((end[1] - y0) * (x - x0)) / (end[0] - x0 || 1);
      return Math.abs(guess - y) <= error * y;
    });
    if (fits && to < sorted.length) continue;
    kept.push(sorted[to - 1]!);
    from = to - 1;
  }
  return kept;
}

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    layers: { type: 'string', default: '32' },
    scale: { type: 'string', default: '1' },
    overhead: { type: 'string', default: '1' },
    gpus: { type: 'string', default: '1' },
    link: { type: 'string' },
    'link-latency': { type: 'string', default: '5' },
    hidden: { type: 'string' },
    experts: { type: 'string' },
    active: { type: 'string' },
    'expert-gpus': { type: 'string', default: '1' },
  },
});
const folder = positionals[0];
if (folder === undefined) throw new Error('usage: fit-step-time <profile folder> --layers <number>');
const layers = Number(values.layers);
const scale = Number(values.scale);
const overheadMs = Number(values.overhead);

/** A number above 0, or a message that names the option. */
function number(option: keyof typeof values, why: string): number {
  const value = Number(values[option]);
  if (value > 0) return value;
  throw new Error(`--${option}: expected a number above 0: ${why}`);
}

const gpus = number('gpus', 'GPUs that work as one');
const reduce =
  gpus === 1
    ? { reduceMs: 0, reduceTokenUs: 0 }
    : reduceTimes(
        {
          gpus,
          linkGBs: number('link', 'GB/s between two of the GPUs'),
          latencyUs: number('link-latency', 'microseconds of an all-reduce of nothing'),
          hidden: number('hidden', 'numbers in the hidden state of a token'),
        },
        layers,
      );
const dense = layerTimes(rowsOf(join(folder, 'dense.csv')), 'tokens', layers, scale);
const experts = expertRows(folder);
if (experts !== undefined) {
  const model = {
    experts: number('experts', 'moe.csv is there: experts of a layer'),
    active: number('active', 'moe.csv is there: experts that one token uses'),
    spread: number('expert-gpus', 'GPUs that the experts are spread over'),
  };
  const expertMs = expertTimes(experts, model, layers, scale);
  for (const [tokens, ms] of dense) dense.set(tokens, ms + expertMs(tokens));
}
const perRow = layerTimes(rowsOf(join(folder, 'per_sequence.csv')), 'sequences', layers, scale);
const attention = new Map<string, number>();
for (const row of rowsOf(join(folder, 'attention.csv'))) {
  const key = [row.prefill_chunk, row.kv_prefill, row.n_decode, row.kv_decode].join(' ');
  attention.set(key, (Number(row.time_us) * scale * layers) / 1e3);
}
const at = (chunk: number, before: number, n: number, context: number) =>
  attention.get([chunk, before, n, context].join(' '));

const chunks = [16, 64, 256, 512, 1024, 2048];
const befores = [0, 256, 1024, 4096, 16384];
const counts = [1, 4, 16, 32, 64, 128, 256];
const contexts = [16, 128, 512, 1024, 2048, 4096, 8192];

/** Slowdown of decoding beside a prompt, the median over the prompts; undefined where none was measured. */
function mixedAt(n: number, context: number): number | undefined {
  const ratios = chunks
    .filter((chunk) => chunk >= 128)
    .flatMap((chunk) => {
      const both = at(chunk, 0, n, context);
      const prompt = at(chunk, 0, 0, 0);
      const alone = at(0, 0, n, context);
      return both === undefined || prompt === undefined || alone === undefined ? [] : [(both - prompt) / alone];
    })
    .sort((a, b) => a - b);
  return ratios[ratios.length >> 1];
}

/** A table of measurements; a missing one is read off its neighbours. */
function grid(rows: readonly number[], columns: readonly number[], read: (r: number, c: number) => number | undefined) {
  return rows.map((r) => {
    const known = columns.flatMap((c): [number, number][] => {
      const value = read(r, c);
      return value === undefined ? [] : [[c, value]];
    });
    return columns.map((c) => {
      const exact = known.find(([column]) => column === c);
      if (exact !== undefined) return round(exact[1]);
      const i = Math.min(Math.max(known.findIndex(([column]) => column > c) - 1, 0), known.length - 2);
      const index = known.at(-1)![0] < c ? known.length - 2 : i;
      const [x0, y0] = known[index]!;
      const [x1, y1] = known[index + 1]!;
      return round(y0 + ((y1 - y0) * (c - x0)) / (x1 - x0));
    });
  });
}

const densePoints = thinned(dense, 0.02);
const rowPoints = thinned(perRow, 0.02);
const table: StepTable = {
  tokens: densePoints.map(([x]) => x),
  tokensMs: densePoints.map(([x, y]) => round(y + reduce.reduceMs + (reduce.reduceTokenUs * x) / 1e3)),
  rows: rowPoints.map(([x]) => x),
  rowsMs: rowPoints.map(([, y]) => round(y)),
  prefillTokens: chunks,
  prefillContext: befores,
  prefillMs: grid(chunks, befores, (chunk, before) => at(chunk, before, 0, 0)),
  decodes: counts,
  decodeContext: contexts,
  decodeMs: grid(counts, contexts, (n, context) => at(0, 0, n, context)),
  // Profiles stop short of a full batch beside a prompt.
  mixed: grid(counts, contexts, (n, context) => mixedAt(Math.min(n, 128), context)),
  overheadMs,
};

/** Least squares of the relative error of a sum of non-negative terms, by cyclic descent. */
function leastSquares(points: readonly { readonly terms: readonly number[]; readonly value: number }[]): number[] {
  const terms = points[0]!.terms.length;
  const weights = new Array<number>(terms).fill(0);
  for (let round = 0; round < 20_000; round++) {
    for (let k = 0; k < terms; k++) {
      let up = 0;
      let down = 0;
      for (const point of points) {
        const w = 1 / point.value ** 2;
        const others = point.terms.reduce((sum, term, i) => sum + (i === k ? 0 : term * weights[i]!), 0);
        up += w * point.terms[k]! * (point.value - others);
        down += w * point.terms[k]! ** 2;
      }
      weights[k] = Math.max(0, up / down);
    }
  }
  return weights;
}

/** Weights, slope and power of the matrix products: a search over the power, halving steps for the other two. */
function fitProducts(points: readonly (readonly [number, number])[]) {
  const error = (weights: number, token: number, power: number) =>
    points.reduce((sum, [n, ms]) => sum + ((weights ** power + (token * n) ** power) ** (1 / power) / ms - 1) ** 2, 0);
  let best = { weights: points[0]![1], token: points.at(-1)![1] / points.at(-1)![0], power: 2, error: Infinity };
  for (let power = 1; power <= 8; power += 0.25) {
    let weights = points[0]![1];
    let token = points.at(-1)![1] / points.at(-1)![0];
    for (let step = 0.1; step > 1e-4; ) {
      const here = error(weights, token, power);
      const moves = [
        [1 + step, 1],
        [1 - step, 1],
        [1, 1 + step],
        [1, 1 - step],
      ] as const;
      const better = moves.find(([a, b]) => error(weights * a, token * b, power) < here);
      if (better === undefined) step /= 2;
      else {
        weights *= better[0];
        token *= better[1];
      }
    }
    const found = error(weights, token, power);
    if (found < best.error) best = { weights, token, power, error: found };
  }
  return best;
}

const products = fitProducts(densePoints);
const prompts = chunks.flatMap((chunk) =>
  befores.flatMap((before) => {
    const value = at(chunk, before, 0, 0);
    return value === undefined ? [] : [{ terms: [1, chunk, chunk * (before + chunk / 2)], value }];
  }),
);
const decoding = counts.flatMap((n) =>
  contexts.flatMap((context) => {
    const value = at(0, 0, n, context);
    return value === undefined ? [] : [{ terms: [1, n, n * context], value }];
  }),
);
const sampling = rowPoints.map(([n, value]) => ({ terms: [1, n], value }));
const [floor, prefillToken, prefillPair] = leastSquares(prompts);
const [, decodeSequence, decodeToken] = leastSquares(decoding);
const [rowsMs, row] = leastSquares(sampling);
const busy = counts
  .filter((n) => n >= 16 && n <= 128)
  .flatMap((n) => contexts.filter((c) => c >= 512).flatMap((c) => mixedAt(n, c) ?? []));
const constants: StepConstants = {
  weightsMs: round(products.weights),
  tokenUs: round(products.token * 1e3),
  power: products.power,
  reduceMs: round(reduce.reduceMs),
  reduceTokenUs: round(reduce.reduceTokenUs),
  prefillTokenUs: round(prefillToken! * 1e3),
  prefillPairNs: round(prefillPair! * 1e6),
  decodeSequenceUs: round(decodeSequence! * 1e3),
  decodeTokenNs: round(decodeToken! * 1e6),
  mixed: round(busy.reduce((a, b) => a + b, 0) / busy.length),
  rowsMs: round(rowsMs!),
  rowUs: round(row! * 1e3),
  overheadMs: round(overheadMs + floor!),
};
process.stdout.write(`${JSON.stringify({ constants, table }, null, 1)}\n`);
