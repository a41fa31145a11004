import { z } from 'zod';
import type { ConcurrencySettings } from '../../contract/saturation-settings.js';
import { definePlugin } from '../../scheduling/plugin.js';
import { inFlightLoadProducerName } from '../../scheduling/producer-names.js';
import { saturationFilter } from '../shedding.js';

const concurrencyDetectorParameters = () =>
  z.strictObject({
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
    failOpen: z
      .boolean()
      .default(false)
      .describe('As a filter: keep all endpoints when every one is at its limit, in place of refusing the request.'),
    inFlightLoadProducerName,
  });

export const concurrencyDetector = definePlugin({
  type: 'concurrency-detector',
  kinds: ['saturation-detector', 'filter'],
  stability: 'Beta',
  doc:
    'Saturation of the pool: what is in flight from here as a share of what may be. In a profile it is a filter: ' +
    'keeps ' +
    'endpoints with less in flight than their limit × (1 + headroom); with failOpen all when there is none.',
  parameters: concurrencyDetectorParameters,
  saturationSettings: settingsOf,
  consumes: ({ inFlightLoadProducerName }) => [{ key: 'in-flight-load', producer: inFlightLoadProducerName }],
  operations: ['OP_FILTER_CONCURRENCY'],
  compile: (given, weight, { name }) => ({ ...saturationFilter(settingsOf(given)), name, weight }),
  advise: ({ headroom }) =>
    headroom > 1 ? [`headroom ${headroom} is large: endpoints may go to ${1 + headroom} times their limits`] : [],
});

function settingsOf({
  concurrencyMode,
  maxConcurrency,
  maxTokenConcurrency,
  headroom,
  failOpen,
}: z.output<ReturnType<typeof concurrencyDetectorParameters>>): ConcurrencySettings {
  return {
    type: 'concurrency-detector',
    mode: concurrencyMode,
    maxConcurrency,
    maxTokenConcurrency,
    headroom,
    failOpen,
  };
}
