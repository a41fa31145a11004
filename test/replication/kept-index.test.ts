import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IndexLog } from '../../dist/src/core/index-log.js';
import { exportIndex, importSegments } from '../../dist/src/replication/index-transfer.js';
import type { KeptIndex } from '../../dist/src/replication/kept-index.js';
import {
  checkKeptIndex,
  decodeKeptIndex,
  encodeKeptIndex,
  keptIndexBounds,
} from '../../dist/src/replication/kept-index.js';
import { check, insert, match, openPool } from '../core/index-pool.ts';
import { Lot, PromptFamily } from '../core/prefix-oracle.ts';

const TERMS = { blockTokens: 64, seed: '00000000000000ff' };
const BOUNDS = keptIndexBounds(10_000);

async function exported(core: ReturnType<typeof openPool>['core']): Promise<KeptIndex['segments']> {
  const segments: KeptIndex['segments'][number][] = [];
  await exportIndex(core, (piece) => void segments.push(...piece));
  return segments;
}

function kept(segments: KeptIndex['segments']): KeptIndex {
  return { ...TERMS, savedAtMs: 1_000, endpoints: [11n, 12n, 13n], segments };
}

describe('a prefix index that is exported', () => {
  it('every prompt is found as before in the index that it is imported into', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 1e6 }), fc.integer({ min: 1, max: 60 }), async (seed, count) => {
        const [from, to] = [openPool(), openPool()];
        const family = new PromptFamily(new Lot(seed), 300);
        const slots = new Lot(seed + 1);
        const chains = Array.from({ length: count }, () => [...family.chain()]);
        for (const chain of chains) insert(from.index, slots.below(8), chain);
        const file = encodeKeptIndex(kept(await exported(from.core)));
        const log = new IndexLog(to.core);
        const { segments } = await decodeKeptIndex(file, TERMS, BOUNDS);
        await importSegments(log, segments, (slot) => slot);
        for (const chain of chains) expect(match(to.index, chain)).toEqual(match(from.index, chain));
        expect(check(to.core)).toBe(0);
      }),
      { numRuns: 30 },
    );
  });

  it('endpoints that are gone are left out, and others get their blocks in other slots', async () => {
    const [from, to] = [openPool(), openPool()];
    const chain = [1n, 2n, 3n, 4n];
    insert(from.index, 0, chain);
    insert(from.index, 1, chain.slice(0, 2));
    const slots = new Map([[1, 7]]);
    const pairs = await importSegments(new IndexLog(to.core), await exported(from.core), (slot) => slots.get(slot));
    expect(pairs).toBe(2);
    expect(match(to.index, chain).slice(0, 8)).toEqual([0, 0, 0, 0, 0, 0, 0, 2]);
  });

  it('prompts that were used last are found when not all of them fit', async () => {
    const from = openPool();
    const to = openPool({ indexBlocks: 2_000 });
    const chains = Array.from({ length: 100 }, (_, i) => Array.from({ length: 40 }, (_, j) => BigInt(1 + i * 40 + j)));
    for (const chain of chains) insert(from.index, 3, chain);
    await importSegments(new IndexLog(to.core), await exported(from.core), (slot) => slot);
    expect(match(to.index, chains[99]!)[3]).toBe(40);
    expect(match(to.index, chains[0]!)[3]).toBe(0);
  });
});

describe('the file of a kept index', () => {
  const { index, core } = openPool();
  insert(index, 0, [1n, 2n, 3n]);

  it('a changed byte anywhere is found', async () => {
    const file = encodeKeptIndex(kept(await exported(core)));
    await fc.assert(
      fc.asyncProperty(fc.nat(file.length - 1), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
        const damaged = file.slice();
        damaged[at]! ^= flip;
        await expect(decodeKeptIndex(damaged, TERMS, BOUNDS)).rejects.toThrow();
      }),
    );
  });

  it('a part of it is refused', async () => {
    const file = encodeKeptIndex(kept(await exported(core)));
    for (const length of [0, 7, 15, 16, file.length - 1]) {
      await expect(decodeKeptIndex(file.subarray(0, length), TERMS, BOUNDS)).rejects.toThrow();
    }
  });

  it('another block size and another seed are refused with the reason', async () => {
    const file = encodeKeptIndex(kept(await exported(core)));
    await expect(decodeKeptIndex(file, { ...TERMS, blockTokens: 16 }, BOUNDS)).rejects.toThrow(
      'its blocks have 64 tokens, and the configuration says 16',
    );
    await expect(decodeKeptIndex(file, { ...TERMS, seed: '1' }, BOUNDS)).rejects.toThrow(
      'its blocks were hashed with another seed',
    );
  });

  const segment = (number: number, runs: KeptIndex['segments'][number]['runs'], hashes = [BigInt(number)]) => ({
    ...{ segment: number, parent: 0, parentHash: undefined, age: 0, depth: 0, runs },
    hashes: BigUint64Array.from(hashes),
  });
  const many = (count: number, of: (number: number) => KeptIndex['segments'][number]) =>
    kept(Array.from({ length: count }, (_, i) => of(i + 1)));
  const wide = Array.from({ length: 3_000 }, (_, slot) => slot % 3);
  const narrow = keptIndexBounds(480);

  it.each([
    ['more segments than the index holds', many(narrow.segments + 1, (n) => segment(n, [])), 'more than 138 segments'],
    [
      'more runs than the segments plausibly have',
      many(60, (n) =>
        segment(
          n,
          Array.from({ length: 64 }, (_, i) => ({ end: i + 1, slots: [] })),
          new Array(64).fill(7n),
        ),
      ),
      'more than 1380 runs',
    ],
    [
      'more endpoints of runs than plausible',
      many(30, (n) => segment(n, [{ end: 1, slots: wide }])),
      'more than 70656 endpoints',
    ],
  ])('a file with %s is refused, and is never written', async (_what, crafted, reason) => {
    await expect(decodeKeptIndex(encodeKeptIndex(crafted), TERMS, narrow)).rejects.toThrow(reason);
    expect(() => checkKeptIndex(crafted, narrow)).toThrow('are kept');
  });

  it('a file of the earlier version is read as one of blocks on the GPU', async () => {
    const { core, index } = openPool();
    insert(index, 1, [1n, 2n, 3n]);
    const segments = await exported(core);
    const file = Buffer.from(encodeKeptIndex(kept(segments)));
    file.write('"version":2', file.indexOf('"version":3'));
    file.writeUInt32LE(crc32(file.subarray(16)), 12);
    const read = await decodeKeptIndex(file, TERMS, BOUNDS);
    expect(read.segments.map(({ runs }) => runs)).toEqual([[{ end: 3, slots: Uint16Array.of(1) }]]);
  });

  it('a file has the place of the blocks of each endpoint', async () => {
    const { core, index } = openPool();
    index.writeHashes(BigUint64Array.of(1n, 2n, 3n));
    index.store(1, undefined, 3, 'host');
    index.store(2, undefined, 3, 'remote');
    const segments = await exported(core);
    const { segments: read } = await decodeKeptIndex(encodeKeptIndex(kept(segments)), TERMS, BOUNDS);
    expect(read[0]!.runs).toEqual([{ end: 3, slots: Uint16Array.of(1, 2), places: Uint8Array.of(2, 4) }]);
  });

  it('a file has the numbers of the largest pool, with the places of their blocks', async () => {
    const runs = [{ end: 1, slots: Uint16Array.of(0, 4_096, 10_239), places: Uint8Array.of(4, 3, 1) }];
    const { segments } = await decodeKeptIndex(encodeKeptIndex(kept([segment(1, runs)])), TERMS, BOUNDS);
    expect(segments[0]!.runs).toEqual(runs);
  });

  it('a file with a number that no endpoint can have is refused', async () => {
    const wrong = encodeKeptIndex(kept([segment(1, [{ end: 1, slots: [10_240] }])]));
    await expect(decodeKeptIndex(wrong, TERMS, BOUNDS)).rejects.toThrow('a run names an unknown endpoint');
  });

  it('a run that names more endpoints than there can be is refused', async () => {
    const crafted = kept([segment(1, [{ end: 1, slots: new Array(10_241).fill(0) }])]);
    await expect(decodeKeptIndex(encodeKeptIndex(crafted), TERMS, BOUNDS)).rejects.toThrow(
      'a run names more endpoints than there can be',
    );
  });

  it('a head of more than a mebibyte is refused before it is read as JSON', async () => {
    const crafted = { ...kept([]), endpoints: new Array(60_000).fill(2n ** 64n - 1n) };
    await expect(decodeKeptIndex(encodeKeptIndex(crafted), TERMS, BOUNDS)).rejects.toThrow('its head has');
  });

  it('a full index is within the bounds of its file', async () => {
    const full = openPool({ indexBlocks: 2_000 });
    const family = new PromptFamily(new Lot(7), 400);
    for (let i = 0; i < 2_000; i++) insert(full.index, i % 8, [...family.chain()]);
    const file = encodeKeptIndex(kept(await exported(full.core)));
    const bounds = keptIndexBounds(2_000);
    expect(file.length).toBeLessThanOrEqual(bounds.bytes);
    expect((await decodeKeptIndex(file, TERMS, bounds)).segments.length).toBeGreaterThan(10);
  });
});
