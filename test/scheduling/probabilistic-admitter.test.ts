import { describe, expect, it } from 'vitest';
import type { EndpointSignals } from '../../dist/src/core/index.js';
import { probabilisticAdmitter } from '../../dist/src/scheduling/admitters/probabilistic-admitter.js';
import { HookPool } from './hook-pool.ts';

function outcome(signals: readonly EndpointSignals[], priority: number, random: number, parameters = {}): string {
  const pool = new HookPool([{ definition: probabilisticAdmitter, parameters }], signals);
  pool.random = random;
  return pool.pick({ priority });
}

const full = { waiting: 50, kvUsage: 1 };

describe('probabilistic-admitter', () => {
  it('probabilistic-admitter admits what is not sheddable however full the pool is', () => {
    expect(outcome([full], 0, 0)).toBe('pod-0');
    expect(outcome([full], 3, 0)).toBe('pod-0');
  });

  it('probabilistic-admitter turns sheddable requests away with 429 when the pool is full', () => {
    expect(outcome([full], -1, 0.999_999)).toBe('ResourceExhausted');
  });

  it('probabilistic-admitter admits all while nothing waits', () => {
    expect(outcome([{ waiting: 0, kvUsage: 0 }], -1, 0)).toBe('pod-0');
  });

  // One request waits on one of two endpoints, 0.16 of the cache is used on the other: saturation (0.2 + 0.2) / 2,
  // probability 0.2^5 × 300 = 0.096.
  it.each([
    [0.095, 'ResourceExhausted'],
    [0.097, 'placed'],
  ])(
    'probabilistic-admitter turns away in proportion to saturation^5 × 300: a draw of %d is %s',
    (random, expected) => {
      const signals = [
        { waiting: 1, kvUsage: 0.1 },
        { waiting: 0, kvUsage: 0.16 },
      ];
      const got = outcome(signals, -1, random);
      expect(got === 'ResourceExhausted' ? got : 'placed').toBe(expected);
    },
  );

  it('probabilistic-admitter takes its curve and thresholds from the parameters', () => {
    const parameters = { queueDepthThreshold: 10, kvCacheUtilThreshold: 1, power: 1, k: 1 };
    expect(outcome([{ waiting: 5, kvUsage: 0 }], -1, 0.51, parameters)).toBe('pod-0');
    expect(outcome([{ waiting: 5, kvUsage: 0 }], -1, 0.49, parameters)).toBe('ResourceExhausted');
  });

  it('probabilistic-admitter counts an endpoint without signals as full', () => {
    expect(outcome([{}], -1, 0.99)).toBe('ResourceExhausted');
  });

  it('probabilistic-admitter leaves a pool without endpoints to the scheduler', () => {
    expect(outcome([], -1, 0)).toBe('ServiceUnavailable');
  });
});
