import { describe, expect, it } from 'vitest';
import { chain, check, insert, match, openPool as open, put, run, stress as scale } from './index-pool.ts';
import { Lot, PrefixOracle, PromptFamily } from './prefix-oracle.ts';

describe('prefix index', () => {
  it('the prefix index matches the blocks that an endpoint holds from the first one on', () => {
    const { index, core } = open();
    insert(index, 3, chain(...run(0, 200)));
    expect(match(index, chain(...run(0, 300)))[3]).toBe(200);
    expect(match(index, chain(...run(0, 150)))[3]).toBe(150);
    expect(match(index, chain(...run(0, 70), 999, ...run(71, 100)))[3]).toBe(70);
    expect(match(index, chain(5, 6))[3]).toBe(0);
    expect(check(core)).toBe(0);
  });

  it('the prefix index stores a chain once however many endpoints hold it', () => {
    const { index, core } = open({ endpoints: 512 });
    for (let slot = 0; slot < 512; slot++) insert(index, slot, chain(...run(0, 130)));
    expect(index.counters()).toMatchObject({ blocks: 130, segments: 3, memberships: 512 * 130, sets: 1 });
    expect(match(index, chain(...run(0, 130)))).toEqual(new Array(512).fill(130));
    expect(check(core)).toBe(0);
  });

  it('the prefix index stops an endpoint at a hole and not behind it', () => {
    const { index } = open();
    const hashes = chain(...run(0, 100));
    insert(index, 1, hashes);
    insert(index, 2, hashes);
    put(index, [hashes[40]!]);
    expect(index.remove(1, 1, 'evicted-told')).toBe(1);
    expect(match(index, hashes).slice(1, 3)).toEqual([40, 100]);
    put(index, [hashes[40]!]);
    expect(index.store(1, hashes[39], 1)).toBe(1);
    expect(match(index, hashes).slice(1, 3)).toEqual([100, 100]);
  });

  it('the prefix index does not keep blocks after an unknown parent', () => {
    const { index } = open();
    const hashes = chain(...run(0, 10));
    put(index, hashes.slice(5));
    expect(index.store(1, hashes[4], 5)).toBe(0);
    expect(index.counters()).toMatchObject({ orphans: 5, blocks: 0 });
  });

  it('the prefix index forgets an endpoint and gives its room back', () => {
    const { index, core } = open();
    insert(index, 1, chain(...run(0, 500)));
    insert(index, 2, chain(...run(0, 320), ...run(900, 20)));
    expect(index.removeEndpoint(1)).toBe(500);
    expect(index.counters()).toMatchObject({ blocks: 340, memberships: 340 });
    expect(match(index, chain(...run(0, 500))).slice(1, 3)).toEqual([0, 320]);
    expect(index.removeEndpoint(2)).toBe(340);
    expect(index.counters()).toMatchObject({ blocks: 0, segments: 0, sets: 0, memberships: 0 });
    expect(check(core)).toBe(0);
  });

  it('the prefix index evicts the blocks that an endpoint beyond its capacity was longest not sent, ends of chains first', () => {
    const { index, core } = open();
    index.setCapacity(1, 100);
    const [a, b, c] = [chain(...run(0, 40)), chain(...run(1000, 40)), chain(...run(2000, 40))];
    insert(index, 1, a);
    insert(index, 1, b);
    insert(index, 1, a);
    insert(index, 1, c);
    expect(match(index, a)[1]).toBe(40);
    expect(match(index, b)[1]).toBe(20);
    expect(match(index, c)[1]).toBe(40);
    expect(index.held(1)).toBe(100);
    expect(check(core)).toBe(0);
  });

  it('the prefix index keeps the first blocks of a chain that is longer than the capacity', () => {
    const { index } = open();
    index.setCapacity(1, 100);
    expect(insert(index, 1, chain(...run(0, 250)))).toBe(100);
    expect(match(index, chain(...run(0, 250)))[1]).toBe(100);
  });

  it('the prefix index shrinks an endpoint to a smaller capacity at once', () => {
    const { index, core } = open();
    insert(index, 1, chain(...run(0, 250)));
    index.setCapacity(1, 70);
    expect(match(index, chain(...run(0, 250)))[1]).toBe(70);
    expect(check(core)).toBe(0);
  });

  it('the prefix index evicts the least recently used chain when the index is full', () => {
    const { index, core } = open({ indexBlocks: 1000 });
    for (let i = 0; i < 10; i++) insert(index, i, chain(...run(i * 1000, 100)));
    match(index, chain(...run(0, 100)));
    insert(index, 20, chain(...run(50_000, 100)));
    expect(match(index, chain(...run(0, 100)))[0]).toBe(100);
    expect(match(index, chain(...run(1000, 100)))[1]).toBe(0);
    expect(match(index, chain(...run(50_000, 100)))[20]).toBe(100);
    expect(index.counters().blocks).toBe(1000);
    expect(check(core)).toBe(0);
  });

  it('the prefix index stores what fits of a chain that is longer than the index', () => {
    const { index, core } = open({ indexBlocks: 300 });
    expect(insert(index, 1, chain(...run(0, 1000)))).toBe(300);
    expect(match(index, chain(...run(0, 1000)))[1]).toBe(300);
    expect(check(core)).toBe(0);
  });

  it('the prefix index keeps to its bound of segments when every chain is one block', () => {
    const { index, core } = open({ indexBlocks: 10_000 });
    for (let i = 0; i < 2000; i++) insert(index, i % 64, chain(i));
    expect(index.counters().segments).toBeLessThanOrEqual(10_000 / 48 + 128);
    expect(match(index, chain(1999))[1999 % 64]).toBe(1);
    expect(check(core)).toBe(0);
  });

  it('the prefix index frees segments for many insertions in one pass when short chains have used them up', () => {
    const { index, core } = open();
    const segments = Math.trunc(20_000 / 48) + 128;
    for (let i = 0; i < segments; i++) insert(index, i % 64, chain(i));
    expect(index.counters()).toMatchObject({ segments, evicted: 0 });
    insert(index, 0, chain(5_000));
    const freed = Math.trunc(segments / 64);
    expect(index.counters()).toMatchObject({ segments: segments - freed, evicted: freed + 1 });
    for (let i = 0; i < freed; i++) insert(index, 0, chain(6_000 + i));
    expect(index.counters()).toMatchObject({ segments, evicted: freed + 1 });
    expect(match(index, chain(freed))[freed % 64]).toBe(0);
    expect(match(index, chain(freed + 1))[(freed + 1) % 64]).toBe(1);
    expect(check(core)).toBe(0);
  });

  it('the prefix index keeps to its bound of holder sets, and never says more than is true', () => {
    const { index, core } = open({ indexBlocks: 4000 });
    const lot = new Lot(5);
    const chains = Array.from({ length: 60 }, (_, i) => chain(...run(i * 1000, 64)));
    const oracle = new PrefixOracle();
    let evictions = 0;
    for (let i = 0; i < 6000; i++) {
      const hashes = chains[lot.below(chains.length)]!.slice(0, 1 + lot.below(64));
      const slot = lot.below(64);
      const { evicted } = index.counters();
      insert(index, slot, hashes);
      if (index.counters().evicted > evicted) evictions++;
      oracle.insert(slot, hashes);
    }
    // One pass frees sets for many changes.
    expect(evictions).toBeLessThan(25);
    expect(index.counters().sets).toBeLessThan(1024);
    for (const hashes of chains) {
      const truth = oracle.match(hashes, 64);
      for (const [slot, matched] of match(index, hashes).entries()) expect(matched).toBeLessThanOrEqual(truth[slot]!);
    }
    expect(check(core)).toBe(0);
  });

  it('the prefix index refuses more hashes than the longest chain, and a slot that does not exist', () => {
    const { index } = open();
    expect(() => put(index, chain(...run(0, 1025)))).toThrow('1025 blocks do not fit: chainBlocks is 1024');
    expect(() => index.insert(64, 1)).toThrow('slot 64 is out of range: the pool has 64 endpoint slots');
  });
});

/** One random history on the index and on the oracle; every lookup is compared for all slots. */
function history(seed: number, steps: number, endpoints: number, longest: number): void {
  const { index, core } = open({ endpoints, chainBlocks: longest, indexBlocks: 60_000 });
  const oracle = new PrefixOracle();
  const lot = new Lot(seed);
  const family = new PromptFamily(lot, longest);
  for (let i = 0; i < steps; i++) {
    const hashes = family.chain();
    const slot = lot.below(lot.below(2) === 0 ? 4 : endpoints);
    const kind = lot.below(20);
    if (kind < 6) {
      const fresh = insert(index, slot, hashes);
      const before = oracle.held(slot);
      oracle.insert(slot, hashes);
      expect(fresh, `seed ${seed} step ${i}`).toBe(oracle.held(slot) - before);
    } else if (kind < 11) {
      const from = lot.below(hashes.length);
      const part = hashes.slice(from, from + 1 + lot.below(32));
      const parent = from === 0 ? undefined : hashes[from - 1];
      if (parent !== undefined && !oracle.knows(parent)) continue;
      put(index, part);
      index.store(slot, parent, part.length);
      oracle.store(slot, parent, part);
    } else if (kind < 16) {
      const held = oracle.heldHashes(slot);
      const from = lot.below(held.length + 1);
      let gone = held.slice(from, from + 1 + lot.below(lot.below(8) === 0 ? 64 : 6));
      if (lot.below(3) === 0) gone = gone.reverse();
      if (lot.below(4) === 0) gone.push(lot.next64());
      put(index, gone.slice(0, longest));
      index.remove(slot, Math.min(longest, gone.length), 'evicted-told');
      oracle.remove(slot, gone.slice(0, longest));
    } else if (kind === 16 && lot.below(6) === 0) {
      index.removeEndpoint(slot);
      oracle.removeEndpoint(slot);
    }
    if (lot.below(2) === 0) {
      const query = family.chain();
      expect(match(index, query), `seed ${seed} step ${i}`).toEqual(oracle.match(query, endpoints));
    }
    if (i % 50 === 0) expect(check(core), `seed ${seed} step ${i}`).toBe(0);
  }
  expect(check(core)).toBe(0);
  expect(index.counters().blocks).toBeGreaterThanOrEqual(oracle.blocks);
  for (let slot = 0; slot < endpoints; slot++) expect(index.removeEndpoint(slot)).toBe(oracle.held(slot));
  expect(index.counters()).toMatchObject({ blocks: 0, segments: 0, sets: 0, memberships: 0, dropped: 0 });
}

describe('prefix index against the oracle', () => {
  for (let seed = 1; seed <= 12 * scale; seed++) {
    it(`the prefix index against the oracle answers every lookup exactly over a random history (seed ${seed})`, () => {
      history(seed, 600, seed % 3 === 0 ? 128 : 64, [20, 150, 400][seed % 3]!);
    });
  }
});

/** With short hashes different chains collide; the index may then know less than the oracle, but never more. */
function collidingHistory(seed: number, bits: number): void {
  const { index, core } = open({ indexBlocks: 60_000 });
  core.call.prefixVerify(1);
  const oracle = new PrefixOracle();
  const lot = new Lot(seed);
  const family = new PromptFamily(lot, 100, (1n << BigInt(bits)) - 1n);
  for (let i = 0; i < 400; i++) {
    const hashes = family.chain();
    const slot = lot.below(8);
    insert(index, slot, hashes);
    oracle.insert(slot, hashes);
    if (lot.below(10) === 0) {
      index.removeEndpoint(slot);
      oracle.removeEndpoint(slot);
    }
    const query = family.chain();
    const truth = oracle.match(query, 64);
    for (const [at, matched] of match(index, query).entries()) {
      expect(matched, `seed ${seed} step ${i} slot ${at}`).toBeLessThanOrEqual(truth[at]!);
    }
    if (i % 50 === 0) expect(check(core), `seed ${seed} step ${i}`).toBe(0);
  }
  expect(index.counters().conflicts).toBeGreaterThan(0);
}

describe('prefix index with colliding hashes', () => {
  for (let seed = 1; seed <= 4 * scale; seed++) {
    for (const bits of [4, 8, 12]) {
      it(`the prefix index with colliding hashes never says more than is true with hashes of ${bits} bits (seed ${seed})`, () =>
        collidingHistory(seed, bits));
    }
  }
});
