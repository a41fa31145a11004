import { interval } from './comparison.js';
import type { Suite } from './schema.js';
import type { RunResult } from './suite-run.js';

/** Capacity of one policy on one workload, over its seeds. */
export interface CapacityComparison {
  readonly workload: string;
  readonly policy: string;
  /** Requests per second of every seed, in their order. */
  readonly rates: readonly number[];
  readonly rate: number;
  /**
   * Mean of the paired log ratios to the reference, as a ratio - 1, with a 95 % interval; NaN when a seed carried
   * nothing.
   */
  readonly change: number;
  readonly low: number;
  readonly high: number;
}

/** Compares what all policies carry with what the reference does, on equal seeds. */
export function compareCapacity(results: readonly RunResult[], suite: Suite): CapacityComparison[] {
  const workloads = [...new Set(results.map(({ workload }) => workload))];
  return workloads.flatMap((workload) => {
    const ratesOf = (policy: string) =>
      results
        .filter((run) => run.workload === workload && run.policy === policy)
        .map(({ capacity }) => capacity?.requestsPerSecond ?? 0);
    const reference = ratesOf(suite.reference);
    return suite.policies.map(({ name: policy }): CapacityComparison => {
      const rates = ratesOf(policy);
      const ratios = rates.map((rate, i) => Math.log(rate / reference[i]!));
      const known = ratios.every(Number.isFinite);
      const { low, high } = known ? interval(ratios, `${workload} ${policy}`) : { low: Number.NaN, high: Number.NaN };
      return {
        workload,
        policy,
        rates,
        rate: mean(rates),
        change: known ? Math.exp(mean(ratios)) - 1 : Number.NaN,
        low: Math.exp(low) - 1,
        high: Math.exp(high) - 1,
      };
    });
  });
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
