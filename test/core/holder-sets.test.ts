import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { chain, check, insert, match, openPool, repair, run } from './index-pool.ts';

const ENDPOINTS = 64;

describe('sets of holders in the prefix index', () => {
  it('sets of holders have room for one set for each eight blocks', () => {
    const { index } = openPool({ indexBlocks: 200_000 });
    const pairs = run(0, ENDPOINTS).flatMap((a) => run(0, a).map((b) => [b, a] as const));
    for (const [i, pair] of pairs.entries()) for (const slot of pair) insert(index, slot, chain(i));
    const found = pairs.map((_, i) => match(index, chain(i)).flatMap((blocks, slot) => (blocks > 0 ? [slot] : [])));
    expect(found).toEqual(pairs.map((pair) => [...pair]));
  });

  it('sets of holders are shared with equal ones again after a repair', () => {
    const { core, index } = openPool();
    const sets = () => Number(core.call.prefixCounter(CORE.PREFIX_COUNTER_SETS));
    for (const slot of [1, 2]) insert(index, slot, chain(1));
    const before = sets();
    repair(core);
    expect(check(core)).toBe(0);
    for (const slot of [1, 2]) insert(index, slot, chain(2));
    expect([sets(), match(index, chain(2)).slice(0, 4)]).toEqual([before, [0, 1, 1, 0]]);
  });
});
