import type { CostModelSettings } from '../config/adaptation.js';
import type { TrainingSample } from '../core/training-sample.js';

/** Cost of one request, and expected cost of such a request on an idle endpoint; both in units of the targets. */
export interface RequestCost {
  readonly cost: number;
  readonly reference: number;
  readonly promptTokens: number;
  /** Milliseconds to the first output; undefined where it was not seen. */
  readonly firstOutputMs?: number | undefined;
  /** Milliseconds per output token; undefined where they were not seen. */
  readonly perTokenMs?: number | undefined;
  /** Whether the request met its own latency targets; undefined = it had none, or it cannot be said. */
  readonly targetsMet?: boolean | undefined;
}

/** Bound on a time in targets: beyond it the request has failed its user. */
const COST_MAX = 20;

/**
 * Cost of a finished request for the guard: times in units of their targets; a failed request counts as the worst. The
 * reference is computed from the assumed coefficients and the best cache of any candidate, which takes the length and
 * mix of requests out of the comparison. Undefined for a request without evidence: cancelled, refused, or answered by
 * another endpoint.
 */
export function requestCost(sample: TrainingSample, settings: CostModelSettings): RequestCost | undefined {
  const { firstOutputTargetMs, perTokenTargetMs, prior } = settings;
  const uncached = Math.max(0, sample.promptTokens - sample.bestCachedTokens) / 1000;
  const firstMs = prior.baseMs + prior.prefillMsPerKiloToken * uncached;
  const both = firstMs / firstOutputTargetMs + prior.stepMs / perTokenTargetMs;
  const { promptTokens, firstOutputMs, targetsMet } = sample;
  if (sample.outcome === 'failed') return { cost: COST_MAX, reference: both, promptTokens, targetsMet };
  if (sample.outcome !== 'completed') return undefined;
  if (sample.firstOutputMs === undefined) return wholeCost(sample, settings, firstMs);
  const first = Math.min(sample.firstOutputMs / firstOutputTargetMs, COST_MAX);
  if (sample.perTokenMs === undefined) {
    return { cost: first, reference: firstMs / firstOutputTargetMs, promptTokens, firstOutputMs, targetsMet };
  }
  return {
    cost: first + Math.min(sample.perTokenMs / perTokenTargetMs, COST_MAX),
    reference: both,
    promptTokens,
    firstOutputMs,
    perTokenMs: sample.perTokenMs,
    targetsMet,
  };
}

/**
 * Cost of an answer in one piece: its time against the target of all parts, counted twice like the two parts of a
 * stream.
 */
function wholeCost(sample: TrainingSample, settings: CostModelSettings, firstMs: number): RequestCost | undefined {
  const { firstOutputTargetMs, perTokenTargetMs, prior } = settings;
  const output = sample.outputTokens;
  if (output === undefined || output === 0) return undefined;
  const targetMs = firstOutputTargetMs + output * perTokenTargetMs;
  return {
    cost: 2 * Math.min(sample.durationMs / targetMs, COST_MAX),
    reference: (2 * (firstMs + output * prior.stepMs)) / targetMs,
    promptTokens: sample.promptTokens,
    targetsMet: sample.targetsMet,
  };
}
