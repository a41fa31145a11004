import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { inFlightLoadProducerName, prefixMatchProducerName } from '../producer-names.js';
import { type Calibration, readCalibration } from './prefill-calibration.js';

/** Prompt tokens a second: Qwen3 32B on two H100 (llm-d-router's default). */
const DEFAULT_THROUGHPUT = 15_928;

const parameters = () =>
  z
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
        .optional()
        .describe(
          'Prompt tokens that an endpoint computes in a second; absent = as calibrated, else ' +
            `${DEFAULT_THROUGHPUT} (Qwen3 32B on two H100).`,
        ),
      prefillCalibrationFile: z
        .string()
        .optional()
        .describe(
          "Record of llm-d-router's calibration, whose throughput counts where peakPrefillThroughput is absent.",
        ),
      prefillCalibrationFingerprint: z
        .string()
        .optional()
        .describe('Fingerprint of the deployment; a record of another one is not used.'),
      prefillCalibrationRequired: z
        .boolean()
        .default(false)
        .describe('Refuse to start when the record cannot be used, in place of a warning.'),
      prefixMatchInfoProducerName: prefixMatchProducerName,
      inFlightLoadProducerName,
      latencyPredictionInfoProducerName: z.string().optional().describe('Name of the plugin that predicts latency.'),
    })
    .refine((given) => given.ttftSource !== 'prefillThroughput' || (given.peakPrefillThroughput ?? 1) > 0, {
      error: 'peakPrefillThroughput must be above 0',
    });

type Parameters = z.output<ReturnType<typeof parameters>>;

/** The configured calibration; undefined = none counts. */
function calibrationOf(given: Parameters): Calibration | undefined {
  if (given.ttftSource === 'latencyPredictor' || given.peakPrefillThroughput !== undefined) return undefined;
  const { prefillCalibrationFile: file, prefillCalibrationFingerprint: fingerprint } = given;
  if (file) return readCalibration(file, fingerprint);
  return given.prefillCalibrationRequired ? { problem: 'prefillCalibrationFile is not set' } : undefined;
}

/** Prompt tokens that an endpoint computes in a second: as written, as calibrated, or the default. */
function throughput(given: Parameters): number {
  const written = given.peakPrefillThroughput;
  if (written !== undefined) return written > 0 ? written : DEFAULT_THROUGHPUT;
  const calibration = calibrationOf(given);
  return calibration !== undefined && 'tokensPerSecond' in calibration
    ? calibration.tokensPerSecond
    : DEFAULT_THROUGHPUT;
}

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
  files: [['prefillCalibrationFile']],
  examine: (given) => {
    const calibration = calibrationOf(given);
    if (calibration === undefined || 'tokensPerSecond' in calibration) return { advice: [] };
    if (given.prefillCalibrationRequired) return { fault: calibration.problem, advice: [] };
    return { advice: [`the calibration is not used: ${calibration.problem}`] };
  },
  operations: ['OP_FILTER_PREFIX_AFFINITY'],
  compile: (given, weight, { name }) => ({
    code: 'OP_FILTER_PREFIX_AFFINITY',
    name,
    weight,
    parameters: [
      given.affinityThreshold,
      given.explorationProbability,
      given.maxTTFTPenaltyMs,
      throughput(given),
      ...(given.ttftSource === 'latencyPredictor' ? [1] : []),
    ],
  }),
});
