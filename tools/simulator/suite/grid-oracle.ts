import { type ScorerWeights, type Suite, suiteSchema } from './schema.js';
import type { RunResult } from './suite-run.js';

type Oracle = NonNullable<Suite['oracle']>;

/** All vectors of weights of a grid; of those with equal proportions, which decide alike, the first. */
export function gridOf({ scorers }: Oracle): ScorerWeights[] {
  const vectors = Object.entries(scorers).reduce<ScorerWeights[]>(
    (before, [scorer, weights]) =>
      before.flatMap((vector) => weights.map((weight) => ({ ...vector, [scorer]: weight }))),
    [{}],
  );
  const byProportion = new Map<string, ScorerWeights>();
  for (const vector of vectors) {
    const sum = Object.values(vector).reduce((total, weight) => total + weight, 0);
    if (sum === 0) continue;
    const key = Object.values(vector)
      .map((weight) => (weight / sum).toFixed(6))
      .join(' ');
    if (!byProportion.has(key)) byProportion.set(key, vector);
  }
  return [...byProportion.values()];
}

/** The suite by which the oracle is chosen: all vectors, on the seeds and the halves that are for tuning. */
export function tuningSuite(suite: Suite, oracle: Oracle): Suite {
  return suiteSchema.parse({
    ...suite,
    workloads: suite.workloads.map((workload) =>
      'tuning' in workload ? { ...workload, ...workload.tuning } : workload,
    ),
    policies: gridOf(oracle).map((weights, i) => ({ name: `grid ${i + 1}`, weights })),
    reference: 'grid 1',
    firstSeed: oracle.firstSeed,
    seeds: oracle.seeds,
    oracle: undefined,
  });
}

/** The suite with the oracle as one more policy. */
export function withOracle(suite: Suite, oracle: Oracle, tuned: readonly RunResult[]): Suite {
  const choice = { name: oracle.name, weightsByWorkload: cheapest(gridOf(oracle), tuned) };
  return { ...suite, policies: [...suite.policies, choice] };
}

/** The vector with the lowest mean cost of every workload. */
function cheapest(vectors: readonly ScorerWeights[], tuned: readonly RunResult[]): Record<string, ScorerWeights> {
  const best = new Map<string, { weights: ScorerWeights; cost: number }>();
  for (const workload of new Set(tuned.map((run) => run.workload))) {
    for (const [i, weights] of vectors.entries()) {
      const runs = tuned.filter((run) => run.workload === workload && run.policy === `grid ${i + 1}`);
      const cost = runs.reduce((sum, { summary }) => sum + summary.cost, 0) / runs.length;
      if (cost < (best.get(workload)?.cost ?? Number.POSITIVE_INFINITY)) best.set(workload, { weights, cost });
    }
  }
  return Object.fromEntries([...best].map(([workload, { weights }]) => [workload, weights]));
}
