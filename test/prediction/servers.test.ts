import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PredictionServers, PredictionSettings } from '../../dist/src/contract/prediction-settings.js';
import { PredictionClient } from '../../dist/src/prediction/servers/prediction-client.js';
import {
  type PredictionRow,
  predictedTimes,
  predictionRow,
} from '../../dist/src/prediction/servers/prediction-wire.js';
import { ServedLatency } from '../../dist/src/prediction/servers/served-latency.js';
import { TrainingClient } from '../../dist/src/prediction/servers/training-client.js';
import type { EndpointOutlook, RequestOutlook } from '../../dist/src/scheduling/latency-outlook.js';
import { predictionServers } from '../../dist/src/scheduling/producers/prediction-servers.js';
import { makePool, pickMax, plainRequest } from '../core/pool.ts';
import { PredictionServer } from './prediction-server.ts';

let server: PredictionServer;
const cleanups: (() => unknown)[] = [];

beforeEach(async () => {
  server = await PredictionServer.start();
  cleanups.push(() => server.close());
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const endpoint = (slot: number, labels: Record<string, string> = {}) => ({
  id: `default/pod-${slot}`,
  name: `pod-${slot}`,
  namespace: 'default',
  address: '127.0.0.1',
  port: 8000 + slot,
  labels,
});
const outlookOf = (slot: number, rest: Partial<EndpointOutlook> = {}): EndpointOutlook => ({
  slot,
  endpoint: endpoint(slot),
  waiting: 0,
  kvUsage: 0.5,
  inflight: slot,
  prefillTokens: 0,
  held: 0,
  ...rest,
});
const pool = (count: number, promptTokens = 100): RequestOutlook => ({
  promptTokens,
  endpoints: Array.from({ length: count }, (_, slot) => outlookOf(slot)),
});
const rows = (count: number): readonly PredictionRow[] => {
  const outlook = pool(count);
  return outlook.endpoints.map((each) => predictionRow(outlook, each, ''));
};

function servers(environment: Record<string, string> = {}): PredictionServers {
  return predictionServers({ predictionServerURLs: [server.url], trainingServerURL: server.url }, environment)!;
}

function client(environment: Record<string, string> = {}, now: () => number = () => 0): PredictionClient {
  const made = new PredictionClient(servers(environment), now);
  cleanups.push(() => made.close());
  return made;
}

/** A guess that tells which row it was made for. */
const byInflight = (row: Readonly<Record<string, number | string>>) => ({
  ttft_ms: 10 * Number(row.num_request_running),
  tpot_ms: 1,
});

describe('a row for a prediction server', () => {
  it('the request has the features that llm-d-router sends', () => {
    const outlook = { promptTokens: 320, endpoints: [] };
    const of = outlookOf(3, {
      waiting: 2,
      kvUsage: 0.25,
      inflight: 7,
      prefillTokens: 900,
      held: 0.75,
      endpoint: endpoint(3, { role: 'prefill' }),
    });
    expect(predictionRow(outlook, of, 'role')).toEqual({
      kv_cache_percentage: 0.25,
      input_token_length: 320,
      num_request_waiting: 2,
      num_request_running: 7,
      num_tokens_generated: 1,
      prefix_cache_score: 0.75,
      encoder_input_size: 0,
      encoder_matched_size: 0,
      pod_type: 'prefill',
      prefill_tokens_in_flight: 900,
      decode_tokens_in_flight: 0,
    });
  });

  it('a row for a prediction server leaves out a role that the endpoint has not, and sends 0 for what is unknown', () => {
    const row = predictionRow(pool(1), outlookOf(0, { waiting: undefined, kvUsage: undefined }), 'role');
    expect(row).toMatchObject({ kv_cache_percentage: 0, num_request_waiting: 0 });
    expect(row).not.toHaveProperty('pod_type');
  });
});

describe('an answer of a prediction server', () => {
  it('an answer of a prediction server is read by position; what is no time is nothing', () => {
    const text = JSON.stringify({
      predictions: [
        { ttft_ms: 5, tpot_ms: 1 },
        null,
        { ttft_ms: -1, tpot_ms: 1 },
        { ttft_ms: 5 },
        { ttft_ms: '5', tpot_ms: 1 },
      ],
    });
    expect(predictedTimes(text, 5)).toEqual([{ ttftMs: 5, tpotMs: 1 }, undefined, undefined, undefined, undefined]);
  });

  it.each(['', 'oops', '{}', '[]', 'null', '{"predictions": 3}', '{"predictions": []}'])('%j is refused', (text) => {
    expect(() => predictedTimes(text, 1)).toThrow();
  });
});

describe('the client of prediction servers', () => {
  it('the client of prediction servers gives the times of every row', async () => {
    server.guess = byInflight;
    const times = await client().predict(rows(3));
    expect(times.map((time) => time?.ttftMs)).toEqual([0, 10, 20]);
    expect(server.calls.map(({ path }) => path)).toEqual(['/predict/bulk/strict']);
  });

  it('the client of prediction servers asks about a pool of any size', async () => {
    server.guess = byInflight;
    const times = await client().predict(rows(257));
    expect(times.map((time) => time?.ttftMs)).toEqual(rows(257).map((_, i) => 10 * i));
  });

  it('the client of prediction servers cuts a large pool into calls of at most so many rows', async () => {
    server.guess = byInflight;
    const made = client({ LATENCY_MAX_BULK_SIZE: '100', LATENCY_MAX_COALESCED_ROWS: '100' });
    expect((await made.predict(rows(257))).every((time) => time !== undefined)).toBe(true);
    expect(server.calls.map((call) => call.rows.length).sort((a, b) => a - b)).toEqual([57, 100, 100]);
  });

  it('the client of prediction servers lets requests that come together travel in one call, each with its own answer', async () => {
    server.guess = byInflight;
    const made = client({ LATENCY_COALESCE_WINDOW_MS: '20' });
    const answers = await Promise.all([made.predict(rows(2)), made.predict(rows(3)), made.predict(rows(1))]);
    expect(answers.map((times) => times.map((time) => time?.ttftMs))).toEqual([[0, 10], [0, 10, 20], [0]]);
    expect(server.calls.map((call) => call.rows.length)).toEqual([6]);
  });

  it('the client of prediction servers keeps its connections', async () => {
    const made = client({ LATENCY_COALESCE_WINDOW_MS: '0' });
    for (let i = 0; i < 20; i++) await made.predict(rows(1));
    expect(server.calls).toHaveLength(20);
    expect(server.connections.size).toBeLessThan(5);
  });

  it('the client of prediction servers makes at most so many calls at once', async () => {
    let answer = () => {};
    server.held = new Promise((resolve) => {
      answer = resolve;
    });
    const made = client({ LATENCY_COALESCE_WINDOW_MS: '0', LATENCY_MAX_CONCURRENT_DISPATCHES: '2' });
    const asked = Array.from({ length: 6 }, () => made.predict(rows(1)));
    answer();
    await Promise.all(asked);
    expect(server.connections.size).toBeLessThanOrEqual(2);
    // What waited for a free call travelled together.
    expect(server.calls.map((call) => call.rows.length)).toEqual([1, 1, 4]);
  });

  it('the client of prediction servers uses what a server can say when it cannot predict all rows', async () => {
    server.guess = (row) => (row.num_request_running === 1 ? undefined : byInflight(row));
    const times = await client().predict(rows(3));
    expect(times.map((time) => time?.ttftMs)).toEqual([0, undefined, 20]);
    expect(server.calls.map(({ path }) => path)).toEqual(['/predict/bulk/strict', '/predict/bulk']);
  });

  it('the client of prediction servers asks several servers in turn', async () => {
    const other = await PredictionServer.start();
    cleanups.push(() => other.close());
    const both = new PredictionClient({ ...servers(), prediction: [server.url, other.url], coalesceMs: 0 }, () => 0);
    cleanups.push(() => both.close());
    for (let i = 0; i < 4; i++) await both.predict(rows(1));
    expect([server.calls.length, other.calls.length]).toEqual([2, 2]);
  });

  it('the client of prediction servers says why when no row has an answer', async () => {
    server.status = 503;
    await expect(client().predict(rows(1))).rejects.toThrow('503');
    server.status = 0;
    server.text = '{"predictions": []}';
    await expect(client().predict(rows(1))).rejects.toThrow('0 predictions for 1 rows');
  });

  it('the client of prediction servers leaves servers alone that fail again and again, and tries later', async () => {
    let now = 0;
    server.status = 500;
    const made = client({ LATENCY_COALESCE_WINDOW_MS: '0' }, () => now);
    for (let i = 0; i < 5; i++) await expect(made.predict(rows(1))).rejects.toThrow('500');
    const calls = server.calls.length;
    await expect(made.predict(rows(1))).rejects.toMatchObject({ outcome: 'paused' });
    expect(server.calls).toHaveLength(calls);
    now = 60_000;
    server.status = 0;
    expect(await made.predict(rows(1))).toHaveLength(1);
  });

  it('the client of prediction servers sends no request without rows', async () => {
    expect(await client().predict([])).toEqual([]);
    expect(server.calls).toEqual([]);
  });
});

describe('predictions of servers for a request', () => {
  const settings = (): PredictionSettings & { readonly servers: PredictionServers } => ({
    predicts: true,
    streaming: true,
    bufferFactor: 1,
    roleLabel: '',
    servers: servers(),
    waitMs: 10_000,
    modelWhenServersFail: false,
    prior: { prefillTokensPerSecond: 20_000, tpotMs: 10 },
  });
  const served = (rest: Partial<PredictionSettings> = {}) => {
    const made = new ServedLatency({ ...settings(), ...rest, servers: servers() }, () => 0);
    cleanups.push(() => made.close());
    return made;
  };
  const here = new AbortController().signal;

  it('predictions of servers for a request name the slots of the endpoints, and NaN where a server says nothing', async () => {
    server.guess = (row) => (row.num_request_running === 1 ? undefined : byInflight(row));
    const { outcome, predictions } = await served().predict(pool(3), here);
    expect(outcome).toBe('partial');
    expect(predictions).toEqual({
      slots: [0, 1, 2],
      ttftMs: Float64Array.of(0, Number.NaN, 20),
      tpotMs: Float64Array.of(1, Number.NaN, 1),
    });
  });

  it('predictions of servers for a request are late when the request may wait no longer', async () => {
    server.held = new Promise(() => {});
    expect(await served({ waitMs: 5 }).predict(pool(1), here)).toEqual({ outcome: 'late', predictions: undefined });
  });

  it('calls have failed when no server answers', async () => {
    server.status = 500;
    expect(await served().predict(pool(1), here)).toEqual({ outcome: 'failed', predictions: undefined });
  });

  it('predictions of servers for a request are not waited for when the request goes away', async () => {
    server.held = new Promise(() => {});
    const leaving = new AbortController();
    const answer = served().predict(pool(1), leaving.signal);
    leaving.abort();
    expect(await answer).toMatchObject({ predictions: undefined });
  });
});

describe('the training server', () => {
  function bed(rest: { streaming?: boolean; environment?: Record<string, string> } = {}) {
    const made = makePool([pickMax], [{ waiting: 1, running: 2, kvUsage: 0.25 }]);
    const problems: string[] = [];
    const training = new TrainingClient({
      core: made.control,
      servers: { ...servers({ LATENCY_FLUSH_INTERVAL_SEC: '3600', ...rest.environment }), training: server.url },
      streaming: rest.streaming ?? true,
      roleLabel: 'role',
      endpointOf: (slot) => endpoint(slot, { role: 'decode' }),
      random: () => 0.999,
      report: (problem) => problems.push(problem),
    });
    cleanups.push(() => training.stop());
    const answer = (outcome: 'completed' | 'failed' = 'completed') => {
      const { ticket, ticketGeneration } = made.decider.decide({ ...plainRequest, promptTokens: 400 });
      made.decider.noteSample(ticket, ticketGeneration, {
        outcome,
        firstOutputMs: 80,
        perTokenMs: 12,
        durationMs: 200,
        outputTokens: 11,
        promptTokens: undefined,
        cachedTokens: undefined,
      });
      made.decider.release(ticket, ticketGeneration);
    };
    return { training, answer, problems };
  }

  it('the training server is sent both times of a streamed answer, with the features of the decision', async () => {
    const { training, answer } = bed();
    answer();
    answer('failed');
    await training.flush();
    expect(server.samples).toHaveLength(2);
    const features = {
      kv_cache_percentage: 0.25,
      input_token_length: 400,
      num_request_waiting: 1,
      num_request_running: 0,
      pod_type: 'decode',
    };
    expect(server.samples[0]).toMatchObject({ ...features, actual_ttft_ms: 80, actual_tpot_ms: 0 });
    expect(server.samples[1]).toMatchObject({ ...features, actual_ttft_ms: 0, actual_tpot_ms: 12 });
    expect(Date.parse(String(server.samples[0]!.timestamp))).not.toBeNaN();
  });

  it('the training server is sent the duration when answers are not streamed', async () => {
    const { training, answer } = bed({ streaming: false });
    answer();
    await training.flush();
    expect(server.samples.map((sample) => sample.actual_ttft_ms)).toEqual([200]);
  });

  it('the training server gets at most so many samples in one flush', async () => {
    const { training, answer } = bed({ environment: { LATENCY_MAX_SAMPLE_SIZE: '3' } });
    for (let i = 0; i < 10; i++) answer();
    await training.flush();
    expect(server.samples).toHaveLength(3);
    await training.flush();
    expect(server.samples).toHaveLength(3);
  });

  it('the training server that fails is reported once, and its samples are counted as lost', async () => {
    const { training, answer, problems } = bed();
    server.status = 500;
    for (let i = 0; i < 2; i++) {
      answer();
      await training.flush();
    }
    expect(problems).toEqual([expect.stringContaining('500')]);
    expect(training.lost).toBe(4);
  });
});

describe('the servers that parameters and environment name', () => {
  it('the servers that parameters and environment name are none by default', () => {
    expect(predictionServers({}, {})).toBeUndefined();
  });

  it('the settings come from the environment, with the numbers of llm-d-router', () => {
    const environment = {
      PREDICTION_SERVER_URL: 'http://a:1, http://b:2',
      TRAINING_SERVER_URL: 'http://c:3',
      LATENCY_HTTP_TIMEOUT_SEC: '3',
      LATENCY_MAX_BULK_SIZE: '250',
    };
    expect(predictionServers({}, environment)).toEqual({
      prediction: ['http://a:1', 'http://b:2'],
      training: 'http://c:3',
      rowsMax: 250,
      coalescedRowsMax: 0,
      coalesceMs: 1,
      dispatchesMax: 36,
      timeoutMs: 3_000,
      samplesMax: 1_000,
      flushMs: 1_000,
    });
  });

  it('the servers that parameters and environment name come from the parameters first', () => {
    const given = { predictionServerURLs: ['https://p'], trainingServerURL: '' };
    expect(
      predictionServers(given, { PREDICTION_SERVER_URL: 'http://a', TRAINING_SERVER_URL: 'http://c' }),
    ).toMatchObject({
      prediction: ['https://p'],
      training: undefined,
    });
  });

  it.each([
    [{ PREDICTION_SERVER_URL: 'a:1' }, 'PREDICTION_SERVER_URL: "a:1" is no address: write it as http://host:port'],
    [{ TRAINING_SERVER_URL: 'ftp://x' }, 'TRAINING_SERVER_URL: "ftp://x" is no address: write it as http://host:port'],
    [
      { PREDICTION_SERVER_URL: 'http://a', LATENCY_HTTP_TIMEOUT_SEC: '0' },
      'LATENCY_HTTP_TIMEOUT_SEC: expected a whole number of at least 1, got "0"',
    ],
  ])('%j are refused', (environment, message) => {
    expect(() => predictionServers({}, environment)).toThrow(message);
  });
});
