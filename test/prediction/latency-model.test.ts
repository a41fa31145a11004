import { describe, expect, it } from 'vitest';
import { LatencyModel } from '../../dist/src/prediction/latency-model.js';
import { latencyPriors } from '../../dist/src/prediction/latency-priors.js';

const priors = latencyPriors({ prefillTokensPerSecond: 20_000, tpotMs: 10 });
const idle = [1, 2, 0, 0, 0, 0, 2];

function predict(coefficients: { readonly ttft: ArrayLike<number> }, features: readonly number[]): number {
  return features.reduce((sum, feature, i) => sum + coefficients.ttft[i]! * feature, 0);
}

/** Answers whose time to first token is `base` and `each` for a thousand uncached tokens. */
function teach(model: LatencyModel, slot: number, base: number, each: number, count = 300): void {
  for (let i = 0; i < count; i++) {
    const tokens = 0.5 + (i % 7);
    const features = [1, tokens, 0, 0, i % 3, 0, tokens];
    model.observe(slot, 1, { features, ttftMs: base + each * tokens, tpotMs: 12 });
  }
}

describe('the latency model', () => {
  it('the latency model predicts from the throughput before it has learned', () => {
    expect(predict(new LatencyModel(priors).pool, idle)).toBe(25 + 2 * 50);
    expect(new LatencyModel(priors).endpoint(0, 1)).toBeUndefined();
  });

  it('the latency model learns the first token and the single tokens of an endpoint', () => {
    const model = new LatencyModel(priors);
    teach(model, 0, 100, 30);
    expect(predict(model.endpoint(0, 1)!, idle)).toBeCloseTo(160, -1);
    expect(model.endpoint(0, 1)!.tpot[0]).toBeCloseTo(12, 0);
    expect(model.observations).toEqual({ ttft: 300, tpot: 300 });
  });

  it('the latency model predicts an unseen endpoint as the pool, and a slow one apart from it', () => {
    const model = new LatencyModel(priors);
    for (let round = 0; round < 10; round++) {
      teach(model, 0, 50, 20, 30);
      teach(model, 1, 50, 20, 30);
      teach(model, 2, 400, 200, 30);
    }
    expect(predict(model.endpoint(0, 1)!, idle)).toBeLessThan(150);
    expect(predict(model.endpoint(2, 1)!, idle)).toBeGreaterThan(500);
    const unseen = predict(model.pool, idle);
    expect(unseen).toBeGreaterThan(80);
    expect(unseen).toBeLessThan(800);
  });

  it('the latency model starts an endpoint where the pool is', () => {
    const model = new LatencyModel(priors);
    teach(model, 0, 300, 10, 2000);
    model.observe(7, 1, { features: idle, ttftMs: 320, tpotMs: undefined });
    expect(predict(model.endpoint(7, 1)!, idle)).toBeCloseTo(320, -2);
  });

  it('the latency model begins anew when a slot changes hands', () => {
    const model = new LatencyModel(priors);
    teach(model, 0, 900, 500);
    teach(model, 1, 50, 20);
    model.observe(0, 2, { features: idle, ttftMs: 90, tpotMs: undefined });
    expect(model.endpoint(0, 1)).toBeUndefined();
    expect(model.endpoint(0, 2)).toBeDefined();
  });

  it.each([0, -5, Number.NaN, Number.POSITIVE_INFINITY, 3_600_001])(
    'the latency model does not learn from %d ms',
    (ttftMs) => {
      const model = new LatencyModel(priors);
      model.observe(0, 1, { features: idle, ttftMs, tpotMs: undefined });
      expect(predict(model.endpoint(0, 1)!, idle)).toBeCloseTo(125, 6);
      expect(model.ignored).toBe(1);
      expect(model.observations.ttft).toBe(0);
    },
  );
});
