import type { PredictionServers } from '../../contract/prediction-settings.js';

/** Server parameters of the producer; undefined = the environment decides. */
export interface ServerParameters {
  readonly predictionServerURLs?: readonly string[] | undefined;
  readonly trainingServerURL?: string | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Bounds and defaults of llm-d-router's predictor client, by the environment variable that sets them. */
const SETTINGS = {
  LATENCY_MAX_SAMPLE_SIZE: { least: 1, byDefault: 1000 },
  LATENCY_FLUSH_INTERVAL_SEC: { least: 1, byDefault: 1 },
  LATENCY_HTTP_TIMEOUT_SEC: { least: 1, byDefault: 10 },
  LATENCY_MAX_BULK_SIZE: { least: 1, byDefault: 100 },
  LATENCY_COALESCE_WINDOW_MS: { least: 0, byDefault: 1 },
  LATENCY_MAX_COALESCED_ROWS: { least: 0, byDefault: 0 },
  LATENCY_MAX_CONCURRENT_DISPATCHES: { least: 1, byDefault: 36 },
} as const;

/**
 * The prediction and training servers of parameters and environment. Unlike in llm-d-router, there is no default
 * server.
 * @returns undefined when there is neither
 * @throws {Error} one line, when an address or a number cannot be used
 */
export function predictionServers(given: ServerParameters, environment: Environment): PredictionServers | undefined {
  const named = environment.PREDICTION_SERVER_URL?.split(',').map((url) => url.trim()) ?? [];
  const prediction = (given.predictionServerURLs ?? named).filter((url) => url !== '');
  const training = given.trainingServerURL ?? environment.TRAINING_SERVER_URL ?? '';
  if (prediction.length === 0 && training === '') return undefined;
  for (const url of prediction) checkAddress('PREDICTION_SERVER_URL', url);
  if (training !== '') checkAddress('TRAINING_SERVER_URL', training);
  const number = (name: keyof typeof SETTINGS) => wholeNumber(name, environment[name]);
  return {
    prediction,
    training: training === '' ? undefined : training,
    rowsMax: number('LATENCY_MAX_BULK_SIZE'),
    coalescedRowsMax: number('LATENCY_MAX_COALESCED_ROWS'),
    coalesceMs: number('LATENCY_COALESCE_WINDOW_MS'),
    dispatchesMax: number('LATENCY_MAX_CONCURRENT_DISPATCHES'),
    timeoutMs: number('LATENCY_HTTP_TIMEOUT_SEC') * 1000,
    samplesMax: number('LATENCY_MAX_SAMPLE_SIZE'),
    flushMs: number('LATENCY_FLUSH_INTERVAL_SEC') * 1000,
  };
}

function checkAddress(name: string, text: string): void {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return;
  throw new Error(`${name}: "${text}" is no address: write it as http://host:port`);
}

function wholeNumber(name: keyof typeof SETTINGS, text: string | undefined): number {
  const { least, byDefault } = SETTINGS[name];
  if (text === undefined || text === '') return byDefault;
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new Error(`${name}: expected a whole number of at least ${least}, got "${text}"`);
}
