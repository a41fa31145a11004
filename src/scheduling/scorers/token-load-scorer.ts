import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { inFlightLoadProducerName } from '../producer-names.js';

const parameters = () =>
  z.strictObject({
    queueThresholdTokens: z.int().min(1).default(4_194_304).describe('In-flight tokens at which an endpoint scores 0.'),
    inFlightLoadProducerName,
  });

export const tokenLoadScorer = definePlugin({
  type: 'token-load-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Prefers endpoints with fewer tokens in flight, this request included, with T = queueThresholdTokens: ' +
    '1 - min(in-flight tokens + uncached tokens of the request, T) / T.',
  parameters,
  consumes: ({ inFlightLoadProducerName }) => [{ key: 'in-flight-load', producer: inFlightLoadProducerName }],
  operations: ['OP_SCORE_TOKEN_LOAD'],
  compile: ({ queueThresholdTokens }, weight, { name }) => ({
    code: 'OP_SCORE_TOKEN_LOAD',
    name,
    weight,
    parameters: [queueThresholdTokens],
  }),
});
