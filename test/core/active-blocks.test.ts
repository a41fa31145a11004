import { describe, expect, it } from 'vitest';
import { chain, check, insert, match, openPool, put, run, stress } from './index-pool.ts';
import { Lot, PromptFamily } from './prefix-oracle.ts';

function open(sizes = {}) {
  const { pool, core, index } = openPool(sizes);
  const add = (slot: number, hashes: readonly bigint[]) => {
    put(index, hashes);
    return core.call.activeAdd(slot, hashes.length) >>> 0;
  };
  const remove = (slot: number, handle: number, blocks: number) => core.call.activeRemove(slot, handle, blocks);
  const active = (slot: number) => core.call.activeOf(slot) >>> 0;
  const overlap = (slot: number, hashes: readonly bigint[]) => {
    put(index, hashes);
    return core.call.activeOverlap(slot, hashes.length) >>> 0;
  };
  return { pool, core, index, add, remove, active, overlap };
}

describe('active blocks', () => {
  it('the table of active blocks counts a block once however many requests use it', () => {
    const { add, remove, active, core, index } = open();
    const handles = run(0, 5).map(() => add(1, chain(...run(0, 150))));
    expect(active(1)).toBe(150);
    const longer = add(1, chain(...run(0, 170)));
    expect(active(1)).toBe(170);
    for (const handle of handles) remove(1, handle, 150);
    expect(active(1)).toBe(170);
    remove(1, longer, 170);
    expect(active(1)).toBe(0);
    expect(index.counters()).toMatchObject({ activeEntries: 0, blocks: 0 });
    expect(check(core)).toBe(0);
  });

  it('the table of active blocks shrinks to the longest request that is left', () => {
    const { add, remove, active } = open();
    const long = add(1, chain(...run(0, 200)));
    add(1, chain(...run(0, 70)));
    remove(1, long, 200);
    expect(active(1)).toBe(70);
  });

  it('the table of active blocks counts each endpoint for itself', () => {
    const { add, active } = open();
    add(1, chain(...run(0, 100)));
    add(2, chain(...run(0, 40), 7, 8));
    expect([active(0), active(1), active(2)]).toEqual([0, 100, 42]);
  });

  it('the table of active blocks says how much of a prompt is active already', () => {
    const { add, overlap } = open();
    add(1, chain(...run(0, 130)));
    expect(overlap(1, chain(...run(0, 300)))).toBe(130);
    expect(overlap(1, chain(...run(0, 100), 5))).toBe(100);
    expect(overlap(1, chain(9))).toBe(0);
    expect(overlap(2, chain(...run(0, 300)))).toBe(0);
  });

  it('the table of active blocks keeps more different ends in one segment than an entry has room for', () => {
    const { add, remove, active, core } = open();
    const handles = run(1, 60).map((end) => add(1, chain(...run(0, end))));
    expect(active(1)).toBe(60);
    expect(check(core)).toBe(0);
    for (let end = 60; end >= 1; end--) {
      expect(active(1)).toBe(end);
      remove(1, handles[end - 1]!, end);
    }
    expect(active(1)).toBe(0);
    expect(check(core)).toBe(0);
  });

  it('the index does not evict what a live request uses', () => {
    const { add, index, overlap, core } = open({ indexBlocks: 500 });
    const live = chain(...run(0, 200));
    const handle = add(1, live);
    for (let i = 1; i < 20; i++) insert(index, 2, chain(...run(i * 1000, 100)));
    expect(overlap(1, live)).toBe(200);
    expect(check(core)).toBe(0);
    core.call.activeRemove(1, handle, 200);
    for (let i = 20; i < 40; i++) insert(index, 2, chain(...run(i * 1000, 100)));
    insert(index, 3, live);
    expect(match(index, live)[3]).toBe(200);
    expect(check(core)).toBe(0);
  });

  it('the index does not account a request when its table is full, and counts that', () => {
    const { add, remove, active, core, index } = open({ requests: 1, chainBlocks: 64, indexBlocks: 20_000 });
    const handles = run(0, 400).map((i) => add(i % 64, chain(i)));
    const refused = handles.filter((handle) => handle === 0).length;
    expect(refused).toBeGreaterThan(0);
    expect(index.counters().activeRefused).toBe(refused);
    expect(run(0, 64).reduce((sum, slot) => sum + active(slot), 0)).toBe(400 - refused);
    for (const [i, handle] of handles.entries()) remove(i % 64, handle, 1);
    expect(index.counters()).toMatchObject({ activeEntries: 0, blocks: 0 });
    expect(check(core)).toBe(0);
  });

  it('the index does not account a request whose blocks do not fit, and leaves nothing of it behind', () => {
    const { add, active, index, core } = open({ indexBlocks: 100 });
    const live = add(1, chain(...run(0, 80)));
    expect(add(1, chain(...run(500, 60)))).toBe(0);
    expect(live).not.toBe(0);
    expect(active(1)).toBe(80);
    expect(index.counters().blocks).toBe(80);
    expect(check(core)).toBe(0);
  });

  it('the table of active blocks leaves the prefix matches alone: what is active is not yet held', () => {
    const { add, index } = open();
    add(1, chain(...run(0, 80)));
    expect(match(index, chain(...run(0, 80)))[1]).toBe(0);
  });

  it('the table of active blocks ignores a handle that is none', () => {
    const { add, remove, active } = open();
    add(1, chain(...run(0, 80)));
    remove(1, 0, 80);
    remove(1, 4_000_000, 80);
    expect(active(1)).toBe(80);
  });
});

interface Live {
  readonly slot: number;
  readonly handle: number;
  readonly hashes: readonly bigint[];
}

/** Random requests come and go between insertions and evictions; the sum of charges is the sum of live requests. */
function history(seed: number, indexBlocks: number): void {
  const { add, remove, active, overlap, index, core } = open({ indexBlocks, requests: 256 });
  const lot = new Lot(seed);
  const family = new PromptFamily(lot, 200);
  const live: Live[] = [];
  const unique = (slot: number) =>
    new Set(live.filter((request) => request.slot === slot).flatMap((request) => request.hashes));
  for (let i = 0; i < 500; i++) {
    const slot = lot.below(6);
    const hashes = family.chain();
    const kind = lot.below(10);
    if (kind < 4 && live.length < 60) {
      const handle = add(slot, hashes);
      if (handle !== 0) live.push({ slot, handle, hashes });
    } else if (kind < 7 && live.length > 0) {
      const [gone] = live.splice(lot.below(live.length), 1);
      remove(gone!.slot, gone!.handle, gone!.hashes.length);
    } else if (kind < 9) {
      insert(index, lot.below(64), hashes);
    } else if (lot.below(10) === 0) {
      index.removeEndpoint(slot);
    }
    const used = unique(slot);
    expect(active(slot), `seed ${seed} step ${i}`).toBe(used.size);
    const query = family.chain();
    const end = query.findIndex((hash) => !used.has(hash));
    expect(overlap(slot, query), `seed ${seed} step ${i}`).toBe(end < 0 ? query.length : end);
    if (i % 25 === 0) expect(check(core), `seed ${seed} step ${i}`).toBe(0);
  }
  for (const request of live.splice(0)) remove(request.slot, request.handle, request.hashes.length);
  expect(run(0, 6).map(active)).toEqual([0, 0, 0, 0, 0, 0]);
  expect(index.counters().activeEntries).toBe(0);
  expect(check(core)).toBe(0);
}

describe('active blocks against a multiset of hashes', () => {
  for (let seed = 1; seed <= 6 * stress; seed++) {
    it(`the table of active blocks charges exactly the blocks of live requests (seed ${seed})`, () =>
      history(seed, 60_000));
    it(`the table of active blocks charges exactly the blocks of live requests while the index evicts (seed ${seed})`, () =>
      history(seed, 3000));
  }
});
