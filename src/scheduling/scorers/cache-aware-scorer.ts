import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { prefixMatchProducerName } from '../producer-names.js';

const parameters = () =>
  z.strictObject({
    cacheThreshold: z
      .number()
      .min(0)
      .max(1)
      .default(0.3)
      .describe('Share of the prompt that the longest match must exceed for affinity to count.'),
    balanceAbsThreshold: z
      .number()
      .min(0)
      .default(64)
      .describe('Requests in flight above the mean from which on an endpoint may be overloaded.'),
    balanceRelThreshold: z
      .number()
      .min(1)
      .default(1.5)
      .describe('Multiple of the mean from which on an endpoint may be overloaded; both bounds must be passed.'),
    prefixMatchInfoProducerName: prefixMatchProducerName,
  });

export const cacheAwareScorer = definePlugin({
  type: 'cache-aware-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Holders of the longest match first, unless they are overloaded: they score above 0.5, all others at most 0.5; ' +
    'among ' +
    'each, fewer requests in flight score higher.',
  source: 'SGLang Model Gateway, cache_aware of August 2026 (overload is judged per request, at the chosen endpoint)',
  parameters,
  consumes: ({ prefixMatchInfoProducerName }) => [
    { key: 'prefix-match', producer: prefixMatchInfoProducerName },
    { key: 'in-flight-load' },
  ],
  operations: ['OP_SCORE_CACHE_AWARE'],
  compile: ({ cacheThreshold, balanceAbsThreshold, balanceRelThreshold }, weight, { name }) => ({
    code: 'OP_SCORE_CACHE_AWARE',
    name,
    weight,
    parameters: [cacheThreshold, balanceAbsThreshold, balanceRelThreshold],
  }),
});
