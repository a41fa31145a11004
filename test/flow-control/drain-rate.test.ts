import { describe, expect, it } from 'vitest';
import { DrainRate } from '../../dist/src/flow-control/drain-rate.js';

describe('the drain rate', () => {
  it('the drain rate is unknown until there was a backlog for half a second', () => {
    const rate = new DrainRate();
    rate.begin(0);
    rate.dispatched(100, 499);
    expect(rate.tokensPerSecond).toBeUndefined();
    rate.update(500);
    expect(rate.tokensPerSecond).toBe(200);
  });

  it('the drain rate leaves out the time without a backlog', () => {
    const rate = new DrainRate();
    rate.begin(0);
    rate.dispatched(100, 100);
    rate.stop(500);
    rate.update(60_000);
    expect(rate.tokensPerSecond).toBe(200);
  });

  it('the drain rate falls by a tenth with each half second in which nothing leaves', () => {
    const rate = new DrainRate();
    rate.begin(0);
    rate.dispatched(100, 100);
    rate.update(1_000);
    expect(rate.tokensPerSecond).toBeCloseTo(180, 9);
    rate.update(1_500);
    expect(rate.tokensPerSecond).toBeCloseTo(162, 9);
  });

  it('the best drain rate fades by half in a minute', () => {
    const rate = new DrainRate();
    expect(rate.bestPerSecond(0)).toBeUndefined();
    rate.begin(0);
    rate.dispatched(100, 100);
    rate.stop(500);
    expect(rate.bestPerSecond(500)).toBe(200);
    rate.begin(500);
    for (let ms = 1_000; ms <= 60_500; ms += 500) rate.update(ms);
    expect(rate.tokensPerSecond).toBeLessThan(1);
    expect(rate.bestPerSecond(60_500)).toBeCloseTo(100, 9);
  });
});
