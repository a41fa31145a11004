import { z } from 'zod';
import type { EndpointTable } from '../../core/endpoint-table.js';
import { definePlugin } from '../../scheduling/plugin.js';
import type { ConcurrencySettings } from '../settings.js';

/**
 * Saturation by the requests in flight against the capacity of the endpoints. `hybrid` is the mean over the endpoints
 * of the larger ratio (llm-d-router's concurrency-detector).
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

export const concurrencyDetectorParameters = z.strictObject({
  concurrencyMode: z
    .enum(['requests', 'tokens', 'hybrid'])
    .default('requests')
    .describe('What is counted; hybrid takes the larger share of both for each endpoint.'),
  maxConcurrency: z.int().min(1).default(100).describe('Requests in flight at which an endpoint is saturated.'),
  maxTokenConcurrency: z
    .int()
    .min(1)
    .default(1_000_000)
    .describe('Tokens in flight at which an endpoint is saturated.'),
  headroom: z.number().min(0).default(0).describe('Share above the limits that is still allowed.'),
  inFlightLoadProducerName: z
    .string()
    .default('inflight-load-producer')
    .describe('Name of the plugin that counts in-flight load.'),
});

export const concurrencyDetector = definePlugin({
  type: 'concurrency-detector',
  kinds: ['saturation-detector', 'filter'],
  stability: 'Beta',
  doc:
    'Saturation of the pool: what is in flight from here as a share of what may be. In a profile it is a filter: keeps ' +
    'endpoints with less in flight than their limit × (1 + headroom).',
  parameters: concurrencyDetectorParameters,
  saturationSettings: ({ concurrencyMode, maxConcurrency, maxTokenConcurrency, headroom }) => ({
    type: 'concurrency-detector',
    mode: concurrencyMode,
    maxConcurrency,
    maxTokenConcurrency,
    headroom,
  }),
  consumes: ({ inFlightLoadProducerName }) => [{ key: 'in-flight-load', producer: inFlightLoadProducerName }],
  compile: ({ concurrencyMode, maxConcurrency, maxTokenConcurrency, headroom }, weight, { name }) => ({
    code: 'OP_FILTER_CONCURRENCY',
    name,
    weight,
    parameters: [
      concurrencyMode === 'tokens' ? Number.POSITIVE_INFINITY : maxConcurrency * (1 + headroom),
      concurrencyMode === 'requests' ? Number.POSITIVE_INFINITY : maxTokenConcurrency * (1 + headroom),
    ],
  }),
  advise: ({ headroom }) =>
    headroom > 1 ? [`headroom ${headroom} is large: endpoints may go to ${1 + headroom} times their limits`] : [],
});
