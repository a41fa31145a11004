// Makes docs/drawn-traffic.md anew: learned costs on traffic and fleets that are drawn at random.
//   npm run drawn-traffic -- [--runs FILE] [--jobs 2] [--workloads 60] [--first 1000] [--seeds 2] [--page FILE]
//
// Every run is kept in the file of --runs under a hash of the program, traffic, fleet, policy and seed: work that was
// stopped goes on. --first is the number of the first workload: other numbers are other traffic.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { SavedRuns } from '../dist/tools/simulator/suite/saved-runs.js';
import type { Suite } from '../dist/tools/simulator/suite/schema.js';
import { type RunResult, runsOf, type SuiteFolders } from '../dist/tools/simulator/suite/suite-run.js';
import { type Cell, missingCells, runCells } from './adaptation-results/cells.ts';
import { type DrawnWorkload, drawWorkload } from './drawn-traffic/draw.ts';
import { pageOf } from './drawn-traffic/page.ts';
import { comparedSuite, guardedSuite, limitSuite } from './drawn-traffic/suites.ts';

const root = resolve(import.meta.dirname, '..');

function options() {
  const { values } = parseArgs({
    options: {
      runs: { type: 'string', default: 'drawn-runs.jsonl' },
      jobs: { type: 'string', default: '2' },
      workloads: { type: 'string', default: '60' },
      first: { type: 'string', default: '1000' },
      seeds: { type: 'string', default: '2' },
      page: { type: 'string', default: join(root, 'docs/drawn-traffic.md') },
    },
  });
  const whole = (flag: 'jobs' | 'workloads' | 'first' | 'seeds', least: number, most: number) => {
    const value = Number(values[flag]);
    if (Number.isInteger(value) && value >= least && value <= most) return value;
    throw new Error(`--${flag}: expected a whole number from ${least} to ${most}, got "${values[flag]}"`);
  };
  return {
    runs: values.runs,
    page: values.page,
    jobs: whole('jobs', 1, 64),
    workloads: whole('workloads', 1, 10_000),
    first: whole('first', 0, 1_000_000_000),
    seeds: whole('seeds', 1, 100),
  };
}

function commit(): string {
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  const rooms = ['src', 'tools', 'assembly', 'scripts/drawn-traffic'];
  return (
    git('rev-parse', '--short=8', 'HEAD') + (git('status', '--porcelain', '--', ...rooms) === '' ? '' : ' and changes')
  );
}

const flags = options();
const folders: SuiteFolders = { suite: root, traces: root };
const kept = new SavedRuns(flags.runs);
const drawn = Array.from({ length: flags.workloads }, (_, i) => drawWorkload(flags.first + i));

const cellsOf = (chapter: string, suite: Suite): readonly Cell[] =>
  runsOf(suite).map((run) => ({ chapter, suite, run }));

async function run(chapter: string, cells: readonly Cell[]): Promise<void> {
  const missing = missingCells(cells, [chapter], {
    keyOf: ({ suite, run: each }) => kept.keyOf(suite, each, folders),
    has: ({ suite, run: each }) => kept.find(suite, each, folders) !== undefined,
  });
  let done = 0;
  await runCells(missing, {
    folders,
    kept,
    jobs: flags.jobs,
    untilMs: Number.POSITIVE_INFINITY,
    done: ({ run: { workload, policy, seed } }, { tookMs }) => {
      done++;
      const seconds = (tookMs / 1e3).toFixed(1);
      console.log(`${done}/${missing.length} ${chapter}: ${workload}, ${policy}, seed ${seed}: ${seconds} s`);
    },
  });
}

const resultsOf = (suite: Suite): readonly RunResult[] =>
  runsOf(suite).flatMap((each) => kept.find(suite, each, folders) ?? []);

await run(
  'limit',
  drawn.flatMap((each) => cellsOf('limit', limitSuite(each))),
);
/** Arrivals per second that the default carries; 0 = not even a quarter of the usual rate. */
const limitOf = (each: DrawnWorkload): number => (resultsOf(limitSuite(each))[0]?.capacity?.load ?? 0) * each.rate;
const limited = drawn.map((workload) => ({ workload, limit: limitOf(workload) }));
const usable = limited.filter(({ limit }) => limit > 0);

await run(
  'compared',
  usable.flatMap(({ workload, limit }) => cellsOf('compared', comparedSuite(workload, limit, flags.seeds))),
);
await run(
  'guarded',
  usable.flatMap(({ workload, limit }) => cellsOf('guarded', guardedSuite(workload, limit))),
);

const page = pageOf(
  usable.map(({ workload, limit }) => ({
    workload,
    limit,
    compared: resultsOf(comparedSuite(workload, limit, flags.seeds)),
    guarded: resultsOf(guardedSuite(workload, limit)),
  })),
  { commit: commit(), first: flags.first, drawn: drawn.length, seeds: flags.seeds },
);
writeFileSync(flags.page, page);
console.log(`${flags.page}: ${page.split('\n').length} lines`);
