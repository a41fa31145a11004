import type { PredictionSettings } from '../contract/prediction-settings.js';
import type { LatencyCoefficients } from '../core/latency-predictions.js';
import type { CoefficientPrior } from './scaled-ridge.js';

/** Priors of both times, by feature in the order of `predictionFeatures`. Milliseconds. */
export interface LatencyPriors {
  readonly ttft: readonly CoefficientPrior[];
  readonly tpot: readonly CoefficientPrior[];
}

const HOUR_MS = 3_600_000;

/** Features of a typical request: 1,000 tokens, as many in flight, one waiting request, four in flight, 30 % in use. */
const TYPICAL = [1, 1, 1, 1, 4, 0.3, 1] as const;

/** Coefficients are at least 0: every feature of the model delays the answer. */
function priors(values: readonly number[], maxima: readonly number[]): readonly CoefficientPrior[] {
  return values.map((value, i) => ({ value, magnitude: TYPICAL[i]!, min: 0, max: maxima[i]! }));
}

/**
 * Beliefs of the model before it has learned. Constants are explained in docs/internals/learning.md: 25 ms until an
 * idle endpoint answers, 5 ms for each waiting request, 4 ms per output token for each 100,000 tokens in the KV cache
 * (here 2,000 for each request in flight). Computing a thousand prompt tokens takes what the throughput says.
 */
export function latencyPriors({ prefillTokensPerSecond, tpotMs }: PredictionSettings['prior']): LatencyPriors {
  const prefill = 1e6 / prefillTokensPerSecond;
  return {
    ttft: priors(
      [25, prefill, prefill, 5, 0, 0, 0],
      [HOUR_MS, 20 * prefill, 20 * prefill, 10_000, 10_000, 60_000, 20 * prefill],
    ),
    tpot: priors([tpotMs, 0, 0, 0, 0.08, 0, 0], [10_000, 100, 1_000, 100, 100, 1_000, 100]),
  };
}

/** The coefficients that the model starts with. */
export function priorCoefficients({ ttft, tpot }: LatencyPriors): LatencyCoefficients {
  return { ttft: ttft.map(({ value }) => value), tpot: tpot.map(({ value }) => value) };
}
