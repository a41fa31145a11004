import type { Suite, SuiteWorkload } from './schema.js';
import type { RunResult } from './suite-run.js';

/** Time after a shift until a policy reached its lasting gain over the reference. */
export interface AdaptationSpeed {
  readonly workload: string;
  readonly part: string;
  /** Mean of the log ratios of cost to the reference over the second half of the part; below 0 = cheaper. */
  readonly steady: number;
  /**
   * Seconds after which a window of 30 s had 90 % of that; undefined when there is no gain to speak of, or it never
   * had.
   */
  readonly seconds: number | undefined;
}

const WINDOW_SECONDS = 30;
/** Share of the steady gain that counts as reached. */
const REACHED = 0.9;
/** Gain below which a steady state has none, as a share. */
const GAIN_MIN = 0.02;

/** For every part of a shift: how soon `policy` had its gain, by the means over the seeds. */
export function adaptationSpeed(results: readonly RunResult[], suite: Suite, policy: string): AdaptationSpeed[] {
  return suite.workloads.flatMap((workload) => {
    const parts = partsOf(suite, workload);
    const runs = (name: string) => results.filter((run) => run.workload === workload.name && run.policy === name);
    const [own, reference] = [runs(policy), runs(suite.reference)];
    if (parts.length < 2 || own.length === 0 || own.length !== reference.length) return [];
    let from = 0;
    return parts.map(({ workload: part, seconds }) => {
      const gains = gainsBetween(own, reference, from, from + seconds);
      from += seconds;
      return { workload: workload.name, part, ...speedOf(gains) };
    });
  });
}

function partsOf(suite: Suite, workload: SuiteWorkload): readonly { workload: string; seconds: number }[] {
  const base =
    workload.kind === 'variant'
      ? suite.workloads.find(({ name }) => name === (workload as Extract<SuiteWorkload, { kind: 'variant' }>).of)
      : workload;
  return base?.kind === 'sequence' ? (base as Extract<SuiteWorkload, { kind: 'sequence' }>).parts : [];
}

interface Gain {
  readonly seconds: number;
  /** Mean over the seeds of ln(cost/cost of the reference) of one window. */
  readonly log: number;
}

/** Gains of the windows that lie within a part, by the time since its beginning. */
function gainsBetween(own: readonly RunResult[], reference: readonly RunResult[], from: number, to: number): Gain[] {
  const windowSeconds = own[0]!.summary.timeline.windowMs / 1e3;
  return own[0]!.summary.timeline.cost.flatMap((_, window) => {
    const seconds = window * windowSeconds;
    if (seconds < from || seconds + windowSeconds > to) return [];
    const logs = own.flatMap(({ summary }, seed) => {
      const [cost, base] = [summary.timeline.cost[window], reference[seed]!.summary.timeline.cost[window]];
      return cost && base ? [Math.log(cost / base)] : [];
    });
    return logs.length === 0 ? [] : [{ seconds: seconds - from, log: mean(logs) }];
  });
}

function speedOf(gains: readonly Gain[]): Pick<AdaptationSpeed, 'steady' | 'seconds'> {
  const half = gains.slice(Math.floor(gains.length / 2));
  const steady = half.length === 0 ? 0 : mean(half.map(({ log }) => log));
  if (steady > -GAIN_MIN) return { steady, seconds: undefined };
  const reached = gains.find(({ seconds }) => {
    const window = gains.filter((other) => other.seconds >= seconds && other.seconds < seconds + WINDOW_SECONDS);
    return mean(window.map(({ log }) => log)) <= REACHED * steady;
  });
  return { steady, seconds: reached?.seconds };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
