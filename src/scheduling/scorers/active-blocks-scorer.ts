import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { prefixMatchProducerName } from '../producer-names.js';

const parameters = () =>
  z.strictObject({
    overlapWeight: z
      .number()
      .min(0)
      .default(1)
      .describe('Weight of the blocks that would have to be computed; 0 = pure load balancing, caches do not count.'),
    temperature: z
      .number()
      .min(0)
      .default(0)
      .describe('0 = the cheapest endpoint wins; larger values spread the picks over the endpoints near it.'),
    overlapCredit: z
      .number()
      .min(0)
      .default(1)
      .describe('Blocks of prefill that one block in the cache saves; above 1 affinity outweighs load for longer.'),
    overlapCreditDecay: z
      .number()
      .min(0)
      .default(0)
      .describe(
        'How fast the credit fades on an endpoint with more prompt tokens in flight than the least busy; 0 = never.',
      ),
    countPrefillInFlight: z
      .boolean()
      .default(false)
      .describe('Count the prompt tokens in flight as blocks to prefill as well, as Dynamo does.'),
    prefixMatchInfoProducerName: prefixMatchProducerName,
  });

export const activeBlocksScorer = definePlugin({
  type: 'active-blocks-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Prefers the endpoint with the least work, counted in blocks: cost = overlapWeight × max(prompt blocks - ' +
    'credit × ' +
    'blocks that it holds, 0) + blocks that would be active there with this request, each shared block counted once. ' +
    'Lower cost, higher score. overlapWeight 0 is pure load balancing.',
  source:
    "NVIDIA Dynamo's KV router (ai-dynamo/dynamo, pull requests 1731, 10574, 11714 and lib/llm/src/kv_router), in " +
    'blocks',
  parameters,
  consumes: ({ prefixMatchInfoProducerName }) => [{ key: 'prefix-match', producer: prefixMatchInfoProducerName }],
  operations: ['OP_SCORE_ACTIVE_BLOCKS'],
  compile: (given, weight, { name }) => ({
    code: 'OP_SCORE_ACTIVE_BLOCKS',
    name,
    weight,
    parameters: [
      given.overlapWeight,
      given.temperature,
      given.overlapCredit,
      given.overlapCreditDecay,
      given.countPrefillInFlight ? 1 : 0,
    ],
  }),
});
