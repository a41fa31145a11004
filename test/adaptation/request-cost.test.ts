import { describe, expect, it } from 'vitest';
import { requestCost } from '../../dist/src/adaptation/request-cost.js';
import { sample, usual } from './samples.ts';

describe('the cost of a request', () => {
  it('the cost of a request tells both times of a stream, by which the slowest hundredth is judged', () => {
    const cost = requestCost(sample({ firstOutputMs: 300, perTokenMs: 45 }), usual.model);
    expect(cost).toMatchObject({ firstOutputMs: 300, perTokenMs: 45, cost: 300 / 2000 + 45 / 60 });
  });

  it('the cost of an answer in one piece tells neither time', () => {
    const cost = requestCost(sample({ firstOutputMs: undefined, perTokenMs: undefined }), usual.model);
    expect([cost?.firstOutputMs, cost?.perTokenMs]).toEqual([undefined, undefined]);
    expect(cost?.cost).toBeGreaterThan(0);
  });

  it('the cost of a failed request is the worst, without times', () => {
    const cost = requestCost(sample({ outcome: 'failed' }), usual.model);
    expect(cost).toMatchObject({ cost: 20, promptTokens: 1000 });
    expect([cost?.firstOutputMs, cost?.perTokenMs]).toEqual([undefined, undefined]);
  });

  it.each([{}, { firstOutputMs: undefined }, { perTokenMs: undefined }, { outcome: 'failed' as const }])(
    'the cost of a request passes on whether it met its targets: %j',
    (rest) => {
      const given = { ...rest, targetsMet: false };
      expect(requestCost(sample(given), usual.model)?.targetsMet).toBe(false);
    },
  );
});
