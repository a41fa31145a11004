import type { CostModelSettings } from '../config/adaptation.js';
import type { Label } from '../core/label.js';

/** What one request came to, and what a request of its kind should come to on an idle endpoint; both in targets. */
export interface RequestCost {
  readonly cost: number;
  readonly reference: number;
  readonly promptTokens: number;
}

/** Times beyond this many targets are all the same: the request has failed its user. */
const MOST = 20;

/**
 * Cost of a finished request for the guard: times in units of their targets, failed ones as the worst. The reference, by the
 * assumed coefficients and the best cache there was, takes length and mix of requests out of the comparison.
 * Undefined for a request that says nothing: the client left, was refused, or was answered by somebody else.
 */
export function requestCost(label: Label, settings: CostModelSettings): RequestCost | undefined {
  const { firstOutputTargetMs, perTokenTargetMs, prior } = settings;
  const uncached = Math.max(0, label.promptTokens - label.bestCachedTokens) / 1000;
  const firstMs = prior.baseMs + prior.prefillMsPerKiloToken * uncached;
  const both = firstMs / firstOutputTargetMs + prior.stepMs / perTokenTargetMs;
  const { promptTokens } = label;
  if (label.outcome === 'failed') return { cost: MOST, reference: both, promptTokens };
  if (label.outcome !== 'completed') return undefined;
  if (label.firstOutputMs === undefined) return wholeCost(label, settings, firstMs);
  const first = Math.min(label.firstOutputMs / firstOutputTargetMs, MOST);
  if (label.perTokenMs === undefined) return { cost: first, reference: firstMs / firstOutputTargetMs, promptTokens };
  return { cost: first + Math.min(label.perTokenMs / perTokenTargetMs, MOST), reference: both, promptTokens };
}

/** An answer in one piece, against the target of all its parts together; twice, as the other has two parts. */
function wholeCost(label: Label, settings: CostModelSettings, firstMs: number): RequestCost | undefined {
  const { firstOutputTargetMs, perTokenTargetMs, prior } = settings;
  const output = label.outputTokens;
  if (output === undefined || output === 0) return undefined;
  const targetMs = firstOutputTargetMs + output * perTokenTargetMs;
  return {
    cost: 2 * Math.min(label.durationMs / targetMs, MOST),
    reference: (2 * (firstMs + output * prior.stepMs)) / targetMs,
    promptTokens: label.promptTokens,
  };
}
