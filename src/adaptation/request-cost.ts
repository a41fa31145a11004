import type { CostModelSettings } from '../config/adaptation.js';
import type { TrainingSample } from '../core/training-sample.js';

/** What one request came to, and what a request of its kind should come to on an idle endpoint; both in targets. */
export interface RequestCost {
  readonly cost: number;
  readonly reference: number;
  readonly promptTokens: number;
}

/** Times beyond this many targets are all the same: the request has failed its user. */
const COST_MAX = 20;

/**
 * Cost of a finished request for the guard: times in units of their targets, failed ones as the worst. The reference, by the
 * assumed coefficients and the best cache there was, takes length and mix of requests out of the comparison.
 * Undefined for a request that says nothing: the client left, was refused, or was answered by somebody else.
 */
export function requestCost(sample: TrainingSample, settings: CostModelSettings): RequestCost | undefined {
  const { firstOutputTargetMs, perTokenTargetMs, prior } = settings;
  const uncached = Math.max(0, sample.promptTokens - sample.bestCachedTokens) / 1000;
  const firstMs = prior.baseMs + prior.prefillMsPerKiloToken * uncached;
  const both = firstMs / firstOutputTargetMs + prior.stepMs / perTokenTargetMs;
  const { promptTokens } = sample;
  if (sample.outcome === 'failed') return { cost: COST_MAX, reference: both, promptTokens };
  if (sample.outcome !== 'completed') return undefined;
  if (sample.firstOutputMs === undefined) return wholeCost(sample, settings, firstMs);
  const first = Math.min(sample.firstOutputMs / firstOutputTargetMs, COST_MAX);
  if (sample.perTokenMs === undefined) return { cost: first, reference: firstMs / firstOutputTargetMs, promptTokens };
  return { cost: first + Math.min(sample.perTokenMs / perTokenTargetMs, COST_MAX), reference: both, promptTokens };
}

/** An answer in one piece, against the target of all its parts together; twice, as the other has two parts. */
function wholeCost(sample: TrainingSample, settings: CostModelSettings, firstMs: number): RequestCost | undefined {
  const { firstOutputTargetMs, perTokenTargetMs, prior } = settings;
  const output = sample.outputTokens;
  if (output === undefined || output === 0) return undefined;
  const targetMs = firstOutputTargetMs + output * perTokenTargetMs;
  return {
    cost: 2 * Math.min(sample.durationMs / targetMs, COST_MAX),
    reference: (2 * (firstMs + output * prior.stepMs)) / targetMs,
    promptTokens: sample.promptTokens,
  };
}
