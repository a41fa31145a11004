import { describe, expect, test } from 'vitest';
import { DiscountedBandit } from '../../../dist/simulator/fleet/discounted-bandit.js';
import { PlainLeastSquares } from '../../../dist/simulator/fleet/plain-least-squares.js';
import { RandomStream } from '../../../dist/simulator/fleet/random-stream.js';

describe('a discounted bandit', () => {
  const share = (bandit: DiscountedBandit, plays: number, result: (arm: number) => number, of: number) => {
    let chosen = 0;
    for (let i = 0; i < plays; i++) {
      if (bandit.arm === of) chosen++;
      bandit.played(result(bandit.arm));
    }
    return chosen / plays;
  };

  test('plays every arm once, and then mostly the one with the lowest results', () => {
    const bandit = new DiscountedBandit(4);
    const first = Array.from({ length: 4 }, () => {
      const { arm } = bandit;
      bandit.played(arm === 2 ? 0 : 0.5);
      return arm;
    });
    expect(first).toEqual([0, 1, 2, 3]);
    expect(share(bandit, 100, (arm) => (arm === 2 ? 0 : 0.5), 2)).toBeGreaterThan(0.6);
  });

  test('changes over when another arm becomes the best', () => {
    const bandit = new DiscountedBandit(3);
    share(bandit, 60, (arm) => (arm === 0 ? 0 : 0.5), 0);
    expect(share(bandit, 100, (arm) => (arm === 1 ? 0 : 0.5), 1)).toBeGreaterThan(0.4);
  });
});

describe('plain least squares', () => {
  test('finds the coefficients of a line, and follows when they change', () => {
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

  test('cuts coefficients to their bounds', () => {
    const squares = new PlainLeastSquares([{ prior: 10, low: 5, high: 20 }], 1, 0.99);
    for (let i = 0; i < 50; i++) squares.learn([1], 1_000);
    expect(squares.theta[0]).toBe(20);
  });
});
