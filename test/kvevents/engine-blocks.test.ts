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

  it('the blocks of an engine stay on a medium while one of its tiers there has them', () => {
    const { blocks, matched } = eventPool();
    const engine = blocks();
    const named = { block_hashes: [1, 2], medium: 'STORAGE' };
    const store = (ownership?: string) => ({
      ...named,
      ...{ type: 'BlockStored', token_ids: run(0, 8), block_size: 4, ownership },
    });
    const remove = (ownership?: string, ...hashes: number[]) => ({
      ...{ ...named, type: 'BlockRemoved', ownership },
      ...(hashes.length === 0 ? {} : { block_hashes: hashes }),
    });
    say(engine, store('files'), store('bucket'), remove('files'));
    expect(matched(run(0, 8))).toEqual([2, 0]);
    say(engine, remove('files'), remove('bucket', 2));
    expect(matched(run(0, 8))).toEqual([1, 0]);
    say(engine, store('files'), remove('bucket'), remove('bucket'));
    expect(matched(run(0, 8))).toEqual([2, 0]);
    say(engine, remove('files', 2), store('bucket'), remove());
    expect(matched(run(0, 8))).toEqual([0, 0]);
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

  it.each([
    [1, [3, 2, 1]],
    [3, [3, 2, 0]],
    [6, [3, 1, 0]],
    [10, [2, 0, 0]],
  ])('the blocks of an engine of %i tokens are used by their own size, in whole blocks of four', (size, expected) => {
    const { blocks, matched, dropped } = eventPool(4);
    const engine = blocks();
    const count = Math.floor(15 / size);
    for (let i = 0; i < count; i++) say(engine, stored([i + 1], i === 0 ? null : i, run(i * size, size), size));
    const seen = [matched(run(0, 15))[0]];
    const third = Math.ceil(count / 3);
    say(engine, removed(run(count + 1 - third, third).reverse()));
    seen.push(matched(run(0, 15))[0]);
    say(engine, removed(run(count + 1 - 2 * third, third).reverse()));
    seen.push(matched(run(0, 15))[0]);
    expect(seen).toEqual(expected);
    expect(dropped()).toEqual({});
  });

  it('the blocks of an engine of several sizes are used side by side, up to four', () => {
    const { blocks, matched, dropped } = eventPool(4);
    const engine = blocks();
    for (const [i, size] of [4, 8, 3, 6].entries()) {
      say(engine, stored([100 * (i + 1)], null, run(1_000 * i, size), size));
    }
    say(engine, stored([900], null, run(9_000, 5), 5), stored([101], 100, run(4, 3), 3));
    expect([0, 1, 2, 3].map((i) => matched(run(1_000 * i, 8))[0])).toEqual([1, 2, 0, 1]);
    expect(dropped()).toEqual({ 'block size': 1 });
    expect(engine.size).toBe(5);
  });

  it('the blocks of an engine that end inside blocks of the index carry images into the next one', () => {
    const { blocks, matched } = eventPool(4);
    const engine = blocks();
    say(engine, stored([1], null, run(0, 6), 6, null, 'GPU', null, [[['cat', 4]]]), stored([2], 1, run(6, 6), 6));
    expect(matched(run(0, 12))).toEqual([0, 0]);
    expect(matched(run(0, 12), 'm', undefined, [{ identifier: 'cat', offset: 0, length: 6 }])).toEqual([3, 0]);
  });

  it('the blocks of an engine are held while they lie anywhere', () => {
    const { blocks, matched } = eventPool();
    const engine = blocks();
    say(engine, stored([1], null, run(0, 4), 4, null, 'GPU'), stored([1], null, [], 4, null, 'CPU'));
    say(engine, removed([1], 'GPU'));
    expect(matched(run(0, 4))).toEqual([1, 0]);
    say(engine, removed([1], 'CPU'));
    expect(matched(run(0, 4))).toEqual([0, 0]);
  });

  it('the blocks of an engine count by the nearest of the tiers on which they lie', () => {
    const { blocks, index, worth, matched } = eventPool();
    index.setPrices({ host: 0.5, disk: 0.75, remote: 1 });
    const engine = blocks();
    const seen: number[] = [];
    const look = () => seen.push(worth(run(0, 16)));
    say(engine, stored(run(1, 4), null, run(0, 16), 4));
    say(engine, stored(run(1, 4), null, [], 4, null, 'CPU'), stored([4], null, [], 4, null, 'DISK'));
    look();
    say(engine, removed([3, 4], 'GPU'));
    look();
    say(engine, removed([4], 'CPU'));
    look();
    say(engine, stored([4], 3, run(12, 4), 4));
    look();
    say(engine, stored([3], 2, run(8, 4), 4, null, 'REMOTE'));
    look();
    expect(seen).toEqual([4, 3, 2, 3, 3]);
    expect(matched(run(0, 16))).toEqual([4, 0]);
    expect(Object.fromEntries(engine.placed)).toEqual({ gpu: 3, host: 3, disk: 1, remote: 1 });
  });

  it('the blocks of an engine below the GPU are there again when what was sent is not confirmed', () => {
    const { blocks, chain, index, worth } = eventPool();
    index.setPrices({ host: 0.5, disk: 0.75, remote: 1 });
    const engine = blocks();
    say(engine, stored([1, 2], null, run(0, 8), 4, null, 'CPU'));
    chain.chain({ ids: Uint32Array.from(run(0, 8)), features: [] }, 'm', undefined, 4);
    const hashes = chain.hashes(0, 2);
    index.insert(0, 2);
    expect(worth(run(0, 8))).toBe(2);
    expect(engine.dropUnconfirmed(hashes)).toBe(0);
    expect(worth(run(0, 8))).toBe(1);
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

  it('the blocks of an engine lie where those of a plain model do, whatever moves between the tiers', () => {
    const mediums = ['GPU', 'CPU', 'DISK', 'EXTERNAL'] as const;
    const shares = [1, 0.5, 0.25, 0];
    const event = fc.record({
      kind: fc.constantFrom('store', 'copy', 'remove'),
      medium: fc.nat(3),
      from: fc.nat(7),
      count: fc.integer({ min: 1, max: 8 }),
      name: fc.constantFrom(0, 100),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), fc.constantFrom(4, 8), (events, size) => {
        const { blocks, index, worth } = eventPool();
        index.setPrices({ host: 0.5, disk: 0.75, remote: 1 });
        const engine = blocks();
        // By the engine's name of a block: the mediums on which it lies. Each content has two names.
        const lies = new Map<number, Set<number>>();
        for (const { kind, medium, from, count, name } of events) {
          const names = run(from, Math.min(8, from + count) - from).map((block) => name + block + 1);
          const parent = from === 0 ? null : name + from;
          if (kind === 'remove') {
            say(engine, removed(names, mediums[medium]));
            for (const each of names) {
              lies.get(each)?.delete(medium);
              if (lies.get(each)?.size === 0) lies.delete(each);
            }
          } else if (kind === 'copy') {
            say(engine, stored(names, parent, [], size, null, mediums[medium]));
            for (const each of names) lies.get(each)?.add(medium);
          } else if (parent === null || lies.has(parent)) {
            const tokens = run(from * size, names.length * size);
            say(engine, stored(names, parent, tokens, size, null, mediums[medium]));
            for (const each of names) lies.set(each, (lies.get(each) ?? new Set()).add(medium));
          }
        }
        let expected = 0;
        for (let block = 1; block <= 8; block++) {
          const on = [...(lies.get(block) ?? []), ...(lies.get(block + 100) ?? [])];
          if (on.length === 0) break;
          expected += (size / 4) * shares[Math.min(...on)]!;
        }
        expect(worth(run(0, 8 * size))).toBe(Math.floor(expected));
        expect(engine.size).toBe(lies.size);
      }),
      { numRuns: 100 },
    );
  });

  it('the blocks of an engine of any size hold what a plain model holds while ends of chains leave first', () => {
    const event = fc.record({ prompt: fc.nat(2), length: fc.nat(60) });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), fc.integer({ min: 1, max: 11 }), (events, size) => {
        const { blocks, matched, dropped } = eventPool(4);
        const engine = blocks();
        const prompts = [run(0, 60), [...run(0, 25), ...run(500, 35)], run(900, 60)];
        const shared = Math.floor(25 / size);
        const nameOf = (prompt: number, block: number) =>
          prompt === 2 ? 2_000 + block : block < shared ? block + 1 : prompt * 1_000 + block + 1;
        const held = [0, 0, 0];
        for (const { prompt, length } of events) {
          const wanted = Math.min(length, Math.floor(60 / size));
          const [from, to] = [held[prompt]!, wanted];
          const names = (a: number, b: number) => run(a, b - a).map((block) => nameOf(prompt, block));
          if (to > from) {
            const parent = from === 0 ? null : nameOf(prompt, from - 1);
            say(engine, stored(names(from, to), parent, prompts[prompt]!.slice(from * size, to * size), size));
          } else {
            const other = prompt === 2 ? 0 : Math.min(shared, held[1 - prompt]!);
            say(engine, removed(names(Math.max(to, other), from).reverse()));
            if (other > to) {
              held[prompt] = Math.min(from, other);
              continue;
            }
          }
          held[prompt] = to;
          for (const each of [0, 1]) {
            if (prompt < 2) held[each] = Math.max(held[each]!, Math.min(shared, held[prompt]!));
          }
        }
        for (const [prompt, tokens] of prompts.entries()) {
          // Blocks of the index are content: those of the other prompt count as far as both are the same.
          const other = prompt === 2 ? 0 : Math.min(25, held[1 - prompt]! * size);
          expect(matched(tokens)[0]).toBe(Math.floor(Math.max(held[prompt]! * size, other) / 4));
        }
        expect(dropped()).toEqual({});
      }),
      { numRuns: 100 },
    );
  });
});
