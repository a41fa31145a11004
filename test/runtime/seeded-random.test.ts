import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../dist/src/runtime/seeded-random.js';

const draws = (seed: bigint | number) => Array.from({ length: 4 }, seededRandom(seed));

describe('the seeded generator', () => {
  it('the seeded generator draws the numbers of mulberry32', () => {
    expect(draws(1)).toEqual([0.6270739405881613, 0.002735721180215478, 0.5274470399599522, 0.9810509674716741]);
  });

  it('the seeded generator draws the same for a seed as a number and as a bigint', () => {
    for (const seed of [0, 7, 2 ** 31, 2 ** 32 - 1]) expect(draws(BigInt(seed))).toEqual(draws(seed));
  });

  it('the seeded generator takes both halves of a long seed', () => {
    expect(draws(1n << 40n)).not.toEqual(draws(1n << 41n));
  });
});
