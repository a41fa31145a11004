import type { EndpointTable } from '../../core/endpoint-table.js';

/** Capacities of the concurrency-detector, per endpoint. */
export interface ConcurrencySettings {
  readonly type: 'concurrency-detector';
  readonly mode: 'requests' | 'tokens' | 'hybrid';
  /** Requests in flight. */
  readonly maxConcurrency: number;
  /** Uncached prompt tokens in flight. */
  readonly maxTokenConcurrency: number;
}

/**
 * What is in flight from here against what the endpoints may hold; hybrid is the mean over the endpoints of the larger
 * ratio (llm-d-router's concurrency-detector).
 */
export function concurrency(table: EndpointTable, slots: readonly number[], settings: ConcurrencySettings): number {
  let requests = 0;
  let tokens = 0;
  let larger = 0;
  for (const slot of slots) {
    const { inflight, inflightTokens } = table.read(slot);
    requests += inflight / settings.maxConcurrency;
    tokens += inflightTokens / settings.maxTokenConcurrency;
    larger += Math.max(inflight / settings.maxConcurrency, inflightTokens / settings.maxTokenConcurrency);
  }
  const sum = { requests, tokens, hybrid: larger }[settings.mode];
  return sum / slots.length;
}
