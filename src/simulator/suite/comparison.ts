import { RandomStream } from '../fleet/random-stream.js';
import type { CellResult } from './cell.js';
import type { Suite } from './schema.js';

/** How one policy did on one workload, over its seeds. */
export interface Comparison {
  readonly workload: string;
  readonly policy: string;
  /** Cost of every seed, in their order. */
  readonly costs: readonly number[];
  readonly cost: number;
  /** Mean of the paired log ratios to the reference, as a ratio - 1, with a 95 % interval; of the reference itself 0. */
  readonly change: number;
  readonly low: number;
  readonly high: number;
  /** Cost over that of the best policy of this workload - 1. */
  readonly regret: number;
  readonly verdict: 'win' | 'tie' | 'loss' | 'reference';
}

/** A change within this is no difference in practice (design: tie = interval inside ±2 %). */
const TIE = 0.02;
const RESAMPLES = 10_000;

/** Compare all policies with the reference, workload by workload, on equal seeds. */
export function compare(results: readonly CellResult[], suite: Suite): Comparison[] {
  const workloads = [...new Set(results.map(({ workload }) => workload))];
  return workloads.flatMap((workload) => {
    const rows = suite.policies.map(({ name }) => ({
      policy: name,
      costs: results.filter((r) => r.workload === workload && r.policy === name).map(({ summary }) => summary.cost),
    }));
    const reference = rows.find(({ policy }) => policy === suite.reference)!.costs;
    const best = Math.min(...rows.map(({ costs }) => mean(costs)));
    return rows.map(({ policy, costs }): Comparison => {
      const ratios = costs.map((cost, i) => Math.log(cost / reference[i]!));
      const { low, high } = interval(ratios, `${workload} ${policy}`);
      const cost = mean(costs);
      return {
        workload,
        policy,
        costs,
        cost,
        change: Math.exp(mean(ratios)) - 1,
        low: Math.exp(low) - 1,
        high: Math.exp(high) - 1,
        regret: cost / best - 1,
        verdict: policy === suite.reference ? 'reference' : verdict(Math.exp(low) - 1, Math.exp(high) - 1),
      };
    });
  });
}

/** 95 % interval of the mean by the bootstrap (Efron 1979), percentiles of 10,000 resamples. */
export function interval(values: readonly number[], name: string): { readonly low: number; readonly high: number } {
  const random = new RandomStream(1, name);
  const means = Float64Array.from({ length: RESAMPLES }, () => {
    let total = 0;
    for (let i = 0; i < values.length; i++) total += values[random.below(values.length)]!;
    return total / values.length;
  }).sort();
  return { low: means[Math.floor(0.025 * RESAMPLES)]!, high: means[Math.floor(0.975 * RESAMPLES)]! };
}

/** Better or worse when the whole interval is on one side, a tie when it lies within ±2 % or over the middle. */
function verdict(low: number, high: number): Comparison['verdict'] {
  if (low >= -TIE && high <= TIE) return 'tie';
  if (high < 0) return 'win';
  return low > 0 ? 'loss' : 'tie';
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
