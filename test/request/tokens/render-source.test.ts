import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RenderSettings } from '../../../dist/src/contract/token-settings.js';
import { PromptKind } from '../../../dist/src/core/types.js';
import { RenderSource } from '../../../dist/src/request/tokens/render-source.js';
import type { PromptBody } from '../../../dist/src/request/tokens/token-source.js';
import { RenderServer } from './render-server.ts';

let server: RenderServer;
let closers: (() => unknown)[] = [];

beforeEach(async () => {
  server = await RenderServer.start();
  closers = [() => server.close()];
});

afterEach(async () => {
  for (const close of closers.reverse()) await close();
});

const waits = new AbortController().signal;

function source(settings: Partial<RenderSettings> = {}, target: () => string | undefined = () => undefined) {
  const clock = { now: 0 };
  const defaults = {
    kind: 'render',
    url: server.url,
    modelName: 'base',
    timeoutMs: 10_000,
    partsTimeoutMs: 10_000,
  } as const;
  const made = new RenderSource({ ...defaults, ...settings }, target, () => clock.now);
  closers.push(() => made.close());
  return { made, clock };
}

/** A body in two chunks, the cut in the model's name. */
function completion(prompt: string): PromptBody {
  const text = JSON.stringify({ model: 'adapter', prompt });
  const start = text.indexOf('"adapter"');
  const chunks = [Buffer.from(text.slice(0, start + 3)), Buffer.from(text.slice(start + 3))];
  return { prompt: PromptKind.completions, chunks, modelPlace: { kind: 'replace', range: { start, end: start + 9 } } };
}

const chat: PromptBody = {
  prompt: PromptKind.chat,
  chunks: [Buffer.from('{"messages":[{"role":"user","content":"hi"}]}')],
  modelPlace: { kind: 'insert' },
};

describe('a render server', () => {
  it('a render server gets a completion under the model name that it knows, and tells its tokens', async () => {
    const { made } = source();
    expect(await made.tokenise(completion('abc'), waits)).toEqual({
      outcome: 'tokenised',
      tokens: { ids: Uint32Array.of(97, 98, 99), features: [] },
    });
    expect(server.calls).toEqual([{ path: '/v1/completions/render', body: { model: 'base', prompt: 'abc' } }]);
  });

  it('a render server gets a chat that names no model with the name that it knows', async () => {
    const { made } = source({ url: `${server.url}/behind/a/path` });
    expect(await made.tokenise(chat, waits)).toMatchObject({ tokens: { ids: Uint32Array.of(104, 105) } });
    expect(server.calls).toEqual([
      {
        path: '/behind/a/path/v1/chat/completions/render',
        body: { model: 'base', messages: [{ role: 'user', content: 'hi' }] },
      },
    ]);
  });

  it('a render server is asked again over connections that stay open', async () => {
    const { made } = source();
    for (let i = 0; i < 20; i++) await made.tokenise(completion('abc'), waits);
    // One may still be in the hands of the prompt before.
    expect(server.connections).toBeLessThanOrEqual(2);
  });

  it('a render server may be the next endpoint of the pool', async () => {
    const { made } = source({ url: undefined }, () => server.url);
    expect(await made.tokenise(chat, waits)).toMatchObject({ outcome: 'tokenised' });
    const none = source({ url: undefined });
    expect(await none.made.tokenise(chat, waits)).toMatchObject({ outcome: 'failed' });
  });

  it('a render server that does not answer in time leaves the prompt without tokens', async () => {
    const { made } = source({ timeoutMs: 20 });
    server.behave = () => {};
    expect(await made.tokenise(completion('abc'), waits)).toMatchObject({ outcome: 'late' });
  });

  it('a render server has more time for messages with images', async () => {
    const { made } = source({ timeoutMs: 1 });
    server.behave = (_call, response) => setTimeout(() => response.end('{"token_ids":[1]}'), 50);
    const parts = '{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}';
    const body: PromptBody = { ...chat, chunks: [Buffer.from(parts)] };
    expect(await made.tokenise(body, waits)).toMatchObject({ outcome: 'tokenised' });
  });

  it.each<[string, RenderServer['behave']]>([
    ['fails', (_call, response) => response.writeHead(500).end()],
    ['breaks the connection', (_call, response) => response.socket!.destroy()],
    ['answers something else', (_call, response) => response.end('<html>')],
  ])('a render server that %s is left alone after five prompts', async (_name, behave) => {
    const { made, clock } = source();
    server.behave = behave;
    for (let i = 0; i < 5; i++) expect(await made.tokenise(chat, waits)).toMatchObject({ outcome: 'failed' });
    expect(await made.tokenise(chat, waits)).toMatchObject({ outcome: 'paused' });
    expect(server.calls).toHaveLength(5);
    server.behave = (call, response) => server.answer(call, response);
    clock.now = 1_000;
    expect(await made.tokenise(chat, waits)).toMatchObject({ outcome: 'tokenised' });
    expect(await made.tokenise(chat, waits)).toMatchObject({ outcome: 'tokenised' });
  });

  it('a render server that refuses prompts is not left alone: it judged them, not itself', async () => {
    const { made } = source();
    server.behave = (_call, response) => response.writeHead(400).end('{}');
    for (let i = 0; i < 7; i++) expect(await made.tokenise(chat, waits)).toMatchObject({ outcome: 'failed' });
    expect(server.calls).toHaveLength(7);
  });

  it('a render server has at most 256 prompts of a shard to answer', async () => {
    const { made } = source();
    server.behave = () => {};
    const gone = new AbortController();
    const waiting = Array.from({ length: 256 }, () => made.tokenise(chat, gone.signal));
    expect(await made.tokenise(chat, waits)).toMatchObject({ outcome: 'busy' });
    gone.abort();
    expect((await Promise.all(waiting)).every(({ outcome }) => outcome === 'failed')).toBe(true);
    server.behave = (call, response) => server.answer(call, response);
    expect(await made.tokenise(chat, waits)).toMatchObject({ outcome: 'tokenised' });
  });

  it('a render server reads completions and chats only', () => {
    const { made } = source();
    const read = Object.values(PromptKind).filter((kind) => made.reads(kind));
    expect(read).toEqual([PromptKind.completions, PromptKind.chat]);
  });
});
