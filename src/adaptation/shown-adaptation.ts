import type { CostTerm } from '../core/coefficients.js';
import type { AdapterReport } from './adapter.js';

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

/** A report with the names of the endpoints and in the words of the documentation. */
export interface ShownAdaptation extends Omit<AdapterReport, 'endpoints' | 'inactive'> {
  /** The most important of it as sentences. */
  readonly inWords: readonly string[];
  readonly effectiveWeights: EffectiveWeights;
  /** Terms that have told endpoints apart in less than one percent of the decisions for five minutes, and who looks at them. */
  readonly inactive: readonly { readonly term: CostTerm; readonly scorers: readonly string[] }[];
  readonly endpoints: readonly { readonly endpoint: string; readonly speed: number; readonly reliability: number }[];
}
