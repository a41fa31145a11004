import { Tokenizer } from '@huggingface/tokenizers';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PromptTokeniser, UnreadablePrompt } from '../../../dist/src/request/tokens/prompt-tokeniser.js';
import { BEGIN, TEMPLATE, tokenizerConfig, tokenizerJson } from './model-files.ts';

const whole = new Tokenizer(tokenizerJson(), tokenizerConfig);
const encoded = (text: string, special: boolean) =>
  Uint32Array.from(whole.encode(text, { add_special_tokens: special }).ids);
const tokeniser = new PromptTokeniser({ tokenizer: tokenizerJson(), config: tokenizerConfig, template: undefined });
const user = (content: unknown) => ({ role: 'user', content });

describe("the model's own tokeniser", () => {
  it("the model's own tokeniser cuts a completion, with the special tokens around it that the model wants", () => {
    expect([...tokeniser.completion({ prompt: 'hello world' })]).toEqual([BEGIN, ...encoded('hello world', false)]);
    expect(tokeniser.completion({ prompt: 'hello world', add_special_tokens: false })).toEqual(
      encoded('hello world', false),
    );
  });

  it("the model's own tokeniser takes several prompts one behind the other, and token ids as they are", () => {
    expect(tokeniser.completion({ prompt: ['hello', 'the'] })).toEqual(
      Uint32Array.from([...encoded('hello', true), ...encoded('the', true)]),
    );
    expect(tokeniser.completion({ prompt: [5, 6] })).toEqual(Uint32Array.of(5, 6));
    expect(tokeniser.completion({ prompt: [[5], [6]] })).toEqual(Uint32Array.of(5, 6));
  });

  it("the model's own tokeniser renders a chat by the template of the model", () => {
    const text = '<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n';
    expect(tokeniser.chat({ messages: [user('hello')] })).toEqual(encoded(text, false));
    expect(tokeniser.chat({ messages: [user('hello')], add_generation_prompt: false })).toEqual(
      encoded('<|im_start|>user\nhello<|im_end|>\n', false),
    );
  });

  it("the model's own tokeniser renders parts of text as one, and no other parts", () => {
    const parts = [
      { type: 'text', text: 'hello' },
      { type: 'text', text: 'world' },
    ];
    expect(tokeniser.chat({ messages: [user(parts)] })).toEqual(tokeniser.chat({ messages: [user('hello\nworld')] }));
    const image = [{ type: 'image_url', image_url: { url: 'x' } }];
    expect(() => tokeniser.chat({ messages: [user(image)] })).toThrow(UnreadablePrompt);
  });

  it("the model's own tokeniser takes the template of a file, of the request, or the one for tools", () => {
    const config = {
      ...tokenizerConfig,
      chat_template: [
        { name: 'default', template: 'the' },
        { name: 'tool_use', template: 'hello' },
      ],
    };
    const named = new PromptTokeniser({ tokenizer: tokenizerJson(), config, template: undefined });
    expect(named.chat({ messages: [] })).toEqual(encoded('the', false));
    expect(named.chat({ messages: [], tools: [{}] })).toEqual(encoded('hello', false));
    expect(named.chat({ messages: [], chat_template: '{{ bos_token }}x' })).toEqual(encoded('<|begin|>x', false));
    const filed = new PromptTokeniser({ tokenizer: tokenizerJson(), config, template: '{{ messages[0].content }}' });
    expect(filed.chat({ messages: [user('world')] })).toEqual(encoded('world', false));
  });

  it.each([
    ['no list of messages', {}],
    ['continue_final_message', { messages: [], continue_final_message: true }],
  ])("the model's own tokeniser leaves %s to the estimate", (_name, body) => {
    expect(() => tokeniser.chat(body)).toThrow(UnreadablePrompt);
  });

  it("the model's own tokeniser cannot render chats without a template", () => {
    const bare = new PromptTokeniser({ tokenizer: tokenizerJson(), config: {}, template: undefined });
    expect(() => bare.chat({ messages: [] })).toThrow('no chat template');
  });
});

describe('the memory of the tokeniser', () => {
  const piece = fc.oneof(
    fc.constantFrom('<|im_start|>', '<|im_end|>', '<|begin|>', 'hello world ', '\n\n'),
    fc.string({ unit: 'grapheme', maxLength: 60 }),
  );
  const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''));

  it('the memory of the tokeniser changes nothing about the tokens', () => {
    expect(tokeniser.remembers).toBe(true);
    fc.assert(
      fc.property(text, fc.boolean(), (prompt, add_special_tokens) => {
        for (let i = 0; i < 2; i++) {
          expect(tokeniser.completion({ prompt, add_special_tokens })).toEqual(encoded(prompt, add_special_tokens));
        }
      }),
    );
  });

  it('the memory of the tokeniser is nothing where a text cannot be cut at special tokens', () => {
    const config = { ...tokenizerConfig };
    const prepending = new PromptTokeniser({ tokenizer: tokenizerJson(true), config, template: TEMPLATE });
    expect(prepending.remembers).toBe(false);
    const reference = new Tokenizer(tokenizerJson(true), config);
    const prompt = 'hello<|im_end|>the world';
    expect([...prepending.completion({ prompt })]).toEqual(reference.encode(prompt, { add_special_tokens: true }).ids);
  });
});
