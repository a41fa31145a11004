import { z } from 'zod';
import { definePlugin } from '../plugin.js';

const parameters = () =>
  z.strictObject({
    latencyPredictionInfoProducerName: z.string().optional().describe('Name of the plugin that predicts latency.'),
  });

export const latencySloAdmitter = definePlugin({
  type: 'latency-slo-admitter',
  kinds: ['admitter'],
  stability: 'Beta',
  doc:
    'Turns a sheddable request (priority below 0) that wants a time to first token or per output token away with ' +
    'status ' +
    ('429, when latency is predicted, no endpoint keeps what it wants, none is idle, and none is cold (KV cache ' +
      'below 2 %).'),
  signals: ['running requests', 'KV usage'],
  parameters,
  consumes: ({ latencyPredictionInfoProducerName }) => [
    { key: 'latency-prediction', producer: latencyPredictionInfoProducerName },
  ],
  operations: ['OP_ADMIT_LATENCY'],
  compile: (_, weight, { name }) => ({ code: 'OP_ADMIT_LATENCY', name, weight, parameters: [] }),
});
