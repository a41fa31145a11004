import { type Coefficients, type CostTerm, costTerms } from '../core/coefficients.js';
import type { AdapterReport } from './adapter.js';
import { adaptationInWords } from './in-words.js';

/** What the learned costs amount to as weights of the usual scorers: cost, in targets, of one unit of what each looks at. */
export interface EffectiveWeights {
  /** 1,000 tokens that are not cached, on an endpoint at rest, their price to others included. */
  readonly context: number;
  /** 1,000 tokens of others that are to be prefilled first. */
  readonly queue: number;
  /** One request that the engine has waiting. */
  readonly waiting: number;
  /** One more running request of the usual length. */
  readonly activeRequest: number;
  /** 100,000 tokens held in the KV cache. */
  readonly kvTokens: number;
}

/** Tokens that a running request counts besides its own (assembly/scheduling/marginal-cost.ts). */
const SLOT_TOKENS = 130;

export function effectiveWeights(given: Coefficients): EffectiveWeights {
  const { firstOutputTargetMs: first, perTokenTargetMs: perToken, outputTokens, growthMs } = given;
  return {
    context: (given.prefillMsPerKiloToken * given.missPrice) / first,
    queue: given.prefillMsPerKiloToken / first,
    waiting: given.waitingMs / first,
    activeRequest: ((outputTokens / 2 + SLOT_TOKENS) / 1e5) * (growthMs / perToken),
    kvTokens: growthMs / perToken,
  };
}

/** Scorers of today's configurations that look at what a term is about. */
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

/** A report with the names of the endpoints and in the words of the documentation. */
export interface ShownAdaptation extends Omit<AdapterReport, 'endpoints' | 'inactive'> {
  /** The most important of it as sentences. */
  readonly inWords: readonly string[];
  readonly effectiveWeights: EffectiveWeights;
  /** Terms that have told endpoints apart in less than one percent of the decisions for five minutes, and who looks at them. */
  readonly inactive: readonly { readonly term: CostTerm; readonly scorers: readonly string[] }[];
  readonly endpoints: readonly { readonly endpoint: string; readonly speed: number; readonly reliability: number }[];
}

export function shownAdaptation(report: AdapterReport, nameOf: (slot: number) => string): ShownAdaptation {
  const shown = {
    ...report,
    effectiveWeights: effectiveWeights(report.coefficients),
    inactive: costTerms
      .filter((term) => report.inactive.includes(term))
      .map((term) => ({ term, scorers: scorersOf[term] })),
    endpoints: report.endpoints.map(({ slot, ...rest }) => ({ endpoint: nameOf(slot), ...rest })),
  };
  return { inWords: adaptationInWords(shown), ...shown };
}
