import { describe, expect, test } from 'vitest';
import { PlainLeastSquares } from '../../../../dist/tools/simulator/fleet/plain-least-squares.js';
import { RandomStream } from '../../../../dist/tools/simulator/fleet/random-stream.js';

describe('plain least squares', () => {
  test('plain least squares finds the coefficients of a line, and follows when they change', () => {
    const random = new RandomStream(1, 'line');
    const squares = new PlainLeastSquares(
      [
        { prior: 10, low: 0, high: 500 },
        { prior: 10, low: 1, high: 100 },
      ],
      1,
      0.99,
    );
    for (const [base, slope] of [
      [30, 40],
      [5, 80],
    ] as const) {
      for (let i = 0; i < 2_000; i++) {
        const x = 5 * random.uniform();
        squares.learn([1, x], base + slope * x + random.normal());
      }
      expect(Math.abs(squares.theta[0]! - base)).toBeLessThan(2);
      expect(Math.abs(squares.theta[1]! - slope)).toBeLessThan(1);
    }
  });

  test('plain least squares cuts coefficients to their bounds', () => {
    const squares = new PlainLeastSquares([{ prior: 10, low: 5, high: 20 }], 1, 0.99);
    for (let i = 0; i < 50; i++) squares.learn([1], 1_000);
    expect(squares.theta[0]).toBe(20);
  });
});
