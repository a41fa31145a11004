import type { GuardSettings } from '../config/adaptation.js';
import type { ArmComparison } from './arm-comparison.js';
import type { Comparison } from './comparison.js';

/** Input of the guard at every tick. */
export interface Evidence {
  /** Samples learned from since the model was reset. */
  readonly samples: number;
  /** Milliseconds since the start, or since the model was reset. */
  readonly learningMs: number;
  /** Rank correlation of predicted and observed times to first output; undefined = cannot be computed. */
  readonly correlation: number | undefined;
  /** Median of ln(observed/predicted). */
  readonly bias: number | undefined;
  /** Share of finished requests that were usable as samples; undefined = too few requests. */
  readonly sampledShare: number | undefined;
  /** Whether all coefficients are finite and positive where they must be. */
  readonly sound: boolean;
  /** Milliseconds for which requests have waited on every endpoint. */
  readonly overloadedMs: number;
  /** 90th percentiles of the times to the end and to the first output; undefined = unknown. */
  readonly durationMs: number | undefined;
  readonly firstOutputMs: number | undefined;
  /** Samples per millisecond. */
  readonly sampleRate: number;
}

/** States in which learned costs drive epochs. */
export type DrivingState = 'canary' | 'active';

/** Comparisons of the slowest hundredth: ln(TTFT p99) and ln(TPOT p99). */
export interface Tails {
  readonly firstOutput: Comparison;
  readonly perToken: Comparison;
}

/** What the comparison of both arms has found so far. */
export interface Findings {
  /** Whole epochs, by cost or by goodput. */
  readonly arms: Pick<ArmComparison, 'measure' | 'decisive'>;
  /** The slowest hundredth, by its times to the first output and by those per output token. */
  readonly tails: Tails;
}

/** Minimum of epochs of the learned arm before the state `active`. */
export const EPOCHS_MIN = 2;
/**
 * Thresholds for stopping, in half widths of the 95 % interval. A canary stops early: it will be repeated, and its
 * cache misses are expensive. An active model stops only at p < 1/400.
 */
const BEYOND_CHANCE = { canary: 1, active: 1.5 } as const;
/**
 * Half widths of the 95 % interval beyond which one estimate in ten errs, on one side. By so many the mean must lie
 * below the budget for learned costs to be switched on. Active learned costs are compared further, so an error is found
 * and costs little.
 */
export const ONE_IN_TEN = 0.65;
/** Log cost ratio to an epoch of the configured weights from which on an epoch of learned costs is not waited for. */
export const ALARMING = Math.log(1.35);
/** Multiple of the configured weights' TTFT p99 or TPOT p99 from which on learned costs are worse, by any mean. */
const SLOW_TAIL = Math.log(1.5);
/** As BEYOND_CHANCE, of the slowest hundredth, whose results vary more. */
const TAIL_BEYOND_CHANCE = { canary: 1.5, active: 2.5 } as const;
/** Rank correlation below which predictions say next to nothing about which endpoint is faster. */
const CORRELATION_MIN = 0.1;
/**
 * Time to learn before the first try, in 90th percentiles of the requests' durations, and its bound in epochs. What
 * ends sooner is short, or came while the pool filled: a slow endpoint has hardly been seen.
 */
const DURATIONS_MIN = 4;
const EPOCHS_WAITED_MAX = 5;
/** Samples from which on the median bias is judged, and its bound in either direction, as ln(observed/predicted). */
const BIAS_SAMPLES_MIN = 300;
const BIAS_MAX = Math.log(4);
/** Share of the finished requests that must be usable as samples. */
const SAMPLED_MIN = 0.5;

/** Reason why learned costs may not be tried yet. */
export function obstacle(evidence: Evidence, settings: GuardSettings): string | undefined {
  const { samples, correlation } = settings;
  if (evidence.samples < samples)
    return `${evidence.samples} of ${samples} requests that have to be learned from first`;
  const wantedMs = Math.min(DURATIONS_MIN * (evidence.durationMs ?? 0), EPOCHS_WAITED_MAX * settings.epochMs);
  if (evidence.learningMs < wantedMs) {
    const [learned, wanted] = [evidence.learningMs, wantedMs].map((ms) => Math.round(ms / 1000));
    return `learned for ${learned} of ${wanted} s, four times as long as a long request takes`;
  }
  if ((evidence.correlation ?? -1) <= correlation) {
    return (
      `predictions do not rank the requests (rank correlation ${evidence.correlation?.toFixed(2) ?? 'unknown'}, ` +
      `wanted above ${correlation})`
    );
  }
  return unreliable(evidence, settings);
}

/** Reason why the model is unreliable. */
export function unreliable(evidence: Evidence, settings: GuardSettings): string | undefined {
  const { sound, samples, correlation, bias, sampledShare } = evidence;
  if (!sound) return 'a coefficient is not a number or out of range';
  if (samples >= settings.samples && correlation !== undefined && correlation < CORRELATION_MIN) {
    return (
      'predicted and observed times to first output hardly go together (rank correlation ' +
      `${correlation.toFixed(2)})`
    );
  }
  if (samples >= BIAS_SAMPLES_MIN && bias !== undefined && Math.abs(bias) > BIAS_MAX) {
    return `observed times are ${Math.exp(bias).toFixed(1)} times the predicted ones`;
  }
  if (sampledShare !== undefined && sampledShare < SAMPLED_MIN) {
    return `only ${Math.round(sampledShare * 100)} % of the requests can be learned from`;
  }
  return undefined;
}

/** Reason when the learned costs are significantly worse. */
export function worse(findings: Findings, state: DrivingState): string | undefined {
  const { arms, tails } = findings;
  const { gap } = arms.decisive;
  if (arms.decisive.epochs('learned') === 0) return undefined;
  for (const [tail, what] of [
    [tails.firstOutput, 'the first output'],
    [tails.perToken, 'an output token'],
  ] as const) {
    if (!isSlow(tail, state)) continue;
    const times = Math.exp(tail.gap.mean).toFixed(1);
    return `the slowest hundredth waits ${times} times as long for ${what} as with the configured weights`;
  }
  if (gap.mean <= BEYOND_CHANCE[state] * gap.halfWidth) return undefined;
  if (arms.measure === 'goodput') {
    const fewer = Math.round(-Math.expm1(-gap.mean) * 100);
    return `${fewer} % fewer requests met their latency targets than with the configured weights`;
  }
  return `requests cost ${Math.round(Math.expm1(gap.mean) * 100)} % more than with the configured weights`;
}

/**
 * Reason of a stop by the cost of single epochs.
 * @param excess ln of their cost over that of the configured weights
 * @param when epochs of the configured weights that say so
 */
export function dear(excess: number, when: 'just before' | 'before and after'): string {
  return `requests cost ${Math.exp(excess).toFixed(1)} times as much as with the configured weights ${when}`;
}

/** Whether the slowest hundredth may be much slower with learned costs: a suspicion, with or without significance. */
export function suspectsTail({ firstOutput, perToken }: Tails): boolean {
  return isSuspect(firstOutput) || isSuspect(perToken);
}

function isSuspect(tail: Comparison): boolean {
  return tail.gap.mean >= SLOW_TAIL;
}

function isSlow(tail: Comparison, state: DrivingState): boolean {
  const { mean, halfWidth } = tail.gap;
  return tail.epochs('learned') > 0 && isSuspect(tail) && mean > TAIL_BEYOND_CHANCE[state] * halfWidth;
}

/**
 * Whether learned costs are no worse than the configured weights by more than the budget, and their slowest hundredth
 * is not under suspicion.
 */
export function proven({ arms, tails }: Pick<Findings, 'arms' | 'tails'>, settings: GuardSettings): boolean {
  const { gap } = arms.decisive;
  if (arms.decisive.epochs('learned') < EPOCHS_MIN || suspectsTail(tails)) return false;
  return gap.mean + ONE_IN_TEN * gap.halfWidth < Math.log1p(settings.budget);
}
