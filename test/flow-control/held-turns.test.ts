import { describe, expect, it } from 'vitest';
import type { FlowControlSettings } from '../../dist/src/contract/queue-settings.js';
import type { DispatchResult, QueuedRequest } from '../../dist/src/flow-control/queue-contract.js';
import { QueueMachine } from '../../dist/src/flow-control/queue-machine.js';
import { PLAIN_BAND, request, settings } from './settings.js';

/** Queues with held turns, in front of rooms that a test gives away. */
class HoldingQueue {
  readonly machine: QueueMachine;
  nowMs = 0;

  constructor(given: Partial<FlowControlSettings> = {}) {
    this.machine = new QueueMachine(settings(given), 0, { requests: 256, flows: 64 });
  }

  hold(reference: number, given: Partial<QueuedRequest> = {}): number {
    return this.machine.enqueue(request({ reference, held: true, ...given }), this.nowMs);
  }

  /** Tries held turns. @returns references in the order in which they were tried */
  try(answer: (reference: number) => DispatchResult = () => 'held', triesMax = 256): readonly number[] {
    const tried: number[] = [];
    const tryDispatch = (_handle: number, reference: number, _priority: number, only: number) => {
      expect(only).toBe(-1);
      tried.push(reference);
      return answer(reference);
    };
    this.machine.dispatchHeld(tryDispatch, this.nowMs, triesMax);
    return tried;
  }
}

describe('held turns', () => {
  it('held turns are tried by their wait for the root of the tokens of their prompt', () => {
    const queue = new HoldingQueue();
    queue.hold(1, { promptTokens: 60_000 });
    queue.nowMs = 1_000;
    queue.hold(2, { promptTokens: 9_000 });
    queue.hold(3, { promptTokens: 99_000 });
    queue.nowMs = 2_000;
    expect(queue.try()).toEqual([2, 1, 3]);
    queue.nowMs = 1_000_000;
    expect(queue.try()).toEqual([2, 1, 3]);
  });

  it('a prompt of four times the tokens is tried first after twice the wait', () => {
    const longFirst = (waitedMs: number) => {
      const queue = new HoldingQueue();
      queue.hold(1, { promptTokens: 83_000 });
      queue.nowMs = waitedMs - 10_000;
      queue.hold(2, { promptTokens: 20_000 });
      queue.nowMs = waitedMs;
      return queue.try()[0] === 1;
    };
    expect([longFirst(19_000), longFirst(21_000)]).toEqual([false, true]);
  });

  it('a long wait makes up for a long prompt', () => {
    const queue = new HoldingQueue();
    queue.hold(1, { promptTokens: 60_000 });
    queue.nowMs = 50_000;
    queue.hold(2, { promptTokens: 20_000 });
    queue.nowMs = 60_000;
    expect(queue.try()).toEqual([1, 2]);
  });

  it('one without room is passed over, and those dispatched leave', () => {
    const queue = new HoldingQueue();
    for (const reference of [1, 2, 3]) queue.hold(reference);
    queue.nowMs = 10;
    expect(queue.try((reference) => (reference === 1 ? 'held' : 'dispatched'))).toEqual([1, 2, 3]);
    expect(queue.try()).toEqual([1]);
    expect([queue.machine.held, queue.machine.waiting]).toEqual([1, 1]);
  });

  it('held turns are tried band by band, highest first', () => {
    const queue = new HoldingQueue();
    queue.hold(1, { priority: 0 });
    queue.hold(2, { priority: 7 });
    queue.hold(3, { priority: -7 });
    expect(queue.try()).toEqual([2, 1, 3]);
  });

  it('held turns of a fair band are tried from the flow with the fewest served tokens on', () => {
    const fair = { ...PLAIN_BAND, fairness: { kind: 'start-time', weights: {} } } as const;
    const queue = new HoldingQueue({ bands: [{ priority: 0, ...fair }], fallback: fair });
    for (const reference of [1, 2, 3]) queue.hold(reference, { flow: 'many', promptTokens: 1_000 });
    queue.hold(4, { flow: 'few', promptTokens: 90_000 });
    queue.nowMs = 10_000;
    expect(queue.try((reference) => (reference === 1 ? 'dispatched' : 'held'))).toEqual([1, 2, 3, 4]);
    expect(queue.try()).toEqual([4, 2, 3]);
  });

  it('another order of the band than that of arrival holds for held turns too', () => {
    const band = { ...PLAIN_BAND, ordering: { kind: 'deadline' } } as const;
    const queue = new HoldingQueue({ bands: [{ priority: 0, ...band }], fallback: band });
    queue.hold(1, { promptTokens: 10, deadlineMs: 9_000 });
    queue.hold(2, { promptTokens: 90_000, deadlineMs: 8_000 });
    queue.nowMs = 1_000;
    expect(queue.try()).toEqual([2, 1]);
  });

  it('a look tries no more held turns than its bound', () => {
    const queue = new HoldingQueue();
    for (const reference of [1, 2, 3]) queue.hold(reference);
    expect(queue.try(() => 'held', 2)).toEqual([1, 2]);
  });

  it('a look ends when no dispatch is possible now', () => {
    const queue = new HoldingQueue();
    for (const reference of [1, 2]) queue.hold(reference);
    expect(queue.try(() => 'later')).toEqual([1]);
    expect(queue.machine.held).toBe(2);
  });

  it('held turns do not hold up other requests, nor are they dispatched among them', () => {
    const queue = new HoldingQueue();
    queue.hold(1);
    queue.machine.enqueue(request({ reference: 2 }), 0);
    const tried: number[] = [];
    const tryDispatch = (_handle: number, reference: number): DispatchResult => {
      tried.push(reference);
      return 'dispatched';
    };
    queue.machine.dispatch(tryDispatch, 0, 256);
    expect(tried).toEqual([2]);
    expect(queue.machine.held).toBe(1);
  });

  it('a waiting request whose session has lost its room is held from then on', () => {
    const queue = new HoldingQueue();
    queue.machine.enqueue(request({ reference: 1 }), 0);
    queue.machine.enqueue(request({ reference: 2 }), 0);
    queue.machine.dispatch((_handle, reference) => (reference === 1 ? 'held' : 'dispatched'), 0, 256);
    expect(queue.try()).toEqual([1]);
    expect(queue.machine.waiting).toBe(1);
  });

  it('a held turn whose client gives up before room is expected is refused at once', () => {
    const queue = new HoldingQueue();
    for (let reference = 0; reference < 20; reference++) queue.hold(reference, { uncachedTokens: 1_000 });
    for (; queue.nowMs < 10_000; queue.nowMs += 1_000) {
      let served = 0;
      queue.try(() => (served++ === 0 ? 'dispatched' : 'held'));
    }
    // 10 turns wait, and one is served each second.
    expect(queue.hold(30, { deadlineMs: queue.nowMs + 3_000 })).toBe(-1);
    expect(queue.machine.refusal).toMatchObject({ cause: 'expected-wait', limit: 3_000 });
    expect(queue.machine.refusal.retryAfterSeconds).toBeGreaterThan(5);
    expect(queue.hold(31, { deadlineMs: queue.nowMs + 60_000 })).toBeGreaterThan(0);
  });

  it('a held turn beyond the tokens of its tenant is refused, and one that is held has paid them', () => {
    const queue = new HoldingQueue({ tenantLimits: [{ fairnessId: 'f', tokensPerSecond: 100, burstTokens: 1_000 }] });
    expect(queue.hold(1, { uncachedTokens: 900 })).not.toBe(-1);
    expect(queue.hold(2, { uncachedTokens: 900 })).toBe(-1);
    expect(queue.machine.refusal).toMatchObject({ cause: 'tenant-limit' });
    expect(queue.hold(3, { uncachedTokens: 900, flow: 'other' })).not.toBe(-1);
    queue.nowMs = 9_000;
    expect(queue.hold(4, { uncachedTokens: 800 })).not.toBe(-1);
  });

  it('held turns count for the bounds of their band and of the pool', () => {
    const limits = { requests: 2, bytes: Infinity, tokens: Infinity };
    const queue = new HoldingQueue({ limits });
    for (const reference of [1, 2]) expect(queue.hold(reference)).not.toBe(-1);
    expect(queue.hold(3)).toBe(-1);
    expect(queue.machine.refusal).toMatchObject({ cause: 'pool-requests', limit: 2 });
  });

  it('a turn that would be held longer than the longest expected wait is refused at once', () => {
    const queue = new HoldingQueue({ maxExpectedWaitMs: 5_000 });
    for (let reference = 0; reference < 4; reference++) queue.hold(reference, { uncachedTokens: 1_000 });
    for (; queue.nowMs < 3_000; queue.nowMs += 1_000) queue.try(() => 'held');
    let served = 0;
    queue.try(() => (served++ === 0 ? 'dispatched' : 'held'));
    queue.nowMs += 1_000;
    expect(queue.hold(9)).toBe(-1);
    expect(queue.machine.refusal).toMatchObject({ cause: 'expected-wait', limit: 5_000 });
  });

  it('a held turn ends with its time to live', () => {
    const queue = new HoldingQueue({ ttlMs: 5_000 });
    queue.hold(1);
    const over: [number, string][] = [];
    queue.machine.expire(5_001, (_handle, reference, outcome) => over.push([reference, outcome]));
    expect(over).toEqual([[1, 'EvictedTTL']]);
    expect([queue.machine.held, queue.machine.waiting]).toEqual([0, 0]);
  });

  it('a held turn whose client leaves is held no more', () => {
    const queue = new HoldingQueue();
    const handle = queue.hold(1);
    expect(queue.machine.cancel(handle, 1)).toBe(true);
    expect(queue.try()).toEqual([]);
  });

  it('a dispatched turn that could not use its endpoint is held again', () => {
    const queue = new HoldingQueue();
    const handle = queue.hold(1);
    queue.try(() => 'dispatched');
    expect(queue.machine.requeue(handle, undefined, 1, true)).toBe(true);
    expect(queue.try()).toEqual([1]);
  });

  it('other settings leave held turns where a look finds that they have no room', () => {
    const queue = new HoldingQueue();
    queue.hold(1);
    const band = { ...PLAIN_BAND, fairness: { kind: 'round-robin' } } as const;
    expect(queue.machine.configure(settings({ bands: [{ priority: 0, ...band }], fallback: band }), 1)).toBe(true);
    queue.machine.dispatch(() => 'held', 1, 256);
    expect(queue.try()).toEqual([1]);
  });

  it('a shutdown answers held turns too', () => {
    const queue = new HoldingQueue();
    queue.hold(1);
    const over: number[] = [];
    queue.machine.evictAll((_handle, reference) => over.push(reference), 1);
    expect(over).toEqual([1]);
    expect(queue.machine.held).toBe(0);
  });
});
