import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply, requestBody, requestHeaders, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { collect } from '../ingress/proxy-client.ts';
import { chat, metric, overConnection, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serving(plugins: string, identity: string, more = '') {
  const profile =
    `plugins:\n- type: prefix-cache-scorer\n${plugins}` +
    'schedulingProfiles:\n- name: default\n  plugins: [{pluginRef: prefix-cache-scorer}]\n' +
    `featureGates: [flowControl]\nflowControl: {sessions: {mode: shadow, identity: ${identity}${more}}}\n`;
  const setting = await Setting.create([{ name: 'pod-0', address: '127.0.0.2', port: 9 }], profile);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, '--allow-experimental-plugins', '--shards=1']);
  cleanups.push(() => picker.stop(0));
  return ports;
}

/** Asks, and gets an answer. @returns the headers that the picker removes */
async function turn(port: number, text: string, headers: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const replies = await exchange(port, text, headers);
  return replies.flatMap((reply) => (reply.kind === 'requestHeaders' ? (reply.removed ?? []) : []));
}

/** The replies of the picker to a request and its answer. */
async function exchange(port: number, text: string, headers: Readonly<Record<string, string>>, body = chat(text)) {
  return overConnection(port, async (client) => {
    const call = client.process();
    const collected = collect(call);
    call.write(requestHeaders({ ':path': '/v1/chat/completions', ...headers }));
    call.write(requestBody(body));
    call.write(responseHeaders({ ':status': '200' }));
    call.write(responseBody('{}', true));
    call.end();
    return (await collected).replies.map((reply) => decodeReply(reply));
  });
}

describe('sessions by a header', () => {
  const long = (word: string) => `${word} `.repeat(600);

  it('sessions by a header go on where a client has rewritten its history', async () => {
    const { grpcPort, metricsPort } = await serving('- type: agent-identity\n', 'agent-identity');
    await turn(grpcPort, long('first'), { 'x-claude-code-session-id': 's1' });
    await turn(grpcPort, long('other'), { 'x-claude-code-session-id': 's1' });
    await turn(grpcPort, long('third'), { 'x-claude-code-session-id': 's1', 'x-claude-code-agent-id': 'a1' });
    expect(await metric(metricsPort, 'pointsman_session_turns_total', 'how="header"')).toBe(1);
    expect(await metric(metricsPort, 'pointsman_session_turns_total', 'how="new"')).toBe(2);
    expect(await metric(metricsPort, 'pointsman_session_splits_total', 'cause="rewritten"')).toBe(1);
  });

  it('a session that its client ends is freed, and the model server does not see the header', async () => {
    const producer = '- {type: session-id-producer, name: mine, parameters: {headerName: x-chat}}\n';
    const { grpcPort, metricsPort } = await serving(producer, 'mine');
    const removed = await turn(grpcPort, long('first'), { 'x-chat': 's1', 'x-pointsman-session-end': '1' });
    expect(removed).toContain('x-pointsman-session-end');
    expect(await metric(metricsPort, 'pointsman_session_lapsed_total', 'cause="ended"')).toBe(1);
  });

  it('a name of a session above 256 bytes is none: the prompt tells', async () => {
    const { grpcPort, metricsPort } = await serving('- type: agent-identity\n', 'agent-identity');
    const headers = { 'session-id': 'x'.repeat(257) };
    await turn(grpcPort, long('first'), headers);
    await turn(grpcPort, long('other'), headers);
    expect(await metric(metricsPort, 'pointsman_session_turns_total', 'how="new"')).toBe(2);
  });
});

describe('engines that are asked to keep the blocks of sessions', () => {
  const bodyOf = async (port: number, text: string) => {
    const replies = await exchange(port, text, {});
    return Buffer.concat(replies.filter(({ kind }) => kind === 'requestBody').map(({ body }) => body)).toString();
  };

  it('engines that are asked to keep the blocks of sessions are asked in the body of a turn, and of nothing else', async () => {
    const { grpcPort } = await serving('', 'auto', ', retention: {engine: sglang, priority: 5}');
    const text = 'turn '.repeat(600);
    expect(await bodyOf(grpcPort, text)).toBe(chat(text).toString().replace('{', '{"priority":5,'));
    expect(await bodyOf(grpcPort, 'chat')).toBe(chat('chat').toString());
  });

  it('engines are not asked where the client has written the member itself, and the turn is counted', async () => {
    const { grpcPort, metricsPort } = await serving('', 'auto', ', retention: {engine: dynamo, priority: 5}');
    const own = chat('turn '.repeat(600)).replace('{', '{"nvext":{},');
    const [body] = (await exchange(grpcPort, '', {}, own)).filter(({ kind }) => kind === 'requestBody');
    expect(body!.body.toString()).toBe(own);
    expect(await metric(metricsPort, 'pointsman_retention_hints_left_out_total')).toBe(1);
  });

  it('engines are not asked by default', async () => {
    const { grpcPort } = await serving('', 'auto');
    const text = 'turn '.repeat(600);
    expect(await bodyOf(grpcPort, text)).toBe(chat(text).toString());
  });
});
