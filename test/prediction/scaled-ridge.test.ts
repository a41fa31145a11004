import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CoefficientPrior, ScaledRidge } from '../../dist/src/prediction/scaled-ridge.js';

const prior = (value: number, magnitude = 1, min = 0, max = 1e6): CoefficientPrior => ({
  value,
  magnitude,
  min,
  max,
});
const ridge = (priors: readonly CoefficientPrior[], memory = 500) =>
  new ScaledRidge({ priors, worth: 2, memory, floor: 1 });

/** A plain generator, so that every run sees the same noise. */
function noise(seed = 1) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
}

/** Observations of a known line, with some relative noise. */
function feed(model: ScaledRidge, truth: readonly number[], count: number, spread = 0.1, random = noise()): void {
  for (let i = 0; i < count; i++) {
    const features = truth.map((_, at) => (at === 0 ? 1 : random() * 10));
    const exact = truth.reduce((sum, coefficient, at) => sum + coefficient * features[at]!, 0);
    model.observe(features, exact * (1 + spread * (random() - 0.5)));
  }
}

describe('the anchored ridge', () => {
  it('the anchored ridge predicts from its anchors before it has seen anything', () => {
    expect(ridge([prior(25), prior(60)]).predict([1, 2])).toBe(145);
  });

  it('the anchored ridge finds the coefficients of a line', () => {
    const model = ridge([prior(0), prior(0), prior(0)]);
    feed(model, [20, 5, 40], 2000);
    expect(model.coefficients[0]!).toBeGreaterThan(15);
    expect(model.coefficients[0]!).toBeLessThan(25);
    expect(model.coefficients[1]!).toBeCloseTo(5, 0);
    expect(model.coefficients[2]!).toBeCloseTo(40, 0);
  });

  it('the anchored ridge follows a line that changes, because it forgets', () => {
    const model = ridge([prior(0), prior(0)], 100);
    feed(model, [20, 5], 1000);
    feed(model, [20, 15], 1000);
    expect(model.coefficients[1]!).toBeCloseTo(15, 0);
  });

  it('the anchored ridge takes a coefficient back to its anchor when nothing speaks of it any more', () => {
    const model = ridge([prior(0), prior(7, 1)], 50);
    feed(model, [20, 30], 200);
    expect(model.coefficients[1]!).toBeGreaterThan(20);
    for (let i = 0; i < 5000; i++) model.observe([1, 0], 20);
    expect(model.coefficients[1]!).toBeCloseTo(7, 1);
  });

  it('the anchored ridge is moved little by an outlier', () => {
    const model = ridge([prior(20), prior(0)]);
    feed(model, [20, 5], 500);
    const before = model.predict([1, 5]);
    model.observe([1, 5], 1e6);
    expect(model.predict([1, 5]) / before).toBeLessThan(1.1);
  });

  it('the anchored ridge takes in nothing that is not finite', () => {
    const model = ridge([prior(20), prior(5)]);
    expect(model.observe([1, Number.NaN], 20)).toBe(false);
    expect(model.observe([1, 1], Number.POSITIVE_INFINITY)).toBe(false);
    expect(model.observe([1, 1], Number.NaN)).toBe(false);
    expect([...model.coefficients]).toEqual([20, 5]);
    expect(model.observations).toBe(0);
  });

  it('the anchored ridge stays finite and inside its bounds whatever it is told', () => {
    const value = fc.double({ min: -1e9, max: 1e9, noNaN: true });
    const feature = fc.double({ min: 0, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(fc.array(fc.tuple(feature, feature, value), { maxLength: 60 }), (seen) => {
        const model = ridge([prior(10, 10, 0, 50), prior(1, 5, 0, 20), prior(1, 5, 0.5, 3)], 20);
        for (const [a, b, y] of seen) model.observe([1, a, b], y);
        const [x, y, z] = model.coefficients;
        expect(x! >= 0 && x! <= 50 && y! >= 0 && y! <= 20 && z! >= 0.5 && z! <= 3).toBe(true);
      }),
    );
  });
});
