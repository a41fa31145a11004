import { describe, expect, it } from 'vitest';
import { Ceilings } from '../../dist/src/flow-control/policies/usage-limits.js';

describe('the static usage limit', () => {
  it('the static usage limit is the same for all priorities', () => {
    expect(new Ceilings({ kind: 'static', threshold: 0.8 }).at([10, 0, -5], 0.3)).toEqual([0.8, 0.8, 0.8]);
  });
});

describe('the priority holdback', () => {
  const holdback = (domain: 'rank' | 'value') =>
    new Ceilings({ kind: 'holdback', domain, minCeiling: 0.5, maxCeiling: 0.9 });

  it('the priority holdback goes down in equal steps by rank', () => {
    expect(holdback('rank').at([100, 10, 0], 0)).toEqual([0.9, 0.7, 0.5]);
  });

  it('the priority holdback goes down with the value of the priority', () => {
    expect(holdback('value').at([100, 90, 0], 0)).toEqual([0.9, expect.closeTo(0.86), 0.5]);
  });

  it('the priority holdback gives a single priority the highest ceiling', () => {
    expect([holdback('rank').at([7], 0), holdback('value').at([7], 0)]).toEqual([[0.9], [0.9]]);
  });
});

describe('the soft reflective ceiling', () => {
  it('the soft reflective ceiling falls with the saturation and the rank, and never holds the highest band back', () => {
    expect(new Ceilings({ kind: 'soft-reflective' }).at([2, 1, 0], 0.4)).toEqual([1, 0.8, 0.6]);
  });

  it('the soft reflective ceiling lets a band above its ceiling through at every second tick when the pool is two thirds full', () => {
    const ceilings = new Ceilings({ kind: 'soft-reflective' });
    const lowest = Array.from({ length: 6 }, () => ceilings.at([1, 0], 2 / 3)[1]);
    expect(lowest).toEqual([0, 1, 0, 1, 0, 1]);
  });

  it('the soft reflective ceiling is more seldom open the fuller the pool is, and shut when it is full', () => {
    const opened = (saturation: number) => {
      const ceilings = new Ceilings({ kind: 'soft-reflective' });
      return Array.from({ length: 90 }, () => ceilings.at([1, 0], saturation)[1]!).filter((each) => each > 0).length;
    };
    expect([opened(0.5), opened(0.75), opened(0.9), opened(1)]).toEqual([90, 30, 10, 0]);
  });

  it('the soft reflective ceiling is 1 for a single band', () => {
    expect(new Ceilings({ kind: 'soft-reflective' }).at([0], 0.99)).toEqual([1]);
  });
});
