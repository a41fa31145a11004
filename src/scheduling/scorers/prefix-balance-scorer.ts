import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { prefixMatchProducerName } from '../producer-names.js';

const parameters = () =>
  z.strictObject({
    imbalanceRequests: z
      .number()
      .min(0)
      .default(16)
      .describe('Difference in requests in flight between busiest and idlest above which only load counts.'),
    deviations: z
      .number()
      .min(0)
      .default(2)
      .describe('Standard deviations above the mean up to which an endpoint may be chosen for its cache.'),
    prefixMatchInfoProducerName: prefixMatchProducerName,
  });

export const prefixBalanceScorer = definePlugin({
  type: 'prefix-balance-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'The longest match wins among endpoints that are not much busier than the mean; when busiest and idlest differ ' +
    'by more ' +
    'than imbalanceRequests, the fewest requests in flight win.',
  source:
    "AIBrix's prefix-cache routing (vllm-project/aibrix), over requests in flight instead of scraped running ones",
  parameters,
  consumes: ({ prefixMatchInfoProducerName }) => [
    { key: 'prefix-match', producer: prefixMatchInfoProducerName },
    { key: 'in-flight-load' },
  ],
  operations: ['OP_SCORE_PREFIX_BALANCE'],
  compile: ({ imbalanceRequests, deviations }, weight, { name }) => ({
    code: 'OP_SCORE_PREFIX_BALANCE',
    name,
    weight,
    parameters: [imbalanceRequests, deviations],
  }),
});
