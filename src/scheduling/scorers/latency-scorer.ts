import { z } from 'zod';
import { definePlugin } from '../plugin.js';

const parameters = () =>
  z.strictObject({
    ttftWeight: z.number().min(0).default(0.8).describe('Weight of what is left of the wanted time to first token.'),
    tpotWeight: z
      .number()
      .min(0)
      .default(0.2)
      .describe('Weight of what is left of the wanted time per output token. Both 0 = only the first token counts.'),
    headroomSelectionStrategy: z
      .enum(['least', 'most'])
      .default('least')
      .describe('Prefer endpoints that fit tightly, which keeps others free, or those with much to spare.'),
    compositeKVWeight: z
      .number()
      .min(0)
      .default(1)
      .describe('Weight of the free KV cache when nothing is predicted. All three 0 = only this one counts.'),
    compositeQueueWeight: z.number().min(0).default(1).describe('Weight of the short queue when nothing is predicted.'),
    compositePrefixWeight: z
      .number()
      .min(0)
      .default(1)
      .describe('Weight of the part of the prompt that is held when nothing is predicted.'),
    latencyPredictionInfoProducerName: z.string().optional().describe('Name of the plugin that predicts latency.'),
    prefixMatchInfoProducerName: z.string().optional().describe('Name of the plugin that produces the prefix matches.'),
  });

export const latencyScorer = definePlugin({
  type: 'latency-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Scores by what the predicted latency leaves of the times that the request wants (headers x-llm-d-slo-ttft-ms ' +
    'and ' +
    ('x-llm-d-slo-tpot-ms): only endpoints that keep both; without any only idle ones; else only the mildest ' +
      'failures, ') +
    'late tokens before a late first one. Inside that group each headroom is brought to 0 … 1, weighted and rounded ' +
    'down to hundredths. Without predictions: free KV cache, queue and prefix match, weighted.',
  signals: ['waiting requests', 'KV usage'],
  parameters,
  consumes: ({ latencyPredictionInfoProducerName, prefixMatchInfoProducerName }) => [
    { key: 'latency-prediction', producer: latencyPredictionInfoProducerName },
    { key: 'prefix-match', producer: prefixMatchInfoProducerName },
  ],
  operations: ['OP_SCORE_LATENCY'],
  compile: (given, weight, { name }) => ({
    code: 'OP_SCORE_LATENCY',
    name,
    weight,
    parameters: [
      given.ttftWeight,
      given.tpotWeight,
      given.headroomSelectionStrategy === 'most' ? 1 : 0,
      given.compositeKVWeight,
      given.compositeQueueWeight,
      given.compositePrefixWeight,
    ],
  }),
});
