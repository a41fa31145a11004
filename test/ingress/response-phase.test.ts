import { describe, expect, it } from 'vitest';
import { AnswerForm } from '../../dist/src/core/types.js';
import { requestBody, requestHeaders, responseBody, responseHeaders, responseTrailers } from './envoy-messages.js';
import { FakeShard, type ProxySide } from './shard-fakes.js';

const PATH = { ':path': '/v1/completions', 'x-request-id': 'r1' };
const BODY = '{"model":"m","prompt":"hello"}';
const SSE = { ':status': '200', 'content-type': 'text/event-stream' };
const JSON_ANSWER = { ':status': '200', 'content-type': 'application/json' };

function routed(shard: FakeShard, headers: Record<string, string> = {}, body = BODY): ProxySide {
  const proxy = shard.open().say(requestHeaders({ ...PATH, ...headers }), requestBody(body));
  proxy.replies.length = 0;
  return proxy;
}

describe('a response', () => {
  it('a response is marked on its headers, and on nothing else', () => {
    const proxy = routed(new FakeShard()).say(responseHeaders(JSON_ANSWER));
    expect(proxy.replies[0]).toMatchObject({
      kind: 'responseHeaders',
      headers: { 'x-went-into-resp-headers': 'true' },
      removed: [],
      clearRouteCache: false,
    });
  });

  it('a response passes chunk by chunk, the last of which ends it', () => {
    const proxy = routed(new FakeShard()).say(responseHeaders(SSE), responseBody('data: 1\n\n'));
    expect(proxy.kinds).toEqual(['responseHeaders', 'responseBody']);
    proxy.say(responseBody('data: 2\n\n'), responseBody('', true));
    expect(proxy.replies.slice(1).map((reply) => [reply.body.toString(), reply.endOfStream])).toEqual([
      ['data: 1\n\n', false],
      ['data: 2\n\n', false],
      ['', true],
    ]);
  });

  it('a response is cut into body replies of at most 62,000 bytes', () => {
    const proxy = routed(new FakeShard()).say(
      responseHeaders(JSON_ANSWER),
      responseBody(Buffer.alloc(130_000, 'x'), true),
    );
    expect(proxy.replies.slice(1).map((reply) => [reply.body.length, reply.endOfStream])).toEqual([
      [62_000, false],
      [62_000, false],
      [6_000, true],
    ]);
  });

  it('a response gets the name of the model back that the client used, and loses its length', () => {
    const shard = new FakeShard();
    const proxy = routed(shard, { 'x-llm-d-model-name-rewrite': 'm2' });
    proxy.say(responseHeaders(JSON_ANSWER), responseBody('{"model":"m2"}', true));
    expect(proxy.replies[0]?.removed).toEqual(['content-length']);
    expect(proxy.body('responseBody')).toBe('{"model":"m"}');
    expect(shard.responses.opened).toEqual([
      { streaming: false, form: AnswerForm.usage, renameFrom: 'm2', renameTo: 'm' },
    ]);
  });

  it.each([
    ['of type JSON', JSON_ANSWER, '{"usage":{}}', false],
    ['without a type that begins with a brace', { ':status': '200' }, '{"usage":{}}', false],
    ['without a type that begins with an event', { ':status': '200' }, 'data: {}', true],
    ['of another type', { ':status': '200', 'content-type': 'text/plain' }, 'data: {}', true],
  ])('a response %s to a request for a stream is read as what it is', (_what, head, body, streaming) => {
    const shard = new FakeShard();
    routed(shard, {}, '{"model":"m","prompt":"hello","stream":true}').say(
      responseHeaders(head),
      responseBody(body, true),
    );
    expect(shard.responses.opened).toEqual([{ streaming, form: AnswerForm.usage }]);
  });

  it('a response may answer before the request body has ended', () => {
    const shard = new FakeShard();
    const proxy = shard.open().say(requestHeaders(PATH), requestBody('{"model"', false));
    proxy.say(responseHeaders({ ':status': '408' }), responseBody('late', true), requestBody(':"m"}'));
    expect(proxy.kinds).toEqual(['responseHeaders', 'responseBody']);
    expect([shard.scanner.open_.size, shard.decisions.length, proxy.ending]).toEqual([0, 0, 'open']);
  });

  it('a response may end with trailers, which are answered behind the rest of the body', () => {
    const shard = new FakeShard();
    const proxy = routed(shard).say(responseHeaders(SSE), responseBody('data: 1\n\n'), responseTrailers({ t: '1' }));
    expect(proxy.kinds).toEqual(['responseHeaders', 'responseBody', 'responseTrailers']);
    expect(proxy.replies.every((reply) => !reply.endOfStream)).toBe(true);
    expect(shard.charges[0]?.releases).toBe(1);
  });

  it('a response hands out held-back bytes before its trailers', () => {
    const shard = new FakeShard();
    shard.responses.feed = (_id, chunk, end) => (end ? Buffer.from('rest') : chunk);
    const proxy = routed(shard).say(responseHeaders(SSE), responseBody('a'), responseTrailers());
    expect(proxy.kinds).toEqual(['responseHeaders', 'responseBody', 'responseBody', 'responseTrailers']);
    expect([proxy.body('responseBody'), proxy.replies[2]?.endOfStream]).toEqual(['arest', false]);
  });

  it('a response ignores messages behind its end', () => {
    const proxy = routed(new FakeShard()).say(responseHeaders(SSE), responseBody('x', true));
    proxy.say(responseBody('y', true), responseTrailers());
    expect(proxy.kinds).toEqual(['responseHeaders', 'responseBody']);
  });

  it('a response of nothing but headers is a natural end', () => {
    const shard = new FakeShard();
    routed(shard).say(responseHeaders({ ':status': '204' }, true));
    expect(shard.charges[0]).toMatchObject({ releases: 1, outcomes: ['answered'] });
    expect(shard.recorder.named('responseEnded')).toHaveLength(1);
  });
});

describe('a response without a request', () => {
  it.each([
    ['two chunks', ['{"model":"x', '","y":1}']],
    ['no JSON', ['no healthy upstream']],
    ['an empty end', ['{"usage":{}}', '']],
  ])('a response without a request passes with %s', (_name, chunks) => {
    const proxy = new FakeShard().open().say(responseHeaders({ 'content-type': 'application/json' }));
    for (const [i, chunk] of chunks.entries()) proxy.say(responseBody(chunk, i === chunks.length - 1));
    expect(proxy.body('responseBody')).toBe(chunks.join(''));
    expect(proxy.replies.at(-1)?.endOfStream).toBe(true);
  });

  it('a response without a request has its usage recorded under empty labels', () => {
    const shard = new FakeShard();
    const chunks = [
      'data: {}',
      'data: {"usage":{"prompt_tokens":7,"total_tokens":17,"completion_tokens":10}}\ndata: [DONE]',
    ];
    shard.open().say(responseHeaders(SSE), ...chunks.map((chunk) => responseBody(chunk)), responseBody('', true));
    expect(shard.recorder.labels).toEqual([{ model: '', target: '', fairness: 'default-flow', priority: 0 }]);
    const usage = { promptTokens: 7, completionTokens: 10, totalTokens: 17, cachedTokens: -1 };
    expect(shard.recorder.named('tokens')).toEqual([['tokens', 0, usage]]);
  });
});

describe('the record of a response', () => {
  it('the record of a response is first token, gaps, tokens and the whole', () => {
    const shard = new FakeShard();
    const proxy = routed(shard);
    const at = (clock: number, ...messages: Buffer[]): void => {
      shard.clock = clock;
      proxy.say(...messages);
    };
    at(100, responseHeaders(SSE));
    at(250, responseBody('data: 1\n\n'));
    at(300, responseBody('data: 2\n\ndata: 3\n\n'));
    at(500, responseBody('data: {"prompt_tokens":5}\n\n', true));
    expect(shard.recorder.named('firstToken')).toEqual([['firstToken', 0, true, 0.25]]);
    expect(shard.recorder.named('interTokenLatency')).toEqual([
      ['interTokenLatency', 0, 0.025],
      ['interTokenLatency', 0, 0.2],
    ]);
    const usage = { promptTokens: 5, completionTokens: -1, totalTokens: -1, cachedTokens: -1 };
    expect(shard.recorder.named('responseEnded')).toEqual([
      [
        'responseEnded',
        0,
        { durationSeconds: 0.5, responseBytes: 54, streaming: true, usage, firstTokenSeconds: 0.25, status: 200 },
      ],
    ]);
    expect(shard.recorder.named('processing').map((call) => call[1])).toEqual(['request', 'response']);
  });

  it('the record of a response has its first token with its end when it is not streamed', () => {
    const shard = new FakeShard();
    const proxy = routed(shard);
    shard.clock = 100;
    proxy.say(responseHeaders(JSON_ANSWER), responseBody('{"a":'));
    expect(shard.recorder.named('firstToken')).toEqual([]);
    shard.clock = 400;
    proxy.say(responseBody('1}', true));
    expect(shard.recorder.named('firstToken')).toEqual([['firstToken', 0, false, 0.4]]);
  });

  it('the record of a response says nothing about tokens when the engine said nothing', () => {
    const shard = new FakeShard();
    routed(shard).say(responseHeaders(JSON_ANSWER), responseBody('{}', true));
    expect(shard.recorder.named('tokens')).toEqual([]);
  });

  it('the record of a response counts as streaming when the request asked for it', () => {
    const shard = new FakeShard();
    const proxy = routed(shard, {}, '{"model":"m","prompt":"x","stream":true}');
    proxy.say(responseHeaders({ ':status': '200' }), responseBody('data: 1\n\n', true));
    expect(shard.responses.opened).toEqual([{ streaming: true, form: AnswerForm.usage }]);
  });

  it('the record of a response is not read when the dialect is opaque', () => {
    const shard = new FakeShard({ parsers: ['passthrough-parser'] });
    const proxy = routed(shard).say(responseHeaders(JSON_ANSWER), responseBody('{"prompt_tokens":7}', true));
    expect([shard.responses.opened, shard.recorder.named('tokens')]).toEqual([[], []]);
    expect(proxy.body('responseBody')).toBe('{"prompt_tokens":7}');
  });

  it('the record of a response passes unread when no scan is free', () => {
    const shard = new FakeShard();
    shard.responses.capacity = 0;
    const proxy = routed(shard).say(responseHeaders(SSE), responseBody('data: 1\n\n', true));
    expect(proxy.body('responseBody')).toBe('data: 1\n\n');
    expect(shard.charges[0]?.releases).toBe(1);
  });
});

describe('the charge', () => {
  it('the charge loses its prefill at the first byte and grows with every event', () => {
    const shard = new FakeShard();
    const proxy = routed(shard).say(responseHeaders(SSE), responseBody(''));
    expect(shard.charges[0]?.prefills).toBe(0);
    proxy.say(responseBody('data: 1\n\n'), responseBody('data: 2\n\ndata: 3\n\n'));
    expect(shard.charges[0]).toMatchObject({ prefills: 1, grown: [1, 3], releases: 0 });
  });

  it('the charge is released before the last chunk is answered', () => {
    const shard = new FakeShard();
    const proxy = routed(shard).say(responseHeaders(SSE));
    let releasedAtReply = -1;
    proxy.send = () => {
      releasedAtReply = shard.charges[0]!.releases;
    };
    proxy.say(responseBody('x', true));
    expect(releasedAtReply).toBe(1);
  });

  it.each([
    ['200', ['answered'], []],
    ['404', ['answered'], ['ModelServerError']],
    ['500', ['failed'], ['ModelServerError']],
    ['502', ['unanswered'], ['ModelServerError']],
    ['503', ['unanswered'], ['ModelServerError']],
    ['504', ['unanswered'], ['ModelServerError']],
  ])('the charge learns the outcome of a %s', (status, outcomes, errors) => {
    const shard = new FakeShard();
    routed(shard).say(responseHeaders({ ':status': status }));
    expect(shard.charges[0]?.outcomes).toEqual(outcomes);
    expect(shard.recorder.named('failed').map((call) => call[2])).toEqual(errors);
  });

  const servedBy = (address: string) => ({ 'envoy.lb': { 'x-gateway-destination-endpoint-served': address } });

  it('the charge learns that its endpoint answered itself when the proxy says so', () => {
    const shard = new FakeShard();
    routed(shard).say(responseHeaders({ ':status': '200' }, false, servedBy('10.0.0.1:8000')));
    expect(shard.charges[0]).toMatchObject({ outcomes: ['answered-itself'], servers: [] });
  });

  it.each([
    ['200', 'answered-itself'],
    ['500', 'failed'],
    ['503', 'unanswered'],
  ])('the charge learns of a %s who answered in place of its endpoint', (status, result) => {
    const shard = new FakeShard();
    routed(shard).say(responseHeaders({ ':status': status }, false, servedBy('10.9.9.9:1')));
    expect(shard.charges[0]).toMatchObject({ outcomes: [result], servers: [['10.9.9.9:1', ['10.0.0.1:8000']]] });
  });

  it('the charge learns nothing when the client leaves before the answer', () => {
    const shard = new FakeShard();
    routed(shard).close(true);
    expect(shard.charges[0]).toMatchObject({ outcomes: [], releases: 1 });
  });

  it.each([
    ['200', SSE, 'completed', true],
    ['200', JSON_ANSWER, 'completed', false],
    ['404', JSON_ANSWER, 'refused', false],
    ['503', JSON_ANSWER, 'failed', false],
  ])('the charge is told once, before its release, how a %s of %o ended', (status, headers, outcome, streamed) => {
    const shard = new FakeShard();
    routed(shard)
      .say(responseHeaders({ ...headers, ':status': status }), responseBody('{}', true))
      .close();
    expect(shard.charges[0]?.answers).toMatchObject([{ outcome, streamed }]);
  });

  it('the charge is told of a diversion when the proxy says that another endpoint answered', () => {
    const shard = new FakeShard();
    const served = { 'envoy.lb': { 'x-gateway-destination-endpoint-served': '10.9.9.9:1' } };
    routed(shard).say(responseHeaders({ ':status': '200' }, false, served), responseBody('{}', true));
    expect(shard.charges[0]?.answers).toMatchObject([{ outcome: 'diverted' }]);
  });

  it('the charge is told nothing of an answer that did not end', () => {
    const shard = new FakeShard();
    routed(shard).say(responseHeaders(SSE), responseBody('data: 1\n\n')).close(true);
    expect(shard.charges[0]).toMatchObject({ answers: [], releases: 1 });
  });

  const steps: readonly Buffer[] = [
    requestHeaders(PATH),
    requestBody(BODY.slice(0, 9), false),
    requestBody(BODY.slice(9)),
    responseHeaders(SSE),
    responseBody('data: 1\n\n'),
    responseBody('', true),
  ];
  const endings = {
    'a reset': (proxy: ProxySide) => proxy.close(true),
    'a half-close': (proxy: ProxySide) => proxy.halfClose().close(),
    'a half-close and a reset': (proxy: ProxySide) => proxy.halfClose().close(true),
  };
  const cases = Object.keys(endings).flatMap((ending) => steps.map((_, step) => [ending, step] as const));

  it('the charge is no cancellation when the proxy resets its stream behind the last reply', () => {
    const shard = new FakeShard();
    shard
      .open()
      .say(...steps)
      .close(true);
    expect(shard.recorder.named('streamClosed')[0]?.[1]).toBe('OK');
    shard
      .open()
      .say(...steps.slice(0, -1))
      .close(true);
    expect(shard.recorder.named('streamClosed')[1]?.[1]).toBe('Canceled');
  });

  it.each(cases)('the charge is released exactly once by %s after message %i', (ending, step) => {
    const shard = new FakeShard();
    const proxy = shard.open().say(...steps.slice(0, step + 1));
    endings[ending as keyof typeof endings](proxy);
    expect(shard.charges.map((charge) => charge.releases)).toEqual(step >= 2 ? [1] : []);
    expect(shard.opener.load()).toEqual({ openStreams: 0, bufferedBytes: 0, silentStreams: 0, waiting: 0 });
    expect([shard.scanner.open_.size, shard.responses.open_.size]).toEqual([0, 0]);
    const running = shard.recorder.named('running').map((call) => call[2] as number);
    expect(running).toEqual(step >= 2 ? [1, -1] : []);
    expect(shard.recorder.named('streamClosed')).toHaveLength(1);
  });
});
