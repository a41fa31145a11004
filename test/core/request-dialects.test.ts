import { afterEach, describe, expect, it } from 'vitest';
import { PromptKind, type ScanFlaw } from '../../dist/src/core/types.js';
import { scan, scanner } from './request-scanner-harness.ts';

afterEach(() => expect(scanner.openScans).toBe(0));

const found = (kind: PromptKind, value: unknown) => scan(kind, [Buffer.from(JSON.stringify(value))]);
const shared = 'Instructions that every conversation of this client begins with. '.repeat(20);

describe('long tools and system texts', () => {
  const tools = [{ name: 'f', description: shared }];
  const turn = (content: string) => [{ role: 'user', content }];
  /** Blocks of 64 bytes that two bodies have in common from the first one on. */
  const common = (kind: PromptKind, one: object, other: object) => {
    const [a, b] = [found(kind, one).hashes!, found(kind, other).hashes!];
    const differs = a.findIndex((hash, i) => hash !== b[i]);
    return differs < 0 ? a.length : differs;
  };

  it('long tools and system texts match in conversations that have nothing else in common', () => {
    const blocks = Math.floor(JSON.stringify(tools).length / 64);
    expect(common(PromptKind.chat, { messages: turn('one'), tools }, { tools, messages: turn('two') })).toBe(blocks);
    const systemBlocks = Math.floor(shared.length / 64);
    const body = (content: string) => ({ messages: turn(content), system: shared });
    expect(common(PromptKind.messages, body('one'), body('two'))).toBe(systemBlocks);
    const both = (content: string) => ({ ...body(content), tools });
    expect(common(PromptKind.messages, both('one'), both('two'))).toBe(blocks + systemBlocks);
  });

  it('long tools and system texts make another prompt of the same messages', () => {
    const plain = { messages: turn('one') };
    expect(common(PromptKind.messages, plain, { ...plain, system: 's' })).toBe(0);
    expect(common(PromptKind.messages, { ...plain, system: 'ab' }, { ...plain, system: 'abc' })).toBe(0);
  });
});

describe("Anthropic's system text", () => {
  const hashes = (system: unknown) =>
    found(PromptKind.messages, { system, messages: [{ role: 'user', content: 'x' }] }).hashes;
  const text = (value: string, more: object = {}) => ({ type: 'text', text: value, ...more });

  it("Anthropic's system text is the same as text and as parts, wherever cache_control stands", () => {
    const expected = hashes(shared);
    expect(hashes([text(shared)])).toEqual(expected);
    expect(
      hashes([text(shared.slice(0, 40)), text(shared.slice(40), { cache_control: { type: 'ephemeral' } })]),
    ).toEqual(expected);
  });

  it("Anthropic's system text leaves the billing notice out, which differs from request to request", () => {
    const notice = 'x-anthropic-billing-header: cc_version=1;';
    expect(hashes([text(`${notice} cch=1`), text(shared)])).toEqual(hashes([text(`${notice} cch=2`), text(shared)]));
    expect(hashes([text(notice), text(shared)])).toEqual(hashes(shared));
    expect(hashes(notice)).toEqual(hashes(undefined));
  });

  it("Anthropic's system text keeps a text that only begins like the notice", () => {
    expect(hashes('x-anthropic')).not.toEqual(hashes(undefined));
    expect(hashes([text('x-anthropic-billing-headed'), text('')])).toEqual(hashes('x-anthropic-billing-headed'));
  });
});

describe('the parts of an Anthropic message', () => {
  const hashes = (...content: object[]) => found(PromptKind.messages, { messages: [{ role: 'user', content }] }).hashes;

  it('the parts of an Anthropic message are hashed, tool uses and results as well', () => {
    const use = (input: string) => hashes({ type: 'tool_use', id: 't', name: 'f', input: { q: input } });
    const result = (content: string) => hashes({ type: 'tool_result', tool_use_id: 't', content });
    expect(use('a')).not.toEqual(use('b'));
    expect(result('a')).not.toEqual(result('b'));
  });

  it('the parts of an Anthropic message tell images apart and count each as the same number of tokens', () => {
    const image = (data: string) => {
      const source = { type: 'base64', media_type: 'image/png', data };
      return found(PromptKind.messages, { messages: [{ role: 'user', content: [{ type: 'image', source }] }] });
    };
    expect(image('AAAA').hashes).not.toEqual(image('BBBB').hashes);
    expect(image('A'.repeat(4000)).result!.promptBytes).toBe(image('A').result!.promptBytes);
  });
});

describe('token ids over HTTP', () => {
  const ids = Array.from({ length: 40 }, (_, i) => i * 1000);
  const expected = found(PromptKind.completions, { prompt: ids }).hashes;

  it('token ids over HTTP of vLLM are hashed like those of completions, with model, salt and bound', () => {
    const body = { model: 'm', token_ids: ids, cache_salt: 's', sampling_params: { max_tokens: 9 }, max_tokens: 1 };
    expect(found(PromptKind.tokens, { token_ids: ids }).hashes).toEqual(expected);
    expect(found(PromptKind.tokens, body).result).toMatchObject({
      model: 'm',
      cacheSalt: 's',
      maxOutputTokens: 9,
      promptBytes: 160,
    });
  });

  it('token ids over HTTP of SGLang are hashed like those of completions, with extra_key as salt', () => {
    const body = {
      input_ids: ids,
      extra_key: 's',
      cache_salt: 'no',
      stream: true,
      sampling_params: { max_new_tokens: 9 },
    };
    expect(found(PromptKind.sglang, { input_ids: ids }).hashes).toEqual(expected);
    expect(found(PromptKind.sglang, body).result).toMatchObject({ cacheSalt: 's', maxOutputTokens: 9, stream: true });
  });
});

describe('the flaw of a body', () => {
  const messages = [{ role: 'user', content: 'x' }];
  const rows: readonly (readonly [keyof typeof PromptKind, object, ScanFlaw | undefined])[] = [
    ['messages', { messages }, undefined],
    ['messages', { messages: [{}] }, undefined],
    ['messages', {}, 'missing'],
    ['messages', { messages: null }, 'missing'],
    ['messages', { messages: [] }, 'empty'],
    ['messages', { messages: 'x' }, 'shape'],
    ['messages', { messages: ['x'] }, 'shape'],
    ['messages', { messages: [{ role: 'user', content: 5 }] }, 'shape'],
    ['messages', { messages: [{ role: 'user', content: ['x'] }, ...messages] }, 'shape'],
    ['messages', { messages, system: 5 }, 'system'],
    ['messages', { messages, system: ['x'] }, 'system'],
    ['messages', { messages: [null] }, undefined],
    ['messages', { messages: [{ role: 'user', content: [null] }] }, undefined],
    ['messages', { messages, system: [null] }, undefined],
    ['messages', { messages: [null, 5] }, 'shape'],
    ['messages', { messages, system: [null, 'x'] }, 'system'],
    ['chat', { messages: [null] }, undefined],
    ['chat', { messages: [{ content: 5 }] }, 'shape'],
    ['completions', { prompt: '' }, 'empty'],
    ['images', { prompt: '' }, 'empty'],
    ['embeddings', { input: [] }, 'empty'],
    ['embeddings', { input: 5 }, 'shape'],
    ['conversations', { items: 'x' }, 'shape'],
    ['responses', { input: '' }, undefined],
    ['tokens', { token_ids: [1] }, undefined],
    ['tokens', { token_ids: [1], stream: 'x', extra_key: 5 }, undefined],
    ['tokens', {}, 'missing'],
    ['tokens', { token_ids: [] }, 'empty'],
    ['tokens', { token_ids: [4294967296] }, 'shape'],
    ['tokens', { token_ids: ['x'] }, 'shape'],
    ['tokens', { token_ids: [[1]] }, 'shape'],
    ['sglang', { input_ids: [1], extra_key: null, stream: null }, undefined],
    ['sglang', { input_ids: [-1] }, 'shape'],
    ['sglang', { text: 'x' }, 'missing'],
    ['sglang', { input_ids: [1], extra_key: ['x'] }, 'salt'],
    ['sglang', { input_ids: [1], stream: 1 }, 'stream'],
  ];
  it.each(rows)('%s %j is %s', (kind, body, flaw) => {
    expect(found(PromptKind[kind], body).result!.flaw).toBe(flaw);
  });
});
