import { describe, expect, it } from 'vitest';
import { TokenBuckets } from '../../dist/src/flow-control/token-buckets.js';

const LIMITS = [{ fairnessId: 'a', tokensPerSecond: 100, burstTokens: 1_000 }];

describe('buckets that several pickers share', () => {
  it('tokens that a tenant used elsewhere are gone here, and are not told again', () => {
    const buckets = new TokenBuckets(LIMITS);
    buckets.takeElsewhere('a', 1_000, 0);
    expect(buckets.waitFor('a', 100, 0)).toBe(1_000);
    expect(buckets.takeNews(10)).toEqual([]);
  });

  it('tokens used here are told as a sum, once for every change', () => {
    const buckets = new TokenBuckets(LIMITS);
    buckets.take('a', 10, 0);
    buckets.take('a', 20, 0);
    buckets.take('without a bucket', 5, 0);
    expect(buckets.takeNews(10)).toEqual([{ tenant: 'a', tokens: 30 }]);
    expect(buckets.takeNews(10)).toEqual([]);
    buckets.take('a', 5, 0);
    expect(buckets.takeNews(10)).toEqual([{ tenant: 'a', tokens: 35 }]);
  });

  it('tokens used here are told again where a report may have been lost, until the bucket is full', () => {
    const buckets = new TokenBuckets(LIMITS);
    buckets.take('a', 30, 0);
    buckets.takeElsewhere('b', 30, 0);
    expect(buckets.takeNews(10, 0)).toEqual([{ tenant: 'a', tokens: 30 }]);
    expect(buckets.takeNews(10, 299)).toEqual([{ tenant: 'a', tokens: 30 }]);
    expect(buckets.takeNews(10, 300)).toEqual([]);
  });

  it('tokens told again are within the bound of one report', () => {
    const buckets = new TokenBuckets([{ ...LIMITS[0]!, fairnessId: '*' }]);
    for (const tenant of ['a', 'b', 'c']) buckets.take(tenant, 100, 0);
    buckets.takeNews(10);
    expect(buckets.takeNews(2, 0)).toHaveLength(2);
  });

  it('tenants beyond the bound of one report are in the next', () => {
    const buckets = new TokenBuckets([{ ...LIMITS[0]!, fairnessId: '*' }]);
    for (const tenant of ['a', 'b', 'c']) buckets.take(tenant, 1, 0);
    expect(buckets.takeNews(2)).toHaveLength(2);
    expect(buckets.takeNews(2)).toEqual([{ tenant: 'c', tokens: 1 }]);
  });

  it('a picker that hears its peers has their shares of rate and size as well', () => {
    const buckets = new TokenBuckets(LIMITS);
    buckets.factor = 3;
    buckets.take('a', 3_000, 0);
    expect(buckets.waitFor('a', 300, 0)).toBe(1_000);
  });
});
