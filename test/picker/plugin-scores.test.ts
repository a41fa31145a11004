import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { firstReply } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, type FileEndpoint, overConnection, type Ports, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface ServerState {
  readonly waiting: number;
  readonly running: number;
  readonly adapters: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** A model server whose metrics page says this. */
async function modelServer({ waiting, running, adapters }: ServerState): Promise<number> {
  const server = createServer((_request, response) =>
    response.end(
      `vllm:num_requests_waiting ${waiting}\nvllm:num_requests_running ${running}\nvllm:kv_cache_usage_perc 0\n` +
        `vllm:lora_requests_info{max_lora="2",running_lora_adapters="${adapters}",waiting_lora_adapters=""} 1\n`,
    ),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

interface Served {
  /** What the endpoints score for one request, in their order, or the status of its refusal. */
  readonly scores: (prompt?: string, headers?: Readonly<Record<string, string>>) => Promise<readonly number[] | number>;
  readonly ports: Ports;
  readonly endpoints: readonly FileEndpoint[];
}

async function serve(states: readonly ServerState[], profile: string): Promise<Served> {
  const endpoints: FileEndpoint[] = [];
  for (const [i, state] of states.entries()) {
    endpoints.push({ name: `pod-${i}`, port: await modelServer(state), labels: state.labels ?? {} });
  }
  const setting = await Setting.create(endpoints, profile);
  cleanups.push(() => setting.remove());
  const list = endpoints.map(({ name, port, labels }) => ({ name, address: '127.0.0.1', port, labels }));
  const objectives = [{ name: 'batch', priority: -1 }];
  await writeFile(`${setting.folder}/endpoints.yaml`, JSON.stringify({ endpoints: list, objectives }));
  const flags = [...setting.flags, '--shards=1', '--allow-experimental-plugins', '--emit-endpoint-scores'];
  const { picker, ports } = await startPicker(flags);
  cleanups.push(() => picker.stop(0));
  const scores: Served['scores'] = (prompt = 'hello', headers = {}) =>
    overConnection(ports.grpcPort, async (client) => {
      const call = ask(client, prompt, headers);
      const reply = decodeReply(await firstReply(call));
      call.cancel();
      if (reply.kind === 'immediate') return reply.status;
      const lb = (reply.metadata as Record<string, Record<string, Record<string, number>>>)['envoy.lb']!;
      const all = lb['x-gateway-destination-endpoint-scores']!;
      return endpoints.map(({ port }) => all[`127.0.0.1:${port}`] ?? Number.NaN);
    });
  return { scores, ports, endpoints };
}

const profile = (scorers: Readonly<Record<string, number>>, plugins: readonly string[]) =>
  `plugins:\n${plugins.map((plugin) => `- ${plugin}\n`).join('')}` +
  `schedulingProfiles: [{name: p, plugins: [${Object.entries(scorers)
    .map(([name, weight]) => `{pluginRef: ${name}, weight: ${weight}}`)
    .join()}]}]\n`;

describe('the scores of an endpoint over the wire', () => {
  it('the scores of an endpoint over the wire are the weighted sum of what its signals and its session say', async () => {
    // Weights are powers of ten, so that every scorer has decimal places of its own in the sum.
    const { scores } = await serve(
      [
        { waiting: 0, running: 0, adapters: 'm' },
        { waiting: 4, running: 2, adapters: 'other' },
        { waiting: 64, running: 4, adapters: 'one,two' },
      ],
      profile(
        {
          'load-aware-scorer': 1000,
          'running-requests-size-scorer': 100,
          'lora-affinity-scorer': 10,
          'session-affinity-scorer': 1,
        },
        [
          '{type: load-aware-scorer}',
          '{type: running-requests-size-scorer}',
          '{type: lora-affinity-scorer, parameters: {rememberSent: false}}',
          '{type: session-affinity-scorer}',
        ],
      ),
    );
    const session = { 'x-session-token': Buffer.from('default/pod-1').toString('base64') };
    // 0.5, 0.5 × (1 - 4/128), 0.5 × (1 - 64/128); (4 - running) / 4; adapter running 1, room for it 0.8, no room 0.
    const expected = [500 + 100 + 10, 484.375 + 50 + 8 + 1, 250 + 0 + 0].map((score) => expect.closeTo(score, 2));
    let seen: unknown;
    await eventually('all signals are known', async () => {
      seen = await scores('hello', session);
      return Array.isArray(seen) && Math.abs(seen[2] - 250) < 0.01 && Math.abs(seen[0] - 610) < 0.01;
    });
    expect(seen).toEqual(expected);
  });

  it('the scores of an endpoint over the wire are less where a request is in flight, and more where a prompt was sent', async () => {
    const idle = { waiting: 0, running: 0, adapters: '' };
    const { scores, ports, endpoints } = await serve(
      [idle, idle],
      profile({ 'active-request-scorer': 10, 'multicluster-prefix-cache-scorer': 1 }, [
        '{type: active-request-scorer}',
        '{type: multicluster-prefix-cache-scorer}',
      ]),
    );
    const prompt = 'the same beginning '.repeat(100);
    await overConnection(ports.grpcPort, async (client) => {
      const call = ask(client, prompt);
      const held = decodeReply(await firstReply(call)).headers['x-gateway-destination-endpoint'];
      const at = endpoints.findIndex(({ port }) => held === `127.0.0.1:${port}`);
      const seen = (await scores(prompt)) as readonly number[];
      expect([seen[at], seen[1 - at]]).toEqual([1, 10]);
      call.cancel();
    });
  });

  it('the scores of an endpoint over the wire count only where label filters leave it, for a session of a producer', async () => {
    const idle = { waiting: 0, running: 0, adapters: '' };
    const role = (value: string, zone: string) => ({ ...idle, labels: { 'llm-d.ai/role': value, zone } });
    const { scores } = await serve(
      [role('decode', 'a'), role('decode', 'b'), role('prefill', 'a'), role('both', 'a'), role('decode', 'a')],
      profile({ 'decode-filter': 1, 'by-label': 1, 'by-label-selector': 1, sessions: 1, 'queue-scorer': 1 }, [
        '{type: decode-filter}',
        '{type: by-label, parameters: {label: zone, validValues: [a]}}',
        '{type: by-label-selector, parameters: {matchExpressions: [{key: llm-d.ai/role, operator: NotIn, values: ' +
          '[both]}]}}',
        '{type: session-id-producer, name: ids, parameters: {cookieName: session}}',
        '{type: session-affinity-filter, name: sessions, parameters: {strategy: session_id, sessionIdConfig: ' +
          '{sources: [{producer: ids}]}}}',
        '{type: queue-scorer}',
      ]),
    );
    const left = (seen: readonly number[] | number) =>
      (seen as readonly number[]).flatMap((score, i) => (Number.isNaN(score) ? [] : [i]));
    expect(left(await scores())).toEqual([0, 4]);
    const cookie = { cookie: 'a=b; session=s1' };
    const [first] = left(await scores('hello', cookie)).length === 2 ? [await scores('again', cookie)] : [];
    expect(left(first!)).toHaveLength(1);
    expect(await scores('third', cookie)).toEqual(first);
  });

  it('the scores of an endpoint over the wire are not asked for when an admitter turns a request away', async () => {
    const full = { waiting: 50, running: 9, adapters: '' };
    const { scores } = await serve(
      [full],
      'plugins:\n- {type: probabilistic-admitter}\n- {type: utilization-detector, parameters: ' +
        '{queueDepthThreshold: 1000}}\n- {type: queue-scorer}\n',
    );
    const batch = { 'x-llm-d-inference-objective': 'batch' };
    await eventually('the endpoint is known to be full', async () => (await scores('hello', batch)) === 429);
    expect(await scores()).toEqual([1]);
  });
});
