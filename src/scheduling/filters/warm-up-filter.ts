import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { inFlightLoadProducerName, prefixMatchProducerName } from '../producer-names.js';

const parameters = () =>
  z.strictObject({
    minShare: z
      .number()
      .gt(0)
      .max(1)
      .default(0.25)
      .describe('Share of the others’ mean requests in flight that a new endpoint has at least.'),
    requests: z.int().min(1).max(1_000_000).default(256).describe('Requests after which an endpoint is warm anyhow.'),
    maxLostTokens: z
      .int()
      .min(0)
      .default(4_096)
      .describe('Most cached tokens of a request that are given up to bring a new endpoint to its least share.'),
    prefixMatchInfoProducerName: prefixMatchProducerName,
    inFlightLoadProducerName,
  });

export const warmUpFilter = definePlugin({
  type: 'warm-up-filter',
  kinds: ['filter'],
  stability: 'Alpha',
  doc:
    'Gives an endpoint with an empty cache, after a start or a restart, a share of the requests: with that share of ' +
    'the others’ requests in flight it is left out of prompts of which others hold more, and below minShare it is ' +
    'preferred. The share is the part that it finds of what could be found of its prompts, divided by that of the ' +
    'others; at 0.9 the endpoint is warm. With all endpoints new it keeps all.',
  parameters,
  consumes: ({ prefixMatchInfoProducerName, inFlightLoadProducerName }) => [
    { key: 'prefix-match', producer: prefixMatchInfoProducerName },
    { key: 'in-flight-load', producer: inFlightLoadProducerName },
  ],
  operations: ['OP_FILTER_WARM_UP'],
  compile: ({ minShare, requests, maxLostTokens }, weight, { name }) => ({
    code: 'OP_FILTER_WARM_UP',
    name,
    weight,
    parameters: [minShare, requests, maxLostTokens],
  }),
});
