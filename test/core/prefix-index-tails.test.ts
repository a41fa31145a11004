import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { chain, insert, openPool, put, run } from './index-pool.ts';

const INDEX_LOCK = CORE.HEADER + CORE.HEADER_INDEX_LOCK;

function open() {
  const { core, index } = openPool();
  const generation = (slot: number, value: number) => {
    const column = CORE.COLUMN_GENERATION ?? 1;
    const endpoints = core.view.getUint32(CORE.HEADER + CORE.HEADER_REGIONS, true) << 16;
    core.u32[(endpoints >>> 2) + column * core.sizes.endpoints + slot] = value;
  };
  /** The hash of the tail stands behind the whole blocks. */
  const tailAt = (blocks: number) => (core.call.hashesAddress() >>> 0) + blocks * 8;
  const insertTail = (slot: number, hashes: readonly bigint[], tail: bigint) => {
    insert(index, slot, hashes);
    put(index, [...hashes, tail]);
    core.call.lockAcquire(INDEX_LOCK, 1);
    core.call.tailInsertLocked(slot, tailAt(hashes.length));
    core.call.lockRelease(INDEX_LOCK);
  };
  const matchTail = (hashes: readonly bigint[], tail: bigint) => {
    put(index, [...hashes, tail]);
    const matched = index.match(hashes.length);
    core.call.tailMatch(tailAt(hashes.length), hashes.length);
    return [...matched];
  };
  return { core, index, generation, insertTail, matchTail };
}

describe('tails of prompts', () => {
  it('tails of prompts count as one block more for an endpoint that holds everything before', () => {
    const { insertTail, matchTail, index } = open();
    const hashes = chain(...run(0, 70));
    insertTail(1, hashes, 77n);
    insert(index, 2, hashes);
    insertTail(3, hashes, 78n);
    expect(matchTail(hashes, 77n).slice(0, 4)).toEqual([0, 71, 70, 70]);
  });

  it('tails of prompts do not count when a whole block is missing', () => {
    const { insertTail, matchTail, index } = open();
    const hashes = chain(...run(0, 70));
    insertTail(1, hashes, 77n);
    put(index, [hashes[69]!]);
    index.remove(1, 1, 'evicted-told');
    expect(matchTail(hashes, 77n)[1]).toBe(69);
  });

  it('tails of prompts match a prompt shorter than one block', () => {
    const { insertTail, matchTail } = open();
    insertTail(5, [], 99n);
    expect(matchTail([], 99n)[5]).toBe(1);
    expect(matchTail([], 98n)[5]).toBe(0);
  });

  it('tails of prompts are forgotten with their endpoint', () => {
    const { insertTail, matchTail, index } = open();
    insertTail(5, [], 99n);
    index.removeEndpoint(5);
    expect(matchTail([], 99n)[5]).toBe(0);
  });

  it('tails of prompts do not pass to the next user of a slot', () => {
    const { insertTail, matchTail, generation } = open();
    generation(5, 1);
    insertTail(5, [], 99n);
    generation(5, 2);
    expect(matchTail([], 99n)[5]).toBe(0);
  });

  it('tails of prompts are kept in bounded number: the oldest of a bucket are forgotten', () => {
    const { insertTail, matchTail } = open();
    for (let slot = 0; slot < 12; slot++) insertTail(slot, [], 99n);
    expect(matchTail([], 99n).slice(0, 12)).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
  });

  it('tails of prompts are stored once when the same one comes again', () => {
    const { insertTail, matchTail } = open();
    for (let slot = 0; slot < 8; slot++) insertTail(slot, [], 99n);
    for (let i = 0; i < 20; i++) insertTail(i % 3, [], 99n);
    expect(matchTail([], 99n).slice(0, 8)).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
  });
});
