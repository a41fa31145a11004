import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { type Call, dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, type FileEndpoint, Setting, startPicker } from './serving.ts';

/** What the model servers `a`, `b` and `c` say about themselves. */
const PAGES = {
  a: { waiting: 0, running: 9, kv: 0.1, gpu: 0.9 },
  b: { waiting: 9, running: 1, kv: 0.5, gpu: 0.1 },
  c: { waiting: 20, running: 5, kv: 0.9, gpu: 0.5 },
} as const;
type Name = keyof typeof PAGES;

const servers = new Map<Name, Server>();
const cleanups: (() => unknown)[] = [];

beforeAll(async () => {
  for (const name of ['a', 'b', 'c'] as const) {
    const { waiting, running, kv, gpu } = PAGES[name];
    const page =
      `vllm:num_requests_waiting ${waiting}\nvllm:num_requests_running ${running}\n` +
      `vllm:kv_cache_usage_perc ${kv}\ngpu_usage ${gpu}\n`;
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

/** A running picker with these plugins (the last list: the profile), and where it sends requests. */
async function serve(
  plugins: readonly string[],
  profile: readonly string[],
  labels: Partial<Record<Name, Readonly<Record<string, string>>>> = {},
) {
  const names = [...servers.keys()];
  const portOf = (name: Name) => (servers.get(name)!.address() as AddressInfo).port;
  const endpoints: FileEndpoint[] = names.map((name) => ({ name, port: portOf(name), labels: labels[name] ?? {} }));
  const references = profile.map((name) => `{pluginRef: ${name}}`).join(', ');
  const setting = await Setting.create(
    endpoints,
    `plugins:\n${plugins.map((plugin) => `- ${plugin}\n`).join('')}schedulingProfiles: [{name: p, plugins: ` +
      `[${references}]}]\n`,
  );
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, '--shards=1', '--allow-experimental-plugins']);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  /** Name of the destination, or the status of a refusal. The request stays in flight until it is ended. */
  const send = async (prompt: string, headers: Readonly<Record<string, string>> = {}) => {
    const call: Call = ask(client, prompt, headers);
    const reply = decodeReply(await firstReply(call));
    const port = Number(reply.headers['x-gateway-destination-endpoint']?.split(':')[1]);
    return { to: names.find((name) => portOf(name) === port) ?? reply.status, call };
  };
  let count = 0;
  /** Where so many requests go, one after the other, each of them over before the next. */
  const destinations = async (times: number, prompt?: string, headers: Readonly<Record<string, string>> = {}) => {
    const seen: unknown[] = [];
    for (let i = 0; i < times; i++) {
      const { to, call } = await send(prompt ?? `prompt ${count++} ${Math.random()} ${'x'.repeat(600)}`, headers);
      call.cancel();
      seen.push(to);
    }
    return seen;
  };
  return { send, destinations };
}

const all = (name: Name) => [name, name, name, name];

describe('over the wire', () => {
  it.each<[string, string, Name, Partial<Record<Name, Record<string, string>>>]>([
    ['encode-filter', '', 'b', { b: { 'llm-d.ai/role': 'encode' }, c: { 'llm-d.ai/role': 'decode' } }],
    [
      'endpoint-attribute-filter',
      'attribute: kv-cache-utilization, algorithm: {type: topK, topK: {k: 1, keep: highest}}',
      'c',
      {},
    ],
    ['utilization-filter', 'conditions: [{metric: running-requests, maxValue: 1}]', 'b', {}],
    ['utilization-detector', 'metricsStalenessThreshold: 60s', 'a', {}],
    [
      'context-length-aware',
      'label: fits, enableFiltering: true',
      'c',
      { a: { fits: '0-10' }, b: { fits: 'short' }, c: { fits: '0-100000' } },
    ],
    ['endpoint-attribute-scorer', 'attributeKey: waiting-queue, algorithm: {type: linear_higher_is_better}', 'c', {}],
  ])('%s with {%s} sends requests to %s', async (type, parameters, expected, labels) => {
    const { destinations } = await serve([`{type: ${type}, parameters: {${parameters}}}`], [type], labels);
    await eventually('all go there', async () => (await destinations(4)).every((to) => to === expected));
    expect(await destinations(4)).toEqual(all(expected));
  });

  it('endpoint-attribute-scorer reads a custom metric of core-metrics-extractor', async () => {
    const { destinations } = await serve(
      [
        '{type: core-metrics-extractor, parameters: {engineConfigs: [{name: vllm, customMetrics: [{attributeKey: ' +
          'gpu, metricSpec: gpu_usage}]}]}}',
        '{type: endpoint-attribute-scorer, parameters: {attributeKey: gpu, algorithm: {type: ' +
          'linear_lower_is_better, normalization: {fixedRange: {max: 1}}}}}',
      ],
      ['endpoint-attribute-scorer'],
    );
    await eventually('all go there', async () => (await destinations(4)).every((to) => to === 'b'));
    expect(await destinations(4)).toEqual(all('b'));
  });

  it('header-label-affinity-scorer sends a request where the label has the value of the header', async () => {
    const parameters = '{headerName: X-Zone, labelKey: zone}';
    const { destinations } = await serve(
      [`{type: header-label-affinity-scorer, parameters: ${parameters}}`],
      ['header-label-affinity-scorer'],
      { a: { zone: 'one' }, b: { zone: 'two' }, c: { zone: 'two' } },
    );
    expect(await destinations(4, undefined, { 'x-zone': 'one' })).toEqual(all('a'));
    expect(new Set(await destinations(30, undefined, { 'x-zone': 'two' }))).toEqual(new Set(['b', 'c']));
  });

  it.each(['rendezvous-hash-scorer', 'consistent-hash-scorer'])('%s sends a session to one endpoint', async (type) => {
    const { destinations } = await serve([`{type: ${type}}`], [type]);
    const homes = new Set<unknown>();
    for (let session = 0; session < 12; session++) {
      const seen = new Set(await destinations(4, undefined, { 'x-session-id': `session ${session}` }));
      expect(seen.size).toBe(1);
      for (const home of seen) homes.add(home);
    }
    expect(homes.size).toBeGreaterThan(1);
  });

  it.each([
    'prefix-cache-affinity-filter',
    'sticky-until-saturated-filter',
    'cache-aware-scorer',
    'prefix-balance-scorer',
    'exploit-explore-scorer',
  ])('%s sends a prompt where it was sent before', async (type) => {
    const { destinations } = await serve([`{type: ${type}}`], [type]);
    for (const word of ['first', 'second', 'third', 'fourth']) {
      const seen = await destinations(5, `${word} `.repeat(200));
      expect(new Set(seen).size).toBe(1);
    }
  });

  it('no-hit-lru-scorer sends new prompts round', async () => {
    const { destinations } = await serve(['{type: no-hit-lru-scorer}'], ['no-hit-lru-scorer']);
    const seen = await destinations(9);
    expect(new Set(seen.slice(0, 3)).size).toBe(3);
    expect(seen.slice(3, 6)).toEqual(seen.slice(0, 3));
    expect(seen.slice(6)).toEqual(seen.slice(0, 3));
  });

  it.each([
    ['lmetric-scorer', '{type: lmetric-scorer}'],
    ['least-request-picker', '{type: least-request-picker}'],
    ['power-of-two-picker', '{type: power-of-two-picker, parameters: {choices: 3}}'],
    [
      'active-blocks-scorer',
      '{type: active-blocks-scorer, parameters: {countPrefillInFlight: true, overlapCreditDecay: 1}}',
    ],
  ])('%s spreads requests that are in flight', async (type, plugin) => {
    const { send } = await serve([plugin], [type]);
    const sent = [];
    for (const word of ['one', 'two', 'three']) sent.push((await send(`${word} `.repeat(200))).to);
    expect(new Set(sent)).toEqual(new Set(['a', 'b', 'c']));
  });

  it('concurrency-detector turns a request away when every endpoint has its fill, until one is done', async () => {
    const { send } = await serve(
      ['{type: concurrency-detector, parameters: {maxConcurrency: 1}}'],
      ['concurrency-detector'],
    );
    const held = [await send('one'), await send('two'), await send('three')];
    expect(new Set(held.map(({ to }) => to))).toEqual(new Set(['a', 'b', 'c']));
    expect((await send('four')).to).toBe(429);
    held[1]!.call.cancel();
    await eventually('the place is free', async () => {
      const next = await send('five');
      next.call.cancel();
      return next.to === held[1]!.to;
    });
  });

  it('round-robin-picker takes the endpoints one after the other', async () => {
    const { destinations } = await serve(['{type: round-robin-picker}'], ['round-robin-picker']);
    const seen = await destinations(9);
    expect(new Set(seen.slice(0, 3)).size).toBe(3);
    expect([seen.slice(3, 6), seen.slice(6)]).toEqual([seen.slice(0, 3), seen.slice(0, 3)]);
  });
});
