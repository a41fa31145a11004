import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, metric, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const DESTINATION = 'x-gateway-destination-endpoint';
const PREFILL = 'x-prefiller-host-port';
const ENCODE = 'x-encoder-hosts-ports';
const LONG = 'a long prompt '.repeat(200);

/** Endpoints by role, on ports where nobody listens: nothing is sent to them but scrapes. */
const PORTS = { decode: 21_001, prefill: 21_002, encode: 21_003 } as const;

async function serve(profile: string, ...flags: string[]) {
  const endpoints = Object.entries(PORTS).map(([name, port]) => ({ name, port, labels: { 'llm-d.ai/role': name } }));
  const setting = await Setting.create(endpoints, profile);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, '--allow-experimental-plugins', ...flags]);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  const send = async (prompt: string, headers: Readonly<Record<string, string>> = {}) => {
    const call = ask(client, prompt, headers);
    return { call, reply: decodeReply(await firstReply(call)) };
  };
  const inflight = (name: string) =>
    metric(ports.metricsPort, 'llm_d_epp_inflight_requests', `endpoint_name="${name}"`);
  return { send, inflight, ports };
}

const at = (name: keyof typeof PORTS) => `127.0.0.1:${PORTS[name]}`;

const DISAGGREGATED = `plugins:
- {type: disagg-profile-handler, parameters: {deciders: {prefill: d}}}
- {type: prefix-based-pd-decider, name: d, parameters: {nonCachedTokens: 16}}
- {type: prefill-filter}
- {type: decode-filter}
- {type: prefix-cache-scorer}
schedulingProfiles:
- {name: prefill, plugins: [{pluginRef: prefill-filter}, {pluginRef: prefix-cache-scorer}]}
- {name: decode, plugins: [{pluginRef: decode-filter}, {pluginRef: prefix-cache-scorer}]}
`;

describe('a picker with disagg-profile-handler', () => {
  it.each([1, 2])(
    'a picker with disagg-profile-handler names both endpoints, charges both, and lets the prefill go at the first ' +
      'token (%i shards)',
    async (shards) => {
      const { send, inflight, ports } = await serve(DISAGGREGATED, `--shards=${shards}`);
      const { call, reply } = await send(LONG, { [PREFILL]: '6.6.6.6:1', [ENCODE]: '6.6.6.6:1' });
      expect(reply.headers).toMatchObject({ [DESTINATION]: at('decode'), [PREFILL]: at('prefill') });
      expect(reply.removed).toContain(ENCODE);
      expect([await inflight('decode'), await inflight('prefill')]).toEqual([1, 1]);
      call.write(responseHeaders({ ':status': '200', 'content-type': 'text/event-stream' }));
      call.write(responseBody('data: {}\n\n', false));
      await eventually('the prefill is over', async () => (await inflight('prefill')) === 0);
      expect(await inflight('decode')).toBe(1);
      call.write(responseBody('data: [DONE]\n\n', true));
      await eventually('the answer is over', async () => (await inflight('decode')) === 0);
      const counted = (stages: string) =>
        metric(ports.metricsPort, 'llm_d_epp_disagg_decision_total', `decision_type="${stages}"`);
      expect(await counted('prefill-decode')).toBe(1);
      // The decode endpoint holds the prompt now.
      const again = await send(LONG, { [PREFILL]: '6.6.6.6:1' });
      expect(again.reply.headers).not.toHaveProperty(PREFILL);
      expect(again.reply.removed).toContain(PREFILL);
      expect(await counted('decode-only')).toBe(1);
      again.call.cancel();
      await eventually('a client that left holds nothing', async () => (await inflight('decode')) === 0);
    },
  );

  it('a picker with disagg-profile-handler shows a decision for each profile on the decisions page', async () => {
    const { send, ports } = await serve(DISAGGREGATED, '--shards=1');
    const { call } = await send(LONG);
    call.cancel();
    const page = await (await fetch(`http://127.0.0.1:${ports.metricsPort}/debug/decisions`)).json();
    const decisions = (page as { decisions: readonly { profile: string; endpoint: string; further: boolean }[] })
      .decisions;
    const shown = decisions.map(({ profile, endpoint, further }) => [profile, endpoint, further]);
    expect(shown.sort()).toEqual([
      ['decode', 'default/decode', false],
      ['prefill', 'default/prefill', true],
    ]);
  });

  it('a picker with disagg-profile-handler answers 412 to a request that asks for the cache only', async () => {
    const { send } = await serve(DISAGGREGATED, '--shards=1');
    const { reply } = await send(LONG, { prefer: 'if-available' });
    expect(reply).toMatchObject({ status: 412 });
  });
});

describe('a picker with', () => {
  const filters = '- {type: prefill-filter}\n- {type: decode-filter}\n- {type: always-disagg-pd-decider}\n';
  const two =
    'schedulingProfiles:\n- {name: prefill, plugins: [{pluginRef: prefill-filter}]}\n' +
    '- {name: decode, plugins: [{pluginRef: decode-filter}]}\n';

  it('pd-profile-handler and prefill-header-handler names both endpoints, and counts in its own metric', async () => {
    const handler = '- {type: pd-profile-handler, parameters: {deciderPluginName: always-disagg-pd-decider}}\n';
    const { send, ports } = await serve(
      `plugins:\n${handler}- {type: prefill-header-handler}\n${filters}${two}`,
      '--shards=1',
    );
    const { reply } = await send('hello');
    expect(reply.headers).toMatchObject({ [DESTINATION]: at('decode'), [PREFILL]: at('prefill') });
    expect(await metric(ports.metricsPort, 'llm_d_epp_pd_decision_total', 'prefill-decode')).toBe(1);
  });

  it('header-profile-handler runs the profile that the header names', async () => {
    const { send } = await serve(`plugins:\n- {type: header-profile-handler}\n${filters}${two}`, '--shards=1');
    expect((await send('hello')).reply.headers[DESTINATION]).toBe(at('decode'));
    expect((await send('hello', { 'EPP-Profile': 'prefill' })).reply.headers[DESTINATION]).toBe(at('prefill'));
    expect((await send('hello', { 'EPP-Profile': 'none' })).reply.status).toBe(429);
  });

  it('data-parallel-profile-handler tells the primary port, and the rank in a header', async () => {
    const one = 'schedulingProfiles:\n- {name: p, plugins: [{pluginRef: decode-filter}]}\n';
    const handler = '- {type: data-parallel-profile-handler, parameters: {primaryPort: 9000}}\n';
    const { send } = await serve(`plugins:\n${handler}${filters}${one}`, '--shards=1');
    expect((await send('hello')).reply.headers).toMatchObject({
      [DESTINATION]: '127.0.0.1:9000',
      'x-data-parallel-host-port': at('decode'),
    });
  });
});
