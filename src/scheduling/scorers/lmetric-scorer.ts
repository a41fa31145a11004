import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { inFlightLoadProducerName, prefixMatchProducerName } from '../producer-names.js';

const parameters = () =>
  z.strictObject({
    prefixMatchInfoProducerName: prefixMatchProducerName,
    inFlightLoadProducerName,
  });

export const lmetricScorer = definePlugin({
  type: 'lmetric-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Joins cache and load without weights: cost = (tokens in flight + uncached tokens of the request) × (requests in ' +
    'flight + 1); the lowest scores 1, the highest 0.',
  source: 'LMetric (arXiv 2603.15202; ai-dynamo/dynamo, pull request 11028)',
  parameters,
  consumes: ({ prefixMatchInfoProducerName, inFlightLoadProducerName }) => [
    { key: 'prefix-match', producer: prefixMatchInfoProducerName },
    { key: 'in-flight-load', producer: inFlightLoadProducerName },
  ],
  operations: ['OP_SCORE_LMETRIC'],
  compile: (_parameters, weight, { name }) => ({ code: 'OP_SCORE_LMETRIC', name, weight, parameters: [] }),
});
