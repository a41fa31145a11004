import type { CostTerm } from '../core/coefficients.js';
import type { AdapterReport } from './adapter.js';

/** The learned costs as weights of the usual scorers: cost in targets of one unit of each scorer's subject. */
export interface EffectiveWeights {
  /** 1,000 uncached tokens on an idle endpoint, the delay of other requests included. */
  readonly context: number;
  /** 1,000 tokens of other requests that are prefilled first. */
  readonly queue: number;
  /** One request in the engine's queue. */
  readonly waiting: number;
  /** One more running request of average length. */
  readonly activeRequest: number;
  /** 100,000 tokens held in the KV cache. */
  readonly kvTokens: number;
}

/** A report with the endpoints' names and the terms of the documentation. */
export interface ShownAdaptation extends Omit<AdapterReport, 'endpoints' | 'inactive' | 'fit'> {
  /** `labels` is the former name of `samples`. */
  readonly fit: AdapterReport['fit'] & { readonly labels: number };
  /** Former name of `samples`. */
  readonly labels: AdapterReport['samples'];
  /** Summary of the report as sentences. */
  readonly inWords: readonly string[];
  readonly effectiveWeights: EffectiveWeights;
  /**
   * Terms that distinguished endpoints in less than 1 % of the decisions for five minutes, and the scorers of their
   * subject.
   */
  readonly inactive: readonly { readonly term: CostTerm; readonly scorers: readonly string[] }[];
  readonly endpoints: readonly { readonly endpoint: string; readonly speed: number; readonly reliability: number }[];
}
