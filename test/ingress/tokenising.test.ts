import { describe, expect, it } from 'vitest';
import { PromptKind } from '../../dist/src/core/types.js';
import type { PromptBody, Tokenised, TokenSource } from '../../dist/src/request/tokens/token-source.js';
import type { TokenRatios } from '../../dist/src/scheduling/token-ratios.js';
import { requestBody, requestHeaders, responseBody, responseHeaders } from './envoy-messages.js';
import { FakeShard, NO_ENDPOINTS, type ShardSetup } from './shard-fakes.js';

const PATH = { ':path': '/v1/completions', 'x-request-id': 'r1' };
const BODY = '{"model":"m","prompt":"hello"}';
const TOKENS = { ids: Uint32Array.of(1, 2, 3), features: [] };

/** Answers when it is told to. */
class SlowSource implements TokenSource {
  readonly asked: {
    readonly body: PromptBody;
    readonly signal: AbortSignal;
    readonly answer: (t: Tokenised) => void;
  }[] = [];

  reads(prompt: PromptKind): boolean {
    return prompt !== PromptKind.embeddings;
  }
  tokenise(body: PromptBody, signal: AbortSignal): Promise<Tokenised> {
    return new Promise((answer) => this.asked.push({ body, signal, answer }));
  }
  async close(): Promise<void> {}

  /** Answers the first question and lets the stream go on. */
  async answer(tokenised: Tokenised): Promise<void> {
    this.asked[0]!.answer(tokenised);
    await Promise.resolve();
    await Promise.resolve();
  }
}

function waiting(setup: ShardSetup = {}) {
  const source = new SlowSource();
  const shard: FakeShard = new FakeShard({ ...setup, services: { ...setup.services, tokens: source } });
  const proxy = shard.open().say(requestHeaders(PATH), requestBody(BODY));
  return { source, shard, proxy };
}

describe('a prompt whose tokens are estimated', () => {
  const USAGE = '{"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}';

  /** What is learned from the answer to a body. */
  function learned(body: string, { status = '200', answer = USAGE, path = PATH } = {}) {
    const notes: unknown[] = [];
    const ratios = { note: (...note: unknown[]) => notes.push(note) } as unknown as TokenRatios;
    const shard: FakeShard = new FakeShard({ services: { ratios } });
    const proxy = shard.open().say(requestHeaders(path), requestBody(body));
    proxy.say(responseHeaders({ ':status': status, 'content-type': 'application/json' }), responseBody(answer, true));
    return { notes, compared: shard.recorder.named('estimateCompared') };
  }

  it('a prompt whose tokens are estimated is compared with the usage of its answer, and the model learns', () => {
    const { notes, compared } = learned(BODY);
    const bytes = JSON.stringify('hello').length;
    expect(notes).toEqual([['m', bytes, 7]]);
    expect(compared).toEqual([['estimateCompared', expect.any(Number), { bytes, tokens: 192 }, 7]]);
  });

  it.each([
    ['that failed', BODY, { status: '500' }],
    ['without usage', BODY, { answer: '{}' }],
    ['to token ids', '{"model":"m","prompt":[12, 7]}', {}],
    ['to a list of token ids', '{"model":"m","prompt":[ [12, 7], [1] ]}', {}],
  ] as const)('nothing is learned of an answer %s', (_what, body, given) => {
    expect(learned(body, given)).toEqual({ notes: [], compared: [] });
  });

  it('a list of texts is no list of token ids', () => {
    expect(learned('{"model":"m","prompt":["1 one","2 two"]}').notes).toHaveLength(1);
  });
});

describe('a prompt whose tokens are asked for', () => {
  it('a prompt whose tokens are asked for is decided with them when they have come', async () => {
    const { source, shard, proxy } = waiting();
    expect(proxy.replies).toEqual([]);
    const { body } = source.asked[0]!;
    expect(Buffer.concat([...body.chunks]).toString()).toBe(BODY);
    expect(body).toMatchObject({ prompt: PromptKind.completions, modelPlace: { kind: 'replace' } });
    await source.answer({ outcome: 'tokenised', tokens: TOKENS });
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(shard.decisions[0]?.tokens).toEqual(TOKENS);
    expect(shard.recorder.named('tokenised')).toEqual([['tokenised', 'tokenised']]);
    expect(shard.recorder.named('processing')).toHaveLength(1);
    expect(shard.scanner.open_.size).toBe(0);
  });

  it.each([
    ['counted by the engine too', { outcome: 'tokenised', tokens: TOKENS }, [['tokensCounted', 3, 7]]],
    ['counted by the engine alone', { outcome: 'late', why: 'too slow' }, []],
  ] as const)(
    'a prompt whose tokens are asked for is compared with the usage of its answer: %s',
    async (_what, tokens, counts) => {
      const { source, shard, proxy } = waiting();
      await source.answer(tokens);
      proxy.say(
        responseHeaders({ ':status': '200', 'content-type': 'application/json' }),
        responseBody('{"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}', true),
      );
      expect(shard.recorder.named('tokensCounted')).toEqual(counts);
    },
  );

  it('a prompt whose tokens are asked for is not compared with an answer without usage', async () => {
    const { source, shard, proxy } = waiting();
    await source.answer({ outcome: 'tokenised', tokens: TOKENS });
    proxy.say(responseHeaders({ ':status': '200', 'content-type': 'application/json' }), responseBody('{}', true));
    expect(shard.recorder.named('tokensCounted')).toEqual([]);
  });

  it('a prompt whose tokens are asked for is decided by its estimate when they do not come', async () => {
    const { source, shard, proxy } = waiting();
    await source.answer({ outcome: 'late', why: 'too slow' });
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(shard.decisions[0]?.tokens).toBeUndefined();
    expect(shard.recorder.named('tokenised')).toEqual([['tokenised', 'late']]);
  });

  it('a prompt whose tokens are asked for is refused like any other', async () => {
    const { source, proxy } = waiting({ schedule: () => NO_ENDPOINTS });
    await source.answer({ outcome: 'tokenised', tokens: TOKENS });
    expect(proxy.rejection?.status).toBe(503);
    expect(proxy.ending).toBe('ended');
  });

  it('a prompt whose tokens are asked for gets its answer when the proxy has half-closed meanwhile', async () => {
    const { source, proxy } = waiting();
    proxy.halfClose();
    expect(proxy.ending).toBe('open');
    await source.answer({ outcome: 'tokenised', tokens: TOKENS });
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(proxy.ending).toBe('ended');
  });

  it('a prompt whose tokens are asked for is given up when the stream is gone: the search ends and nothing is decided', async () => {
    const { source, shard, proxy } = waiting();
    proxy.close(true);
    expect(source.asked[0]!.signal.aborted).toBe(true);
    await source.answer({ outcome: 'tokenised', tokens: TOKENS });
    expect(shard.decisions).toEqual([]);
    expect(shard.scanner.open_.size).toBe(0);
    expect(shard.opener.load()).toMatchObject({ openStreams: 0, bufferedBytes: 0 });
  });

  it('a prompt whose tokens are asked for is not decided any more when the proxy has answered by itself', async () => {
    const { source, shard, proxy } = waiting();
    proxy.say(responseHeaders({ ':status': '504' }));
    expect(source.asked[0]!.signal.aborted).toBe(true);
    await source.answer({ outcome: 'tokenised', tokens: TOKENS });
    expect(shard.decisions).toEqual([]);
    expect(proxy.kinds).toEqual(['responseHeaders']);
  });

  it('a prompt whose tokens are asked for holds its bytes against the bound of the shard', () => {
    const { shard } = waiting();
    expect(shard.opener.load().bufferedBytes).toBeGreaterThan(BODY.length);
  });

  it('a prompt whose tokens are asked for breaks its own stream only, when the decision throws', async () => {
    const { source, shard, proxy } = waiting({
      schedule: () => {
        throw new Error('oh');
      },
    });
    await source.answer({ outcome: 'tokenised', tokens: TOKENS });
    expect(proxy.ending).toMatchObject({ message: 'internal error' });
    expect(shard.scanner.open_.size).toBe(0);
  });
});

it('a prompt that the source does not read is decided at once', () => {
  const source = new SlowSource();
  const shard = new FakeShard({ services: { tokens: source } });
  const proxy = shard
    .open()
    .say(requestHeaders({ ':path': '/v1/embeddings' }), requestBody('{"model":"m","input":"x"}'));
  expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
  expect(source.asked).toEqual([]);
});
