import { describe, expect, it } from 'vitest';
import type { Waiter, WaitingLine } from '../../dist/src/flow-control/waiting-line.js';
import { RequestTracer } from '../../dist/src/ingress/tracing/request-tracer.js';
import type { TraceRecord } from '../../dist/src/ingress/tracing/trace-record.js';
import { DECIDE } from '../serve/default-sections.ts';
import {
  requestBody,
  requestHeaders,
  requestTrailers,
  responseBody,
  responseHeaders,
  subset,
} from './envoy-messages.js';
import { FakeShard, NO_ENDPOINTS, type ShardSetup } from './shard-fakes.js';

const PATH = { ':path': '/v1/completions', 'x-request-id': 'r1' };
const BODY = '{"model":"m","prompt":"hello"}';

describe('a request with a body', () => {
  it('a request with a body that came without an id gets one beside its destination', () => {
    const proxy = new FakeShard().open().say(requestHeaders({ ':path': '/v1/completions' }), requestBody(BODY));
    expect(proxy.replies[0]!.headers).toMatchObject({
      'x-gateway-destination-endpoint': '10.0.0.1:8000',
      'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'Content-Length': String(BODY.length),
    });
  });

  it('a request with a body is answered when the body has ended: header reply, then the body', () => {
    const shard = new FakeShard();
    const proxy = shard.open().say(requestHeaders(PATH));
    expect(proxy.replies).toEqual([]);
    proxy.say(requestBody(BODY));
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(proxy.replies[0]).toMatchObject({
      clearRouteCache: true,
      headers: { 'x-gateway-destination-endpoint': '10.0.0.1:8000', 'Content-Length': String(BODY.length) },
      metadata: { 'envoy.lb': { 'x-gateway-destination-endpoint': '10.0.0.1:8000' } },
    });
    expect(proxy.body('requestBody')).toBe(BODY);
    expect(proxy.replies[1]?.endOfStream).toBe(true);
  });

  it('a request with a body that has the member of a retention hint goes on as it is, is counted, and logged once', () => {
    const retention = { engine: 'sglang', priority: 1 } as const;
    const shard: FakeShard = new FakeShard({ schedule: () => ({ ...shard.place('10.0.0.1:8000'), retention }) });
    const own = '{"model":"m","priority":9,"prompt":"hello"}';
    for (let i = 0; i < 3; i++) {
      const proxy = shard.open().say(requestHeaders(PATH), requestBody(own));
      expect(proxy.body('requestBody')).toBe(own);
    }
    expect(shard.recorder.calls.filter(([name]) => name === 'retentionLeftOut')).toHaveLength(3);
    expect(shard.logged).toMatchObject([{ member: 'priority', count: 1 }]);
  });

  it('a request with a body is answered exactly once however many chunks the body has', () => {
    const proxy = new FakeShard().open().say(requestHeaders(PATH));
    for (const byte of BODY) {
      proxy.say(requestBody(byte, false));
      expect(proxy.replies).toEqual([]);
    }
    proxy.say(requestBody('', true));
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(proxy.body('requestBody')).toBe(BODY);
  });

  it('a request with a body is cut into body replies of at most 62,000 bytes', () => {
    const body = JSON.stringify({ model: 'm', prompt: 'x'.repeat(200_000) });
    const proxy = new FakeShard().open().say(requestHeaders(PATH), requestBody(body));
    const sizes = proxy.replies.slice(1).map((reply) => reply.body.length);
    expect(Math.max(...sizes)).toBe(62_000);
    expect(proxy.body('requestBody')).toBe(body);
  });

  it('a request with a body lists several destinations in order of preference', () => {
    const shard: FakeShard = new FakeShard({ schedule: () => shard.place('10.0.0.1:1', '[fd00::1]:2') });
    const proxy = shard.open().say(requestHeaders(PATH), requestBody(BODY));
    expect(proxy.replies[0]?.headers['x-gateway-destination-endpoint']).toBe('10.0.0.1:1,[fd00::1]:2');
  });

  it.each([
    ['a chat', '{"model":"m","messages":[]}'],
    ['a response', '{"model":"m","input":[{"role":"user","content":"hello"}]}'],
    ['an embedding', '{"model":"m","input":["hello"]}'],
    ['a completion', BODY],
  ])('a request with a body and without a path is read as %s by its fields', (_kind, body) => {
    const shard = new FakeShard();
    const proxy = shard.open().say(requestHeaders({ 'x-request-id': 'r1' }), requestBody(body));
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(shard.decisions[0]).toMatchObject({ model: 'm' });
  });

  it('a request with a body is read by its path where it has one', () => {
    const proxy = new FakeShard().open().say(requestHeaders(PATH), requestBody('{"model":"m","messages":[]}'));
    expect(proxy.kinds).toEqual(['immediate']);
    expect(proxy.replies[0]!.status).toBe(400);
  });

  it('a request with a body gets a request id when it has none, and keeps its own', () => {
    const shard = new FakeShard();
    const without = shard.open().say(requestHeaders({ ':path': '/v1/completions' }), requestBody(BODY));
    expect(without.replies[0]?.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    const own = shard.open().say(requestHeaders(PATH), requestBody(BODY));
    expect(own.replies[0]?.headers).not.toHaveProperty('x-request-id');
  });

  it("a request with a body loses the client's own control headers and no other", () => {
    const headers = {
      ...PATH,
      'X-LLM-D-Inference-Objective': 'o',
      'x-gateway-destination-endpoint-subset': 'a',
      'x-own': 'b',
    };
    const proxy = new FakeShard().open().say(requestHeaders(headers), requestBody(BODY));
    expect(proxy.replies[0]?.removed).toEqual(['x-llm-d-inference-objective', 'x-gateway-destination-endpoint-subset']);
  });

  it('a request with a body shows scores only when they are emitted', () => {
    const scored = (emitScores: boolean): unknown => {
      const shard: FakeShard = new FakeShard({
        services: { decide: { ...DECIDE, emitScores } },
        schedule: () => ({ ...shard.place('10.0.0.1:1'), scores: new Map([['10.0.0.1:1', 2]]) }),
      });
      return shard.open().say(requestHeaders(PATH), requestBody(BODY)).replies[0]?.metadata;
    };
    expect(scored(true)).toHaveProperty(['envoy.lb', 'x-gateway-destination-endpoint-scores'], { '10.0.0.1:1': 2 });
    expect(scored(false)).not.toHaveProperty(['envoy.lb', 'x-gateway-destination-endpoint-scores']);
  });

  it('a request with a body tells the scheduler what the request says', () => {
    const shard = new FakeShard();
    shard.rules.replace({ objectives: new Map([['low', -3]]), rewrites: [] });
    const headers = {
      ':path': '/v1/chat/completions?x=1',
      'x-llm-d-inference-objective': 'low',
      'x-gateway-inference-fairness-id': 'team',
    };
    const body = '{"model":"m","messages":[],"max_tokens":7}';
    shard.open().say(requestHeaders(headers), requestBody(body));
    expect(shard.decisions[0]).toMatchObject({
      scan: 0,
      model: 'm',
      targetModel: 'm',
      maxOutputTokens: 7,
      priority: -3,
      fairnessId: 'team',
      subset: undefined,
      path: '/v1/chat/completions?x=1',
    });
  });

  it('a request with a body has its scan open while it is scheduled and closed behind it', () => {
    let openDuring = 0;
    const shard: FakeShard = new FakeShard({
      schedule: () => {
        openDuring = shard.scanner.open_.size;
        return shard.place('10.0.0.1:1');
      },
    });
    shard.open().say(requestHeaders(PATH), requestBody(BODY));
    expect([openDuring, shard.scanner.open_.size, shard.opener.load().bufferedBytes]).toEqual([1, 0, 0]);
  });

  it('a request with a body is recorded as routed and running, with its decision and its prefix', () => {
    const shard = new FakeShard();
    shard.open().say(requestHeaders(PATH), requestBody(BODY));
    expect(shard.recorder.labels).toEqual([{ model: 'm', target: 'm', fairness: 'default-flow', priority: 0 }]);
    expect(shard.recorder.calls).toEqual([
      ['streamOpened'],
      ['scheduled', 0, 'success', 'm', 0],
      ['prefix', 2, 3, 256],
      ['running', 0, 1],
      ['routed', 0, BODY.length],
      ['processing', 'request', 0],
    ]);
  });

  it('a request with a body is counted with the bytes that go on, behind a rewrite', () => {
    const shard = new FakeShard();
    shard.open().say(requestHeaders({ ...PATH, 'x-llm-d-model-name-rewrite': 'm-v2' }), requestBody(BODY));
    expect(shard.recorder.named('routed')).toEqual([['routed', 0, BODY.length + 3]]);
  });

  it('a request with a body that is no JSON is counted under the target of its header', () => {
    const shard = new FakeShard();
    shard.open().say(requestHeaders({ ...PATH, 'x-llm-d-model-name-rewrite': 'm-v2' }), requestBody('{'));
    expect(shard.recorder.labels).toEqual([{ model: '', target: 'm-v2', fairness: 'default-flow', priority: 0 }]);
  });
});

describe('a header-only request', () => {
  it('a header-only request is scheduled inside its subset and answered without length and body', () => {
    const shard = new FakeShard();
    const proxy = shard.open().say(requestHeaders({ ':method': 'GET' }, true, subset(['10.0.0.1:8000'])));
    expect(proxy.kinds).toEqual(['requestHeaders']);
    expect(proxy.replies[0]?.headers).not.toHaveProperty('Content-Length');
    expect(proxy.replies[0]?.clearRouteCache).toBe(true);
    expect(shard.decisions[0]).toMatchObject({ scan: -1, model: '', subset: ['10.0.0.1:8000'] });
  });

  it('a header-only request is accounted for and released at its end', () => {
    const shard = new FakeShard();
    shard.open().say(requestHeaders({ ':method': 'GET' }, true), responseHeaders({ ':status': '204' }, true));
    expect(shard.charges.map((charge) => charge.releases)).toEqual([1]);
  });

  it('a header-only request is a 503 with a reason when no endpoint can take it', () => {
    const shard = new FakeShard({ schedule: () => NO_ENDPOINTS });
    expect(shard.open().say(requestHeaders({}, true)).rejection).toEqual({
      status: 503,
      text: 'inference error: ServiceUnavailable - failed to find endpoint candidates for serving the request',
      headers: { 'x-llm-d-request-dropped-reason': 'rejected-no-endpoints' },
    });
  });

  it('a header-only request counts an error but no scheduling attempt when there was no candidate', () => {
    const shard = new FakeShard({ schedule: () => NO_ENDPOINTS });
    shard.open().say(requestHeaders({}, true));
    expect(shard.recorder.named('scheduled')).toEqual([]);
    expect(shard.recorder.named('failed')).toEqual([['failed', 0, 'ServiceUnavailable']]);
  });

  it('a header-only request needs no dialect', () => {
    const shard = new FakeShard({ parsers: ['openai-parser'] });
    expect(shard.open().say(requestHeaders({ ':path': '/v1/models' }, true)).kinds).toEqual(['requestHeaders']);
  });
});

describe('a request that ends with trailers', () => {
  it('a request that ends with trailers is decided on the trailers: headers, body without an end, trailers', () => {
    const proxy = new FakeShard().open().say(requestHeaders(PATH), requestBody(BODY, false));
    expect(proxy.replies).toEqual([]);
    proxy.say(requestTrailers({ t: '1' }));
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody', 'requestTrailers']);
    expect(proxy.replies[1]?.endOfStream).toBe(false);
  });

  it('a request that ends with trailers has no body reply when it has no body', () => {
    const shard = new FakeShard({ parsers: ['passthrough-parser'] });
    const proxy = shard.open().say(requestHeaders(PATH), requestTrailers());
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestTrailers']);
  });

  it('a request that ends with trailers owes nothing for trailers behind a finished body', () => {
    const proxy = new FakeShard().open().say(requestHeaders(PATH), requestBody(BODY), requestTrailers());
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
  });
});

describe('the subset hint', () => {
  it('the subset hint of the headers counts when the body has none', () => {
    const shard = new FakeShard();
    shard.open().say(requestHeaders(PATH, false, subset(['a:1'])), requestBody(BODY));
    expect(shard.decisions[0]?.subset).toEqual(['a:1']);
  });

  it('the subset hint of the last body message wins', () => {
    const shard = new FakeShard();
    const [start, end] = [BODY.slice(0, 5), BODY.slice(5)];
    shard
      .open()
      .say(
        requestHeaders(PATH, false, subset(['a:1'])),
        requestBody(start, false, subset(['b:1'])),
        requestBody(end, true, subset('c:1, d:1')),
      );
    expect(shard.decisions[0]?.subset).toEqual(['c:1', 'd:1']);
  });

  it('the subset hint stays empty when it names no endpoint', () => {
    const shard = new FakeShard();
    shard.open().say(requestHeaders(PATH), requestBody(BODY, true, subset([])));
    expect(shard.decisions[0]?.subset).toEqual([]);
  });

  it('the subset hint is not looked at when it is switched off', () => {
    const shard = new FakeShard({ services: { decide: { ...DECIDE, ignoreSubset: true } } });
    shard.open().say(requestHeaders(PATH), requestBody(BODY, true, subset([])));
    expect(shard.decisions[0]?.subset).toBeUndefined();
  });
});

describe('the model', () => {
  it('the model is rewritten in place, byte for byte, with the right length', () => {
    const body = '{ "b" : 1e400, "model" :  "small" ,"prompt":"\\u00e9 \\"model\\"", "n": 12345678901234567890 }';
    const proxy = new FakeShard()
      .open()
      .say(requestHeaders({ ...PATH, 'x-llm-d-model-name-rewrite': 'größer' }), requestBody(body));
    const expected = body.replace('"small"', '"größer"');
    expect(proxy.body('requestBody')).toBe(expected);
    expect(proxy.replies[0]?.headers['Content-Length']).toBe(String(Buffer.byteLength(expected)));
  });

  it('the model is put first when the body has none and the request names one', () => {
    const proxy = new FakeShard()
      .open()
      .say(requestHeaders({ ...PATH, 'x-gateway-model-name-rewrite': 'm2' }), requestBody(' {"prompt":"x"}'));
    expect(proxy.body('requestBody')).toBe(' {"model":"m2","prompt":"x"}');
  });

  it('the model writes the model over one that is no string', () => {
    const proxy = new FakeShard()
      .open()
      .say(requestHeaders({ ...PATH, 'x-llm-d-model-name-rewrite': 'm2' }), requestBody('{"prompt":"x","model":5}'));
    expect(proxy.body('requestBody')).toBe('{"prompt":"x","model":"m2"}');
  });

  it('the model is rewritten by a rule, which beats the header and is recorded', () => {
    const shard = new FakeShard();
    const rewrites = [{ name: 'rule', models: ['m'], targets: [{ model: 'm-v2' }], age: 0 }];
    shard.rules.replace({ objectives: new Map(), rewrites });
    const proxy = shard.open().say(requestHeaders({ ...PATH, 'x-llm-d-model-name-rewrite': 'h' }), requestBody(BODY));
    expect(proxy.body('requestBody')).toBe('{"model":"m-v2","prompt":"hello"}');
    expect(shard.recorder.named('rewritten')).toEqual([['rewritten', 'rule', 'm', 'm-v2']]);
    expect(shard.decisions[0]).toMatchObject({ model: 'm', targetModel: 'm-v2' });
  });
});

describe('an opaque body', () => {
  const opaque: ShardSetup = { parsers: ['passthrough-parser'] };

  it.each([
    ['empty', Buffer.alloc(0)],
    ['binary', Buffer.from([0, 255, 254, 10])],
    ['JSON', Buffer.from(BODY)],
  ])('an opaque body passes untouched when it is %s', (_name, body) => {
    const shard = new FakeShard(opaque);
    const proxy = shard.open().say(requestHeaders({ ':path': '/any' }), requestBody(body));
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(proxy.replies[1]?.body.equals(body)).toBe(true);
    expect('Content-Length' in proxy.replies[0]!.headers).toBe(body.length > 0);
    expect(shard.decisions[0]).toMatchObject({ scan: -1, model: '', targetModel: '' });
  });
});

describe('a request that cannot be served', () => {
  const openai: ShardSetup = { parsers: ['openai-parser'] };
  const say = (path: string, body: string): unknown =>
    new FakeShard(openai).open().say(requestHeaders({ ':path': path }), requestBody(body)).rejection;

  it.each([
    ['/v1/models', '{}', 'no parser registered matching path suffix for: /v1/models'],
    ['/v1/completions', '{"model":', 'error unmarshaling request bodyMap: unexpected end at byte 9'],
    ['/v1/completions', '', 'error unmarshaling request bodyMap: unexpected end at byte 0'],
    ['/v1/completions', '[1]', 'error unmarshaling request bodyMap: not a JSON object at byte 0'],
    ['/v1/completions', '{"prompt":"x"}', 'model not found in request body'],
    ['/v1/completions', '{"model":"","prompt":"x"}', 'model not found in request body'],
    ['/v1/completions', '{"model":"m"}', 'invalid completions request: must have prompt field'],
    ['/v1/chat/completions', '{"model":"m"}', 'invalid chat completions request: must have valid messages field'],
    ['/v1/embeddings', '{"model":"m"}', 'invalid embeddings request: must have input field'],
    ['/v1/responses', '{"model":"m"}', 'invalid responses request: must have input field'],
    ['/v1/conversations', '{"model":"m"}', 'invalid conversations request: must have items field'],
    ['/v1/images/generations', '{"model":"m"}', 'invalid images generations request: must have prompt field'],
  ])('a request that cannot be served is a 400 on %s with %j', (path, body, message) => {
    expect(say(path, body)).toEqual({ status: 400, text: `inference error: BadRequest - ${message}`, headers: {} });
  });

  it('a request that cannot be served is refused before endpoints are looked up', () => {
    const shard = new FakeShard({ schedule: () => NO_ENDPOINTS });
    const proxy = shard.open().say(requestHeaders(PATH), requestBody('{"prompt":"x"}'));
    expect(proxy.rejection?.status).toBe(400);
    expect(shard.decisions).toEqual([]);
  });

  it('a request that cannot be served is refused at the first chunk that cannot be JSON', () => {
    const shard = new FakeShard();
    shard.scanner.feed = () => false;
    shard.scanner.refusal = () => ({ position: 0, reason: 'unexpected character' });
    const proxy = shard.open().say(requestHeaders(PATH), requestBody('no healthy', false));
    expect(proxy.rejection?.text).toBe(
      'inference error: BadRequest - error unmarshaling request bodyMap: unexpected character at byte 0',
    );
    expect([proxy.ending, shard.scanner.open_.size]).toEqual(['ended', 0]);
  });

  it.each([
    ['ResourceExhausted', 429],
    ['Internal', 500],
    ['PreconditionFailed', 412],
    ['NotFound', 404],
    ['Forbidden', 403],
    ['Unauthorized', 401],
  ] as const)('a request that cannot be served carries a rejection of the scheduler: %s is %i', (code, status) => {
    const shard = new FakeShard({ schedule: () => ({ kind: 'rejected', code, message: 'why', reason: undefined }) });
    const proxy = shard.open().say(requestHeaders(PATH), requestBody(BODY));
    expect(proxy.rejection).toEqual({ status, text: `inference error: ${code} - why`, headers: {} });
    expect([proxy.ending, shard.recorder.named('failed')]).toEqual(['ended', [['failed', 0, code]]]);
  });

  it('a request that cannot be served counts a failed attempt when the filters left nothing', () => {
    for (const reason of ['rejected-saturated', 'rejected-no-endpoints']) {
      const filtered = { kind: 'rejected', code: 'ServiceUnavailable', message: 'why', reason } as const;
      const shard = new FakeShard({ schedule: () => filtered });
      shard.open().say(requestHeaders(PATH), requestBody(BODY));
      expect(shard.recorder.named('scheduled')).toEqual([['scheduled', 0, 'failure', 'm', -1]]);
    }
  });

  it('a request that cannot be served has its processing time recorded once, like a request that was placed', () => {
    const shard = new FakeShard();
    shard.open().say(requestHeaders(PATH), requestBody('{"model":', false), requestBody('nonsense'));
    expect(shard.recorder.named('processing')).toEqual([['processing', 'request', 0]]);
  });

  it('a request that cannot be served is turned away by admission without being scheduled', () => {
    const rejection = { kind: 'rejected', code: 'ResourceExhausted', message: 'full', reason: undefined } as const;
    const shard = new FakeShard({ services: { admission: { admit: () => rejection } } });
    expect(shard.open().say(requestHeaders(PATH), requestBody(BODY)).rejection?.status).toBe(429);
    expect(shard.decisions).toEqual([]);
  });
});

describe('the bound on a request body', () => {
  const small = { bounds: { maxRequestBodyBytes: 20 } };

  it('the bound on a request body is a 413 at the first byte over it, which names the flag', () => {
    const shard = new FakeShard(small);
    const proxy = shard.open().say(requestHeaders(PATH), requestBody('{"model":"m","prompt', false));
    expect(proxy.rejection).toBeUndefined();
    proxy.say(requestBody('"', false));
    expect(proxy.rejection?.status).toBe(413);
    expect(proxy.rejection?.text).toMatch(
      /^inference error: PayloadTooLarge - .*20 bytes \(--max-request-body-size\)$/,
    );
    expect([shard.scanner.open_.size, shard.opener.load().bufferedBytes]).toEqual([0, 0]);
  });

  it('the bound on a request body is a 413 on the headers when they enqueue too much', () => {
    const proxy = new FakeShard(small).open().say(requestHeaders({ ...PATH, 'content-length': '21' }));
    expect(proxy.rejection?.status).toBe(413);
  });
});

describe('too much load', () => {
  const expected503 = { status: 503, headers: { 'retry-after': '1' } };

  it('the shard turns streams over the bound away and lets new ones in when others close', () => {
    const shard = new FakeShard({ bounds: { maxStreams: 2 } });
    const [first] = [shard.open(), shard.open()];
    const third = shard.open().say(requestHeaders(PATH));
    expect(third.rejection).toMatchObject({
      ...expected503,
      text: expect.stringMatching(/^inference error: ServiceUnavailable - picker overloaded: /),
    });
    third.close();
    expect(shard.opener.load().openStreams).toBe(2);
    first!.close();
    expect(shard.open().say(requestHeaders(PATH), requestBody(BODY)).kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(shard.recorder.named('overloaded')).toHaveLength(1);
  });

  it('the shard fails streams that say nothing beyond a bound of their own, and forgets those that end', () => {
    const shard = new FakeShard({ bounds: { maxStreams: 1 } });
    shard.open();
    const silent = Array.from({ length: 8_192 }, () => shard.open());
    expect(shard.opener.load().silentStreams).toBe(8_192);
    expect(shard.open().ending).toMatchObject({ code: 8 });
    silent[0]!.close(true);
    silent[1]!.halfClose();
    silent[2]!.say(Buffer.from([0xff]));
    silent[3]!.say(requestHeaders(PATH));
    for (const proxy of silent.slice(1, 4)) proxy.close();
    expect(shard.opener.load().silentStreams).toBe(8_188);
    expect(shard.open().say(requestHeaders(PATH)).rejection).toMatchObject(expected503);
  });

  it('the shard turns away whose bytes would be too many together, and keeps the others', () => {
    const shard = new FakeShard({ bounds: { maxBufferedBytes: 6_000 } });
    const first = shard.open().say(requestHeaders(PATH), requestBody(`{"prompt":"${'x'.repeat(600)}`, false));
    const second = shard.open().say(requestHeaders(PATH), requestBody('y'.repeat(600), false));
    expect(second.rejection).toMatchObject(expected503);
    expect(first.say(requestBody('","model":"m"}')).kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(shard.opener.load().bufferedBytes).toBe(0);
  });

  it('the shard counts a body once: no longer as a request when it is passed on', () => {
    const shard = new FakeShard();
    const proxy = shard.open();
    const held: number[] = [];
    proxy.onReply = () => held.push(shard.opener.load().bufferedBytes);
    proxy.say(requestHeaders(PATH), requestBody(BODY));
    expect([proxy.kinds, held]).toEqual([
      ['requestHeaders', 'requestBody'],
      [0, 0],
    ]);
  });

  it('the shard turns away a request whose body its connection could not hold on its way back', () => {
    const shard = new FakeShard();
    const proxy = shard.open();
    proxy.room = BODY.length - 1;
    proxy.say(requestHeaders(PATH), requestBody(BODY));
    expect([proxy.kinds.length, proxy.rejection]).toMatchObject([
      1,
      { ...expected503, text: expect.stringMatching(/too many bytes of one connection are held$/) },
    ]);
    expect([shard.charges.map(({ releases }) => releases), shard.opener.load().bufferedBytes]).toEqual([[1], 0]);
  });

  it('the shard puts tiny chunks together: they take no more room than the same body in one piece', () => {
    const shard = new FakeShard();
    const proxy = shard.open().say(requestHeaders(PATH));
    for (let i = 0; i < 100; i++) proxy.say(requestBody(' ', false));
    expect(shard.opener.load().bufferedBytes).toBe(4_352);
  });

  it('the shard turns away a request whose next message the transport cannot hold', () => {
    const shard = new FakeShard();
    const proxy = shard.open().say(requestHeaders(PATH), requestBody('{', false)).overflow();
    expect([proxy.rejection, proxy.ending]).toMatchObject([expected503, 'ended']);
    expect([shard.scanner.open_.size, shard.opener.load().bufferedBytes]).toEqual([0, 0]);
  });

  it('the shard answers a request of which nothing more comes with a 408, and gives its place back', () => {
    const shard = new FakeShard();
    const silent = shard.open();
    const begun = shard.open().say(requestHeaders(PATH), requestBody('{', false));
    for (const proxy of [silent, begun]) {
      proxy.stall();
      expect([proxy.rejection?.status, proxy.ending]).toEqual([408, 'ended']);
    }
    expect([shard.scanner.open_.size, shard.opener.load().bufferedBytes]).toEqual([0, 0]);
  });

  it('the shard lets an answer take as long as it likes', () => {
    const shard = new FakeShard();
    const proxy = shard.open().say(requestHeaders(PATH), requestBody(BODY)).stall();
    expect([proxy.kinds, proxy.ending]).toEqual([['requestHeaders', 'requestBody'], 'open']);
  });

  it('the shard turns away when no scan is free', () => {
    const shard = new FakeShard();
    shard.scanner.capacity = 1;
    shard.open().say(requestHeaders(PATH), requestBody('{', false));
    expect(shard.open().say(requestHeaders(PATH), requestBody('{', false)).rejection).toMatchObject(expected503);
  });

  it('the shard lets messages of older streams go before new requests', async () => {
    const shard = new FakeShard();
    const older = shard.open().say(requestHeaders(PATH));
    shard.clock = 100;
    const newer = shard.open().say(requestHeaders(PATH), requestBody(BODY));
    expect([newer.replies.length, shard.opener.load().waiting]).toEqual([0, 1]);
    older.say(requestBody(BODY));
    expect(older.kinds).toEqual(['requestHeaders', 'requestBody']);
    await new Promise(setImmediate);
    expect(newer.kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(shard.opener.load()).toMatchObject({ waiting: 0, bufferedBytes: 0 });
  });

  it('the shard forgets a waiting request whose client has gone', async () => {
    const shard = new FakeShard();
    shard.open().say(requestHeaders(PATH));
    shard.clock = 100;
    const gone = shard.open().say(requestHeaders(PATH), requestBody(BODY));
    gone.close(true);
    await new Promise(setImmediate);
    expect([gone.replies, shard.decisions.length, shard.opener.load().bufferedBytes]).toEqual([[], 0, 0]);
  });

  it('the shard answers a waiting request that was half-closed, then ends it', async () => {
    const shard = new FakeShard();
    shard.open().say(requestHeaders(PATH));
    shard.clock = 100;
    const proxy = shard.open().say(requestHeaders({}, true)).halfClose();
    expect(proxy.ending).toBe('open');
    await new Promise(setImmediate);
    expect([proxy.kinds, proxy.ending]).toEqual([['requestHeaders'], 'ended']);
  });
});

describe('a proxy that breaks the protocol', () => {
  it.each([
    ['a body before the headers', [requestBody(BODY)]],
    ['trailers before the headers', [requestTrailers()]],
    ['headers twice', [requestHeaders(PATH), requestHeaders(PATH)]],
    ['headers again after the answer', [requestHeaders(PATH), requestBody(BODY), requestHeaders(PATH)]],
    ['a response body before its headers', [requestHeaders(PATH), responseBody('x')]],
    ['response headers twice', [responseHeaders({}), responseHeaders({})]],
    ['bytes that are no protobuf', [Buffer.from([0xff, 0xff])]],
  ])(
    'a proxy that breaks the protocol gets INVALID_ARGUMENT for %s, and everything that it held is released',
    (_name, messages) => {
      const shard = new FakeShard();
      const proxy = shard.open().say(...messages);
      expect(proxy.ending).toMatchObject({ code: 3 });
      proxy.close();
      expect(shard.charges.every((charge) => charge.releases === 1)).toBe(true);
      expect([shard.scanner.open_.size, shard.responses.open_.size]).toEqual([0, 0]);
      expect(shard.recorder.named('streamClosed')).toEqual([['streamClosed', 'InvalidArgument', 0]]);
    },
  );

  it('a proxy that breaks the protocol may send messages of a kind that is not known', () => {
    const proxy = new FakeShard().open().say(Buffer.from([0x5a, 0]), requestHeaders(PATH), requestBody(BODY));
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
  });
});

describe('a failure inside the picker', () => {
  it('a failure inside the picker ends its own stream with INTERNAL, is logged, and gives everything back', () => {
    const shard = new FakeShard({
      schedule: () => {
        throw new Error('broken');
      },
    });
    const proxy = shard.open().say(requestHeaders(PATH), requestBody(BODY));
    expect(proxy.ending).toEqual({ code: 13, message: 'internal error' });
    expect([shard.logged.length, shard.scanner.open_.size, shard.opener.load().bufferedBytes]).toEqual([1, 0, 0]);
  });
});

describe('a request that waits in the queues', () => {
  it('a request that waits in the queues is decided by the time of its dispatch', () => {
    const clock = { ms: 0, lastRead: 0 };
    const waiters: Waiter[] = [];
    const line = {
      nowMs: () => clock.ms,
      mustQueue: () => false,
      join: (_wait: unknown, waiter: Waiter) => waiters.push(waiter),
      release: () => undefined,
    };
    const decidedAt: number[] = [];
    const now = () => {
      clock.lastRead = clock.ms;
      return clock.ms;
    };
    const services = { line: line as unknown as WaitingLine, now, recent: () => clock.lastRead };
    const shard: FakeShard = new FakeShard({
      services,
      schedule: () => {
        decidedAt.push(services.recent());
        return decidedAt.length === 1 ? { kind: 'waiting' } : shard.place('10.0.0.1:8000');
      },
    });
    const proxy = shard.open().say(requestHeaders(PATH), requestBody(BODY));
    expect(proxy.replies).toEqual([]);
    clock.ms = 5_000;
    const place = { ahead: undefined, expectedWaitMs: undefined };
    waiters[0]!.proceed({ kind: 'dispatched', dispatch: { handle: 1, ticket: 1, ticketGeneration: 1 }, place });
    expect([decidedAt, proxy.kinds]).toEqual([
      [0, 5_000],
      ['requestHeaders', 'requestBody'],
    ]);
  });

  it.each([
    [{ kind: 'dispatched', dispatch: { handle: 1, ticket: 1, ticketGeneration: 1 } }, 'Dispatched'],
    [{ kind: 'rejected', outcome: 'EvictedTTL', retryAfterSeconds: 1, bound: undefined }, 'EvictedTTL'],
  ])('a request that waits in the queues has in its trace how its wait ended: %j', (result, outcome) => {
    const waiters: Waiter[] = [];
    const records: TraceRecord[] = [];
    const line = {
      nowMs: () => 0,
      mustQueue: () => false,
      join: (_wait: unknown, waiter: Waiter) => waiters.push(waiter),
      end: () => undefined,
      release: () => undefined,
    };
    const sampler = { parentBased: false, ratio: 1, propagates: false };
    const tracer = new RequestTracer(
      sampler,
      (record) => records.push(record),
      () => 0,
    );
    const shard: FakeShard = new FakeShard({
      services: { line: line as unknown as WaitingLine, tracer },
      schedule: () => (waiters.length === 0 ? { kind: 'waiting' } : shard.place('10.0.0.1:8000')),
    });
    const proxy = shard.open().say(requestHeaders(PATH), requestBody(BODY));
    const place = { ahead: undefined, expectedWaitMs: undefined };
    waiters[0]!.proceed({ ...result, place } as Parameters<Waiter['proceed']>[0]);
    proxy.close(true);
    expect(records.filter(({ kind }) => kind === 'request')).toEqual([
      expect.objectContaining({ queueOutcome: outcome }),
    ]);
  });
});
