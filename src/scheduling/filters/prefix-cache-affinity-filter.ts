import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { inFlightLoadProducerName, prefixMatchProducerName } from '../producer-names.js';

/** Prompt tokens a second: Qwen3 32B on two H100 (llm-d-router's default). */
const DEFAULT_THROUGHPUT = 15_928;

const parameters = z
  .strictObject({
    affinityThreshold: z
      .number()
      .min(0)
      .max(1)
      .default(0.8)
      .describe('Share of the prompt that an endpoint must hold for the request to stay with it.'),
    explorationProbability: z
      .number()
      .min(0)
      .max(1)
      .default(0)
      .describe('Share of the requests that may go anywhere, so that prefixes spread.'),
    maxTTFTPenaltyMs: z
      .number()
      .min(0)
      .default(18_000)
      .describe(
        'Milliseconds that the first token may come later than elsewhere before affinity is given up; 0 = never.',
      ),
    ttftSource: z
      .enum(['prefillThroughput', 'latencyPredictor'])
      .default('prefillThroughput')
      .describe('Where the time until the first token comes from.'),
    peakPrefillThroughput: z
      .number()
      .default(DEFAULT_THROUGHPUT)
      .describe('Prompt tokens that an endpoint computes in a second; the default is Qwen3 32B on two H100.'),
    prefixMatchInfoProducerName: prefixMatchProducerName,
    inFlightLoadProducerName,
    latencyPredictionInfoProducerName: z.string().optional().describe('Name of the plugin that predicts latency.'),
  })
  .refine((given) => given.ttftSource !== 'prefillThroughput' || given.peakPrefillThroughput > 0, {
    error: 'peakPrefillThroughput must be above 0',
  });

export const prefixCacheAffinityFilter = definePlugin({
  type: 'prefix-cache-affinity-filter',
  kinds: ['filter'],
  stability: 'Beta',
  doc:
    'Keeps the endpoints that hold at least affinityThreshold of the prompt, unless there is none, or the best of ' +
    'them ' +
    ('is slower to its first token than the best of the others by more than maxTTFTPenaltyMs: by its tokens in ' +
      'flight, or ') +
    'as predicted.',
  parameters,
  consumes: ({
    ttftSource,
    prefixMatchInfoProducerName,
    inFlightLoadProducerName,
    latencyPredictionInfoProducerName,
  }) => [
    { key: 'prefix-match', producer: prefixMatchInfoProducerName },
    ttftSource === 'latencyPredictor'
      ? { key: 'latency-prediction', producer: latencyPredictionInfoProducerName }
      : { key: 'in-flight-load', producer: inFlightLoadProducerName },
  ],
  operations: ['OP_FILTER_PREFIX_AFFINITY'],
  compile: (given, weight, { name }) => ({
    code: 'OP_FILTER_PREFIX_AFFINITY',
    name,
    weight,
    parameters: [
      given.affinityThreshold,
      given.explorationProbability,
      given.maxTTFTPenaltyMs,
      given.peakPrefillThroughput > 0 ? given.peakPrefillThroughput : DEFAULT_THROUGHPUT,
      ...(given.ttftSource === 'latencyPredictor' ? [1] : []),
    ],
  }),
});
