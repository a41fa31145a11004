import { RandomStream } from '../fleet/random-stream.js';
import type { Suite } from './schema.js';
import { holm, pairedP } from './significance.js';
import type { RunResult } from './suite-run.js';

/** Results of one policy on one workload, over its seeds. */
export interface Comparison {
  readonly workload: string;
  readonly policy: string;
  /** Cost of every seed, in their order. */
  readonly costs: readonly number[];
  readonly cost: number;
  /**
   * Mean of the paired log ratios to the reference, as a ratio - 1, with a 95 % interval; of the reference itself 0.
   */
  readonly change: number;
  readonly low: number;
  readonly high: number;
  /** Chance of such a change when there is none, by the paired t-test, corrected for the number of workloads (Holm). */
  readonly p: number;
  /** Cost over that of the best policy of this workload - 1. */
  readonly regret: number;
  readonly verdict: Verdict;
  /** Cost without the bound of 20 on each part of a request, and its change against the reference. */
  readonly uncapped: number;
  readonly uncappedChange: number;
  /**
   * TTFT of the slowest hundredth, in milliseconds, and as a multiple of the reference's: geometric mean of the seeds.
   */
  readonly ttftP99: number;
  readonly ttftP99Ratio: number;
  /**
   * Whether the slowest hundredth waits SLOW_TAIL times as long as the reference's or longer, whatever the mean says.
   */
  readonly slowTail: boolean;
}

/** open: neither a tie nor a difference that the seeds could show. */
export type Verdict = 'win' | 'tie' | 'loss' | 'open' | 'reference';

/** Half-width of the interval in which a change is no difference in practice. */
const TIE = 0.02;
const RESAMPLES = 10_000;
const SIGNIFICANT = 0.05;
/** Multiple of the reference's TTFT p99 from which on a policy is marked. */
export const SLOW_TAIL = 1.5;

/** Compares all policies that ran with the reference, workload by workload, on equal seeds. */
export function compare(results: readonly RunResult[], suite: Suite): Comparison[] {
  const workloads = [...new Set(results.map(({ workload }) => workload))];
  const rows = workloads.flatMap((workload) => {
    const rows = suite.policies
      .map(({ name }) => seriesOf(results, workload, name))
      .filter(({ costs }) => costs.length > 0);
    const reference = rows.find(({ policy }) => policy === suite.reference)!;
    const best = Math.min(...rows.map(({ costs }) => mean(costs)));
    return rows.map(({ policy, costs, uncapped, ttftP99 }): Comparison => {
      const ratios = logRatios(costs, reference.costs);
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
        p: pairedP(ratios),
        regret: cost / best - 1,
        verdict: policy === suite.reference ? 'reference' : 'open',
        uncapped: mean(uncapped),
        uncappedChange: Math.expm1(mean(logRatios(uncapped, reference.uncapped))),
        ttftP99: mean(ttftP99),
        ...tailOf(ttftP99, reference.ttftP99),
      };
    });
  });
  return suite.policies
    .flatMap(({ name }) => judged(rows.filter(({ policy }) => policy === name)))
    .sort((a, b) => workloads.indexOf(a.workload) - workloads.indexOf(b.workload));
}

/** Compared figure of a policy on a workload, a number per seed. */
interface Series {
  readonly policy: string;
  readonly costs: readonly number[];
  readonly uncapped: readonly number[];
  readonly ttftP99: readonly number[];
}

function seriesOf(results: readonly RunResult[], workload: string, policy: string): Series {
  const own = results.filter((run) => run.workload === workload && run.policy === policy);
  return {
    policy,
    costs: own.map(({ summary }) => summary.cost),
    uncapped: own.map(({ summary }) => summary.uncappedCost),
    ttftP99: own.map(({ summary }) => summary.ttft.p99),
  };
}

function logRatios(values: readonly number[], reference: readonly number[]): number[] {
  return values.map((value, i) => Math.log(value / reference[i]!));
}

/** A run in which nothing was served has no tail to compare. */
function tailOf(own: readonly number[], reference: readonly number[]): Pick<Comparison, 'ttftP99Ratio' | 'slowTail'> {
  const known = logRatios(own, reference).filter(Number.isFinite);
  const ttftP99Ratio = known.length === 0 ? 1 : Math.exp(mean(known));
  return { ttftP99Ratio, slowTail: ttftP99Ratio >= SLOW_TAIL };
}

/** One policy on all workloads: as many chances to look better than it is. */
function judged(rows: readonly Comparison[]): Comparison[] {
  const corrected = holm(rows.map(({ p }) => p));
  return rows.map((row, i) => {
    const p = corrected[i]!;
    return { ...row, p, verdict: row.verdict === 'reference' ? row.verdict : verdict(row, p) };
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

/** A tie when the whole interval lies within ±2 %; better or worse when it is on one side and the test agrees. */
function verdict({ costs, low, high }: Comparison, p: number): Verdict {
  // The interval of a single seed has no width, and says nothing.
  if (costs.length < 2) return 'open';
  if (low >= -TIE && high <= TIE) return 'tie';
  if (p >= SIGNIFICANT) return 'open';
  if (high < 0) return 'win';
  return low > 0 ? 'loss' : 'open';
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
