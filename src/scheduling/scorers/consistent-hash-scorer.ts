import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { hashedPair, hashKeyParameters } from './hash-key.js';

export const consistentHashScorer = definePlugin({
  type: 'consistent-hash-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Sends requests with the same header value to the same endpoint by a hash ring: the first place after the key ' +
    'wins, ' +
    'score 1 / (1 + distance). Endpoints above loadFactor × mean requests score 0. Without the header 0.5 for all.',
  source:
    'consistent hashing (Karger and others 1997; SGLang Model Gateway consistent_hashing), bounded loads ' +
    '(Mirrokni, Thorup, Zadimoghaddam 2016)',
  parameters: () =>
    z.strictObject({
      ...hashKeyParameters(),
      virtualNodes: z
        .int()
        .min(1)
        .max(256)
        .default(32)
        .describe('Places of each endpoint on the ring: more spread keys more evenly and cost more time.'),
    }),
  consumes: () => [{ key: 'in-flight-load' }],
  operations: ['OP_SCORE_CONSISTENT_HASH'],
  compile: ({ headerName, loadFactor, virtualNodes }, weight, context) => ({
    code: 'OP_SCORE_CONSISTENT_HASH',
    name: context.name,
    weight,
    parameters: [...hashedPair(headerName, context), loadFactor, virtualNodes],
  }),
});
