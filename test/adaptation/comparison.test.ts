import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Arm, Comparison } from '../../dist/src/adaptation/comparison.js';
import { row } from './samples.ts';

/** About normal, mean 0, standard deviation 1. */
const normal = (random: () => number) => (random() + random() + random() + random() - 2) * Math.sqrt(3);

interface World {
  readonly gap: number;
  readonly deviation: number;
  /** By how much the result rises with ln(prompt tokens/s), and how much the load varies. */
  readonly slope?: number;
  readonly load?: number;
  readonly drift?: number;
}

/** Epochs that take turns, in a world that is known. */
function compared(epochs: number, { gap, deviation, slope = 0, load = 0, drift = 0 }: World, seed: number): Comparison {
  const random = row(seed);
  const comparison = new Comparison();
  for (let i = 0; i < epochs; i++) {
    const arm: Arm = i % 2 === 0 ? 'static' : 'learned';
    const requests = 10 * Math.exp(load * normal(random));
    const promptTokens = 1000 * requests * Math.exp(load * normal(random));
    const usual = 0.4 + drift * i + slope * Math.log(promptTokens / 10_000);
    const result = usual + (arm === 'learned' ? gap : 0) + deviation * normal(random);
    comparison.add({ arm, result, promptTokens, requests });
  }
  return comparison;
}

describe('the comparison of epochs', () => {
  it('the comparison of epochs takes an arm that has not played for half to twice as good', () => {
    const { gap } = compared(1, { gap: 0, deviation: 0 }, 1);
    expect(gap.mean).toBe(0);
    expect(gap.halfWidth).toBeGreaterThan(0.2);
    expect(gap.halfWidth).toBeLessThan(Math.LN2);
  });

  it('the comparison of epochs covers the truth about as often as its interval says', () => {
    let covered = 0;
    for (let seed = 1; seed <= 200; seed++) {
      const { gap } = compared(16, { gap: -0.1, deviation: 0.05, slope: 0.5, load: 0.2 }, seed);
      if (Math.abs(gap.mean + 0.1) <= gap.halfWidth) covered++;
    }
    expect(covered).toBeGreaterThanOrEqual(180);
  });

  it('the comparison of epochs is certain sooner where the first one tells that results vary little', () => {
    const width = (deviation: number | undefined) => {
      const comparison = new Comparison();
      for (let i = 0; i < 4; i++) {
        const arm: Arm = i % 2 === 0 ? 'static' : 'learned';
        comparison.add({ arm, result: 0.4, promptTokens: 1000, requests: 10, deviation });
      }
      return comparison.gap.halfWidth;
    };
    expect(width(0.02)).toBeLessThan(0.5 * width(undefined));
    expect(width(0.3)).toBeGreaterThan(width(undefined));
    // Requests that are all alike once are no proof that they stay so.
    expect(width(0)).toBe(width(0.02));
  });

  it('the comparison of epochs believes one of few requests less', () => {
    const gap = (noted: number | undefined) => {
      const comparison = new Comparison();
      const load = { promptTokens: 1000, requests: 10, deviation: 0.05 };
      comparison.add({ arm: 'static', result: 0.4, ...load, noted: 150 });
      comparison.add({ arm: 'learned', result: 0.5, ...load, noted });
      return comparison.gap;
    };
    expect(gap(25).mean).toBeLessThan(0.8 * gap(150).mean);
    expect(gap(25).halfWidth).toBeGreaterThan(1.2 * gap(150).halfWidth);
    expect(gap(1000)).toEqual(gap(150));
    expect(gap(undefined)).toEqual(gap(150));
  });

  it('the comparison of epochs takes the load that clients bring out of the comparison', () => {
    const width = (slope: number) => compared(40, { gap: -0.1, deviation: 0.02, slope, load: 0.3 }, 5).gap.halfWidth;
    expect(width(1)).toBeLessThan(1.5 * width(0));
  });

  it('the comparison of epochs does not mistake a drift for a gap', () => {
    const { gap } = compared(60, { gap: -0.1, deviation: 0.02, drift: 0.02 }, 9);
    expect(gap.mean).toBeCloseTo(-0.1, 1);
    expect(Math.abs(gap.mean + 0.1)).toBeLessThan(gap.halfWidth);
  });

  it('the comparison of epochs is less certain when results vary more', () => {
    const width = (deviation: number) => compared(12, { gap: 0, deviation }, 3).gap.halfWidth;
    expect(width(0.3)).toBeGreaterThan(2 * width(0.03));
  });

  it('the comparison of epochs forgets the gap and keeps the rest', () => {
    const comparison = compared(20, { gap: 0.3, deviation: 0.02 }, 2);
    const before = comparison.level.mean;
    comparison.forgetGap();
    expect(comparison.gap.mean).toBe(0);
    expect(comparison.gap.halfWidth).toBeGreaterThan(0.2);
    expect(comparison.epochs('learned')).toBe(0);
    expect(comparison.level.mean).toBe(before);
  });

  it('the comparison of epochs stays finite and never more certain than the noise allows, whatever comes', () => {
    const epoch = fc.record({
      arm: fc.constantFrom<Arm>('static', 'learned'),
      result: fc.double({ min: -4, max: 4, noNaN: true }),
      promptTokens: fc.double({ min: 1, max: 1e7, noNaN: true }),
      requests: fc.double({ min: 0.1, max: 1e4, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(epoch, { minLength: 1, maxLength: 200 }), (epochs) => {
        const comparison = new Comparison();
        for (const each of epochs) comparison.add(each);
        for (const { mean, halfWidth } of [comparison.level, comparison.gap]) {
          expect(Number.isFinite(mean)).toBe(true);
          expect(halfWidth).toBeGreaterThanOrEqual(0);
        }
      }),
      { numRuns: 200 },
    );
  });
});
