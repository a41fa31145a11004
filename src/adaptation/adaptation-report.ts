import { type Coefficients, type CostTerm, costTerms } from '../core/coefficients.js';
import { CORE } from '../core/core-names.js';
import type { AdapterReport } from './adapter.js';
import { adaptationInWords } from './explanation-text.js';
import type { EffectiveWeights, ShownAdaptation } from './shown-adaptation.js';

export function effectiveWeights(given: Coefficients): EffectiveWeights {
  const { firstOutputTargetMs: first, perTokenTargetMs: perToken, outputTokens, growthMs } = given;
  return {
    context: (given.prefillMsPerKiloToken * given.missPrice) / first,
    queue: given.prefillMsPerKiloToken / first,
    waiting: given.waitingMs / first,
    activeRequest: ((outputTokens / 2 + CORE.SLOT_TOKENS) / CORE.KV_TOKENS) * (growthMs / perToken),
    kvTokens: growthMs / perToken,
  };
}

/** Scorers of common configurations that measure the subject of each term. */
export const scorersOf: Readonly<Record<CostTerm, readonly string[]>> = {
  context: ['prefix-cache-scorer', 'no-hit-lru-scorer', 'prefix-balance-scorer', 'exploit-explore-scorer'],
  queue: ['token-load-scorer', 'lmetric-scorer'],
  waiting: ['queue-scorer', 'load-aware-scorer'],
  decode: [
    'running-requests-size-scorer',
    'active-request-scorer',
    'active-blocks-scorer',
    'kv-cache-utilization-scorer',
  ],
  capacity: [],
};

export function shownAdaptation(report: AdapterReport, nameOf: (slot: number) => string): ShownAdaptation {
  const shown = {
    ...report,
    fit: { ...report.fit, labels: report.fit.samples },
    labels: report.samples,
    effectiveWeights: effectiveWeights(report.coefficients),
    inactive: costTerms
      .filter((term) => report.inactive.includes(term))
      .map((term) => ({ term, scorers: scorersOf[term] })),
    endpoints: report.endpoints.map(({ slot, ...rest }) => ({ endpoint: nameOf(slot), ...rest })),
  };
  return { inWords: adaptationInWords(shown), ...shown };
}
