// Times of one engine step from a profile of measured layers, in milliseconds by the number of tokens in it.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** GPUs that work as one, and the links between them. */
export interface Links {
  readonly gpus: number;
  /** Bytes per nanosecond (GB/s) in one direction between two GPUs. */
  readonly linkGBs: number;
  /** Microseconds of one all-reduce of nothing. */
  readonly latencyUs: number;
  /** Numbers in the hidden state of a token. */
  readonly hidden: number;
}

/** Experts of each layer of a mixture of experts. */
export interface Experts {
  readonly experts: number;
  /** Of them computed for one token. */
  readonly active: number;
  /** GPUs that the experts are spread over. */
  readonly spread: number;
}

export type Row = Readonly<Record<string, string>>;

/** Rows of a CSV file by the names in its first line. */
export function rowsOf(path: string): readonly Row[] {
  const [head, ...lines] = readFileSync(path, 'utf8').trim().split(/\r?\n/);
  const names = head!.split(',');
  return lines.map((text) => Object.fromEntries(text.split(',').map((cell, i) => [names[i]!, cell])));
}

/** Layers outside of the repeated block, and those that stand twice in it (Llama). */
const ONCE = new Set(['embedding', 'final_layernorm']);
const TWICE = new Set(['layernorm']);

/** Sum of the times of all layers by the number of tokens or sequences. */
export function layerTimes(
  rows: readonly Row[],
  key: 'tokens' | 'sequences',
  layers: number,
  scale: number,
): Map<number, number> {
  const times = (layer: string) => (ONCE.has(layer) ? 1 : layers * (TWICE.has(layer) ? 2 : 1));
  const result = new Map<number, number>();
  for (const row of rows) {
    const at = Number(row[key]);
    const factor = scale * (key === 'tokens' ? times(row.layer!) : 1);
    result.set(at, (result.get(at) ?? 0) + (Number(row.time_us) * factor) / 1e3);
  }
  return result;
}

/**
 * Experts of one GPU of which at least one of so many tokens needs the weights, in the mean: each of E experts is left
 * out by a token with the chance 1 - active / E. Even use of all experts is assumed.
 */
export function activatedExperts({ experts, active, spread }: Experts, tokens: number): number {
  return (experts / spread) * (1 - (1 - active / experts) ** tokens);
}

/**
 * Time of the experts of all layers by the number of tokens, from a table over tokens and activated experts (`moe.csv`:
 * ep, tokens, activated_experts, time_us). Straight lines between the measured numbers of experts and of tokens.
 * @throws Error when the table has nothing for so many GPUs
 */
export function expertTimes(
  rows: readonly Row[],
  experts: Experts,
  layers: number,
  scale: number,
): (tokens: number) => number {
  const own = rows.filter((row) => Number(row.ep) === experts.spread);
  if (own.length === 0) {
    const known = [...new Set(rows.map((row) => row.ep))].join(', ');
    throw new Error(`moe.csv has no rows with ep ${experts.spread}: set --expert-gpus to one of ${known}`);
  }
  const byTokens = new Map<number, (readonly [number, number])[]>();
  for (const row of own) {
    const points = byTokens.get(Number(row.tokens)) ?? [];
    points.push([Number(row.activated_experts), Number(row.time_us)]);
    byTokens.set(Number(row.tokens), points);
  }
  const curve = [...byTokens]
    .map(([tokens, points]) => [tokens, line(points, activatedExperts(experts, tokens))] as const)
    .sort(([a], [b]) => a - b);
  return (tokens) => (layers * scale * line(curve, tokens)) / 1e3;
}

/** Value at `x` on straight lines between points, and beyond their ends. */
function line(given: readonly (readonly [number, number])[], x: number): number {
  const points = [...given].sort(([a], [b]) => a - b);
  if (points.length === 1) return points[0]![1];
  const after = points.findIndex(([at]) => at >= x);
  const i = Math.min(Math.max(after < 0 ? points.length - 1 : after, 1), points.length - 1);
  const [[x0, y0], [x1, y1]] = [points[i - 1]!, points[i]!];
  return y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
}

/** Bytes of one number of the hidden state (bf16). */
const NUMBER_BYTES = 2;
/** All-reduces of one layer: behind the attention and behind the feed-forward part. */
const REDUCES_PER_LAYER = 2;

/**
 * All-reduce between the GPUs of one engine, in a ring: each sends 2 (n - 1) / n times the data.
 * @returns milliseconds per step and microseconds per token
 */
export function reduceTimes(
  { gpus, linkGBs, latencyUs, hidden }: Links,
  layers: number,
): { readonly reduceMs: number; readonly reduceTokenUs: number } {
  if (gpus === 1) return { reduceMs: 0, reduceTokenUs: 0 };
  const bytes = ((2 * (gpus - 1)) / gpus) * hidden * NUMBER_BYTES;
  const count = REDUCES_PER_LAYER * layers;
  return { reduceMs: (count * latencyUs) / 1e3, reduceTokenUs: (count * bytes) / linkGBs / 1e3 };
}

/** Rows of `moe.csv`; undefined for a model without experts. */
export function expertRows(folder: string): readonly Row[] | undefined {
  const path = join(folder, 'moe.csv');
  return existsSync(path) ? rowsOf(path) : undefined;
}
