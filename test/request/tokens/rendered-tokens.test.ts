import { describe, expect, it } from 'vitest';
import { renderedTokens } from '../../../dist/src/request/tokens/rendered-tokens.js';

const read = (answer: unknown) => renderedTokens(JSON.stringify(answer));

describe('the answer of a render server', () => {
  it('the answer of a render server brings the tokens of a chat', () => {
    expect(read({ token_ids: [1, 4_000_000_000], request_id: 'x' })).toEqual({
      ids: Uint32Array.of(1, 4_000_000_000),
      features: [],
    });
  });

  it('the answer of a render server brings the tokens of several prompts one behind the other', () => {
    expect(read([{ token_ids: [1, 2] }, { token_ids: [] }, { token_ids: [3] }]).ids).toEqual(Uint32Array.of(1, 2, 3));
  });

  it('the answer of a render server names images and other parts in the order in which they stand in the prompt', () => {
    const features = {
      mm_hashes: { image: ['a', 'b'], audio: ['c'] },
      mm_placeholders: {
        image: [
          { offset: 4, length: 2 },
          { offset: 0, length: 1 },
        ],
        audio: [{ offset: 2, length: 2 }],
      },
    };
    expect(read([{ token_ids: [9] }, { token_ids: [0, 0, 0, 0, 0, 0], features }]).features).toEqual([
      { identifier: 'b', offset: 1, length: 1 },
      { identifier: 'c', offset: 3, length: 2 },
      { identifier: 'a', offset: 5, length: 2 },
    ]);
  });

  it.each([
    ['no JSON', 'not json', 'no JSON'],
    ['an error', '{"error":"x"}', 'no token_ids'],
    ['no prompt', '[]', 'no token_ids'],
    ['null', 'null', 'no token_ids'],
    ['tokens that are no ids', '{"token_ids":[1.5]}', 'no token_ids'],
    ['tokens below zero', '{"token_ids":[-1]}', 'no token_ids'],
    ['features without places', '{"token_ids":[1],"features":{"mm_hashes":{"image":["a"]}}}', 'image features'],
    [
      'a feature behind the prompt',
      '{"token_ids":[1],"features":{"mm_hashes":{"image":["a"]},' +
        '"mm_placeholders":{"image":[{"offset":0,"length":2}]}}}',
      'outside of the prompt',
    ],
  ])('the answer of a render server that is %s is not used', (_name, text, reason) => {
    expect(() => renderedTokens(text)).toThrow(reason);
  });
});
