import { z } from 'zod';
import type { DataNeed } from '../plugin.js';
import { definePlugin } from '../plugin.js';

const parameters = () =>
  z.strictObject({
    addEstimatedOutputTokens: z
      .boolean()
      .default(false)
      .describe(
        'Count the expected output as well as the prompt: 4096, 1000 or 100 tokens by its class, see outlen-bucket.',
      ),
    outputRatio: z
      .number()
      .min(0)
      .optional()
      .describe(
        'Expected output tokens for each prompt token; absent = by the class that outlen-bucket gives a request.',
      ),
    maxEstimatedOutputTokens: z.int().min(0).optional().describe('Bound on the expected output of one request.'),
    prefixMatchInfoProducerName: z
      .string()
      .optional()
      .describe('Name of the plugin whose prefix matches are subtracted from the prompt.'),
    syncCrossReplicaState: z
      .boolean()
      .default(true)
      .describe('Share the counts with peers, where replication is set up.'),
  });

type Parameters = z.output<ReturnType<typeof parameters>>;

function needs({ prefixMatchInfoProducerName }: Parameters): readonly DataNeed[] {
  const tokens: DataNeed = { key: 'prompt-tokens' };
  if (prefixMatchInfoProducerName === undefined || prefixMatchInfoProducerName === '') return [tokens];
  return [tokens, { key: 'prefix-match', producer: prefixMatchInfoProducerName }];
}

export const inflightLoadProducer = definePlugin({
  type: 'inflight-load-producer',
  kinds: ['producer'],
  listedAsExtractor: true,
  stability: 'Beta',
  doc: 'Counts the requests and the uncached prompt tokens that are in flight to each endpoint from here.',
  parameters,
  produces: ['in-flight-load'],
  defaultProducerOf: ['in-flight-load'],
  consumes: needs,
  outputEstimate: ({ addEstimatedOutputTokens, outputRatio, maxEstimatedOutputTokens }) =>
    addEstimatedOutputTokens ? { ratio: outputRatio, maxTokens: maxEstimatedOutputTokens, classes: false } : undefined,
});
