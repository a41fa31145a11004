import { describe, expect, test } from 'vitest';
import { highestLoad } from '../../../dist/tools/simulator/suite/suite-run.js';

const settings = { goodput: 0.9, from: 0.25, to: 4, steps: 10 };
const until = (limit: number) => (load: number) => ({
  summary: { goodput: load <= limit ? 1 : 0.5, requestsPerSecond: 10 * load },
});

describe('the most load that is carried', () => {
  test.each([0.3, 1, 1.7, 3.9])('the most load that is carried is found by halving the range: %d', (limit) => {
    const { run, capacity } = highestLoad(settings, until(limit));
    expect(capacity.load).toBeLessThanOrEqual(limit);
    expect(capacity.load).toBeGreaterThan(limit * 0.99);
    expect(capacity.requestsPerSecond).toBe(run.summary.requestsPerSecond);
  });

  test('the most load that is carried is none when even the lowest is too much', () => {
    expect(highestLoad(settings, until(0.1)).capacity).toEqual({ load: 0, requestsPerSecond: 0 });
  });
});
