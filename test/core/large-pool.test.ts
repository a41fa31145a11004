import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { createPoolMemory } from '../../dist/src/core/memory.js';
import { chain, check, insert, match, openPool, put } from './index-pool.ts';
import { makePool, pickMax, plainRequest, scorer, smallSizes } from './pool.ts';

/** The largest pool. */
const SLOTS = CORE.ENDPOINTS_MAX;
const LAST = SLOTS - 1;
const idle = { waiting: 0, running: 0, kvUsage: 0 };
const plain = [scorer('OP_SCORE_QUEUE', 2), scorer('OP_SCORE_KV_USAGE', 2), scorer('OP_SCORE_PREFIX', 3, 0), pickMax];

/** A pool of the largest size with so many live endpoints. */
function largePool(operations = plain, endpoints = SLOTS) {
  const signals = Array.from({ length: endpoints }, () => idle);
  return makePool(operations, signals, { ...smallSizes, endpoints: SLOTS, requests: SLOTS + 64 });
}

const held = (found: readonly number[]) => found.flatMap((blocks, slot) => (blocks > 0 ? [[slot, blocks]] : []));

describe('a pool of 10,240 endpoints', () => {
  it('one endpoint more is refused', () => {
    expect(() => createPoolMemory({ ...smallSizes, endpoints: SLOTS + 1 })).toThrow('endpoints must be at most 10240');
  });

  it('holders whose numbers differ in the high bits alone are told apart', () => {
    const { core, index } = openPool({ endpoints: SLOTS });
    for (const slot of [5, 4_101, 8_197]) insert(index, slot, chain(1));
    for (const slot of [4_101, 5, 8_197]) insert(index, slot, chain(2));
    insert(index, 8_197, chain(3));
    insert(index, 4_101, chain(4));
    insert(index, 5, chain(5));
    const found = [1, 2, 3, 4, 5].map((content) => held(match(index, chain(content))).map(([slot]) => slot));
    expect(found).toEqual([[5, 4_101, 8_197], [5, 4_101, 8_197], [8_197], [4_101], [5]]);
    expect(check(core)).toBe(0);
  });

  it('blocks in the memory of the host are told apart from those of an endpoint 4,096 slots further', () => {
    const { core, index } = openPool({ endpoints: SLOTS });
    put(index, chain(1));
    for (const slot of [3, 4_099, LAST]) index.store(slot, undefined, 1, 'host');
    put(index, chain(2));
    index.store(4_099, undefined, 1, 'gpu');
    index.store(3, undefined, 1, 'disk');
    expect(held(match(index, chain(1))).map(([slot]) => slot)).toEqual([3, 4_099, LAST]);
    expect(held(match(index, chain(2))).map(([slot]) => slot)).toEqual([3, 4_099]);
    expect(check(core)).toBe(0);
  });

  it('a match is found for each of many holders, and ends where each of them ends', () => {
    const { index } = openPool({ endpoints: SLOTS });
    const lengths = (slot: number) => (slot % 5 === 0 ? 3 : slot % 3 === 0 ? 2 : slot % 7 === 0 ? 1 : 0);
    const hashes = chain(1, 2, 3);
    for (let slot = 0; slot < SLOTS; slot++) {
      if (lengths(slot) > 0) insert(index, slot, hashes.slice(0, lengths(slot)));
    }
    expect(match(index, hashes)).toEqual(Array.from({ length: SLOTS }, (_, slot) => lengths(slot)));
  });

  it('the tail of a prompt counts for the endpoint that holds it', () => {
    const { core, index } = openPool({ endpoints: SLOTS });
    const lock = CORE.HEADER + CORE.HEADER_INDEX_LOCK;
    const tail = (core.call.hashesAddress() >>> 0) + 8;
    for (const slot of [1, 4_097, LAST]) insert(index, slot, chain(1));
    put(index, [...chain(1), 77n]);
    core.call.lockAcquire(lock, 1);
    core.call.tailInsertLocked(LAST, tail);
    core.call.lockRelease(lock);
    const found = index.match(1);
    core.call.tailMatch(tail, 1);
    expect([found[1], found[4_097], found[LAST]]).toEqual([1, 1, 2]);
  });

  it('a burst of as many requests goes to each endpoint once', () => {
    const { decider } = largePool();
    const picks = Array.from({ length: SLOTS }, () => decider.decide(plainRequest).slots[0]!);
    expect(new Set(picks).size).toBe(SLOTS);
  });

  it('the only endpoint of a subset is picked, also the last one', () => {
    const { decider } = largePool();
    for (const slot of [0, 8_192, LAST]) {
      expect(decider.decide({ ...plainRequest, subset: [slot] }).slots).toEqual([slot]);
    }
  });

  it('the pick of the scorers in one pass is the one of the scorers one by one', () => {
    const pool = largePool();
    for (const best of [0, 63, 64, 5_000, LAST]) {
      const kvUsage = (slot: number) => (slot === best ? 0 : 0.1 + ((slot * 7_919) % 10_007) / 20_000);
      for (let slot = 0; slot < SLOTS; slot++) pool.table.publish(slot, { ...idle, kvUsage: kvUsage(slot) }, 2);
      for (const explained of [false, true]) {
        expect([...pool.decider.decide({ ...plainRequest, charged: false, explained }).slots]).toEqual([best]);
      }
    }
  });
});
