import { describe, expect, it } from 'vitest';
import type { BlockPlace, TierPrices } from '../../dist/src/contract/block-place.js';
import { CORE } from '../../dist/src/core/core-names.js';
import { type ExportedSegment, IndexExport } from '../../dist/src/core/index-export.js';
import { IndexLog } from '../../dist/src/core/index-log.js';
import { BLOCK_PLACES, PrefixIndex } from '../../dist/src/core/prefix-index.js';
import { importSegments } from '../../dist/src/replication/index-transfer.js';
import { decodeSegments, encodeSegments } from '../../dist/src/replication/segment-records.js';
import { chain, check, insert, match, openPool, put, run, stress } from './index-pool.ts';
import { makePool, pickMax, plainRequest, scorer } from './pool.js';
import { Lot, PrefixOracle, PromptFamily } from './prefix-oracle.ts';

const PRICES: TierPrices = { host: 0.25, disk: 0.5, remote: 0.75 };
const PLACES = Object.keys(BLOCK_PLACES) as readonly BlockPlace[];

function openTiers(sizes: Parameters<typeof openPool>[0] = {}) {
  const pool = openPool(sizes);
  pool.index.setPrices(PRICES);
  return pool;
}

function worth(index: PrefixIndex, hashes: readonly bigint[]): number[] {
  put(index, hashes);
  return [...index.worth(hashes.length)];
}

function move(index: PrefixIndex, slot: number, hashes: readonly bigint[], place: BlockPlace): void {
  put(index, hashes);
  index.move(slot, hashes.length, place);
}

function store(index: PrefixIndex, slot: number, hashes: readonly bigint[], place: BlockPlace): number {
  put(index, hashes);
  return index.store(slot, undefined, hashes.length, place);
}

/** Blocks on the GPU that save as much as blocks at these places. */
function worthOf({ gpu, host, disk, remote }: Record<BlockPlace, number>): number {
  return Math.floor(gpu + host * (1 - PRICES.host) + disk * (1 - PRICES.disk) + remote * (1 - PRICES.remote) + 1e-6);
}

describe('tiers of the prefix index', () => {
  it('tiers of the prefix index count a block by what loading it saves, in whole blocks', () => {
    const { index, core } = openTiers();
    const prompt = chain(...run(0, 200));
    insert(index, 1, prompt);
    move(index, 1, prompt.slice(100, 150), 'host');
    move(index, 1, prompt.slice(150, 155), 'disk');
    expect(match(index, prompt)[1]).toBe(200);
    expect([index.matchedBelow(1, 'host'), index.matchedBelow(1, 'disk'), index.matchedBelow(1, 'remote')]).toEqual([
      50, 5, 0,
    ]);
    expect(worth(index, prompt)[1]).toBe(185);
    expect(worth(index, prompt.slice(0, 120))[1]).toBe(115);
    expect(check(core)).toBe(0);
  });

  it('tiers of the prefix index leave out what lies behind a hole, wherever it lies', () => {
    const { index } = openTiers();
    const prompt = chain(...run(0, 100));
    store(index, 1, prompt, 'host');
    put(index, [prompt[40]!]);
    index.remove(1, 1, 'evicted-told');
    expect(worth(index, prompt)[1]).toBe(30);
    expect(index.matchedBelow(1, 'host')).toBe(40);
  });

  it('tiers of the prefix index move only blocks that the endpoint holds', () => {
    const { index, core } = openTiers();
    const prompt = chain(...run(0, 50));
    insert(index, 1, prompt);
    move(index, 2, prompt, 'host');
    expect([index.held(1), index.held(2)]).toEqual([50, 0]);
    expect(worth(index, prompt).slice(1, 3)).toEqual([50, 0]);
    expect(check(core)).toBe(0);
  });

  it('tiers of the prefix index give a block back its full worth when it comes to the GPU again', () => {
    const { index, core } = openTiers();
    const prompt = chain(...run(0, 50));
    expect(store(index, 1, prompt, 'remote')).toBe(50);
    expect(worth(index, prompt)[1]).toBe(12);
    expect(insert(index, 1, prompt)).toBe(0);
    expect(worth(index, prompt)[1]).toBe(50);
    expect(index.counters()).toMatchObject({ sets: 1, memberships: 50 });
    expect(check(core)).toBe(0);
  });

  it('tiers of the prefix index count in full without prices', () => {
    const { index } = openPool();
    const prompt = chain(...run(0, 50));
    store(index, 1, prompt, 'remote');
    expect(worth(index, prompt)[1]).toBe(50);
    expect(() => index.setPrices({ ...PRICES, disk: 1.5 })).toThrow('the price of disk is 1.5, not from 0 to 1');
  });

  it('tiers of the prefix index need no extent more where all blocks of an endpoint lie on one tier', () => {
    const { index } = openTiers();
    const prompt = chain(...run(0, 640));
    for (let slot = 0; slot < 64; slot++) store(index, slot, prompt, slot % 2 === 0 ? 'gpu' : 'host');
    expect(index.counters()).toMatchObject({ sets: 1, segments: 10 });
    const saved = worth(index, prompt);
    expect([saved[0], saved[1]]).toEqual([640, 480]);
  });

  it('tiers of the prefix index outlast its repair', () => {
    const { index, core } = openTiers();
    const prompt = chain(...run(0, 150));
    for (const slot of [1, 2, 3]) store(index, slot, prompt, PLACES[slot]!);
    const lock = CORE.HEADER + CORE.HEADER_INDEX_LOCK;
    core.call.lockAcquire(lock, 100);
    core.call.activeRepairBegin();
    core.call.prefixRepairRest();
    core.call.lockRelease(lock);
    expect(check(core)).toBe(0);
    expect(worth(index, prompt).slice(0, 4)).toEqual([0, 112, 75, 37]);
    for (const slot of [1, 2, 3]) index.removeEndpoint(slot);
    expect(index.counters()).toMatchObject({ sets: 0, segments: 0 });
    expect(check(core)).toBe(0);
  });

  it('tiers of the prefix index come with its export, and are entered elsewhere', async () => {
    const { index, core } = openTiers({ endpoints: 128 });
    const prompt = chain(...run(0, 150));
    for (const slot of [1, 65, 90, 127]) store(index, slot, prompt, PLACES[slot % 4]!);
    move(index, 1, prompt.slice(100), 'remote');
    const segments: ExportedSegment[] = [];
    const reader = new IndexExport(core);
    for (let piece = reader.next(); piece !== undefined; piece = reader.next()) segments.push(...piece);
    const other = openTiers({ endpoints: 128 });
    await importSegments(new IndexLog(other.core), decodeSegments(encodeSegments(segments)), (slot) => slot);
    expect(worth(other.index, prompt)).toEqual(worth(index, prompt));
    expect(worth(other.index, prompt)[1]).toBe(87);
    expect(check(other.core)).toBe(0);
  });
});

describe('a decision over tiers', () => {
  /** A pool of two endpoints, and a prompt of eight blocks of 64 tokens. */
  function pool() {
    const made = makePool([scorer('OP_SCORE_PREFIX', 1, 0, 0, 64), pickMax], [{}, {}]);
    const index = new PrefixIndex(made.core);
    index.setPrices(PRICES);
    const hold = (slot: number, blocks: number, place: BlockPlace) => {
      made.core.call.hashBlocks(8 * 256, 256);
      index.store(slot, undefined, blocks, place);
    };
    const decide = () => {
      made.core.call.hashBlocks(8 * 256, 256);
      return made.decider.decide({ ...plainRequest, blocks: 8, tail: false, promptTokens: 512 });
    };
    return { hold, decide };
  }

  it('a decision over tiers charges what loading the blocks costs as tokens that are computed', () => {
    const { hold, decide } = pool();
    hold(1, 8, 'disk');
    expect(decide()).toMatchObject({ slots: [1], matchedBlocks: 4, uncachedTokens: 256 });
  });

  it('a decision over tiers prefers few blocks on the GPU to more that are worth less', () => {
    const { hold, decide } = pool();
    hold(0, 3, 'gpu');
    hold(1, 8, 'remote');
    expect(decide()).toMatchObject({ slots: [0], matchedBlocks: 3 });
    hold(1, 8, 'host');
    expect(decide()).toMatchObject({ slots: [1], matchedBlocks: 6 });
  });
});

/** One random history on the index and on the oracle; matches and their worth are compared for all slots. */
function history(seed: number, endpoints: number, longest: number): void {
  const { index, core } = openTiers({ endpoints, chainBlocks: longest, indexBlocks: 60_000 });
  const oracle = new PrefixOracle();
  const lot = new Lot(seed);
  const family = new PromptFamily(lot, longest);
  for (let i = 0; i < 500; i++) {
    const hashes = family.chain();
    const slot = lot.below(lot.below(2) === 0 ? 4 : endpoints);
    const place = PLACES[lot.below(PLACES.length)]!;
    const from = lot.below(hashes.length);
    const part = hashes.slice(from, from + 1 + lot.below(48));
    const kind = lot.below(16);
    if (kind < 3) {
      insert(index, slot, hashes);
      oracle.insert(slot, hashes);
    } else if (kind < 7) {
      const parent = from === 0 ? undefined : hashes[from - 1];
      if (parent !== undefined && !oracle.knows(parent)) continue;
      put(index, part);
      index.store(slot, parent, part.length, place);
      oracle.store(slot, parent, part, place);
    } else if (kind < 11) {
      move(index, slot, part, place);
      oracle.move(slot, part, place);
    } else if (kind < 14) {
      put(index, part);
      index.remove(slot, part.length, 'evicted-told');
      oracle.remove(slot, part);
    } else if (kind === 14 && lot.below(6) === 0) {
      index.removeEndpoint(slot);
      oracle.removeEndpoint(slot);
    }
    const query = family.chain();
    const places = run(0, endpoints).map((at) => oracle.matchedAt(query, at));
    expect(match(index, query), `seed ${seed} step ${i}`).toEqual(oracle.match(query, endpoints));
    expect(worth(index, query), `seed ${seed} step ${i}`).toEqual(places.map(worthOf));
    for (const lower of ['host', 'disk', 'remote'] as const) {
      const below = run(0, endpoints).map((at) => index.matchedBelow(at, lower));
      expect(below, `seed ${seed} step ${i}`).toEqual(places.map((counts) => counts[lower]));
    }
    if (i % 50 === 0) expect(check(core), `seed ${seed} step ${i}`).toBe(0);
  }
  expect(check(core)).toBe(0);
  for (let slot = 0; slot < endpoints; slot++) expect(index.removeEndpoint(slot)).toBe(oracle.held(slot));
  expect(index.counters()).toMatchObject({ blocks: 0, segments: 0, sets: 0, memberships: 0, dropped: 0 });
}

describe('tiers of the prefix index against the oracle', () => {
  for (let seed = 1; seed <= 9 * stress; seed++) {
    it(`tiers of the prefix index against the oracle are exact over a random history (seed ${seed})`, () => {
      history(seed, seed % 3 === 0 ? 128 : 64, [20, 150, 400][seed % 3]!);
    });
  }

  it('tiers of the prefix index against the oracle cost matches, and invent none, with the sets of holders full', () => {
    const { index, core } = openTiers({ indexBlocks: 4000 });
    const lot = new Lot(7);
    const oracle = new PrefixOracle();
    const chains = run(0, 40).map((i) => chain(...run(i * 1000, 64)));
    for (let i = 0; i < 2000; i++) {
      const hashes = chains[lot.below(chains.length)]!.slice(0, 1 + lot.below(64));
      const slot = lot.below(64);
      store(index, slot, hashes, PLACES[lot.below(PLACES.length)]!);
      oracle.insert(slot, hashes);
    }
    expect(index.counters().evicted + index.counters().dropped).toBeGreaterThan(0);
    for (const hashes of chains) {
      const truth = oracle.match(hashes, 64);
      for (const [slot, matched] of match(index, hashes).entries()) expect(matched).toBeLessThanOrEqual(truth[slot]!);
    }
    expect(check(core)).toBe(0);
  });
});
