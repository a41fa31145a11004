import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attachCore, createPoolMemory, defaultPoolSizes } from '../../dist/src/core/memory.js';
import { RequestScanner } from '../../dist/src/core/request-scanner.js';
import { type PromptFeature, TokenChain } from '../../dist/src/core/token-chain.js';
import { PromptKind } from '../../dist/src/core/types.js';
import { contentHash, linkHash, rootHash } from './block-hash-reference.ts';

const seed = 0x0123456789abcdefn;
const sizes = {
  ...defaultPoolSizes,
  endpoints: 64,
  indexBlocks: 1024,
  requests: 64,
  chainBlocks: 5000,
  threads: 1,
  scans: 4,
};
const core = attachCore(createPoolMemory(sizes, { hashSeed: seed }), 0);
const chain = new TokenChain(core);

const utf8 = (text: string) => Buffer.from(text);
const bytesOf = (ids: Uint32Array) => new Uint8Array(ids.slice().buffer);
const hashes = (count: number) => Array.from({ length: count }, (_, index) => chain.hash(index));
const ids = fc.uint32Array({ maxLength: 200 });
const text = (tokens: Uint32Array, features: readonly PromptFeature[] = []) => ({ ids: tokens, features });

/** The chain in plain words: one block after the other, and before each the names of what stands in it. */
function reference(
  tokens: Uint32Array,
  model: string,
  salt: string | undefined,
  blockTokens: number,
  features: readonly PromptFeature[] = [],
): bigint[] {
  let link = rootHash(seed, { model, salt: salt === undefined ? undefined : utf8(salt) });
  const found: bigint[] = [];
  for (let at = 0; at < tokens.length; at += blockTokens) {
    const inside = features.filter(({ offset, length }) => offset < at + blockTokens && offset + length > at);
    for (const name of new Set(inside.map(({ identifier }) => identifier))) {
      link = linkHash(link, contentHash(seed, utf8(name)));
    }
    link = linkHash(link, contentHash(seed, bytesOf(tokens.slice(at, at + blockTokens))));
    found.push(link);
  }
  return found;
}

describe('the chain of a prompt whose tokens are known', () => {
  it('the chain of a prompt whose tokens are known agrees with its reference, tail included', () => {
    fc.assert(
      fc.property(
        ids,
        fc.string(),
        fc.option(fc.string(), { nil: undefined }),
        fc.integer({ min: 1, max: 40 }),
        (tokens, model, salt, size) => {
          const { blocks, tail } = chain.chain(text(tokens), model, salt, size);
          const expected = reference(tokens, model, salt, size);
          expect(blocks).toBe(Math.floor(tokens.length / size));
          expect(tail).toBe(tokens.length % size !== 0);
          expect(hashes(expected.length)).toEqual(expected);
        },
      ),
    );
  });

  it('the chain of a prompt whose tokens are known is the chain that the scanner makes of a body with the same token ids', () => {
    const scanner = new RequestScanner(core);
    fc.assert(
      fc.property(ids, (tokens) => {
        fc.pre(tokens.length > 0);
        const scan = scanner.open(PromptKind.tokens, 16 * 4);
        scanner.feed(scan, utf8(JSON.stringify({ model: 'm', token_ids: [...tokens], cache_salt: 's' })));
        expect(scanner.finish(scan)).toBe(true);
        const scanned = scanner.chain(scan, 'm');
        const expected = hashes(scanned.blocks + (scanned.tail ? 1 : 0));
        scanner.close(scan);
        expect(chain.chain(text(tokens), 'm', 's', 16)).toEqual(scanned);
        expect(hashes(expected.length)).toEqual(expected);
      }),
    );
  });

  it('the chain of a prompt whose tokens are known depends on the images in a block and in those behind it', () => {
    const tokens = new Uint32Array(64).fill(7);
    const of = (identifier: string) => {
      const { blocks } = chain.chain(text(tokens, [{ identifier, offset: 20, length: 20 }]), 'm', undefined, 16);
      return hashes(blocks);
    };
    const [one, other] = [of('cat'), of('dog')];
    expect(one).toEqual(reference(tokens, 'm', undefined, 16, [{ identifier: 'cat', offset: 20, length: 20 }]));
    expect(one[0]).toBe(other[0]);
    for (const block of [1, 2, 3]) expect(one[block]).not.toBe(other[block]);
  });

  it('the chain of a prompt whose tokens are known goes on behind a block that was chained before', () => {
    const tokens = Uint32Array.from({ length: 96 }, (_, i) => i);
    const whole = reference(tokens, 'm', undefined, 16);
    chain.begin('m', undefined);
    chain.add(tokens.subarray(0, 32), 16, new Map());
    const parent = chain.hash(1);
    chain.resume(parent);
    expect(chain.add(tokens.subarray(32), 16, new Map())).toBe(4);
    expect(hashes(4)).toEqual(whole.slice(2));
  });

  it('the chain of a prompt whose tokens are known takes prompts that are longer than what one call can hand over', () => {
    const tokens = Uint32Array.from({ length: 150_003 }, (_, i) => i * 7);
    const { blocks, tail } = chain.chain(text(tokens), 'm', undefined, 64);
    expect({ blocks, tail }).toEqual({ blocks: 2343, tail: true });
    expect(chain.hash(2343)).toBe(reference(tokens, 'm', undefined, 64).at(-1));
  });

  it('the chain of a prompt whose tokens are known ends with the longest chain of the pool', () => {
    expect(chain.chain(text(new Uint32Array(6000)), 'm', undefined, 1)).toEqual({ blocks: 5000, tail: false });
  });

  it('the chain of a prompt whose tokens are known finds nothing in blocks that are larger than what one call can hand over', () => {
    expect(chain.chain(text(new Uint32Array(70_000)), 'm', undefined, 66_000)).toEqual({ blocks: 0, tail: false });
  });
});
