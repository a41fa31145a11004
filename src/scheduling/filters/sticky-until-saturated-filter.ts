import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { inFlightLoadProducerName, prefixMatchProducerName } from '../producer-names.js';

const parameters = () =>
  z.strictObject({
    affinityThreshold: z
      .number()
      .min(0)
      .max(1)
      .default(0.8)
      .describe('Share of the prompt that an endpoint must hold for the request to stay with it.'),
    saturationTokens: z
      .number()
      .min(0)
      .default(286_720)
      .describe('Tokens in flight above which an endpoint is saturated: prefill tokens per second × seconds to wait.'),
    prefixMatchInfoProducerName: prefixMatchProducerName,
    inFlightLoadProducerName,
  });

export const stickyUntilSaturatedFilter = definePlugin({
  type: 'sticky-until-saturated-filter',
  kinds: ['filter'],
  stability: 'Beta',
  doc:
    'Keeps the endpoints that hold the prompt as long as one of them is not saturated; then those that are not ' +
    'saturated; ' +
    'then all. An absolute limit, where prefix-cache-affinity-filter compares with the other endpoints.',
  source:
    'llm-d, token-aware routing of August 2026 ("sticky until saturated"; the default is its 20,480 tokens/s × 14 ' +
    's on H100)',
  parameters,
  consumes: ({ prefixMatchInfoProducerName, inFlightLoadProducerName }) => [
    { key: 'prefix-match', producer: prefixMatchInfoProducerName },
    { key: 'in-flight-load', producer: inFlightLoadProducerName },
  ],
  operations: ['OP_FILTER_STICKY'],
  compile: ({ affinityThreshold, saturationTokens }, weight, { name }) => ({
    code: 'OP_FILTER_STICKY',
    name,
    weight,
    parameters: [affinityThreshold, saturationTokens],
  }),
});
