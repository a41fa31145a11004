import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeEvents } from '../../dist/src/kvevents/decode.js';
import type { EngineBlocks } from '../../dist/src/kvevents/engine-blocks.js';
import { cleared, payload, removed, run, stored } from './engine-publisher.ts';
import { eventPool } from './pool.ts';

const say = (blocks: EngineBlocks, ...events: readonly unknown[]) =>
  blocks.apply(decodeEvents(payload(...events)), 'm');

describe('the blocks of an engine', () => {
  it('the blocks of an engine are what a prompt with the same tokens finds', () => {
    const { blocks, matched, counts } = eventPool();
    const engine = blocks();
    say(engine, stored([1, 2], null, run(0, 8), 4), stored([3], 2, run(8, 4), 4));
    expect(matched(run(0, 15))).toEqual([3, 0]);
    expect(matched([...run(0, 8), 99, 99, 99, 99])).toEqual([2, 0]);
    expect(matched(run(1, 8))).toEqual([0, 0]);
    expect(counts.storedBlocks).toBe(3);
  });

  it('the blocks of an engine leave the index under the names that the engine gave them', () => {
    const { blocks, matched, counts } = eventPool();
    const engine = blocks();
    say(engine, stored([1, 2, 3], null, run(0, 12), 4), removed([3, 2, 77]));
    expect(matched(run(0, 12))).toEqual([1, 0]);
    expect(counts.removedBlocks).toBe(2);
    say(engine, stored([2], 1, run(4, 4), 4));
    expect(matched(run(0, 12))).toEqual([2, 0]);
  });

  it('the blocks of an engine are gone when the engine clears its cache, and those of others stay', () => {
    const { blocks, matched } = eventPool();
    const [one, other] = [blocks(0), blocks(1)];
    for (const engine of [one, other]) say(engine, stored([1, 2], null, run(0, 8), 4));
    say(one, cleared);
    expect(matched(run(0, 8))).toEqual([0, 2]);
    expect(one.size).toBe(0);
  });

  it('the blocks of an engine may have names that mean something else in another engine', () => {
    const { blocks, matched } = eventPool();
    say(blocks(0), stored([1, 2], null, run(0, 8), 4));
    say(blocks(1), stored([1, 2], null, run(100, 8), 4), stored([3], 2, run(8, 4), 4));
    expect(matched(run(0, 12))).toEqual([2, 0]);
    expect(matched([...run(100, 8), ...run(8, 4)])).toEqual([0, 3]);
  });

  it('the blocks of an engine behind a block that is not known are left out and counted', () => {
    const { blocks, matched, dropped } = eventPool();
    say(blocks(), stored([5, 6], 4, run(0, 8), 4));
    expect(matched(run(0, 8))).toEqual([0, 0]);
    expect(dropped()).toEqual({ 'unknown parent': 2 });
  });

  it('the blocks of an engine belong to an adapter, or to the model', () => {
    const { blocks, matched, dropped } = eventPool();
    const engine = blocks();
    say(engine, stored([1], null, run(0, 4), 4, 1, 'GPU', 'sql'), stored([2], null, run(4, 4), 4, 1));
    expect(matched(run(0, 4), 'sql')).toEqual([1, 0]);
    expect(matched(run(0, 4), 'm')).toEqual([0, 0]);
    expect(dropped()).toEqual({ 'unnamed adapter': 1 });
    engine.apply(decodeEvents(payload(stored([3], null, run(0, 4), 4))), undefined);
    expect(dropped()).toEqual({ 'unnamed adapter': 1, 'unnamed model': 1 });
  });

  it('the blocks of an engine differ by images and by the salt', () => {
    const { blocks, matched } = eventPool();
    const tokens = run(0, 8);
    say(blocks(0), stored([1, 2], null, tokens, 4, null, 'GPU', null, [null, [['cat', 0]]]));
    say(blocks(1), stored([1, 2], null, tokens, 4, null, 'GPU', null, [['pepper'], null]));
    expect(matched(tokens)).toEqual([1, 0]);
    expect(matched(tokens, 'm', undefined, [{ identifier: 'cat', offset: 4, length: 4 }])).toEqual([2, 0]);
    expect(matched(tokens, 'm', 'pepper')).toEqual([0, 2]);
  });

  it('the blocks of an engine may be larger than those of the index', () => {
    const { blocks, matched } = eventPool(4);
    const engine = blocks();
    say(engine, stored([1, 2], null, run(0, 24), 12), stored([3], 2, run(24, 12), 12));
    expect(matched(run(0, 36))).toEqual([9, 0]);
    say(engine, removed([3]));
    expect(matched(run(0, 36))).toEqual([6, 0]);
  });

  it.each([3, 6])(
    'the blocks of an engine of %i tokens do not fit blocks of four: they are left out and counted',
    (size) => {
      const { blocks, matched, dropped } = eventPool(4);
      say(blocks(), stored([1, 2], null, run(0, 2 * size), size));
      expect(matched(run(0, 8))).toEqual([0, 0]);
      expect(dropped()).toEqual({ 'block size': 2 });
    },
  );

  it('the blocks of an engine are held while they lie anywhere', () => {
    const { blocks, matched } = eventPool();
    const engine = blocks();
    say(engine, stored([1], null, run(0, 4), 4, null, 'GPU'), stored([1], null, [], 4, null, 'CPU'));
    say(engine, removed([1], 'GPU'));
    expect(matched(run(0, 4))).toEqual([1, 0]);
    say(engine, removed([1], 'CPU'));
    expect(matched(run(0, 4))).toEqual([0, 0]);
  });

  it('the blocks of an engine of the same content under two names are held while one of the names is', () => {
    const { blocks, matched } = eventPool();
    const engine = blocks();
    say(engine, stored([1], null, run(0, 4), 4), stored([9], null, run(0, 4), 4), removed([1]));
    expect(matched(run(0, 4))).toEqual([1, 0]);
    say(engine, removed([9]));
    expect(matched(run(0, 4))).toEqual([0, 0]);
  });

  it('the blocks of an engine of caches from which no prefix can be taken are left out, and so are their removals', () => {
    const { blocks, matched, dropped } = eventPool();
    const engine = blocks();
    say(
      engine,
      stored([1], null, run(0, 4), 4, null, 'GPU', null, null, 0, 'full_attention'),
      stored([1], null, run(0, 4), 4, null, 'GPU', null, null, 1, 'sliding_window', 128),
      removed([1], 'GPU', 1),
    );
    expect(matched(run(0, 4))).toEqual([1, 0]);
    expect(dropped()).toEqual({ 'cache kind': 1 });
    say(engine, removed([1], 'GPU', 0));
    expect(matched(run(0, 4))).toEqual([0, 0]);
  });

  it('the blocks of an engine without all of their tokens are left out and counted', () => {
    const { blocks, dropped } = eventPool();
    say(blocks(), stored([1, 2], null, run(0, 7), 4), stored([3], null, [], 4));
    expect(dropped()).toEqual({ tokens: 3 });
  });

  it('the blocks of an engine beyond the bound of an endpoint do not stay in the index', () => {
    const { blocks, matched, dropped } = eventPool(4, 3);
    const engine = blocks();
    say(engine, stored(run(1, 5), null, run(0, 20), 4));
    expect(matched(run(0, 20))).toEqual([3, 0]);
    expect(dropped()).toEqual({ 'no room': 2 });
    say(engine, removed([1, 2, 3]));
    expect(matched(run(0, 20))).toEqual([0, 0]);
  });

  it('the blocks of an engine that were only believed to come leave, unless the engine has told of them', () => {
    const { blocks, chain, index, matched } = eventPool();
    const engine = blocks();
    chain.chain({ ids: Uint32Array.from(run(0, 12)), features: [] }, 'm', undefined, 4);
    const hashes = chain.hashes(0, 3);
    index.insert(0, 3);
    say(engine, stored([1], null, run(0, 4), 4));
    expect(matched(run(0, 12))).toEqual([3, 0]);
    expect(engine.dropUnconfirmed(hashes)).toBe(2);
    expect(matched(run(0, 12))).toEqual([1, 0]);
  });

  /** An engine as a plain set: what it holds of a few prompts that share their beginnings. */
  it('the blocks of an engine are those of a plain model, whatever the engine stores and gives up', () => {
    const prompts = [run(0, 24), [...run(0, 12), ...run(50, 12)], run(100, 24)];
    const nameOf = (prompt: number, block: number) => (prompt < 2 && block < 3 ? block + 1 : prompt * 10 + block + 10);
    const event = fc.record({
      stores: fc.boolean(),
      prompt: fc.nat(2),
      from: fc.nat(5),
      count: fc.integer({ min: 1, max: 6 }),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const { blocks, matched } = eventPool();
        const engine = blocks();
        const held = new Set<number>();
        for (const { stores, prompt, from, count } of events) {
          const to = Math.min(6, from + count);
          const names = run(from, to - from).map((block) => nameOf(prompt, block));
          if (!stores) {
            say(engine, removed(names));
            for (const name of names) held.delete(name);
          } else if (from === 0 || held.has(nameOf(prompt, from - 1))) {
            const parent = from === 0 ? null : nameOf(prompt, from - 1);
            say(engine, stored(names, parent, prompts[prompt]!.slice(from * 4, to * 4), 4));
            for (const name of names) held.add(name);
          }
        }
        for (const [prompt, tokens] of prompts.entries()) {
          let contiguous = 0;
          while (contiguous < 6 && held.has(nameOf(prompt, contiguous))) contiguous++;
          expect(matched(tokens)[0]).toBe(contiguous);
        }
        expect(engine.size).toBe(held.size);
      }),
      { numRuns: 60 },
    );
  });
});
