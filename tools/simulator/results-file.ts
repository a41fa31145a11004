import { adaptationSpeed } from './suite/adaptation-speed.js';
import { compareCapacity } from './suite/capacity-comparison.js';
import type { Comparison } from './suite/comparison.js';
import type { Suite } from './suite/schema.js';
import type { RunResult } from './suite/suite-run.js';

/** Results of a sweep as one JSON document, with the suite and all its defaults. */
export function resultsJson(suite: Suite, results: readonly RunResult[], comparisons: readonly Comparison[]): string {
  const capacities = suite.capacity === undefined ? undefined : compareCapacity(results, suite);
  const speeds = suite.policies.flatMap(({ name }) =>
    results.some(({ policy, learning }) => policy === name && learning !== undefined)
      ? adaptationSpeed(results, suite, name).map((speed) => ({ policy: name, ...speed }))
      : [],
  );
  return `${JSON.stringify({ suite, comparisons, capacities, speeds, runs: results }, null, 1)}\n`;
}

/** A line per run; times in milliseconds. */
export function resultsCsv(results: readonly RunResult[]): string {
  const spreads = ['ttft', 'tpot', 'e2e', 'held'] as const;
  const points = ['mean', 'p50', 'p90', 'p99'] as const;
  const single = [
    'cost',
    'goodput',
    'hitRatio',
    'overBelief',
    'preemptions',
    'imbalance',
    'requests',
    'requestsPerSecond',
    'lost',
    'uncappedCost',
    'heldShare',
  ] as const;
  const ofClients = ['turnsPerMinute', 'withoutTurn', 'progress', 'leastProgress', 'fairness'] as const;
  const times = spreads.flatMap((s) => points.map((p) => `${s}_${p}`));
  const head = ['workload', 'policy', 'seed', ...single, ...times, ...ofClients];
  const lines = results.map(({ workload, policy, seed, summary }) => [
    quoted(workload),
    quoted(policy),
    seed,
    ...single.map((name) => summary[name]),
    ...spreads.flatMap((s) => points.map((p) => summary[s][p])),
    ...ofClients.map((name) => summary.clients?.[name] ?? ''),
  ]);
  return `${[head, ...lines].map((line) => line.join(',')).join('\n')}\n`;
}

function quoted(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
