import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  BACKOFF_MS_MAX,
  backoffMs,
  nextPollMs,
  startsPerTick,
  tickMs,
} from '../../dist/src/pool/sources/poll-schedule.js';

const interval = fc.integer({ min: 1, max: 60_000 });
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe('poll schedule', () => {
  it('the poll schedule polls a tenth around the interval after the start of the poll before', () => {
    expect([nextPollMs(1000, 50, () => 0), nextPollMs(1000, 50, () => 0.5)]).toEqual([1045, 1050]);
    fc.assert(
      fc.property(interval, chance, (ms, at) => {
        const next = nextPollMs(0, ms, () => at);
        expect(next).toBeGreaterThanOrEqual(ms * 0.9);
        expect(next).toBeLessThanOrEqual(ms * 1.1 + 1e-6);
      }),
    );
  });

  it('the poll schedule doubles the pause with every failure in a row, up to two seconds', () => {
    const pauses = [1, 2, 3, 4, 5, 6, 7, 1000].map((failures) => backoffMs(failures, 50, () => 1));
    expect(pauses).toEqual([100, 200, 400, 800, 1600, BACKOFF_MS_MAX, BACKOFF_MS_MAX, BACKOFF_MS_MAX]);
  });

  it('the poll schedule never asks a failing endpoint more often than one that answers', () => {
    fc.assert(
      fc.property(interval, fc.integer({ min: 1, max: 2000 }), chance, (ms, failures, at) => {
        const pause = backoffMs(failures, ms, () => at);
        expect(pause).toBeGreaterThanOrEqual(ms);
        expect(pause).toBeLessThanOrEqual(Math.max(ms, BACKOFF_MS_MAX));
      }),
    );
  });

  it('the poll schedule starts twice the share of a tick at most, and always at least one', () => {
    expect([tickMs(50), tickMs(10), tickMs(5000)]).toEqual([5, 5, 100]);
    expect([startsPerTick(100, 50), startsPerTick(1, 5000)]).toEqual([20, 1]);
  });
});
