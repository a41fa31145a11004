import { afterEach, expect, it } from 'vitest';
import { decodeReply, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { RenderServer } from '../request/tokens/render-server.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, metric, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(parameters: string, endpoints = [{ name: 'a', port: 1 }]) {
  const plugins = [
    `{type: token-producer, parameters: ${parameters}}`,
    '{type: token-load-scorer}',
    '{type: prefix-cache-scorer}',
  ];
  const setting = await Setting.create(endpoints, `plugins:\n${plugins.map((plugin) => `- ${plugin}\n`).join('')}`);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, '--shards=1']);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  const place = async (prompt: string) => {
    const call = ask(client, prompt);
    return { call, reply: decodeReply(await firstReply(call)) };
  };
  const count = (name: string, labels = '') => metric(ports.metricsPort, name, labels);
  return { place, count };
}

async function renderServer(): Promise<RenderServer> {
  const server = await RenderServer.start();
  cleanups.push(() => server.close());
  return server;
}

it('the tokens that a render server counts are what an endpoint is charged', async () => {
  const server = await renderServer();
  const { place, count } = await serve(`{modelName: base, vllm: {url: "${server.url}"}}`);
  const { reply } = await place('x'.repeat(1_000));
  expect(reply.headers['x-gateway-destination-endpoint']).toBe('127.0.0.1:1');
  expect(server.calls).toMatchObject([{ path: '/v1/chat/completions/render', body: { model: 'base' } }]);
  // 1,000 bytes would be estimated as about 250 tokens.
  await eventually('the charge', async () => (await count('pointsman_endpoint_inflight_tokens')) === 1_000);
  expect(await count('pointsman_token_requests_total', 'outcome="tokenised"')).toBe(1);
});

it('prompts match by their tokens, whatever text they came from', async () => {
  const server = await renderServer();
  server.behave = (_call, response) => response.end(JSON.stringify({ token_ids: new Array(640).fill(5) }));
  const { place, count } = await serve(`{modelName: base, vllm: {url: "${server.url}"}}`);
  await place('one text');
  const { call } = await place('and quite another');
  await eventually('both charges', async () => (await count('pointsman_endpoint_inflight_requests')) === 2);
  // The second one is cached as a whole.
  expect(await count('pointsman_endpoint_inflight_tokens')).toBe(640);
  call.cancel();
});

it('an endpoint of the pool may render', async () => {
  const server = await renderServer();
  const parameters = '{modelName: base, vllm: {servingEndpoints: true}}';
  const { place } = await serve(parameters, [{ name: 'a', port: server.port }]);
  await place('hello');
  expect(server.calls.map(({ path }) => path)).toContain('/v1/chat/completions/render');
});

it('a prompt is placed by its estimate when the render server is away', async () => {
  const server = await renderServer();
  const { url } = server;
  server.close();
  const { place, count } = await serve(`{modelName: base, vllm: {url: "${url}"}}`);
  const { reply } = await place('x'.repeat(1_000));
  expect(reply.headers['x-gateway-destination-endpoint']).toBe('127.0.0.1:1');
  expect(await count('pointsman_token_requests_total', 'outcome="failed"')).toBe(1);
  expect(await count('pointsman_endpoint_inflight_tokens')).toBe(251);
});

it('the last prompt that the engine counts otherwise is on the page with both counts', async () => {
  const server = await renderServer();
  server.behave = (_call, response) => response.end(JSON.stringify({ token_ids: new Array(26).fill(5) }));
  const { place, count } = await serve(`{modelName: base, vllm: {url: "${server.url}"}}`);
  for (const engine of [26, 31]) {
    const { call } = await place('a prompt');
    call.write(responseHeaders({ ':status': '200', 'content-type': 'application/json' }));
    call.write(responseBody(`{"usage":{"prompt_tokens":${engine},"completion_tokens":1,"total_tokens":32}}`, true));
    call.end();
  }
  await eventually('both counts', async () => (await count('pointsman_token_counts_total')) === 2);
  expect(await count('pointsman_token_counts_total', 'agreement="same"')).toBe(1);
  expect(await count('pointsman_token_count_differing', 'counted_by="picker"')).toBe(26);
  expect(await count('pointsman_token_count_differing', 'counted_by="engine"')).toBe(31);
});
