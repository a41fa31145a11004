import { describe, expect, it } from 'vitest';
import { Projection } from '../../dist/src/adaptation/projection.js';
import type { ProjectionSums } from '../../dist/src/core/index.js';
import { row } from './samples.ts';

/** Sums of `count` decisions over six endpoints whose cost is -Σ truth × score, with noise. */
function decisions(truth: readonly number[], count: number, before?: ProjectionSums, seed = 1): ProjectionSums {
  const random = row(seed);
  const size = truth.length;
  const products = truth.map((_, i) => truth.map((__, j) => before?.products[i]?.[j] ?? 0));
  const costs = truth.map((_, i) => before?.costs[i] ?? 0);
  for (let k = 0; k < count; k++) {
    const scores = Array.from({ length: 6 }, () => truth.map(() => random()));
    const cost = scores.map((each) => -each.reduce((sum, s, i) => sum + s * truth[i]!, 0) + 0.05 * (random() - 0.5));
    const centred = (values: readonly number[]) => {
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      return values.map((value) => value - mean);
    };
    const columns = Array.from({ length: size }, (_, i) => centred(scores.map((each) => each[i]!)));
    const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < size; j++) products[i]![j]! += dot(columns[i]!, columns[j]!);
      costs[i]! += dot(columns[i]!, centred(cost));
    }
  }
  return { samples: (before?.samples ?? 0) + count, products, costs };
}

/** Lets a projection see 30 decisions a second for so many seconds. */
function settle(projection: Projection, truth: readonly number[], seconds: number, from?: ProjectionSums) {
  let sums = from;
  for (let second = 0; second < seconds; second++) {
    sums = decisions(truth, 30, sums, second + 1);
    projection.update(sums, 1);
  }
  return sums;
}

describe('a projection', () => {
  it('a projection comes to the proportions of the cost, with the sum of the configured weights', () => {
    const projection = new Projection([2, 2, 3]);
    settle(projection, [0.1, 0.6, 0.3], 120);
    const [a, b, c] = projection.weights;
    expect(a! + b! + c!).toBeCloseTo(7, 6);
    expect(a! / 7).toBeCloseTo(0.1, 1);
    expect(b! / 7).toBeCloseTo(0.6, 1);
    expect(c! / 7).toBeCloseTo(0.3, 1);
  });

  it('a projection moves a weight by a tenth a second at most', () => {
    const projection = new Projection([1, 1]);
    let before = projection.weights;
    let sums: ProjectionSums | undefined;
    for (let second = 1; second <= 40; second++) {
      sums = decisions([0.01, 1], 200, sums, second);
      projection.update(sums, 1);
      for (const [i, weight] of projection.weights.entries()) {
        // A tenth, and what keeping the sum adds to it.
        expect(Math.abs(Math.log(weight / before[i]!))).toBeLessThan(0.2);
      }
      before = projection.weights;
    }
  });

  it('a projection gives a scorer that points the wrong way next to nothing, and lets it come back', () => {
    const projection = new Projection([3, 3]);
    const sums = settle(projection, [-0.5, 1], 120);
    expect(projection.weights[0]! / 6).toBeLessThan(0.02);
    expect(projection.weights[0]!).toBeGreaterThan(0);
    settle(projection, [1, 0.5], 120, sums);
    expect(projection.weights[0]!).toBeGreaterThan(projection.weights[1]!);
  });

  it('a projection leaves the configured weights until it has seen enough, and when nothing tells endpoints apart', () => {
    const projection = new Projection([2, 3]);
    projection.update(decisions([1, 0], 20), 1);
    expect(projection.weights).toEqual([2, 3]);
    const blank = {
      samples: 1000,
      products: [
        [0, 0],
        [0, 0],
      ],
      costs: [0, 0],
    };
    const still = new Projection([2, 3]);
    still.update(blank, 1);
    expect(still.weights.map((weight) => Math.round(weight * 1e6) / 1e6)).toEqual([2, 3]);
  });

  it('a projection goes back to the configured weights when it is reset', () => {
    const projection = new Projection([2, 3]);
    settle(projection, [1, 0.1], 60);
    projection.reset();
    expect(projection.weights).toEqual([2, 3]);
    expect(projection.samples).toBe(0);
  });
});
