import { afterEach, describe, expect, test } from 'vitest';
import { startFleet } from '../../../dist/tools/simulator/server/fleet.js';
import {
  type ModelServer,
  type ModelServerOptions,
  startModelServer,
} from '../../../dist/tools/simulator/server/model-server.js';
import { ask, begin, chatBody, eventually, nextPiece } from '../gateway/client.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function server(options: ModelServerOptions = {}): Promise<ModelServer> {
  const started = await startModelServer({ name: 'pod-a', ...options, engine: { speedup: 100, ...options.engine } });
  stops.push(started.stop);
  return started;
}

/** The data of each server-sent event. */
function events(body: Buffer): string[] {
  return body
    .toString()
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => event.replace('data: ', ''));
}

async function metric(port: number, name: string): Promise<number> {
  const page = (await ask(port, { method: 'GET', path: '/metrics' })).body.toString();
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(page)?.[1]);
}

describe('chat completions', () => {
  test('the whole answer names model, server, usage and cached tokens', async () => {
    const { port } = await server();
    const asked = { body: chatBody('word '.repeat(200), { model: 'some-model', max_tokens: 5, ignore_eos: true }) };
    await ask(port, asked);
    const answer = await ask(port, asked);
    expect(answer.headers['x-inference-pod']).toBe('pod-a');
    const body = JSON.parse(answer.body.toString());
    expect(body).toMatchObject({ object: 'chat.completion', model: 'some-model' });
    expect(body.choices[0]).toMatchObject({ index: 0, finish_reason: 'length', message: { role: 'assistant' } });
    expect(body.choices[0].message.content).toHaveLength(20);
    // "user\n", 1,000 bytes, "\nassistant\n" are 1,016 bytes: 254 tokens, 15 whole blocks.
    expect(body.usage).toEqual({
      prompt_tokens: 254,
      completion_tokens: 5,
      total_tokens: 259,
      prompt_tokens_details: { cached_tokens: 240 },
    });
  });

  test('a stream is the role, one event a token, the usage if asked for, and the end', async () => {
    const { port } = await server();
    const body = chatBody('hi', {
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 3,
      ignore_eos: true,
    });
    const answer = await ask(port, { body });
    expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    const all = events(answer.body);
    expect(all.at(-1)).toBe('[DONE]');
    const chunks = all.slice(0, -1).map((event) => JSON.parse(event));
    expect(chunks.map((chunk) => chunk.choices[0]?.finish_reason)).toEqual([null, null, null, 'length', undefined]);
    expect(chunks[0].choices[0].delta).toEqual({ role: 'assistant', content: '' });
    expect(chunks[4]).toMatchObject({ choices: [], usage: { completion_tokens: 3 } });
  });

  test('an answer without a limit stops by itself', async () => {
    const { port } = await server({ answerLength: { min: 7, max: 7 } });
    const body = JSON.parse((await ask(port, { body: chatBody('hi') })).body.toString());
    expect(body.usage.completion_tokens).toBe(7);
    expect(body.choices[0].finish_reason).toBe('stop');
  });
});

describe('completions', () => {
  test('text and token ids are taken', async () => {
    const { port } = await server();
    const path = '/v1/completions';
    const text = await ask(port, { path, body: JSON.stringify({ model: 'm', prompt: 'x'.repeat(40), max_tokens: 2 }) });
    const ids = await ask(port, { path, body: JSON.stringify({ model: 'm', prompt: [[1, 2, 3]], max_tokens: 2 }) });
    expect(JSON.parse(text.body.toString())).toMatchObject({ object: 'text_completion', usage: { prompt_tokens: 10 } });
    expect(JSON.parse(ids.body.toString()).usage.prompt_tokens).toBe(3);
  });
});

describe('refusals', () => {
  test.each([
    ['not JSON', '{"model"', 400, 'JSON decode error'],
    ['no model', '{"messages":[]}', 400, "'model'"],
    ['no messages', '{"model":"m"}', 400, "'messages'"],
    ['several choices', chatBody('hi', { n: 2 }), 400, 'n: '],
    ['a negative length', chatBody('hi', { max_tokens: -1 }), 400, 'max_tokens must be an integer'],
    ['a prompt that is too long', chatBody('x'.repeat(5_000)), 400, 'maximum context length is 1000 tokens'],
  ])('%s is refused with the field at fault', async (_what, body, status, message) => {
    const { port } = await server({ maxModelLength: 1_000 });
    const answer = await ask(port, { body });
    expect(answer.status).toBe(status);
    const { error } = JSON.parse(answer.body.toString());
    expect(error).toMatchObject({ code: status, param: null });
    expect(error.message).toContain(message);
  });

  test('a body over the bound is refused with 413', async () => {
    const { port } = await server({ maxBodyBytes: 1_000 });
    expect((await ask(port, { body: chatBody('x'.repeat(2_000)) })).status).toBe(413);
  });

  test('a full waiting queue refuses with 429', async () => {
    const { port, stats } = await server({ engine: { speedup: 1, maxRunning: 1, maxWaiting: 1 } });
    const long = { body: chatBody('hi', { stream: true, max_tokens: 5_000, ignore_eos: true }) };
    const first = await begin(port, long);
    await eventually('one runs', () => stats().running === 1);
    const second = await begin(port, long);
    expect((await ask(port, long)).status).toBe(429);
    for (const { request } of [first, second]) request.destroy();
  });

  test('a fault that is switched on is answered until it is switched off', async () => {
    const subject = await server();
    subject.failWith(503);
    expect((await ask(subject.port, { body: chatBody('hi') })).status).toBe(503);
    subject.failWith(undefined);
    expect((await ask(subject.port, { body: chatBody('hi') })).status).toBe(200);
  });

  test('an engine that hangs sends heads and no output, is healthy and idle, and answers when it goes on', async () => {
    const { port, hang, stats } = await server();
    hang(true);
    const { answer } = await begin(port, { body: chatBody('hi', { stream: true, max_tokens: 2 }) });
    expect(answer.statusCode).toBe(200);
    expect((await ask(port, { method: 'GET', path: '/health' })).status).toBe(200);
    expect(stats()).toMatchObject({ requests: 1, running: 0, waiting: 0 });
    hang(false);
    expect(await nextPiece(answer)).toContain('data:');
  });

  test('other paths and methods are 404 and 405', async () => {
    const { port } = await server();
    expect((await ask(port, { path: '/v1/nothing', body: '{}' })).status).toBe(404);
    expect((await ask(port, { method: 'GET' })).status).toBe(405);
  });
});

describe('a client that hangs up', () => {
  test('a client that hangs up frees its sequence and its blocks', async () => {
    const { port, stats } = await server({ engine: { speedup: 1 } });
    const body = chatBody('hi', { stream: true, max_tokens: 5_000, ignore_eos: true });
    const { request, answer } = await begin(port, { body });
    await nextPiece(answer);
    request.destroy();
    await eventually('the sequence is gone', () => stats().aborted === 1);
    expect(stats()).toMatchObject({ running: 0, waiting: 0, blocksUsed: 0 });
  });
});

describe('metrics', () => {
  test('queue, batch and cache are those of the engine', async () => {
    const { port, stats } = await server({ engine: { speedup: 1, maxRunning: 1, blocks: 10_000 } });
    // An answer takes over a minute: neither ends while the page is read.
    const long = { body: chatBody('hi', { stream: true, max_tokens: 8_000, ignore_eos: true }) };
    const streams = [await begin(port, long), await begin(port, long)];
    await eventually('one runs, one waits', () => stats().running === 1 && stats().waiting === 1);
    // The page tells what the last step left waiting, as that of the engine does.
    await eventually('the page tells who waits', async () => (await metric(port, 'vllm:num_requests_waiting')) === 1);
    expect(await metric(port, 'vllm:num_requests_running')).toBe(1);
    // 17 bytes of prompt and 8,000 tokens of four bytes: 501 blocks.
    expect(await metric(port, 'vllm:kv_cache_usage_perc')).toBeCloseTo(0.0501, 6);
    for (const { request } of streams) request.destroy();
  });

  test('cache configuration, LoRA and histograms are on the page', async () => {
    const { port } = await server({ engine: { blocks: 1_234 }, lora: { max: 2, names: ['adapter'] } });
    await ask(port, { body: chatBody('hi', { max_tokens: 4 }) });
    const page = (await ask(port, { method: 'GET', path: '/metrics' })).body.toString();
    expect(page).toMatch(/vllm:cache_config_info\{block_size="16",.*num_gpu_blocks="1234"/);
    expect(page).toMatch(
      /vllm:lora_requests_info\{max_lora="2",running_lora_adapters="",waiting_lora_adapters=""\} \d/,
    );
    expect(page).toContain('vllm:time_to_first_token_seconds_count{engine="0",model_name="demo-model"} 1\n');
    expect(page).toMatch(/vllm:prefix_cache_queries_total\{.*\} \d+/);
  });
});

describe('the fleet', () => {
  test('the fleet has different ports on one address, and says so in YAML', async () => {
    const fleet = await startFleet(3);
    stops.push(fleet.stop);
    expect(new Set(fleet.servers.map((one) => one.port)).size).toBe(3);
    const { port } = fleet.servers[0]!;
    expect(fleet.endpointsYaml()).toContain(`- {name: server-0, address: "127.0.0.1", port: "${port}"}\n`);
  });

  test('the fleet has different addresses on one port when asked to', async () => {
    const fleet = await startFleet(3, { spread: 'addresses' });
    stops.push(fleet.stop);
    expect(fleet.servers.map((one) => one.address)).toEqual(['127.0.1.1', '127.0.1.2', '127.0.1.3']);
    expect(new Set(fleet.servers.map((one) => one.port)).size).toBe(1);
  });
});
