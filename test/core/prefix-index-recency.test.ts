import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chain, check, insert, match, openPool, put, run } from './index-pool.ts';
import { RecencyTwin } from './recency-twin.ts';

const pieceBlocks = 64;
const capacity = 300;
const slots = 3;

/** Contents of the blocks of a chain of pieces. */
function contents(names: readonly number[], blocks: number): number[] {
  return names.flatMap((name) => run(name * 1000, pieceBlocks)).slice(0, blocks);
}

describe('recency of what an endpoint holds', () => {
  it('recency of what an endpoint holds is not renewed by a lookup', () => {
    const { index, core } = openPool();
    index.setCapacity(1, 100);
    const [first, second, third] = [chain(...run(0, 40)), chain(...run(1000, 40)), chain(...run(2000, 40))];
    insert(index, 1, first);
    insert(index, 1, second);
    match(index, first);
    insert(index, 1, third);
    expect([first, second, third].map((hashes) => match(index, hashes)[1])).toEqual([20, 40, 40]);
    expect(check(core)).toBe(0);
  });

  it('recency of what an endpoint holds is not renewed by an insertion at another endpoint', () => {
    const { index, core } = openPool();
    index.setCapacity(1, 100);
    const [first, second, third] = [chain(...run(0, 40)), chain(...run(1000, 40)), chain(...run(2000, 40))];
    insert(index, 1, first);
    insert(index, 1, second);
    insert(index, 2, first);
    insert(index, 1, third);
    expect([first, second, third].map((hashes) => match(index, hashes)[1])).toEqual([20, 40, 40]);
    expect(match(index, first)[2]).toBe(40);
    expect(check(core)).toBe(0);
  });

  it('recency of what an endpoint holds is renewed when the endpoint is sent what it holds already', () => {
    const { index } = openPool();
    index.setCapacity(1, 100);
    const [first, second, third] = [chain(...run(0, 40)), chain(...run(1000, 40)), chain(...run(2000, 40))];
    insert(index, 1, first);
    insert(index, 1, second);
    expect(insert(index, 1, first)).toBe(0);
    insert(index, 1, third);
    expect([first, second, third].map((hashes) => match(index, hashes)[1])).toEqual([40, 20, 40]);
  });

  it('recency of what an endpoint holds is renewed by an event of the engine for all blocks above those stored', () => {
    const { index, core } = openPool();
    index.setCapacity(1, 250);
    const long = chain(...run(0, 140));
    const other = chain(...run(5000, 100));
    insert(index, 1, long.slice(0, 128));
    insert(index, 1, other);
    match(index, other);
    put(index, long.slice(128));
    expect(index.store(1, long[127], 12)).toBe(12);
    put(index, chain(...run(9000, 40)));
    index.store(1, undefined, 40);
    expect(match(index, long)[1]).toBe(140);
    expect(match(index, other)[1]).toBe(70);
    expect(check(core)).toBe(0);
  });

  it('recency of what an endpoint holds frees the room of chains that are evicted whole', () => {
    const { index, core } = openPool();
    index.setCapacity(1, 100);
    for (let i = 0; i < 3; i++) insert(index, 1, chain(...run(i * 1000, 40)));
    insert(index, 1, chain(...run(9000, 100)));
    expect(index.counters()).toMatchObject({ blocks: 100, memberships: 100 });
    expect(check(core)).toBe(0);
  });

  it('recency of what an endpoint holds orders what an endpoint holds as a plain model of its cache does', () => {
    const name = fc.integer({ min: 1, max: 6 });
    const sent = fc.record({
      slot: fc.integer({ min: 0, max: slots - 1 }),
      names: fc.array(name, { minLength: 1, maxLength: 4 }),
      cut: fc.integer({ min: 0, max: pieceBlocks - 1 }),
      lookup: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(sent, { minLength: 10, maxLength: 80 }), (history) => {
        const { index, core } = openPool();
        const twin = new RecencyTwin(capacity, pieceBlocks);
        for (let slot = 0; slot < slots; slot++) index.setCapacity(slot, capacity);
        for (const { slot, names, cut, lookup } of history) {
          const blocks = names.length * pieceBlocks - cut;
          const hashes = chain(...contents(names, blocks));
          if (lookup) match(index, hashes);
          else {
            insert(index, slot, hashes);
            twin.send(slot, names, blocks);
          }
          const expected = run(0, slots).map((at) => twin.match(at, names, blocks));
          expect(match(index, hashes).slice(0, slots)).toEqual(expected);
          expect(run(0, slots).map((at) => index.held(at))).toEqual(run(0, slots).map((at) => twin.total(at)));
        }
        expect(check(core)).toBe(0);
      }),
      { numRuns: 60 },
    );
  });

  it('recency of what an endpoint holds orders more segments than one pass over them finds, while some are sent again', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 799 }), { minLength: 200, maxLength: 300 }), (again) => {
        const { index, core } = openPool();
        const bound = 3_000;
        index.setCapacity(0, bound);
        const twin = new RecencyTwin(bound, pieceBlocks);
        const send = (name: number) => {
          const blocks = 4 + (name % 7);
          insert(index, 0, chain(...contents([name], blocks)));
          twin.send(0, [name], blocks);
        };
        for (const name of run(0, 600)) send(name);
        again.forEach((name, i) => {
          send(name);
          send(1_000 + i);
        });
        const names = [...run(0, 800), ...run(1_000, again.length)];
        expect(names.map((name) => match(index, chain(...contents([name], 4 + (name % 7))))[0])).toEqual(
          names.map((name) => twin.match(0, [name], 4 + (name % 7))),
        );
        expect(check(core)).toBe(0);
      }),
      { numRuns: 10 },
    );
  });
});
