import { beforeEach, describe, expect, it } from 'vitest';
import { attachCore, createPoolMemory } from '../../dist/src/core/memory.js';
import { RequestScanner } from '../../dist/src/core/request-scanner.js';
import { ResponseScanner } from '../../dist/src/core/response-scanner.js';
import type { ParserName } from '../../dist/src/request/dialects.js';
import {
  engineChunk,
  engineComplete,
  engineRequest,
  frame,
  httpBody,
  packedFrame,
  vertexRequest,
} from '../core/grpc-messages.ts';
import { requestBody, requestHeaders, responseBody, responseHeaders, responseTrailers } from './envoy-messages.ts';
import { FakeShard } from './shard-fakes.ts';

const sizes = {
  endpoints: 64,
  indexBlocks: 64,
  requests: 16,
  chainBlocks: 64,
  threads: 1,
  scans: 8,
  telemetryBytes: 64,
};
const core = attachCore(createPoolMemory(sizes), 0);
const GRPC = { ':status': '200', 'content-type': 'application/grpc' };
const VERTEX = '/google.cloud.aiplatform.v1.PredictionService';
let scanner: RequestScanner;
let responses: ResponseScanner;

beforeEach(() => {
  scanner = new RequestScanner(core);
  responses = new ResponseScanner(core);
});

/** A shard with the real scanners and one parser. */
function shardOf(parser: ParserName): FakeShard {
  return new FakeShard({ services: { scanner, responses }, parsers: [parser] });
}

interface Exchange {
  readonly parser: ParserName;
  readonly path: string;
  readonly body: Buffer | object;
  readonly headers?: Record<string, string>;
}

/** Sends a request whose body comes in two halves. */
function send({ parser, path, body, headers }: Exchange) {
  const shard = shardOf(parser);
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  const middle = bytes.length >> 1;
  const proxy = shard
    .open()
    .say(
      requestHeaders({ ':path': path, 'x-request-id': 'r', ...headers }),
      requestBody(bytes.subarray(0, middle), false),
      requestBody(bytes.subarray(middle), true),
    );
  return { shard, proxy, bytes };
}

const tokens = (shard: FakeShard) => shard.recorder.calls.filter(([name]) => name === 'tokens').map((call) => call[2]);
const usage = (promptTokens: number, completionTokens: number, cachedTokens: number) => ({
  promptTokens,
  completionTokens,
  totalTokens: promptTokens + completionTokens,
  cachedTokens,
});

describe('an exchange of', () => {
  const messages = [{ role: 'user', content: 'hi' }];

  it('Anthropic messages is renamed both ways and tells its usage', () => {
    const { shard, proxy } = send({
      parser: 'anthropic-parser',
      path: '/v1/messages',
      body: { model: 'm', max_tokens: 9, stream: true, messages },
      headers: { 'x-llm-d-model-name-rewrite': 'target' },
    });
    expect(JSON.parse(proxy.body('requestBody'))).toEqual({ model: 'target', max_tokens: 9, stream: true, messages });
    expect(shard.decisions[0]).toMatchObject({ model: 'm', targetModel: 'target', maxOutputTokens: 9, promptBytes: 6 });
    const start =
      'data: ' +
      '{"type":"message_start","message":{"model":"target","usage":{"input_tokens":7,"output_tokens":1,' +
      '"cache_read_input_tokens":2}}}\n\n';
    const delta = 'data: {"type":"message_delta","usage":{"output_tokens":9}}\n\n';
    proxy.say(
      responseHeaders({ ':status': '200', 'content-type': 'text/event-stream' }),
      responseBody(start),
      responseBody(delta, true),
    );
    expect(proxy.body('responseBody')).toBe(start.replace('target', 'm') + delta);
    expect(tokens(shard)).toEqual([usage(7, 9, 2)]);
  });

  it('Anthropic token counting goes to the model that the message would go to, and charges no prompt', () => {
    const { shard, proxy } = send({
      parser: 'anthropic-parser',
      path: '/v1/messages/count_tokens',
      body: { model: 'm', messages: [{ role: 'user', content: 'hello '.repeat(200) }] },
      headers: { 'x-llm-d-model-name-rewrite': 'target' },
    });
    expect(JSON.parse(proxy.body('requestBody')).model).toBe('target');
    expect(shard.decisions[0]).toMatchObject({ model: 'm', targetModel: 'target', promptBytes: 0, scan: -1 });
    expect(proxy.ending).toBe('ended');
  });

  it('Anthropic token counting ends without an error when it has its destination', () => {
    const { shard, proxy } = send({
      parser: 'anthropic-parser',
      path: '/v1/messages/count_tokens',
      body: Buffer.from('{'),
    });
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(proxy.body('requestBody')).toBe('{');
    expect(proxy.ending).toBe('ended');
    expect(shard.charges[0]!.releases).toBe(1);
    proxy.say(responseHeaders({ ':status': '200' }));
    expect(proxy.kinds).toHaveLength(2);
  });

  it('Anthropic token counting without a model goes on as it came', () => {
    const body = '{"messages":[{"role":"user","content":"hi"}]}';
    const { shard, proxy } = send({
      parser: 'anthropic-parser',
      path: '/v1/messages/count_tokens',
      body: Buffer.from(body),
    });
    expect(proxy.body('requestBody')).toBe(body);
    expect(shard.decisions[0]).toMatchObject({ model: '', targetModel: '', promptBytes: 0 });
    expect(proxy.ending).toBe('ended');
  });

  it('vLLM generate is renamed both ways and tells its usage', () => {
    const { shard, proxy } = send({
      parser: 'vllmhttp-parser',
      path: '/inference/v1/generate',
      body: { token_ids: [1, 2, 3], model: 'm', sampling_params: { max_tokens: 4 } },
      headers: { 'x-llm-d-model-name-rewrite': 'target' },
    });
    expect(JSON.parse(proxy.body('requestBody'))).toMatchObject({ model: 'target', token_ids: [1, 2, 3] });
    expect(shard.decisions[0]).toMatchObject({ maxOutputTokens: 4, promptBytes: 12 });
    proxy.say(
      responseHeaders({ ':status': '200' }),
      responseBody('{"model":"target","usage":{"prompt_tokens":3,"completion_tokens":4}}', true),
    );
    expect(JSON.parse(proxy.body('responseBody')).model).toBe('m');
    expect(tokens(shard)).toEqual([usage(3, 4, -1)]);
  });

  it('SGLang generate passes as it is, whatever the rewrite, and tells its usage', () => {
    const { shard, proxy, bytes } = send({
      parser: 'sglanghttp-parser',
      path: '/generate',
      body: { input_ids: [1, 2], model: 'm', stream: true, extra_key: 'salt' },
      headers: { 'x-llm-d-model-name-rewrite': 'target' },
    });
    expect(proxy.body('requestBody')).toBe(bytes.toString());
    expect(shard.decisions[0]).toMatchObject({ model: '', targetModel: '', cacheSalt: 'salt', promptBytes: 8 });
    const event = (completion: number, reason: object | null) =>
      'data: ' +
      `${JSON.stringify({
        meta_info: { prompt_tokens: 2, completion_tokens: completion, cached_tokens: 1, finish_reason: reason },
      })}\n\n`;
    proxy.say(
      responseHeaders({ ':status': '200' }),
      responseBody(event(1, null)),
      responseBody(event(5, { type: 'stop' }), true),
    );
    expect(tokens(shard)).toEqual([usage(2, 5, 1)]);
  });

  it.each([
    ['plain', frame],
    ['compressed', packedFrame],
  ])("vLLM's engine service passes as it is and tells its usage, %s", (_, wrap) => {
    const { shard, proxy, bytes } = send({
      parser: 'vllmgrpc-parser',
      path: '/vllm.grpc.engine.VllmEngine/Generate',
      body: wrap(engineRequest({ ids: [1, 2, 3], stream: true, maxTokens: 70 })),
    });
    const sent = Buffer.concat(proxy.replies.filter(({ kind }) => kind === 'requestBody').map(({ body }) => body));
    expect(sent).toEqual(bytes);
    expect(shard.decisions[0]).toMatchObject({ model: '', targetModel: '', promptBytes: 12, maxOutputTokens: 70 });
    const chunk = wrap(engineChunk({ prompt: 3, completion: 1, cached: 2 }));
    const last = wrap(engineComplete({ prompt: 3, completion: 2, cached: 2 }));
    proxy.say(responseHeaders(GRPC), responseBody(chunk), responseBody(last), responseTrailers({ 'grpc-status': '0' }));
    expect(tokens(shard)).toEqual([usage(3, 2, 2)]);
  });

  it('Vertex AI passes as it is, tells its model to the metrics and its usage', () => {
    const { shard, proxy } = send({
      parser: 'vertexai-parser',
      path: `${VERTEX}/ChatCompletions`,
      body: frame(vertexRequest(JSON.stringify({ model: 'm', messages }))),
    });
    expect(shard.decisions[0]).toMatchObject({ model: 'm', targetModel: '', promptBytes: 6 });
    const answer = frame(httpBody('{"usage":{"prompt_tokens":7,"completion_tokens":3}}'));
    proxy.say(responseHeaders(GRPC), responseBody(answer), responseTrailers({ 'grpc-status': '0' }));
    expect(proxy.replies.flatMap(({ removed }) => removed)).not.toContain('content-length');
    expect(tokens(shard)).toEqual([usage(7, 3, -1)]);
  });
});

describe('a body that cannot be understood', () => {
  const engine = '/vllm.grpc.engine.VllmEngine';
  const rows: readonly (readonly [ParserName, string, Buffer | object, string])[] = [
    [
      'anthropic-parser',
      '/v1/messages',
      { model: 'm', messages: [] },
      'invalid messages request: must have at least one message',
    ],
    [
      'anthropic-parser',
      '/v1/messages',
      Buffer.from('{]'),
      'error unmarshaling request body: unexpected byte at byte 1',
    ],
    [
      'anthropic-parser',
      '/v1/messages',
      Buffer.from('[]'),
      'error unmarshaling request body: not a JSON object at byte 0',
    ],
    ['anthropic-parser', '/v1/messages', { messages: [{ content: 'x' }] }, 'model not found in request body'],
    [
      'vllmhttp-parser',
      '/inference/v1/generate',
      { model: 'm' },
      'invalid generate request: must have non-empty token_ids field',
    ],
    ['vllmhttp-parser', '/inference/v1/generate', { token_ids: [1] }, 'model not found in request body'],
    ['sglanghttp-parser', '/generate', {}, 'invalid generate request: input_ids must be provided'],
    ['sglanghttp-parser', '/generate', { input_ids: [] }, 'invalid generate request: input_ids cannot be empty'],
    [
      'sglanghttp-parser',
      '/generate',
      { input_ids: ['x'] },
      'invalid generate request: input_ids must be an array of uint32 integers',
    ],
    [
      'sglanghttp-parser',
      '/generate',
      { input_ids: [1], extra_key: 5 },
      'unsupported generate request: extra_key must be a string',
    ],
    ['vllmgrpc-parser', `${engine}/Generate`, Buffer.from('x'), 'invalid or unsupported gRPC payload'],
    ['vllmgrpc-parser', `${engine}/Generate`, frame(Buffer.alloc(0)), 'not supported request inputType'],
    [
      'vllmgrpc-parser',
      `${engine}/Generate`,
      frame(Buffer.from([255])),
      'unmarshaling GenerateRequest: proto: cannot parse invalid wire-format data',
    ],
    ['vllmgrpc-parser', `${engine}/Embed`, frame(Buffer.alloc(0)), 'missing tokenized input in EmbedRequest'],
    ['vertexai-parser', `${VERTEX}/RawPredict`, frame(Buffer.alloc(0)), 'RawPredictRequest has no HttpBody'],
    [
      'vertexai-parser',
      `${VERTEX}/RawPredict`,
      frame(vertexRequest('{}')),
      'parsing RawPredictRequest: invalid responses request: must have input field',
    ],
    [
      'vertexai-parser',
      `${VERTEX}/ChatCompletions`,
      frame(vertexRequest('{}')),
      'parsing ChatCompletionsRequest: invalid chat completions request: must have valid messages field',
    ],
  ];
  it.each(rows)('%s %s %j is answered with %s', (parser, path, body, text) => {
    const { proxy } = send({ parser, path, body });
    expect(proxy.rejection).toMatchObject({ status: 400, text: `inference error: BadRequest - ${text}` });
    expect(scanner.openScans).toBe(0);
  });
});
