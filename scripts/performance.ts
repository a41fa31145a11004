// Makes docs/performance.md anew: `npm run performance [-- --short]`, some 15 minutes on a quiet machine, 5 with
// --short.
//
// Runs all benchmarks of bench/ at the commit that is checked out, then whole pickers as processes of their own. With
// LLM_D_ROUTER=/path/to/epp llm-d-router's picker takes part in the same run. Needs a build, Linux, and a second core
// for the load.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { processFigures } from '../bench/process/rows.ts';
import { machine, type Noise, processTable, readResults, renew, tables } from './performance-doc.ts';

const { values } = parseArgs({ options: { short: { type: 'boolean', default: false } } });
const root = fileURLToPath(new URL('..', import.meta.url));
const page = join(root, 'docs/performance.md');
const ROW_TIME_MS = values.short ? 100 : 1_000;

/** Time of one fixed piece of work, again and again: a quiet machine takes the same time for each. */
function noise(): Noise {
  const times: number[] = [];
  for (let piece = 0; piece < 400; piece++) {
    const begin = performance.now();
    let sum = 0;
    for (let i = 0; i < 2_000_000; i++) sum = (sum + Math.imul(i, piece)) | 0;
    times.push(performance.now() - begin + (sum === 1 ? 1e-9 : 0));
  }
  times.sort((a, b) => a - b);
  return { p50: times[200]!, p99: times[396]!, load: loadavg()[0]! };
}

function clean(): boolean {
  return (
    execFileSync('git', ['status', '--porcelain', '--', 'src', 'tools', 'assembly', 'bench'], { cwd: root }).length ===
    0
  );
}

if (!clean())
  console.error(
    'performance: src, tools, assembly or bench differ from the commit: the page names the commit all the same',
  );
const before = noise();
const folder = mkdtempSync(join(tmpdir(), 'pointsman-performance-'));
const file = join(folder, 'results.jsonl');
const bench = spawnSync(process.execPath, ['bench/run.ts', '--json', file, '--time', String(ROW_TIME_MS)], {
  cwd: root,
  stdio: ['ignore', 'ignore', 'inherit'],
});
if (bench.status !== 0) throw new Error(`the benchmarks ended with ${bench.status}`);
const results = readResults(readFileSync(file, 'utf8'));
rmSync(folder, { recursive: true });
const times = values.short ? { warmMs: 6_000, measuredMs: 4_000 } : { warmMs: 8_000, measuredMs: 8_000 };
const router = process.env.LLM_D_ROUTER;
if (router === undefined)
  console.error('performance: LLM_D_ROUTER names no llm-d-router picker: it does not take part');
const figures = await processFigures({ router, times, rounds: values.short ? 1 : 3 }, (line) => console.error(line));
const parts = [machine(results, [before, noise()]), '## Whole pickers', processTable(figures), tables(results)];
writeFileSync(page, renew(readFileSync(page, 'utf8'), parts.join('\n\n')));
