// The first minutes of a replica that joins a loaded pool, as a table for docs/guides/engines.md:
//
//   npm run build && node scripts/new-replica.ts [WORKLOAD [SEEDS]]
//
// Reads examples/simulation/new-replica.yaml; without arguments all its workloads with its seeds. Times to first token
// and hits are those of the requests that arrive in the span after the join, all seeds together; behind ± is the
// standard error of the mean, by the means of the seeds.
import { dirname, resolve } from 'node:path';
import type { RequestOutcome } from '../dist/tools/simulator/fleet/outcome.js';
import { simulate } from '../dist/tools/simulator/fleet/simulation.js';
import { fleetOf } from '../dist/tools/simulator/suite/fleet-of.js';
import { loadSuite } from '../dist/tools/simulator/suite/load-suite.js';
import { policyOf } from '../dist/tools/simulator/suite/policy-of.js';
import { fleetSchema } from '../dist/tools/simulator/suite/schema.js';
import { workloadOf } from '../dist/tools/simulator/suite/workload-of.js';

const FILE = resolve(import.meta.dirname, '../examples/simulation/new-replica.yaml');
/** Seconds after the join. */
const SPANS = [
  [0, 30],
  [30, 120],
] as const;

const [only, seeds] = process.argv.slice(2);
const suite = loadSuite(FILE);
const seedCount = seeds === undefined ? suite.seeds : Number(seeds);
if (only !== undefined && !suite.workloads.some(({ name }) => name === only)) {
  throw new Error(`no workload "${only}": ${suite.workloads.map(({ name }) => name).join(', ')}`);
}
if (!(Number.isInteger(seedCount) && seedCount > 1)) throw new Error(`seeds: ${seeds} is no number above 1`);
const text = fleetSchema.parse(suite.fleet);
const joinSeconds = Math.max(...text.groups.map((group) => group.joinSeconds));
const newcomer = text.groups.reduce((sum, { count }) => sum + count, 0) - 1;

type Outcome = RequestOutcome & { readonly seed: number };

function outcomesOf(workload: string, policy: (typeof suite.policies)[number]): Outcome[] {
  const { configuration, seen } = policyOf(policy, workload, dirname(FILE));
  return Array.from({ length: seedCount }, (_, i) => suite.firstSeed + i).flatMap((seed) => {
    const traffic = workloadOf(
      suite,
      workload,
      seed,
      () => {
        throw new Error('the suite has no traces');
      },
      1,
    );
    const { requests } = simulate(traffic, configuration, fleetOf(seen(text), suite.blockTokens), seed);
    return requests.map((request) => ({ ...request, seed }));
  });
}

const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Standard error of the mean time to first token. */
function errorOf(requests: readonly Outcome[]): number {
  const bySeed = Map.groupBy(requests, ({ seed }) => seed);
  const means = [...bySeed.values()].map((own) => meanOf(own.map(({ ttftMs }) => ttftMs)));
  const mean = meanOf(means);
  const squares = means.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return Math.sqrt(squares / (means.length - 1) / means.length);
}

/** Mean and 99th percentile of the time to first token in ms, and share of the prompt tokens found in caches. */
function figures(requests: readonly Outcome[], isWithError: boolean): string[] {
  const sum = (of: (request: Outcome) => number) => requests.reduce((total, each) => total + of(each), 0);
  const times = requests.map(({ ttftMs }) => ttftMs).sort((a, b) => a - b);
  const p99 = times[Math.floor(0.99 * times.length)] ?? Number.NaN;
  const hits = sum(({ cachedTokens }) => cachedTokens) / sum(({ promptTokens }) => promptTokens);
  const error = isWithError ? ` ± ${errorOf(requests).toFixed(0)}` : '';
  return [`${meanOf(times).toFixed(0)}${error}, ${p99.toFixed(0)}`, hits.toFixed(2)];
}

const heads = ['TTFT of all, mean and p99 [ms]', 'hits of all', 'of the new one [ms]', 'its hits', 'its share'];
console.log(`| traffic, picker | seconds | ${heads.join(' | ')} |`);
console.log(`| --- | --- |${' --- |'.repeat(heads.length)}`);
for (const { name } of suite.workloads.filter((workload) => only === undefined || workload.name === only)) {
  for (const policy of suite.policies) {
    const outcomes = outcomesOf(name, policy).filter(({ status }) => status === 'served');
    for (const [from, to] of SPANS) {
      const after = ({ arrivalMs }: Outcome) => arrivalMs / 1e3 - joinSeconds;
      const all = outcomes.filter((request) => after(request) >= from && after(request) < to);
      const own = all.filter(({ endpoint }) => endpoint === newcomer);
      const share = `${((100 * own.length) / all.length).toFixed(0)} %`;
      const cells = [
        `${name}, ${policy.name}`,
        `${from} – ${to}`,
        ...figures(all, true),
        ...figures(own, false),
        share,
      ];
      console.log(`| ${cells.join(' | ')} |`);
    }
  }
}
