import { describe, expect, it } from 'vitest';
import { ArmComparison } from '../../dist/src/adaptation/arm-comparison.js';
import type { Arm } from '../../dist/src/adaptation/comparison.js';

const epoch = (arm: Arm, result: number, goodput?: number) => ({
  arm,
  result,
  promptTokens: 1_000,
  requests: 10,
  shortfall: goodput === undefined ? undefined : -Math.log(goodput),
});

describe('the comparison of both arms', () => {
  it('the comparison of both arms goes by cost where requests have no targets', () => {
    const arms = new ArmComparison();
    for (let i = 0; i < 20; i++) arms.add(epoch(i % 2 === 0 ? 'static' : 'learned', i % 2 === 0 ? 0 : -0.2));
    expect(arms.measure).toBe('cost');
    expect(arms.decisive.gap.mean).toBeCloseTo(-0.2, 1);
    expect(arms.goodputGap).toBeUndefined();
    expect(arms.goodputOf('learned')).toBeUndefined();
  });

  it('the comparison of both arms goes by goodput where they have, whatever the cost says', () => {
    const arms = new ArmComparison();
    for (let i = 0; i < 40; i++) {
      arms.add(i % 2 === 0 ? epoch('static', 0, 0.8) : epoch('learned', 0.3, 0.9));
    }
    expect(arms.measure).toBe('goodput');
    expect(arms.cost.gap.mean).toBeGreaterThan(0.2);
    expect(arms.decisive.gap.mean).toBeCloseTo(Math.log(0.8 / 0.9), 1);
    expect(arms.goodputOf('static')).toBeCloseTo(0.8, 3);
    expect(arms.goodputOf('learned')).toBeCloseTo(0.9, 3);
  });

  it('the comparison of both arms forgets the goodput of learned costs that were taken back', () => {
    const arms = new ArmComparison();
    for (let i = 0; i < 10; i++) arms.add(i % 2 === 0 ? epoch('static', 0, 0.8) : epoch('learned', 0, 0.5));
    arms.forgetGap();
    expect(arms.decisive.epochs('learned')).toBe(0);
    expect(arms.goodputOf('learned')).toBeUndefined();
    expect(arms.goodputOf('static')).toBeCloseTo(0.8, 3);
  });
});
