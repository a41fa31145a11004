import { describe, expect, it } from 'vitest';
import { EvictionPrice } from '../../dist/src/adaptation/eviction-price.js';

/** A price after tokens that came in steps of a second. */
function priced(...steps: readonly { computed: number; evicted: number }[]): EvictionPrice {
  const price = new EvictionPrice();
  price.note({ computed: 0, evicted: 0 }, 0);
  for (const [i, counts] of steps.entries()) price.note(counts, (i + 1) * 1_000);
  return price;
}

describe('the price of what a miss evicts', () => {
  it('the price of what a miss evicts is none before any token', () => {
    expect(priced().price).toBe(1);
    expect(priced({ computed: 0, evicted: 0 }).odds).toBe(0);
  });

  it('the price of what a miss evicts is none while nothing that was evicted returns', () => {
    expect(priced({ computed: 1_000_000, evicted: 0 }).price).toBe(1);
  });

  it('the price of what a miss evicts is that of all tokens that are evicted one after another', () => {
    const { odds, price } = priced({ computed: 1_000, evicted: 200 });
    expect([odds, price]).toEqual([0.2, 1.25]);
  });

  it('the price of what a miss evicts doubles that of a miss at most', () => {
    expect(priced({ computed: 1_000, evicted: 1_000 }).price).toBe(2);
  });

  it('the price of what a miss evicts leaves out what came before it looked', () => {
    const price = new EvictionPrice();
    price.note({ computed: 50_000, evicted: 50_000 }, 0);
    price.note({ computed: 51_000, evicted: 50_000 }, 1_000);
    expect(price.odds).toBe(0);
  });

  it('the price of what a miss evicts forgets in five minutes to a third', () => {
    const price = priced({ computed: 1_000, evicted: 1_000 });
    price.note({ computed: 1_000 + 1_000 / Math.E, evicted: 1_000 }, 301_000);
    expect(price.odds).toBeCloseTo(0.5, 9);
  });
});
