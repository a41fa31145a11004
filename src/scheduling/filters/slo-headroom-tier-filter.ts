import { z } from 'zod';
import { definePlugin } from '../plugin.js';

const parameters = () =>
  z.strictObject({
    epsilonExploreNeg: z
      .number()
      .min(0)
      .max(1)
      .default(0.01)
      .describe('Share of the requests that go to the endpoints that break a wish, so that these can recover.'),
    latencyPredictionInfoProducerName: z.string().optional().describe('Name of the plugin that predicts latency.'),
  });

export const sloHeadroomTierFilter = definePlugin({
  type: 'slo-headroom-tier-filter',
  kinds: ['filter'],
  stability: 'Beta',
  doc:
    'Keeps the endpoints whose predicted latency keeps both times that the request wants, and with probability ' +
    'epsilonExploreNeg the others instead. An endpoint without a prediction is among the others. When there are only ' +
    'endpoints of one kind, or nothing is predicted, all stay.',
  parameters,
  consumes: ({ latencyPredictionInfoProducerName }) => [
    { key: 'latency-prediction', producer: latencyPredictionInfoProducerName },
  ],
  operations: ['OP_FILTER_TIER'],
  compile: ({ epsilonExploreNeg }, weight, { name }) => ({
    code: 'OP_FILTER_TIER',
    name,
    weight,
    parameters: [epsilonExploreNeg],
  }),
});
