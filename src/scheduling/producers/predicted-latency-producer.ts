import { z } from 'zod';
import { duration } from '../duration-schema.js';
import { definePlugin } from '../plugin.js';
import { predictionServers } from './prediction-servers.js';

const parameters = () =>
  z.strictObject({
    sloBufferFactor: z
      .number()
      .gt(0)
      .default(1)
      .describe('Factor of the wanted time per output token: below 1 keeps a distance from it.'),
    streamingMode: z
      .boolean()
      .default(false)
      .describe(
        'Answers are streamed: predict the first token and the time per output token. Otherwise the whole duration ' +
          'of a ' +
          'request stands for its time to first token, and single tokens are neither early nor late.',
      ),
    endpointRoleLabel: z
      .string()
      .default('')
      .describe('Label whose value `prefill` marks endpoints that make no output tokens; empty = none.'),
    predictInProduce: z
      .boolean()
      .default(true)
      .describe('Predict. Off = only learn, and send training samples if a training server is named.'),
    contextTTL: z
      .union([z.number().min(0), duration])
      .optional()
      .describe('Has no effect: what is known about a request lives as long as the request.'),
    samplingMean: z.number().optional().describe('Has no effect, as in llm-d-router.'),
    maxDecodeTokenSamplesForPrediction: z.int().min(0).optional().describe('Has no effect, as in llm-d-router.'),
    useEncoderCacheFeatures: z
      .boolean()
      .default(false)
      .describe('Has no effect: sizes of encoder inputs are given to prediction servers as 0.'),
    prefixMatchInfoProducerName: z.string().optional().describe('Name of the plugin that produces the prefix matches.'),
    inFlightLoadProducerName: z.string().optional().describe('Name of the plugin that counts in-flight load.'),
    encoderCacheMatchInfoProducerName: z.string().optional().describe('Has no effect.'),
    predictionServerURLs: z
      .array(z.string())
      .optional()
      .describe(
        "Addresses of prediction servers that speak llm-d-router's protocol; one is drawn for each call. Absent = " +
          'those of the environment variable PREDICTION_SERVER_URL, separated by commas. Without any the built-in ' +
          'model predicts.',
      ),
    trainingServerURL: z
      .string()
      .optional()
      .describe(
        'Address of the training server. Absent = that of TRAINING_SERVER_URL. Without one no samples are sent.',
      ),
    predictionTimeoutMs: z
      .number()
      .gt(0)
      .default(400)
      .describe('Milliseconds that a request waits for prediction servers; after that it is decided without them.'),
    predictWhenServersFail: z
      .boolean()
      .default(false)
      .describe(
        'Let the built-in model predict for endpoints that prediction servers say nothing about. Off = nothing is ' +
          'predicted for them, as in llm-d-router.',
      ),
    priorPrefillThroughput: z
      .number()
      .gt(0)
      .default(15_928)
      .describe(
        'Prompt tokens that an endpoint computes in a second, as the built-in model believes before it has learned; ' +
          'the ' +
          'default is Qwen3 32B on two H100.',
      ),
    priorTPOTMs: z
      .number()
      .gt(0)
      .default(13)
      .describe(
        'Milliseconds per output token of an idle endpoint, as the built-in model believes before it has learned.',
      ),
  });

type Parameters = z.output<ReturnType<typeof parameters>>;

/** Parameters that are accepted without effect. */
const IDLE = ['contextTTL', 'samplingMean', 'maxDecodeTokenSamplesForPrediction'] as const;

function advise(given: Parameters): readonly string[] {
  const idle = IDLE.filter((name) => given[name] !== undefined).map((name) => `${name} has no effect: remove it`);
  return given.useEncoderCacheFeatures ? [...idle, 'useEncoderCacheFeatures has no effect: remove it'] : idle;
}

export const predictedLatencyProducer = definePlugin({
  type: 'predicted-latency-producer',
  kinds: ['producer'],
  stability: 'Beta',
  doc:
    'Predicts the time to first token and the time per output token of the request on every endpoint. Without ' +
    'prediction ' +
    ('servers a model in the picker does it: one linear model per endpoint over uncached prompt tokens, prefill ' +
      'tokens and ') +
    'requests in flight, waiting requests, KV usage and prompt length, learned from the answers.',
  signals: ['waiting requests', 'KV usage'],
  parameters,
  produces: ['latency-prediction'],
  defaultProducerOf: ['latency-prediction'],
  consumes: ({ prefixMatchInfoProducerName, inFlightLoadProducerName }) => [
    { key: 'prompt-tokens' },
    { key: 'prefix-match', producer: prefixMatchInfoProducerName },
    { key: 'in-flight-load', producer: inFlightLoadProducerName },
  ],
  advise,
  predictionSettings: (given) => ({
    predicts: given.predictInProduce,
    streaming: given.streamingMode,
    bufferFactor: given.sloBufferFactor,
    roleLabel: given.endpointRoleLabel,
    servers: predictionServers(given, process.env),
    waitMs: given.predictionTimeoutMs,
    modelWhenServersFail: given.predictWhenServersFail,
    prior: { prefillTokensPerSecond: given.priorPrefillThroughput, tpotMs: given.priorTPOTMs },
  }),
});
