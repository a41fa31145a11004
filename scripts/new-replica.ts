// The first minutes of a replica that joins a loaded pool, as a table for docs/guides/engines.md:
//
//   npm run build && node scripts/new-replica.ts
//
// Reads examples/simulation/new-replica.yaml. Times to first token and hits are those of the requests that arrive in
// the span after the join, all seeds together.
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

const suite = loadSuite(FILE);
const text = fleetSchema.parse(suite.fleet);
const joinSeconds = Math.max(...text.groups.map((group) => group.joinSeconds));
const newcomer = text.groups.reduce((sum, { count }) => sum + count, 0) - 1;

function outcomesOf(workload: string, policy: (typeof suite.policies)[number]): RequestOutcome[] {
  const { configuration, seen } = policyOf(policy, workload, dirname(FILE));
  return Array.from({ length: suite.seeds }, (_, i) => suite.firstSeed + i).flatMap((seed) => {
    const traffic = workloadOf(
      suite,
      workload,
      seed,
      () => {
        throw new Error('the suite has no traces');
      },
      1,
    );
    return [...simulate(traffic, configuration, fleetOf(seen(text), suite.blockTokens), seed).requests];
  });
}

/** Mean and 99th percentile of the time to first token in ms, and share of the prompt tokens found in caches. */
function figures(requests: readonly RequestOutcome[]): string[] {
  const sum = (of: (request: RequestOutcome) => number) => requests.reduce((total, each) => total + of(each), 0);
  const times = requests.map(({ ttftMs }) => ttftMs).sort((a, b) => a - b);
  const p99 = times[Math.floor(0.99 * times.length)] ?? Number.NaN;
  const hits = sum(({ cachedTokens }) => cachedTokens) / sum(({ promptTokens }) => promptTokens);
  return [`${(sum(({ ttftMs }) => ttftMs) / requests.length).toFixed(0)}, ${p99.toFixed(0)}`, hits.toFixed(2)];
}

const heads = ['TTFT of all, mean and p99 [ms]', 'hits of all', 'of the new one [ms]', 'its hits', 'its share'];
console.log(`| traffic, picker | seconds | ${heads.join(' | ')} |`);
console.log(`| --- | --- |${' --- |'.repeat(heads.length)}`);
for (const { name } of suite.workloads) {
  for (const policy of suite.policies) {
    const outcomes = outcomesOf(name, policy).filter(({ status }) => status === 'served');
    for (const [from, to] of SPANS) {
      const after = ({ arrivalMs }: RequestOutcome) => arrivalMs / 1e3 - joinSeconds;
      const all = outcomes.filter((request) => after(request) >= from && after(request) < to);
      const own = all.filter(({ endpoint }) => endpoint === newcomer);
      const share = `${((100 * own.length) / all.length).toFixed(0)} %`;
      const cells = [`${name}, ${policy.name}`, `${from} – ${to}`, ...figures(all), ...figures(own), share];
      console.log(`| ${cells.join(' | ')} |`);
    }
  }
}
