import { describe, expect, it } from 'vitest';
import { OBSERVE } from '../serve/default-sections.ts';
import { requestBody, requestHeaders, responseBody, responseHeaders } from './envoy-messages.js';
import { FakeShard } from './shard-fakes.js';

const PATH = { ':path': '/v1/completions', 'x-request-id': 'r1' };
const SSE = { ':status': '200', 'content-type': 'text/event-stream' };
const STREAM = '{"model":"m","prompt":"hello","stream":true}';
const TOKEN = 'data: {"choices":[{"text":"a"}]}\n\n';
const USAGE = 'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}\n\n';
const DONE = 'data: [DONE]\n\n';

const asking = () => new FakeShard({ services: { observe: { ...OBSERVE, asksUsage: true } } });

describe('a stream of a picker that asks for the usage', () => {
  it('a stream of a picker that asks is sent on with the question, and comes without the usage', () => {
    const shard = asking();
    const proxy = shard.open().say(requestHeaders(PATH), requestBody(STREAM));
    expect(proxy.body('requestBody')).toBe(`{"stream_options":{"include_usage":true},${STREAM.slice(1)}`);
    proxy.say(responseHeaders(SSE), responseBody(TOKEN + USAGE.slice(0, 20)), responseBody(USAGE.slice(20) + DONE));
    proxy.say(responseBody('', true));
    expect(proxy.body('responseBody')).toBe(TOKEN + DONE);
    expect(shard.recorder.named('tokens')).toMatchObject([['tokens', 0, { completionTokens: 2 }]]);
    expect(shard.recorder.named('estimatedTokens')).toEqual([]);
  });

  it('a stream whose client asks itself is not changed', () => {
    const body = STREAM.replace('}', ',"stream_options":{"include_usage":true}}');
    const proxy = asking().open().say(requestHeaders(PATH), requestBody(body));
    expect(proxy.body('requestBody')).toBe(body);
    proxy.say(responseHeaders(SSE), responseBody(TOKEN + USAGE + DONE, true));
    expect(proxy.body('responseBody')).toBe(TOKEN + USAGE + DONE);
  });

  it.each([
    ['that is no stream', PATH, '{"model":"m","prompt":"hello"}'],
    ['of another dialect', { ...PATH, ':path': '/v1/responses' }, '{"model":"m","input":"hello","stream":true}'],
  ])('a request %s is not changed', (_what, headers, body) => {
    const proxy = asking().open().say(requestHeaders(headers), requestBody(body));
    expect(proxy.body('requestBody')).toBe(body);
  });

  it('a stream that comes compressed is passed on as it is', () => {
    const proxy = asking().open().say(requestHeaders(PATH), requestBody(STREAM));
    proxy.say(responseHeaders({ ...SSE, 'content-encoding': 'gzip' }), responseBody(TOKEN + USAGE, true));
    expect(proxy.body('responseBody')).toBe(TOKEN + USAGE);
  });
});

const event = (type: string, rest = '{}') => `event: ${type}\ndata: {"type":"${type}","rest":${rest}}\n\n`;
const MESSAGE = [
  event('message_start'),
  event('content_block_start'),
  event('ping'),
  event('content_block_delta', '"event: content_block_delta"'),
  event('content_block_delta'),
].join('');
const RESPONSE = [
  event('response.created'),
  event('response.output_item.added'),
  event('response.reasoning_text.delta'),
  event('response.output_text.delta'),
  event('response.output_text.delta'),
  event('response.output_text.done'),
].join('');

describe('a stream without usage', () => {
  const answeredTo = (headers: typeof PATH, body: string, ...pieces: readonly Buffer[]) => {
    const shard = new FakeShard();
    const proxy = shard.open().say(requestHeaders(headers), requestBody(body));
    expect(proxy.body('requestBody')).toBe(body);
    proxy.say(...pieces);
    proxy.close(true);
    return shard.recorder.named('estimatedTokens');
  };
  const answered = (...pieces: readonly Buffer[]) => answeredTo(PATH, STREAM, ...pieces);

  it.each([
    ["Anthropic's messages", '/v1/messages', '"messages":[{"role":"user","content":"hello"}]', MESSAGE, 2],
    ["OpenAI's responses", '/v1/responses', '"input":"hello"', RESPONSE, 3],
  ])('a stream of %s that breaks off counts its events with output', (_what, path, prompt, stream, expected) => {
    const body = `{"model":"m",${prompt},"stream":true}`;
    const found = answeredTo({ ...PATH, ':path': path }, body, responseHeaders(SSE), responseBody(stream));
    expect(found).toEqual([['estimatedTokens', 0, expected]]);
  });

  it("a stream of Anthropic's messages that comes to its end has the count of its engine alone", () => {
    const body = '{"model":"m","messages":[{"role":"user","content":"hello"}],"stream":true}';
    const end = `event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":9}}\n\n`;
    const pieces = [responseHeaders(SSE), responseBody(MESSAGE + end + event('message_stop'), true)];
    expect(answeredTo({ ...PATH, ':path': '/v1/messages' }, body, ...pieces)).toEqual([]);
  });

  it('a stream without usage counts its chunks as output tokens', () => {
    const found = answered(responseHeaders(SSE), responseBody(TOKEN + TOKEN), responseBody(TOKEN, true));
    expect(found).toEqual([['estimatedTokens', 0, 3]]);
  });

  it('a stream that its client leaves counts the chunks that came', () => {
    const found = answered(responseHeaders(SSE), responseBody(TOKEN + TOKEN));
    expect(found).toEqual([['estimatedTokens', 0, 2]]);
  });

  it('a stream with usage counts nothing from its chunks', () => {
    expect(answered(responseHeaders(SSE), responseBody(TOKEN + USAGE + DONE, true))).toEqual([]);
  });

  it('a stream that failed counts nothing from its chunks', () => {
    expect(answered(responseHeaders({ ...SSE, ':status': '500' }), responseBody(TOKEN, true))).toEqual([]);
  });
});
