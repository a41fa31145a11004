import { describe, expect, it } from 'vitest';
import type { BandSettings, FlowControlSettings } from '../../dist/src/contract/queue-settings.js';
import { RetryAfter } from '../../dist/src/flow-control/expected-wait.js';
import { NO_HANDLE } from '../../dist/src/flow-control/queue-contract.js';
import { QueueMachine } from '../../dist/src/flow-control/queue-machine.js';
import { TokenBuckets } from '../../dist/src/flow-control/token-buckets.js';
import { PLAIN_BAND, request, settings } from './settings.js';

/** A band that drains at ten requests of 100 tokens a second for five seconds, with 1,000 that wait. */
function backlog(given: Partial<FlowControlSettings> = {}, flows = 1): QueueMachine {
  const queue = new QueueMachine(settings(given), 0, { requests: 4_096, flows: 64 });
  for (let i = 0; i < 1_050; i++) queue.enqueue(request({ uncachedTokens: 99, flow: `f${i % flows}` }), 0);
  for (let ms = 100; ms <= 5_000; ms += 100) queue.dispatch(() => 'dispatched', ms, 1);
  return queue;
}

describe('the expected wait', () => {
  it('the expected wait is unknown until the band has drained for half a second, and none before an empty band', () => {
    const queue = new QueueMachine(settings(), 0, { requests: 64, flows: 8 });
    const handle = queue.enqueue(request(), 0);
    expect(queue.position(handle, 499)).toEqual({ ahead: 0, expectedWaitMs: undefined });
    queue.dispatch(() => 'dispatched', 100, 9);
    expect(queue.position(queue.enqueue(request(), 600), 600)!.ahead).toBe(0);
  });

  it('the expected wait is what waits over the rate at which it drains', () => {
    const queue = backlog();
    const position = queue.position(queue.enqueue(request({ uncachedTokens: 99 }), 5_000), 5_000)!;
    expect(position.ahead).toBe(1_000);
    expect(position.expectedWaitMs! / 100_000).toBeGreaterThan(0.9);
    expect(position.expectedWaitMs! / 100_000).toBeLessThan(1.15);
  });

  it('the expected wait of a new flow among fair ones is short, since it has its turn at once', () => {
    const fairness = { kind: 'start-time', weights: {} } as const;
    const queue = backlog({ fallback: { ...PLAIN_BAND, fairness }, maxExpectedWaitMs: 60_000 }, 10);
    expect(queue.enqueue(request({ flow: 'f1' }), 5_000)).toBe(NO_HANDLE);
    expect(queue.refusal.cause).toBe('expected-wait');
    expect(queue.enqueue(request({ flow: 'new' }), 5_000)).not.toBe(NO_HANDLE);
  });

  it('the expected wait refuses a request early that would wait too long, and says when to come again', () => {
    const queue = backlog({ maxExpectedWaitMs: 30_000 });
    expect(queue.enqueue(request(), 5_000)).toBe(NO_HANDLE);
    expect(queue.refusal).toMatchObject({ outcome: 'RejectedCapacity', cause: 'expected-wait', retryAfterSeconds: 60 });
    expect(queue.enqueue(request({ priority: 1 }), 5_000)).not.toBe(NO_HANDLE);
  });

  it('the expected wait grows when nothing leaves any more', () => {
    const queue = backlog();
    const handle = queue.enqueue(request(), 5_000);
    const before = queue.position(handle, 5_000)!.expectedWaitMs!;
    expect(queue.position(handle, 20_000)!.expectedWaitMs!).toBeGreaterThan(10 * before);
  });
});

describe('Retry-After', () => {
  it('Retry-After is 1 to 60 whole seconds, 1.3 to 1.56 times the expected wait', () => {
    const retry = new RetryAfter(7);
    expect([retry.seconds(undefined), retry.seconds(0), retry.seconds(Infinity)]).toEqual([1, 1, 60]);
    const all = Array.from({ length: 100 }, () => retry.seconds(20_000));
    expect(Math.min(...all)).toBeGreaterThanOrEqual(26);
    expect(Math.max(...all)).toBeLessThanOrEqual(32);
    expect(new Set(all).size).toBeGreaterThan(3);
  });
});

describe('token buckets', () => {
  const named = { fairnessId: 'a', tokensPerSecond: 100, burstTokens: 300 };

  it('token buckets let a tenant use its burst, then its rate', () => {
    const buckets = new TokenBuckets([named]);
    buckets.take('a', 300, 0);
    expect([buckets.waitFor('a', 50, 0), buckets.waitFor('a', 50, 250), buckets.waitFor('a', 50, 500)]).toEqual([
      500, 250, 0,
    ]);
    expect([buckets.waitFor('b', 1e9, 0), buckets.limits('b')]).toEqual([0, false]);
  });

  it('token buckets let a request through that is larger than the bucket, and let it be paid back', () => {
    const buckets = new TokenBuckets([named]);
    expect(buckets.waitFor('a', 900, 0)).toBe(0);
    buckets.take('a', 900, 0);
    expect(buckets.waitFor('a', 1, 0)).toBe(6_010);
  });

  it('token buckets of tenants that are not named are each their own, and bounded', () => {
    const buckets = new TokenBuckets([named, { fairnessId: '*', tokensPerSecond: 1, burstTokens: 10 }]);
    buckets.take('x', 10, 0);
    expect([buckets.waitFor('x', 10, 0), buckets.waitFor('y', 10, 0)]).toEqual([10_000, 0]);
    for (let i = 0; i < 100_500; i++) buckets.take(`t${i}`, 5, i);
    expect(buckets.size).toBe(100_000);
  });

  it('token buckets make the queue refuse with the time until there are tokens again, and refused ones take none', () => {
    const queue = new QueueMachine(settings({ tenantLimits: [named] }), 0, { requests: 64, flows: 8 });
    expect([queue.limitsTenant('a'), queue.limitsTenant('f')]).toEqual([true, false]);
    const ask = () => queue.enqueue(request({ flow: 'a', uncachedTokens: 199 }), 0);
    expect(ask()).not.toBe(NO_HANDLE);
    expect([ask(), ask()]).toEqual([NO_HANDLE, NO_HANDLE]);
    expect(queue.refusal).toMatchObject({ outcome: 'RejectedCapacity', cause: 'tenant-limit', retryAfterSeconds: 2 });
    expect(queue.enqueue(request({ flow: 'f', uncachedTokens: 199 }), 0)).not.toBe(NO_HANDLE);
  });
});

describe('a band without a bound on tokens', () => {
  const limits = { ...PLAIN_BAND.limits, tokensByRate: true };
  const ordering = PLAIN_BAND.ordering;
  const byRate = (ttlMs: number, fairness: BandSettings['fairness'] = { kind: 'global-strict' }) => ({
    ttlMs,
    fallback: { limits, ordering, fairness },
  });

  it('a band without a bound on tokens takes what it drains within the time to live, and no more', () => {
    // 1,000 requests wait, ten leave a second.
    expect(backlog(byRate(120_000)).enqueue(request(), 5_000)).not.toBe(NO_HANDLE);
    const queue = backlog(byRate(50_000));
    expect(queue.enqueue(request(), 5_000)).toBe(NO_HANDLE);
    expect(queue.refusal).toMatchObject({ outcome: 'RejectedCapacity', cause: 'band-rate', retryAfterSeconds: 60 });
    expect(queue.refusal.used).toBeGreaterThan(queue.refusal.limit);
  });

  it('a band without a bound on tokens is bounded by the best rate of the last minutes, so that a pause loses no request', () => {
    const queue = backlog(byRate(120_000));
    expect(queue.position(queue.enqueue(request(), 5_000), 15_000)!.expectedWaitMs!).toBeGreaterThan(500_000);
    expect(queue.enqueue(request(), 15_000)).not.toBe(NO_HANDLE);
    expect(queue.enqueue(request(), 125_000)).toBe(NO_HANDLE);
  });

  it('a band without a bound on tokens takes a fair flow for what is ahead of it, whatever others have waiting', () => {
    const queue = backlog(byRate(50_000, { kind: 'start-time', weights: {} }));
    expect(queue.enqueue(request({ flow: 'f0' }), 5_000)).toBe(NO_HANDLE);
    expect(queue.enqueue(request({ flow: 'new' }), 5_000)).not.toBe(NO_HANDLE);
  });

  it('a band without a bound on tokens takes everything while the rate is unknown, the pool is empty or waits have no end', () => {
    const unknown = new QueueMachine(settings(byRate(1)), 0, { requests: 64, flows: 8 });
    for (let i = 0; i < 9; i++) expect(unknown.enqueue(request({ uncachedTokens: 1e6 }), 0)).not.toBe(NO_HANDLE);
    const empty = backlog(byRate(50_000));
    empty.poolEmpty(true, 5_000);
    expect(empty.enqueue(request(), 5_000)).not.toBe(NO_HANDLE);
    expect(backlog(byRate(Infinity)).enqueue(request(), 5_000)).not.toBe(NO_HANDLE);
  });
});

describe('a refused request', () => {
  it('a refused request is told when to come again: when its time is over, what its band would need', () => {
    const queue = backlog({ ttlMs: 5_001 });
    const told: number[] = [];
    queue.expire(5_001, (_handle, _reference, _outcome, _priority, seconds) => told.push(seconds));
    expect(told).toHaveLength(1_000);
    expect(told[0]).toBe(60);
    // What is left before the last ones is soon gone.
    expect(told.at(-1)).toBe(1);
  });

  it('a refused request is told so at a shutdown too, in the order of service', () => {
    const queue = backlog();
    const told: number[] = [];
    queue.evictAll((_handle, _reference, _priority, seconds) => told.push(seconds), 5_000);
    expect(told).toHaveLength(1_000);
    expect(told[0]).toBe(1);
    // 200 requests at ten a second: 20 s, with a margin of 30 % and up to 20 % of jitter.
    expect(told[199]).toBeGreaterThanOrEqual(24);
    expect(told[199]).toBeLessThanOrEqual(34);
    expect(told.at(-1)).toBe(60);
  });

  it('a refused request is told 1 second when nothing is known', () => {
    const queue = new QueueMachine(settings({ ttlMs: 10 }), 0, { requests: 64, flows: 8 });
    queue.enqueue(request(), 0);
    queue.expire(10, (_handle, _reference, outcome, _priority, seconds) =>
      expect([outcome, seconds]).toEqual(['EvictedTTL', 1]),
    );
  });
});
