import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { holm, kendall, pairedP } from '../../../dist/tools/simulator/suite/significance.js';

describe('the paired t-test', () => {
  // Quantiles of Student's t from tables: mean/(sd/√n) of these differences is the quantile.
  test.each([
    ['9 degrees of freedom, 5 %', 10, 2.262, 0.05],
    ['9 degrees of freedom, 1 %', 10, 3.25, 0.01],
    ['4 degrees of freedom, 10 %', 5, 2.132, 0.1],
    ['2 degrees of freedom, 5 %', 3, 4.303, 0.05],
    ['19 degrees of freedom, 0.1 %', 20, 3.883, 0.001],
  ])('the paired t-test agrees with the table at %s', (_what, count, quantile, p) => {
    const zigzag: number[] = Array.from({ length: count }, (_, i) =>
      count % 2 === 1 && i === 0 ? 0 : i % 2 === 0 ? 1 : -1,
    );
    const variance = zigzag.reduce((sum, value) => sum + value * value, 0) / (count - 1);
    const shift = quantile * Math.sqrt(variance / count);
    expect(pairedP(zigzag.map((value) => value + shift))).toBeCloseTo(p, 3);
  });

  test('the paired t-test finds nothing in no difference, in one, or in differences around zero', () => {
    expect([pairedP([]), pairedP([3]), pairedP([0, 0]), pairedP([1, -1])]).toEqual([1, 1, 1, 1]);
  });

  test('the paired t-test is certain of equal differences', () => {
    expect(pairedP([0.5, 0.5, 0.5])).toBe(0);
  });

  test('the paired t-test is a probability, and does not mind the sign', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: -5, max: 5, noNaN: true }), { minLength: 2, maxLength: 20 }), (values) => {
        const p = pairedP(values);
        expect(p).toBeGreaterThanOrEqual(0);
        expect(p).toBeLessThanOrEqual(1);
        expect(pairedP(values.map((value) => -value))).toBeCloseTo(p, 12);
      }),
    );
  });
});

describe("Holm's correction", () => {
  test("Holm's correction multiplies the smallest by their number, the next by one less, and keeps the order", () => {
    expect(holm([0.01, 0.04, 0.03])).toEqual([0.03, 0.06, 0.06]);
    expect(holm([0.5, 0.9])).toEqual([1, 1]);
    expect(holm([])).toEqual([]);
  });
});

describe("Kendall's rank correlation", () => {
  test("Kendall's rank correlation is 1 for equal orders, -1 for the reverse, between for others", () => {
    expect(kendall([1, 2, 3, 4], [10, 20, 30, 40])).toBe(1);
    expect(kendall([1, 2, 3, 4], [4, 3, 2, 1])).toBe(-1);
    expect(kendall([1, 2, 3, 4], [1, 2, 4, 3])).toBeCloseTo(4 / 6, 12);
  });

  test("Kendall's rank correlation counts ties in neither direction", () => {
    expect(kendall([1, 1, 2], [1, 2, 3])).toBeCloseTo(2 / Math.sqrt(2 * 3), 12);
  });
});
