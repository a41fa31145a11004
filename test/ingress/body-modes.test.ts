import { describe, expect, it } from 'vitest';
import { BodyMode, decodeProcessRequest } from '../../dist/src/ingress/codec/process-request.js';
import { unusableModes } from '../../dist/src/ingress/processing-modes.js';
import { RequestRules } from '../../dist/src/request/rules.js';
import { AnswerBodies } from '../../dist/src/response/answer-bodies.js';
import {
  bodyModes,
  requestBody,
  requestHeaders,
  requestTrailers,
  responseBody,
  responseHeaders,
  responseTrailers,
} from './envoy-messages.js';
import { FakeShard, type ProxySide } from './shard-fakes.js';

const NONE = 0;
const STREAMED = 1;
const BUFFERED = 2;
const BUFFERED_PARTIAL = 3;
const FULL_DUPLEX = 4;
const PATH = { ':method': 'POST', ':path': '/v1/chat/completions', 'x-request-id': 'r1' };
const BODY = '{"model":"m","messages":[]}';
const SSE = { ':status': '200', 'content-type': 'text/event-stream' };

/** The first message of a stream: it names the modes. */
function head(requestMode: number, responseMode: number, headers: Record<string, string> = {}): Buffer {
  return Buffer.concat([requestHeaders({ ...PATH, ...headers }), bodyModes(requestMode, responseMode)]);
}

/** A stream whose request is placed, with answers by this mode. */
function placed(shard: FakeShard, responseMode: number, headers: Record<string, string> = {}): ProxySide {
  const proxy = shard.open().say(head(FULL_DUPLEX, responseMode, headers), requestBody(BODY));
  proxy.replies.length = 0;
  return proxy;
}

describe('body modes of a proxy', () => {
  it('body modes of a proxy are read from the first message', () => {
    const modes = (bytes: Buffer) => {
      const { requestBodyMode, responseBodyMode } = decodeProcessRequest(bytes);
      return [requestBodyMode, responseBodyMode];
    };
    expect(modes(head(FULL_DUPLEX, NONE))).toEqual([FULL_DUPLEX, BodyMode.none]);
    expect(modes(head(NONE, NONE))).toEqual([BodyMode.none, BodyMode.none]);
    expect(modes(requestHeaders(PATH))).toEqual([BodyMode.unnamed, BodyMode.unnamed]);
  });
});

describe('a request whose body the proxy does not send', () => {
  it('a request whose body the proxy does not send is placed on its headers and keeps its length', () => {
    const shard = new FakeShard();
    const proxy = shard.open().say(head(NONE, NONE, { 'content-length': '4096' }));
    expect(proxy.kinds).toEqual(['requestHeaders']);
    expect(proxy.replies[0]!.headers['x-gateway-destination-endpoint']).toBe('10.0.0.1:8000');
    expect(proxy.replies[0]!.headers['content-length']).toBeUndefined();
    expect(shard.decisions[0]).toMatchObject({ scan: -1, promptBytes: 0, model: '' });
  });

  it('waits for its body where the proxy names no mode', () => {
    const shard = new FakeShard();
    expect(shard.open().say(requestHeaders(PATH)).kinds).toEqual([]);
    expect(shard.decisions).toEqual([]);
  });

  it('a request whose body the proxy does not send is refused where clients may ask for named models only', () => {
    const state = { objectives: new Map(), rewrites: [] };
    const rules = new RequestRules(state, { matchRequired: true, clientsRewrite: true });
    const proxy = new FakeShard({ services: { rules } }).open().say(head(NONE, NONE));
    expect(proxy.kinds).toEqual(['immediate']);
  });

  it('a request whose body the proxy does not send has its trailers answered', () => {
    const proxy = new FakeShard().open().say(head(NONE, NONE), requestTrailers());
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestTrailers']);
  });
});

describe('an answer whose body the proxy does not send', () => {
  it('ends with the trailers', () => {
    const shard = new FakeShard();
    const proxy = placed(shard, NONE).say(responseHeaders(SSE));
    expect(shard.charges[0]).toMatchObject({ releases: 0, prefills: 1, outcomes: ['answered'] });
    proxy.say(responseTrailers());
    expect(proxy.kinds).toEqual(['responseHeaders', 'responseTrailers']);
    expect(shard.charges[0]).toMatchObject({ releases: 1, answers: [{ outcome: 'completed', streamed: true }] });
  });

  it('ends with the stream where it has no trailers, and is counted once', () => {
    const shard = new FakeShard();
    const proxy = placed(shard, NONE).say(responseHeaders(SSE));
    shard.clock = 2_000;
    proxy.halfClose().close();
    expect(shard.charges[0]).toMatchObject({ releases: 1, answers: [{ outcome: 'completed' }] });
    const ended = shard.recorder.named('responseEnded');
    expect(ended).toHaveLength(1);
    expect(ended[0]![2]).toMatchObject({ durationSeconds: 2, status: 200, firstTokenSeconds: undefined });
    expect(shard.recorder.named('streamClosed')).toEqual([['streamClosed', 'OK', 2]]);
    expect(shard.recorder.named('firstToken')).toEqual([]);
  });

  it('an answer whose body the proxy does not send shows no first token while other answers have bodies', () => {
    const shard = new FakeShard({ services: { answerBodies: new AnswerBodies() } });
    const headOnly = () => {
      placed(shard, NONE).say(responseHeaders(SSE)).say(responseTrailers());
      return shard.charges.at(-1)!.answers[0];
    };
    expect(headOnly()).toMatchObject({ streamed: true });
    placed(shard, FULL_DUPLEX).say(responseHeaders(SSE), responseBody('data: [DONE]\n\n', true));
    expect(shard.charges.at(-1)!.answers[0]).toMatchObject({ streamed: true });
    expect(headOnly()).toMatchObject({ streamed: false });
  });

  it('bodies of answers are remembered for a minute', () => {
    const bodies = new AnswerBodies();
    expect(bodies.comeNow(0)).toBe(false);
    bodies.came(5);
    expect([bodies.comeNow(60_005), bodies.comeNow(60_006)]).toEqual([true, false]);
  });

  it('an answer whose body the proxy does not send is not counted as complete when its stream is reset', () => {
    const shard = new FakeShard();
    placed(shard, NONE).say(responseHeaders(SSE)).close(true);
    expect(shard.charges[0]).toMatchObject({ releases: 1, answers: [] });
    expect(shard.recorder.named('responseEnded')).toEqual([]);
  });

  it('an answer whose body the proxy does not send keeps its length although the request was rewritten', () => {
    const proxy = placed(new FakeShard(), NONE, { 'x-llm-d-model-name-rewrite': 'm2' });
    proxy.say(responseHeaders({ ':status': '200', 'content-type': 'application/json', 'content-length': '7' }));
    expect(proxy.replies[0]!.removed).toEqual([]);
  });

  it('ends with its stream only where the mode is named', () => {
    const shard = new FakeShard();
    const proxy = shard.open().say(requestHeaders(PATH), requestBody(BODY)).say(responseHeaders(SSE));
    proxy.halfClose().close();
    expect(shard.charges[0]).toMatchObject({ releases: 1, answers: [] });
  });
});

describe('answers whose bodies no decision depends on', () => {
  it('answers whose bodies no decision depends on are counted once each and logged once', () => {
    const shard = new FakeShard({ readsAnswers: false });
    for (let i = 0; i < 3; i++) {
      const proxy = placed(shard, FULL_DUPLEX).say(responseHeaders(SSE), responseBody('data: 1\n\n'));
      proxy.say(responseBody('data: 2\n\n', true));
    }
    expect(shard.recorder.named('unreadAnswer')).toHaveLength(3);
    expect(shard.logged).toEqual([{ metric: 'pointsman_unread_answers_total' }]);
  });

  it('answers whose bodies no decision depends on are not counted while a model name has to be put back', () => {
    const shard = new FakeShard({ readsAnswers: false });
    const proxy = placed(shard, FULL_DUPLEX, { 'x-llm-d-model-name-rewrite': 'm2' });
    proxy.say(responseHeaders(SSE), responseBody('data: {"model":"m2"}\n\n', true));
    expect(shard.recorder.named('unreadAnswer')).toEqual([]);
  });

  it('answers whose bodies no decision depends on are not counted where decisions read them, or where none come', () => {
    const reading = new FakeShard();
    placed(reading, FULL_DUPLEX).say(responseHeaders(SSE), responseBody('data: 1\n\n', true));
    const bodiless = new FakeShard({ readsAnswers: false });
    placed(bodiless, NONE).say(responseHeaders(SSE), responseTrailers());
    expect([...reading.recorder.named('unreadAnswer'), ...bodiless.recorder.named('unreadAnswer')]).toEqual([]);
  });
});

describe('a request whose body comes whole', () => {
  const whole = (shard: FakeShard, headers: Record<string, string> = {}) =>
    shard.open().say(head(BUFFERED, BUFFERED, headers), requestBody(BODY));

  it('a request whose body comes whole has its headers continued, and its destination with the body', () => {
    const proxy = whole(new FakeShard());
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(proxy.replies[0]!.headers).toEqual({});
    const [, body] = proxy.replies;
    expect(body!.headers['x-gateway-destination-endpoint']).toBe('10.0.0.1:8000');
    expect(body!.headers['Content-Length']).toBeUndefined();
    expect(body).toMatchObject({ wholeBody: undefined, clearRouteCache: true });
    expect(body!.metadata).toEqual({ 'envoy.lb': { 'x-gateway-destination-endpoint': '10.0.0.1:8000' } });
  });

  it('a request whose body comes whole is replaced with its length where its model is rewritten', () => {
    const [, body] = whole(new FakeShard(), { 'x-llm-d-model-name-rewrite': 'other' }).replies;
    expect(JSON.parse(body!.wholeBody!.toString())).toEqual({ model: 'other', messages: [] });
    expect(body!.headers['Content-Length']).toBe(String(body!.wholeBody!.length));
  });

  it('a request whose body comes whole is placed before its trailers, which are passed on', () => {
    const proxy = new FakeShard().open().say(head(BUFFERED, NONE), requestBody(BODY, false));
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(proxy.say(requestTrailers()).kinds).toEqual(['requestHeaders', 'requestBody', 'requestTrailers']);
  });

  it('a request whose body comes whole and cannot be read is refused', () => {
    const proxy = new FakeShard().open().say(head(BUFFERED, NONE), requestBody('['));
    expect(proxy.kinds).toEqual(['requestHeaders', 'immediate']);
    expect(proxy.replies[1]!.status).toBe(400);
  });

  it.each([
    ['STREAMED', STREAMED],
    ['BUFFERED_PARTIAL', BUFFERED_PARTIAL],
  ])('a request in mode %s is refused with its head, and the log says so', (name, mode) => {
    const shard = new FakeShard();
    const proxy = shard.open().say(head(mode, NONE));
    expect(proxy.kinds).toEqual(['immediate']);
    expect(proxy.replies[0]!.status).toBe(500);
    expect(proxy.replies[0]!.body.toString()).toContain(`in mode ${name}: set request_body_mode`);
    expect(shard.logged).toEqual([{ refused: 1 }]);
  });
});

describe('requests in modes of no use', () => {
  it('requests in modes of no use have a line a minute with their number', () => {
    const lines: object[] = [];
    const modes = unusableModes({ warn: (details) => lines.push(details) });
    for (const nowMs of [0, 59_999, 60_000]) modes.note('a mode of no use', nowMs);
    expect(lines).toEqual([{ refused: 1 }, { refused: 2 }]);
  });
});

describe('an answer whose pieces wait for replies', () => {
  it.each([
    ['STREAMED', STREAMED],
    ['BUFFERED', BUFFERED],
  ])('an answer in mode %s has one reply a message, which leaves it as it is', (_name, mode) => {
    const proxy = placed(new FakeShard(), mode).say(responseHeaders(SSE), responseBody('data: 1\n\n', true));
    expect(proxy.kinds).toEqual(['responseHeaders', 'responseBody']);
    expect(proxy.replies[1]).toMatchObject({ wholeBody: undefined, headers: {} });
  });

  it('an answer whose pieces wait for replies has its model put back', () => {
    const proxy = placed(new FakeShard(), STREAMED, { 'x-llm-d-model-name-rewrite': 'm2' });
    proxy.say(responseHeaders(SSE), responseBody('data: {"model":"m2"}\n\n', true));
    expect(proxy.replies[1]!.wholeBody!.toString()).toBe('data: {"model":"m"}\n\n');
  });

  it('an answer whose body came whole has ended, and its trailers are passed on', () => {
    const shard = new FakeShard();
    const proxy = placed(shard, BUFFERED).say(responseHeaders(SSE), responseBody('data: 1\n\n', false));
    expect(shard.charges[0]).toMatchObject({ releases: 1 });
    expect(proxy.say(responseTrailers()).kinds).toEqual(['responseHeaders', 'responseBody', 'responseTrailers']);
  });
});
