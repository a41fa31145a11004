import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { type Call, dialPicker } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, metric, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const PREFILL = 'x-prefiller-host-port';
const DESTINATION = 'x-gateway-destination-endpoint';
const LONG = 'a long prompt '.repeat(200);

/** Two decode endpoints with one place each, and as many that prefill; the first picks of both are the same. */
const ENDPOINTS = [
  { name: 'decode-0', port: 21_011, labels: { 'llm-d.ai/role': 'decode' } },
  { name: 'decode-1', port: 21_012, labels: { 'llm-d.ai/role': 'decode' } },
  { name: 'prefill', port: 21_013, labels: { 'llm-d.ai/role': 'prefill' } },
  { name: 'prefill-1', port: 21_014, labels: { 'llm-d.ai/role': 'prefill' } },
];

const PROFILE = `featureGates: [flowControl]
plugins:
- {type: concurrency-detector, parameters: {maxConcurrency: 1}}
- {type: disagg-profile-handler, parameters: {deciders: {prefill: d}}}
- {type: always-disagg-pd-decider, name: d}
- {type: prefill-filter}
- {type: decode-filter}
- {type: active-request-scorer}
schedulingProfiles:
- {name: prefill, plugins: [{pluginRef: prefill-filter}, {pluginRef: active-request-scorer}]}
- {name: decode, plugins: [{pluginRef: decode-filter}, {pluginRef: active-request-scorer}]}
flowControl:
  saturationDetector: {pluginRef: concurrency-detector}
`;

async function start(flags: readonly string[] = [], endpoints = ENDPOINTS) {
  const setting = await Setting.create(endpoints, PROFILE);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, ...flags]);
  cleanups.push(() => picker.stop(0));
  const send = (prompt: string) => {
    const client = dialPicker(ports.grpcPort);
    cleanups.push(() => client.close());
    const call = ask(client, prompt);
    const state: { call: Call; reply: ReturnType<typeof decodeReply> | undefined } = { call, reply: undefined };
    call.once('data', (reply: Buffer) => {
      state.reply = decodeReply(reply);
    });
    return state;
  };
  const inflight = async () => {
    const name = 'llm_d_epp_inflight_requests';
    const of = async (endpoint: string) => (await metric(ports.metricsPort, name, `endpoint_name="${endpoint}"`)) ?? 0;
    return Promise.all(endpoints.map((endpoint) => of(endpoint.name)));
  };
  const waiting = async () => (await metric(ports.metricsPort, 'llm_d_epp_flow_control_queue_size')) ?? 0;
  return { send, inflight, waiting, ports };
}

function answer(call: Call): void {
  call.write(responseHeaders({ ':status': '200', 'content-type': 'text/event-stream' }));
  call.write(responseBody('data: {}\n\n', false));
  call.write(responseBody('data: [DONE]\n\n', true));
  call.end();
}

describe('a request that needs a prefill and a decode endpoint, and finds no decode endpoint with room', () => {
  it.each([1, 2])(
    'a request without room on a decode endpoint waits without a charge anywhere, then gets both; in the end ' +
      'nothing is charged (%i shards)',
    async (shards) => {
      const { send, inflight, waiting, ports } = await start([`--shards=${shards}`]);
      const first = [send(LONG), send(LONG)];
      await eventually('both are placed', () => first.every(({ reply }) => reply !== undefined));
      expect(await inflight()).toEqual([1, 1, 1, 1]);
      const others = Array.from({ length: 6 }, () => send(LONG));
      await eventually('six wait', async () => (await waiting()) === 6);
      expect(await inflight()).toEqual([1, 1, 1, 1]);
      const all = [...first, ...others];
      const served = new Set<Call>();
      while (served.size < all.length) {
        const placed = all.filter(({ call, reply }) => reply !== undefined && !served.has(call));
        expect(Math.max(...(await inflight()))).toBeLessThanOrEqual(1);
        for (const { call, reply } of placed) {
          expect(reply!.headers[DESTINATION]).toMatch(/:2101[12]$/);
          expect(reply!.headers[PREFILL]).toMatch(/^127.0.0.1:2101[34]$/);
          served.add(call);
          answer(call);
        }
        const known = () => all.filter(({ reply }) => reply !== undefined).length;
        await eventually('the next ones are placed', () => served.size === all.length || known() > served.size);
      }
      await eventually('nothing is charged', async () => (await inflight()).every((count) => count === 0));
      expect(await metric(ports.metricsPort, 'pointsman_ledger_entries')).toBe(0);
      expect(await waiting()).toBe(0);
    },
  );

  it('a request without room on a decode endpoint leaves nothing behind when its client goes away', async () => {
    const { send, inflight, waiting, ports } = await start();
    const first = [send(LONG), send(LONG)];
    await eventually('both are placed', () => first.every(({ reply }) => reply !== undefined));
    const gone = send(LONG);
    await eventually('it waits', async () => (await waiting()) === 1);
    gone.call.on('error', () => undefined);
    gone.call.cancel();
    await eventually('it has left', async () => (await waiting()) === 0);
    for (const { call } of first) answer(call);
    await eventually('nothing is charged', async () => (await inflight()).every((count) => count === 0));
    expect(await metric(ports.metricsPort, 'pointsman_ledger_entries')).toBe(0);
  });
});

describe('a request that finds a decode endpoint with room, and no prefill endpoint', () => {
  const one = ENDPOINTS.filter(({ name }) => name !== 'prefill-1');

  it.each([1, 2])(
    'a request without room on a prefill endpoint waits without a charge anywhere until both have room, and passes ' +
      'no limit (%i shards)',
    async (shards) => {
      const { send, inflight, waiting, ports } = await start([`--shards=${shards}`], one);
      const all = Array.from({ length: 6 }, () => send(LONG));
      await eventually('one is placed and five wait', async () => {
        return all.some(({ reply }) => reply !== undefined) && (await waiting()) === 5;
      });
      expect((await inflight()).sort()).toEqual([0, 1, 1]);
      const served = new Set<Call>();
      while (served.size < all.length) {
        const placed = all.filter(({ call, reply }) => reply !== undefined && !served.has(call));
        expect(Math.max(...(await inflight()))).toBeLessThanOrEqual(1);
        for (const { call, reply } of placed) {
          expect(reply!.headers[PREFILL]).toBe('127.0.0.1:21013');
          served.add(call);
          answer(call);
        }
        const known = () => all.filter(({ reply }) => reply !== undefined).length;
        await eventually('the next one is placed', () => served.size === all.length || known() > served.size);
      }
      await eventually('nothing is charged', async () => (await inflight()).every((count) => count === 0));
      expect(await metric(ports.metricsPort, 'pointsman_ledger_entries')).toBe(0);
      expect(await waiting()).toBe(0);
    },
  );
});
