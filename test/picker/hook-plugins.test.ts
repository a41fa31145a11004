import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import {
  decodeReply,
  type ProxyReply,
  requestBody,
  requestHeaders,
  responseBody,
  responseHeaders,
  responseTrailers,
} from '../ingress/envoy-messages.ts';
import { collect } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import {
  chat,
  type FileEndpoint,
  metric,
  overConnection,
  type Ports,
  runToEnd,
  Setting,
  startPicker,
} from './serving.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));
const example = (name: string) => join(project, 'examples/plugins', name);
const samples = join(project, 'test/picker/sample-plugins.js');

const endpoints: FileEndpoint[] = ['a', 'b', 'a', 'b'].map((tenant, index) => ({
  name: `pod-${index}`,
  address: `127.0.0.${index + 2}`,
  port: 9,
  labels: { tenant },
}));
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serving(profile: string, ...flags: string[]): Promise<Ports> {
  const setting = await Setting.create(endpoints, profile);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, ...flags]);
  cleanups.push(() => picker.stop(0));
  return ports;
}

interface Exchange {
  readonly replies: readonly ProxyReply[];
  readonly destination: string;
  reply(kind: ProxyReply['kind']): ProxyReply | undefined;
}

/** One whole exchange over a connection of its own, so that several shards get some. */
async function exchange(
  port: number,
  headers: Readonly<Record<string, string>> = {},
  answer: readonly Buffer[] = [responseHeaders({ ':status': '200' }), responseBody('{}', true)],
): Promise<Exchange> {
  return overConnection(port, async (client) => {
    const call = client.process();
    const collected = collect(call);
    call.write(requestHeaders({ ':path': '/v1/chat/completions', ...headers }));
    call.write(requestBody(chat('hello')));
    for (const message of answer) call.write(message);
    call.end();
    const replies = (await collected).replies.map((reply) => decodeReply(reply));
    const reply = (kind: ProxyReply['kind']) => replies.find((candidate) => candidate.kind === kind);
    return { replies, reply, destination: reply('requestHeaders')?.headers['x-gateway-destination-endpoint'] ?? '' };
  });
}

async function destinations(port: number, count: number, headers: Readonly<Record<string, string>>): Promise<string[]> {
  const seen = new Set<string>();
  for (let i = 0; i < count; i++) seen.add((await exchange(port, headers)).destination);
  return [...seen].sort();
}

describe('the samples', () => {
  const tenants = [
    'plugins:\n- type: tenant-filter\n- type: short-first-scorer\n  parameters: {promptBytes: 0}\n',
    'schedulingProfiles:\n- name: default\n  plugins:\n',
    '  - {pluginRef: tenant-filter}\n  - {pluginRef: short-first-scorer, weight: 2}\n',
  ].join('');

  it('a filter and a scorer of other people’s making decide on every shard', async () => {
    const flags = [`--plugin=${example('tenant-filter.js')}`, `--plugin=${example('short-first-scorer.js')}`];
    const { grpcPort } = await serving(tenants, ...flags, '--shards=2', '--emit-endpoint-scores');
    expect(await destinations(grpcPort, 16, { 'x-tenant': 'b' })).toEqual(['127.0.0.3:9', '127.0.0.5:9']);
    const { replies } = await exchange(grpcPort, { 'x-tenant': 'a' });
    const scores = { '127.0.0.2:9': 2, '127.0.0.4:9': 2 };
    const metadata = { 'envoy.lb': expect.objectContaining({ 'x-gateway-destination-endpoint-scores': scores }) };
    expect(replies[0]!.metadata).toEqual(metadata);
    expect((await exchange(grpcPort, { 'x-tenant': 'c' })).reply('immediate')?.status).toBe(503);
  });

  it('a whole scheduler takes the place of the profiles', async () => {
    const profile = 'plugins:\n- type: least-busy-scheduler\n';
    const { grpcPort } = await serving(profile, `--plugin=${example('least-busy-scheduler.js')}`);
    await overConnection(grpcPort, async (client) => {
      const calls = [];
      const picked: string[] = [];
      // Left open: each holds its endpoint.
      for (let i = 0; i < 4; i++) {
        const call = client.process();
        calls.push(call);
        call.on('error', () => undefined);
        call.write(requestHeaders({ ':path': '/v1/chat/completions' }));
        call.write(requestBody(chat(`prompt ${i}`)));
        const [reply] = await new Promise<Buffer[]>((resolve) =>
          call.once('data', (bytes: Buffer) => resolve([bytes])),
        );
        picked.push(decodeReply(reply!).headers['x-gateway-destination-endpoint']!);
      }
      for (const call of calls) call.end();
      const first = (index: number) => `127.0.0.${index + 2}:9`;
      expect(picked.map((list) => list.split(',')[0])).toEqual([0, 1, 2, 3].map(first));
      expect(picked[0]).toBe(`${first(0)},${first(1)}`);
    });
  });
});

describe('docs/plugins-howto.md', () => {
  it('its first plugin works as it stands there', async () => {
    const page = readFileSync(join(project, 'docs/plugins-howto.md'), 'utf8');
    const block = (language: string) =>
      new RegExp(`^ {3}\`\`\`${language}\\n(.*?)^ {3}\`\`\``, 'ms').exec(page)![1]!.replaceAll(/^ {3}/gm, '');
    // Inside the project, so that pointsman/plugin is found.
    const folder = mkdtempSync(join(project, 'dist/howto-'));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    const plugin = join(folder, 'quiet-scorer.js');
    writeFileSync(plugin, block('js'));
    const profile = block('yaml').replaceAll(
      /^apiVersion.*\n|^kind.*\n| *- type: file-discovery\n.*\n|^dataLayer[\s\S]*$/gm,
      '',
    );
    expect(profile).toMatch(/^plugins:\n {2}- type: quiet-scorer\n {4}parameters: \{ half: 4 \}\n/);
    const { grpcPort } = await serving(
      profile.replaceAll(/^ {2}/gm, ''),
      `--plugin=${plugin}`,
      '--emit-endpoint-scores',
    );
    const { replies } = await exchange(grpcPort);
    const scores = Object.fromEntries([2, 3, 4, 5].map((last) => [`127.0.0.${last}:9`, 2]));
    const metadata = { 'envoy.lb': expect.objectContaining({ 'x-gateway-destination-endpoint-scores': scores }) };
    expect(replies[0]!.metadata).toEqual(metadata);
  });
});

describe('session affinity', () => {
  const profile = (strategy: string) =>
    `plugins:\n- type: session-affinity-filter\n  parameters: {strategy: ${strategy}}\n- type: random-picker\n`;

  it('session affinity echoes the token of the endpoint, and follows it', async () => {
    const { grpcPort } = await serving(profile('encoded_endpoint_header'), '--allow-experimental-plugins');
    const { destination, reply } = await exchange(grpcPort);
    const token = reply('responseHeaders')!.headers['x-session-token']!;
    const index = Number(destination[8]) - 2;
    expect(Buffer.from(token, 'base64').toString()).toBe(`default/pod-${index}`);
    expect(reply('responseHeaders')!.headers['x-went-into-resp-headers']).toBe('true');
    expect(await destinations(grpcPort, 12, { 'x-session-token': token })).toEqual([destination]);
  });

  it('session affinity by session id is the same on all shards', async () => {
    const { grpcPort } = await serving(profile('session_id'), '--allow-experimental-plugins', '--shards=2');
    const headers = { 'x-session-id': 'abc' };
    const { destination } = await exchange(grpcPort, headers);
    // The other shard hears of it a moment later.
    await eventually(
      'both shards know the session',
      async () => (await destinations(grpcPort, 8, headers)).length === 1,
    );
    expect(await destinations(grpcPort, 16, headers)).toEqual([destination]);
  });
});

describe('hooks of the answer', () => {
  const profile = 'plugins:\n- type: answer-reporter\n  parameters: {prefix: "at "}\n';
  const usage = '{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}';
  const ok = responseHeaders({ ':status': '200', 'content-type': 'application/json' });

  it('hooks of the answer add headers to it and metadata to its last piece', async () => {
    const { grpcPort } = await serving(profile, `--plugin=${samples}`);
    const answer = [ok, responseBody(usage.slice(0, 30)), responseBody(usage.slice(30), true)];
    const { reply, replies, destination } = await exchange(grpcPort, {}, answer);
    expect(reply('responseHeaders')!.headers['x-answered-by']).toBe(`at pod-${Number(destination[8]) - 2}`);
    const bodies = replies.filter(({ kind }) => kind === 'responseBody');
    expect(bodies.map(({ metadata }) => metadata)).toEqual([undefined, { 'envoy.lb': { tokens: 7 } }]);
    expect(Buffer.concat(bodies.map(({ body }) => body)).toString()).toBe(usage);
  });

  it('hooks of the answer put the metadata on the trailers when these end it', async () => {
    const { grpcPort } = await serving(profile, `--plugin=${samples}`);
    const { reply } = await exchange(grpcPort, {}, [ok, responseBody(usage), responseTrailers()]);
    expect(reply('responseTrailers')!.metadata).toEqual({ 'envoy.lb': { tokens: 7 } });
  });

  it('an admitter of the same plugin answers with its own status', async () => {
    const { grpcPort } = await serving(profile, `--plugin=${samples}`);
    const { reply } = await exchange(grpcPort, { 'x-tier': 'none' });
    expect(reply('immediate')?.status).toBe(429);
    expect(reply('immediate')?.body.toString()).toBe(
      'inference error: ResourceExhausted - request cannot be admitted: no tier',
    );
  });
});

describe('a plugin that fails', () => {
  it('a plugin that fails is counted, then left out, and every request is placed', async () => {
    const { grpcPort, metricsPort } = await serving('plugins:\n- type: failing-scorer\n', `--plugin=${samples}`);
    for (let i = 0; i < 12; i++) expect((await exchange(grpcPort)).destination).not.toBe('');
    expect(await metric(metricsPort, 'pointsman_plugin_failures_total', 'plugin="failing-scorer"')).toBe(10);
  });
});

describe('agent-identity', () => {
  it('agent-identity names the flow of a request in the metrics', async () => {
    const profile = 'plugins:\n- type: agent-identity\n';
    const { grpcPort, metricsPort } = await serving(profile, '--allow-experimental-plugins');
    await exchange(grpcPort, { 'x-claude-code-session-id': 'session-1' });
    expect(await metric(metricsPort, 'llm_d_epp_request_total', 'fairness_id="session-1"')).toBe(1);
  });
});

describe('--plugin', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-plugins-'));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const ends = async (...flags: string[]) => (await runToEnd(['serve', ...flags])).stderr;

  it('--plugin says in one line what is wrong with a module', async () => {
    const empty = join(folder, 'empty.mjs');
    writeFileSync(empty, 'export const other = 1;\n');
    expect(await ends('--plugin=./no-such-file.js')).toMatch(
      /^pointsman: .*--plugin file:.*no-such-file\.js: cannot be loaded: .*\n$/,
    );
    expect(await ends('--plugin=no-such-package')).toMatch(
      /^pointsman: .*--plugin no-such-package: no such package .*\n$/,
    );
    expect(await ends(`--plugin=${empty}`)).toContain('must export a list');
    expect(await ends(`--plugin=${samples}`, `--plugin=${samples}`)).toContain('type "failing-scorer" exists already');
  });

  it('--plugin says in one line why a plugin does not start', async () => {
    const parameters = '{encodedEndpointHeaderConfig: {tokenFormat: signed, keyFile: /no/such/key}}';
    const profile = `plugins:\n- type: session-affinity-filter\n  parameters: ${parameters}\n`;
    const setting = await Setting.create(endpoints, profile);
    cleanups.push(() => setting.remove());
    const stderr = await ends(...setting.flags, '--allow-experimental-plugins', '--zap-log-level=panic');
    expect(stderr).toMatch(
      /plugin "session-affinity-filter".* does not start: keyFile: \/no\/such\/key does not exist: .*\n$/,
    );
  });
});
