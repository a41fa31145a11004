import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as passed } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { decodeReply, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { collect, dialPicker, firstReply, type ProxyClient } from '../ingress/proxy-client.ts';
import { PredictionServer } from '../prediction/prediction-server.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, metric, type Ports, Setting, startPicker } from './serving.ts';

const NAMES = ['fast', 'slow'] as const;
type Name = (typeof NAMES)[number];

/** How long the two take to answer: what the test, which plays the proxy, waits before it passes the answer on. */
const TAKES_MS: Readonly<Record<Name, number>> = { fast: 0, slow: 60 };

const servers = new Map<Name, Server>();
const cleanups: (() => unknown)[] = [];

beforeAll(async () => {
  for (const name of NAMES) {
    const page = 'vllm:num_requests_waiting 0\nvllm:num_requests_running 2\nvllm:kv_cache_usage_perc 0.5\n';
    const server = createServer((_request, response) => response.end(page));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    servers.set(name, server);
  }
});

afterAll(() => {
  for (const server of servers.values()) server.close();
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const portOf = (name: Name) => (servers.get(name)!.address() as AddressInfo).port;

interface TestBed {
  readonly client: ProxyClient;
  readonly ports: Ports;
}

async function serve(plugins: readonly string[], profile: readonly string[]): Promise<TestBed> {
  const endpoints = NAMES.map((name) => ({ name, port: portOf(name) }));
  const references = profile.map((name) => `{pluginRef: ${name}}`).join(', ');
  const setting = await Setting.create(
    endpoints,
    `plugins:\n${plugins.map((plugin) => `- ${plugin}\n`).join('')}schedulingProfiles: [{name: p, plugins: ` +
      `[${references}]}]\n`,
  );
  cleanups.push(() => setting.remove());
  await setting.writeEndpoints(endpoints, 'objectives:\n- {name: sheddable, priority: -1}\n');
  const { picker, ports } = await startPicker([...setting.flags, '--shards=1']);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  return { client, ports };
}

let prompts = 0;

/** Sends a request and lets its endpoint answer. @returns the endpoint, or the status of a refusal */
async function request({ client }: TestBed, headers: Readonly<Record<string, string>> = {}): Promise<Name | number> {
  const call = ask(client, `prompt ${prompts++} ${Math.random()}`, headers);
  const reply = decodeReply(await firstReply(call));
  const port = Number(reply.headers['x-gateway-destination-endpoint']?.split(':')[1]);
  const name = NAMES.find((candidate) => portOf(candidate) === port);
  if (name === undefined) return reply.status!;
  await passed(TAKES_MS[name]);
  const collected = collect(call);
  call.write(responseHeaders({ ':status': '200', 'content-type': 'application/json' }));
  call.write(responseBody('{"usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}}', true));
  call.end();
  await collected;
  return name;
}

async function destinations(bed: TestBed, count: number, headers: Readonly<Record<string, string>> = {}) {
  const seen: (Name | number)[] = [];
  for (let i = 0; i < count; i++) seen.push(await request(bed, headers));
  return seen;
}

/** Until the model has learned so much of both endpoints that it knows which one is fast. */
async function untilLearned(bed: TestBed, headers: Readonly<Record<string, string>> = {}): Promise<void> {
  await eventually('all go to the fast one', async () =>
    (await destinations(bed, 8, headers)).every((name) => name === 'fast'),
  );
}

describe('predicted latency over the wire', () => {
  it('latency-scorer learns which endpoint is fast, with no other process beside the picker', async () => {
    const bed = await serve(['{type: latency-scorer}'], ['latency-scorer']);
    await untilLearned(bed);
    const learned = () => metric(bed.ports.metricsPort, 'pointsman_prediction_observations_total', 'time="ttft"');
    await eventually('the answers have been learned', async () => ((await learned()) ?? 0) > 8);
    const labels = 'plugin_name="predicted-latency-producer"';
    const count = await metric(bed.ports.metricsPort, 'llm_d_epp_request_predicted_ttft_seconds_count', labels);
    expect(count).toBeGreaterThan(8);
    expect(await metric(bed.ports.metricsPort, 'inference_objective_request_predicted_ttft_seconds_count')).toBe(count);
    expect(await metric(bed.ports.metricsPort, 'pointsman_prediction_accuracy_ratio_count', 'time="ttft"')).toBe(count);
    const last = await metric(bed.ports.metricsPort, 'llm_d_epp_inference_request_metric', 'type="predicted_ttft"');
    expect(last).toBeGreaterThan(0);
  });

  it('slo-headroom-tier-filter sends a request where what it wants is kept, and broken wishes are counted', async () => {
    const bed = await serve(
      ['{type: slo-headroom-tier-filter, parameters: {epsilonExploreNeg: 0}}', '{type: random-picker}'],
      ['slo-headroom-tier-filter', 'random-picker'],
    );
    // A wish that nobody keeps leaves the choice to the dice, so that both endpoints are learned.
    const impossible = { 'x-llm-d-slo-ttft-ms': '0.001' };
    await eventually('both have been learned', async () => {
      await destinations(bed, 10, impossible);
      return (await destinations(bed, 8, { 'x-llm-d-slo-ttft-ms': '45' })).every((name) => name === 'fast');
    });
    const missed = await metric(bed.ports.metricsPort, 'llm_d_epp_request_slo_violation_total', 'type="ttft"');
    expect(missed).toBeGreaterThanOrEqual(10);
  });

  it('latency-slo-admitter turns sheddable requests away that no endpoint serves in time', async () => {
    const bed = await serve(['{type: latency-slo-admitter}', '{type: random-picker}'], ['random-picker']);
    const wish = { 'x-slo-ttft-ms': '0.001' };
    const sheddable = { ...wish, 'x-llm-d-inference-objective': 'sheddable' };
    await eventually('the signals are there', async () => (await request(bed, sheddable)) === 429);
    expect(NAMES).toContain(await request(bed, wish));
    expect(NAMES).toContain(await request(bed, { ...sheddable, 'x-slo-ttft-ms': 'soon' }));
    expect(await request(bed, sheddable)).toBe(429);
  });

  it('the sample configuration of llm-d-router loads and routes', async () => {
    const bed = await serve(
      [
        '{type: predicted-latency-producer, parameters: {streamingMode: true}}',
        '{type: prefix-cache-affinity-filter, name: strict, parameters: {affinityThreshold: 0.99}}',
        '{type: prefix-cache-affinity-filter, name: loose, parameters: {affinityThreshold: 0.80, ttftSource: ' +
          'latencyPredictor, maxTTFTPenaltyMs: 5000}}',
        '{type: slo-headroom-tier-filter}',
        '{type: latency-scorer}',
        '{type: weighted-random-picker}',
        '{type: latency-slo-admitter}',
      ],
      ['strict', 'slo-headroom-tier-filter', 'loose', 'latency-scorer', 'weighted-random-picker'],
    );
    const wish = { 'x-llm-d-slo-ttft-ms': '2000', 'x-llm-d-slo-tpot-ms': '50' };
    for (const name of await destinations(bed, 6, wish)) expect(NAMES).toContain(name);
  });
});

describe('prediction servers', () => {
  /** Knows the two by their KV cache, which the test sets apart. */
  async function withServers(parameters = '') {
    const server = await PredictionServer.start();
    cleanups.push(() => server.close());
    const urls = `predictionServerURLs: ["${server.url}"], trainingServerURL: "${server.url}"`;
    const bed = await serve(
      [`{type: predicted-latency-producer, parameters: {${urls}${parameters}}}`, '{type: latency-scorer}'],
      ['latency-scorer'],
    );
    return { server, bed };
  }

  it('prediction servers decide where a request goes, and are sent what came of it', async () => {
    const { server, bed } = await withServers();
    // The rows come in the order of the slots: fast, slow.
    server.answer = (rows) => rows.map((_, i) => ({ ttft_ms: i === 1 ? 5 : 500, tpot_ms: 1 }));
    expect(await destinations(bed, 6)).toEqual(Array.from({ length: 6 }, () => 'slow'));
    server.answer = (rows) => rows.map((_, i) => ({ ttft_ms: i === 1 ? 500 : 5, tpot_ms: 1 }));
    expect(await destinations(bed, 6)).toEqual(Array.from({ length: 6 }, () => 'fast'));
    expect(server.calls.every(({ rows }) => rows.length === 2 && Number(rows[0]!.input_token_length) > 0)).toBe(true);
    await eventually('samples were sent', () => server.samples.length >= 12);
    const { metricsPort } = bed.ports;
    expect(await metric(metricsPort, 'pointsman_prediction_server_requests_total', 'outcome="predicted"')).toBe(12);
    expect(await metric(metricsPort, 'llm_d_epp_request_ttft_prediction_duration_seconds_count')).toBe(12);
    expect(
      await metric(metricsPort, 'llm_d_epp_inference_request_metric', 'type="tpot_prediction_duration"'),
    ).toBeGreaterThan(0);
  });

  it('prediction servers that do not answer in time, or not at all, cost no request', async () => {
    const { server, bed } = await withServers(', predictionTimeoutMs: 50');
    server.held = new Promise(() => {});
    expect(NAMES).toContain(await request(bed));
    await server.close();
    for (const name of await destinations(bed, 8)) expect(NAMES).toContain(name);
    const { metricsPort } = bed.ports;
    expect(await metric(metricsPort, 'pointsman_prediction_server_requests_total', 'outcome="late"')).toBeGreaterThan(
      0,
    );
    expect(await metric(metricsPort, 'pointsman_prediction_server_requests_total', 'outcome="failed"')).toBeGreaterThan(
      0,
    );
    expect(await metric(metricsPort, 'pointsman_prediction_server_requests_total', 'outcome="paused"')).toBeGreaterThan(
      0,
    );
  });
});
