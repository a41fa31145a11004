import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { startModelServer } from '../../dist/tools/simulator/server/model-server.js';
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
/** Blocks of each cache, with 16 tokens each. */
const BLOCKS = 512;

const profile = (parameters: string) => `featureGates: [flowControl]
plugins:
- {type: disagg-profile-handler, parameters: ${parameters}}
- {type: always-disagg-pd-decider, name: d}
- {type: prefill-filter}
- {type: decode-filter}
- {type: prefix-cache-scorer}
- {type: active-request-scorer}
schedulingProfiles:
- {name: prefill, plugins: [{pluginRef: prefill-filter}, {pluginRef: active-request-scorer}]}
- {name: decode, plugins: [{pluginRef: decode-filter}, {pluginRef: active-request-scorer}]}
flowControl: {sessions: {mode: on, idleLease: 600s}, defaultRequestTTL: 600s}
`;

/** A picker before two simulated servers that prefill and two that decode. */
async function start(parameters: string) {
  const names = ['prefill-0', 'prefill-1', 'decode-0', 'decode-1'];
  const servers = await Promise.all(
    names.map((name) => startModelServer({ name, model: 'm', engine: { blocks: BLOCKS } })),
  );
  cleanups.push(() => Promise.all(servers.map((server) => server.stop())));
  const endpoints = servers.map(({ name, port }) => {
    return { name, port, labels: { 'llm-d.ai/role': name.slice(0, -2) } };
  });
  const setting = await Setting.create(endpoints, profile(parameters));
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, '--shards=1']);
  cleanups.push(() => picker.stop(0));
  const count = async (name: string, labels = '') => (await metric(ports.metricsPort, name, labels)) ?? 0;
  await eventually('the caches are known', async () => {
    return (await count('llm_d_epp_thunder_agent_endpoint_capacity_tokens')) === 4 * BLOCKS * 16;
  });
  // Until the next tick, 0.5 s at most, the room of caches that were not known is without a bound.
  await pause(1_000);
  const nameOf = (address: string | undefined) => endpoints.find(({ port }) => address?.endsWith(`:${port}`))?.name;
  const send = (prompt: string, headers: Readonly<Record<string, string>> = {}) => {
    const client = dialPicker(ports.grpcPort);
    cleanups.push(() => client.close());
    const call = ask(client, prompt, headers);
    const turn: { call: Call; prefill?: string | undefined; decode?: string | undefined } = { call };
    call.once('data', (bytes: Buffer) => {
      const { headers } = decodeReply(bytes);
      turn.prefill = nameOf(headers[PREFILL]);
      turn.decode = nameOf(headers[DESTINATION]);
    });
    return turn;
  };
  /** Answers turns once all of them are placed. */
  const place = async (turns: readonly { readonly call: Call; readonly decode?: string | undefined }[]) => {
    await eventually('the turns are placed', () => turns.every(({ decode }) => decode !== undefined));
    for (const { call } of turns) answer(call);
    await eventually('they are over', async () => (await count('pointsman_ledger_entries')) === 0);
  };
  return { send, place, count };
}

function answer(call: Call): void {
  call.write(responseHeaders({ ':status': '200', 'content-type': 'text/event-stream' }));
  call.write(responseBody('data: {}\n\n', false));
  call.write(responseBody('data: [DONE]\n\n', true));
  call.end();
}

/** A prompt of about so many tokens; the letter tells sessions apart from their beginning. */
const promptOf = (letter: string, tokens: number) => letter.repeat(4 * tokens);

describe('a session of requests with a prefill and a decode stage', () => {
  it.each([
    ['prefill-first', '{stageOrder: prefill-first}', 'prefill'],
    ['decode-first', '{deciders: {prefill: d}}', 'decode'],
  ] as const)(
    'a session of staged requests, %s, has its home on the pick of the first stage, and only caches of that stage ' +
      'have room for others',
    async (_order, parameters, stage) => {
      const { send, place, count } = await start(parameters);
      const [a, b] = [send(promptOf('a', 7_500)), send(promptOf('b', 7_500))];
      await place([a, b]);
      expect([a[stage], b[stage]].sort()).toEqual([`${stage}-0`, `${stage}-1`]);
      // Two caches of 8,192 tokens are nearly full. Those of the other stage hold no session, however empty they are.
      const c = send(promptOf('c', 7_000));
      await eventually('the third session is held', async () => (await count('pointsman_session_held')) === 1);
      expect(c.decode).toBeUndefined();
      // It keeps nobody from its home.
      const again = send(promptOf('a', 7_900));
      await place([again]);
      expect(again[stage]).toBe(a[stage]);
      expect(await count('pointsman_session_turns_total', 'how="prompt"')).toBe(1);
      expect(await count('pointsman_session_turns_total', 'how="new"')).toBe(2);
      const last = send(promptOf('b', 7_900), { 'x-pointsman-session-end': '1' });
      await eventually('the last turn is placed', () => last.decode !== undefined);
      answer(last.call);
      await place([c]);
      expect(c[stage]).toBe(b[stage]);
      expect(await count('pointsman_session_turns_total', 'how="new"')).toBe(3);
      expect(await count('pointsman_session_splits_total')).toBe(0);
    },
    60_000,
  );
});
