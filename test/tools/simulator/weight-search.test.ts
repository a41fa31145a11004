import { describe, expect, test } from 'vitest';
import { RandomStream } from '../../../dist/tools/simulator/fleet/random-stream.js';
import { WeightSearch } from '../../../dist/tools/simulator/fleet/weight-search.js';

/** A time that is best at weight 8. */
const time = (weight: number) => 100 + 50 * Math.abs(Math.log(weight / 8));

describe('the search for a weight', () => {
  test('the search for a weight keeps a candidate for 50 samples that are not its own and 100 that are', () => {
    const search = new WeightSearch(new RandomStream(1, 'es'));
    expect(search.value).toBe(1);
    for (let i = 0; i < 149; i++) search.note(10);
    expect(search.value).toBe(1);
    search.note(10);
    expect(search.value).not.toBe(1);
  });

  test.each([1, 2, 3])('the search for a weight comes near to the best weight, seed %d', (seed) => {
    const search = new WeightSearch(new RandomStream(seed, 'es'));
    for (let i = 0; i < 150 * 60; i++) search.note(time(search.value));
    const tried = Array.from({ length: 20 }, () => {
      for (let i = 0; i < 150; i++) search.note(time(search.value));
      return search.value;
    });
    const middle = tried.sort((a, b) => a - b)[10]!;
    expect(Math.abs(Math.log(middle / 8))).toBeLessThan(0.5);
  });
});
