import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AnchoredRidge } from '../../dist/src/adaptation/ridge.js';
import { row } from './samples.ts';

const terms = [
  { prior: 20, low: 0, high: 500, anchor: 50 / 200 ** 2 },
  { prior: 55, low: 5.5, high: 550, anchor: 1 / 55 ** 2 },
];
const forget = 0.999;

function learnLine(ridge: AnchoredRidge, base: number, slope: number, count: number, noise = 0.1, seed = 1) {
  const random = row(seed);
  for (let i = 0; i < count; i++) {
    const x = [1, random() * 10];
    ridge.learn(x, (base + slope * x[1]!) * Math.exp(noise * (random() - 0.5) * 2), forget);
  }
}

describe.each(['all', 'observed'] as const)('an anchored ridge that forgets %s', (forgetting) => {
  it('an anchored forgetting ridge begins at its prior', () => {
    expect([...new AnchoredRidge(terms, 20, forgetting).theta]).toEqual([20, 55]);
  });

  it.each([
    [40, 20, 0.05],
    [5, 220, 0.05],
    [100, 14, 0.2],
  ])(
    'an anchored forgetting ridge finds %i + %i x from a prior that is up to four times wrong, within 300 observations',
    (base, slope, error) => {
      const ridge = new AnchoredRidge(terms, 20, forgetting);
      learnLine(ridge, base, slope, 300);
      expect(Math.abs(ridge.theta[1]! / slope - 1)).toBeLessThan(error);
    },
  );

  it('an anchored forgetting ridge follows when the truth moves', () => {
    const ridge = new AnchoredRidge(terms, 20, forgetting);
    learnLine(ridge, 40, 20, 2000);
    learnLine(ridge, 40, 60, 5000, 0.1, 2);
    expect(Math.abs(ridge.theta[1]! / 60 - 1)).toBeLessThan(0.05);
  });

  it('an anchored forgetting ridge stays within its bounds and finite whatever it is told', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.double(), fc.double(), fc.double()), { maxLength: 200 }),
        fc.double({ min: 0.9, max: 0.9999, noNaN: true }),
        (observations, lambda) => {
          const ridge = new AnchoredRidge(terms, 20, forgetting);
          for (const [a, b, y] of observations) ridge.learn([a % 1e6, b % 1e6], y % 1e9, lambda);
          for (const [i, { low, high }] of terms.entries()) {
            expect(ridge.theta[i]).toBeGreaterThanOrEqual(low);
            expect(ridge.theta[i]).toBeLessThanOrEqual(high);
          }
        },
      ),
    );
  });

  it('an anchored forgetting ridge is not carried away by one outlier in ten', () => {
    const ridge = new AnchoredRidge(terms, 20, forgetting);
    const random = row(3);
    for (let i = 0; i < 2000; i++) {
      const x = [1, random() * 10];
      const y = 40 + 20 * x[1]!;
      ridge.learn(x, i % 10 === 0 ? y * 30 : y, forget);
    }
    expect(ridge.theta[1]! / 20).toBeLessThan(1.6);
  });

  it('an anchored forgetting ridge goes on from a saved state, of which all or nothing is still believed', () => {
    const ridge = new AnchoredRidge(terms, 20, forgetting);
    learnLine(ridge, 40, 20, 1000);
    const whole = new AnchoredRidge(terms, 20, forgetting);
    expect(whole.restore(ridge.save(), 1)).toBe(true);
    for (const [i, value] of [...ridge.theta].entries()) expect(whole.theta[i]).toBeCloseTo(value, 1);
    const none = new AnchoredRidge(terms, 20, forgetting);
    none.restore(ridge.save(), 0);
    for (const [i, { prior }] of terms.entries()) expect(none.theta[i]).toBeCloseTo(prior, 6);
  });

  it.each([
    ['another size', { matrix: [1], vector: [1], count: 1 }],
    ['a number that is none', { matrix: [1, 0, 0, Number.NaN], vector: [1, 1], count: 1 }],
    ['a matrix that cannot be solved', { matrix: [0, 0, 0, 0], vector: [1, 1], count: 1 }],
  ])('an anchored forgetting ridge refuses a state of %s and stays as it is', (_what, state) => {
    const ridge = new AnchoredRidge(terms, 20, forgetting);
    expect(ridge.restore(state, 1)).toBe(false);
    expect([...ridge.theta]).toEqual([20, 55]);
  });
});

describe('what an anchored ridge forgets', () => {
  it('an anchored forgetting ridge lets a coefficient that is never excited drift back to its prior', () => {
    const ridge = new AnchoredRidge(terms, 20);
    learnLine(ridge, 40, 200, 500);
    for (let i = 0; i < 20_000; i++) ridge.learn([1, 0], 40, forget);
    expect(Math.abs(ridge.theta[1]! / 55 - 1)).toBeLessThan(0.1);
    expect(Math.abs(ridge.theta[0]! / 40 - 1)).toBeLessThan(0.05);
  });

  it('an anchored ridge that forgets what is observed keeps an unexcited coefficient ten times as long', () => {
    const [whole, observed] = (['all', 'observed'] as const).map((forgetting) => {
      const ridge = new AnchoredRidge(terms, 20, forgetting);
      learnLine(ridge, 40, 200, 500);
      for (let i = 0; i < 10_000; i++) ridge.learn([1, 0], 40, forget);
      return ridge.theta[1]!;
    });
    expect(Math.abs(observed! / 200 - 1)).toBeLessThan(0.1);
    expect(whole).toBeLessThan(150);
  });

  it('an anchored ridge that forgets what is observed returns a coefficient to its prior in the end', () => {
    const ridge = new AnchoredRidge(terms, 20, 'observed');
    learnLine(ridge, 40, 200, 500);
    for (let i = 0; i < 200_000; i++) ridge.learn([1, 0], 40, forget);
    expect(Math.abs(ridge.theta[1]! / 55 - 1)).toBeLessThan(0.1);
  });
});
