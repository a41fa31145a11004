import { describe, expect, it } from 'vitest';
import type { ModelAccess } from '../../dist/src/contract/decide-settings.js';
import { attachCore, createPoolMemory, defaultPoolSizes } from '../../dist/src/core/memory.js';
import { RequestScanner } from '../../dist/src/core/request-scanner.js';
import { RequestRules } from '../../dist/src/request/rules.js';
import { requestBody, requestHeaders } from './envoy-messages.ts';
import { FakeShard } from './shard-fakes.ts';

const REWRITE = 'x-llm-d-model-name-rewrite';
const RULES = {
  objectives: new Map([['named', 0]]),
  rewrites: [{ name: 'rule', models: ['alias'], targets: [{ model: 'internal' }], age: 0 }],
};
const NAMED: ModelAccess = { matchRequired: true, clientsRewrite: true };
const FIXED: ModelAccess = { matchRequired: false, clientsRewrite: false };

interface Asked {
  readonly body?: object | string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The model that goes upstream, or status and text of the refusal. */
function ask(access: ModelAccess, { body, path = '/v1/completions', headers = {} }: Asked): unknown {
  const shard = new FakeShard({ services: { rules: new RequestRules(RULES, access) } });
  const head = requestHeaders({ ':path': path, ...headers }, body === undefined);
  const text = typeof body === 'string' ? body : JSON.stringify(body ?? '');
  const proxy = shard.open().say(head, ...(body === undefined ? [] : [requestBody(text)]));
  const { rejection } = proxy;
  return rejection === undefined
    ? shard.decisions[0]?.targetModel
    : `${rejection.status} ${rejection.text.replace(/^inference error: \w+ - /, '')}`;
}

const notServed = (model: string) =>
  `404 model ${JSON.stringify(model)} is not served here: no objective and no rewrite rule names it`;
const UNREAD = '404 the model of this request cannot be read, and only named models are served (--require-model-match)';

describe('models that must be named', () => {
  it('a header rewrites to a named model only', () => {
    const asked = (target: string) =>
      ask(NAMED, { body: { model: 'named', prompt: 'x' }, headers: { [REWRITE]: target } });
    expect([asked('internal'), asked('alias'), asked('named')]).toEqual([notServed('internal'), 'alias', 'named']);
  });

  it('a rewrite rule may choose a model that clients cannot name', () => {
    expect(ask(NAMED, { body: { model: 'alias', prompt: 'x' } })).toBe('internal');
  });

  it('a body without a model is refused, whatever the header says', () => {
    const refused = '400 model not found in request body';
    expect(ask(NAMED, { body: { prompt: 'x' }, headers: { [REWRITE]: 'named' } })).toBe(refused);
    expect(ask(NAMED, { body: { prompt: 'x' } })).toBe(refused);
  });

  it('a body whose model is not read is refused', () => {
    expect(ask(NAMED, { path: '/v1/audio/transcriptions', body: { model: 'named' } })).toBe(UNREAD);
    expect(ask(NAMED, { path: '/v1/messages/count_tokens', body: 'no JSON' })).toBe(UNREAD);
    expect(ask(NAMED, { path: '/v1/messages/count_tokens', body: { messages: [{ content: 'x' }] } })).toBe(UNREAD);
  });

  it('a request without a body is refused unless it only reads', () => {
    const asked = (method: string) => ask(NAMED, { path: '/v1/models', headers: { ':method': method } });
    expect([asked('GET'), asked('HEAD'), asked('POST')]).toEqual(['', '', UNREAD]);
  });

  it('nothing of this is refused by default', () => {
    const open: ModelAccess = { matchRequired: false, clientsRewrite: true };
    expect(ask(open, { body: { model: 'm', prompt: 'x' }, headers: { [REWRITE]: 'internal' } })).toBe('internal');
    expect(ask(open, { body: { prompt: 'x' }, headers: { [REWRITE]: 'internal' } })).toBe('internal');
    expect(ask(open, { path: '/v1/audio/transcriptions', body: { model: 'm' } })).toBe('');
  });
});

describe('clients without the right to rewrite', () => {
  it('the header does not change the model', () => {
    expect(ask(FIXED, { body: { model: 'm', prompt: 'x' }, headers: { [REWRITE]: 'internal' } })).toBe('m');
  });

  it('clients without the right to rewrite rules still rewrite', () => {
    expect(ask(FIXED, { body: { model: 'alias', prompt: 'x' }, headers: { [REWRITE]: 'm' } })).toBe('internal');
  });
});

describe('a model name that is no text', () => {
  const core = attachCore(createPoolMemory({ ...defaultPoolSizes, endpoints: 64, threads: 1, scans: 8 }), 0);

  function status(body: string | Buffer): number | undefined {
    const shard = new FakeShard({ services: { scanner: new RequestScanner(core) } });
    const proxy = shard.open().say(requestHeaders({ ':path': '/v1/completions' }), requestBody(body));
    return proxy.rejection?.status;
  }

  it.each([
    ['the first half of a surrogate pair', '"a\\ud800"'],
    ['the second half of a surrogate pair', '"\\udc00b"'],
    ['two halves in the wrong order', '"\\udc00\\ud800"'],
  ])('a model name with %s is a 400', (_, name) => {
    expect(status(`{"model":${name},"prompt":"x"}`)).toBe(400);
  });

  it('a model name that is no UTF-8 is a 400', () => {
    expect(status(Buffer.from('{"model":"a\xff","prompt":"x"}', 'latin1'))).toBe(400);
  });

  it('a model name that is no text whole surrogate pairs are characters, half ones go to the engine', () => {
    expect(status('{"model":"\\ud83d\\ude00","prompt":"\\ud800"}')).toBeUndefined();
  });
});
