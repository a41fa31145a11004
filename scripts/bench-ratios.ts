// Compares the benchmark results that bench-against.sh has left in a folder: base-N.jsonl beside head-N.jsonl.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BenchResult } from '../bench/bench.ts';

/** A row is slower when its ratio exceeds this in every round: single rounds scatter by about a tenth. */
const SLOWER_RATIO = 1.15;

/** Medians of one side by benchmark, one per round. */
function medians(folder: string, side: string): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const file of readdirSync(folder).sort()) {
    if (!file.startsWith(`${side}-`) || !file.endsWith('.jsonl')) continue;
    for (const line of readFileSync(join(folder, file), 'utf8').split('\n').filter(Boolean)) {
      const { name, median } = JSON.parse(line) as BenchResult;
      found.set(name, [...(found.get(name) ?? []), median]);
    }
  }
  return found;
}

const folder = process.argv[2];
if (folder === undefined) throw new Error('usage: bench-ratios.ts FOLDER');
const base = medians(folder, 'base');
let slower = 0;
for (const [name, head] of medians(folder, 'head')) {
  const before = base.get(name);
  if (before === undefined) continue;
  const ratios = head.map((median, round) => median / before[round]!).filter(Number.isFinite);
  const isSlower = ratios.length > 0 && ratios.every((ratio) => ratio > SLOWER_RATIO);
  if (isSlower) slower++;
  const middle = ratios.toSorted((a, b) => a - b)[ratios.length >> 1];
  console.log(JSON.stringify({ name, base: before, head, ratio: Number(middle?.toFixed(3)), slower: isSlower }));
}
process.exitCode = slower === 0 ? 0 : 1;
