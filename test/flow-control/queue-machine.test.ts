import { beforeEach, describe, expect, it } from 'vitest';
import type { FlowControlSettings } from '../../dist/src/contract/queue-settings.js';
import { type DispatchResult, NO_HANDLE, type QueuedRequest } from '../../dist/src/flow-control/queue-contract.js';
import { type QueueBounds, QueueMachine } from '../../dist/src/flow-control/queue-machine.js';
import { NO_LIMITS, PLAIN_BAND, request, settings, slots } from './settings.js';

const BOUNDS: QueueBounds = { requests: 256, flows: 64 };

/** A machine in front of places that a test gives away one by one. */
class Queue {
  readonly machine: QueueMachine;
  nowMs = 0;
  readonly references: number[] = [];

  constructor(given: Partial<FlowControlSettings> = {}, bounds = BOUNDS) {
    this.machine = new QueueMachine(settings(given), 0, bounds);
  }

  add(given: Partial<QueuedRequest> = {}): number {
    return this.machine.enqueue(request(given), this.nowMs);
  }

  /** Dispatch to the first `places` requests whose candidates hold an open slot. @returns their references */
  serve(
    places: number,
    openSlots: readonly number[] = [0, 1, 2, 3],
    candidatesOf = new Map<number, readonly number[]>(),
  ) {
    const served: number[] = [];
    const tryDispatch = (_handle: number, reference: number, _priority: number, onlySlot: number): DispatchResult => {
      const may = onlySlot >= 0 ? [onlySlot] : (candidatesOf.get(reference) ?? openSlots);
      if (!may.some((slot) => openSlots.includes(slot))) return 'closed';
      if (served.length === places) return 'later';
      served.push(reference);
      return 'dispatched';
    };
    this.machine.dispatch(tryDispatch, this.nowMs, 256);
    return served;
  }

  expire(): readonly [number, string][] {
    const over: [number, string][] = [];
    this.machine.expire(this.nowMs, (_handle, reference, outcome) => over.push([reference, outcome]));
    return over;
  }
}

describe('bands', () => {
  it('bands go strictly by priority, any whole number, whatever waits below', () => {
    const queue = new Queue();
    for (const [reference, priority] of [0, -7, 1_000_000, 3, -2_000_000].entries()) queue.add({ reference, priority });
    expect(queue.serve(10)).toEqual([2, 3, 0, 1, 4]);
  });

  it('bands come into being like the configured band next below, or with the template', () => {
    const bands = [
      { priority: 0, ...PLAIN_BAND, limits: { ...NO_LIMITS, requests: 1 } },
      { priority: 10, ...PLAIN_BAND, limits: { ...NO_LIMITS, requests: 2 } },
    ];
    const admitted = (given: Partial<FlowControlSettings>, priority: number) => {
      const queue = new Queue({ bands, ...given });
      return Array.from({ length: 5 }, () => queue.add({ priority })).filter((handle) => handle !== NO_HANDLE).length;
    };
    expect([5, 12, -3].map((priority) => admitted({}, priority))).toEqual([1, 2, 5]);
    const template = { ...PLAIN_BAND, limits: { ...NO_LIMITS, requests: 3 } };
    const negativeTemplate = { ...PLAIN_BAND, limits: { ...NO_LIMITS, requests: 4 } };
    expect([5, 12, -3].map((priority) => admitted({ template, negativeTemplate }, priority))).toEqual([3, 3, 4]);
  });

  it('bands are 32 at most: the next request goes to a band below, and never above', () => {
    const queue = new Queue();
    for (let priority = 0; priority < 32; priority++) queue.add({ priority, reference: priority });
    expect(queue.add({ priority: 100, reference: 100 })).not.toBe(NO_HANDLE);
    expect(queue.add({ priority: -1 })).toBe(NO_HANDLE);
    expect(queue.machine.refusal).toMatchObject({ outcome: 'RejectedCapacity', cause: 'too-many-bands' });
    // It waits with priority 31, behind what was there, and ahead of 30.
    expect(queue.serve(3)).toEqual([31, 100, 30]);
  });

  it('bands made at run time make room when they are empty', () => {
    const queue = new Queue();
    const handles = Array.from({ length: 31 }, (_, i) => queue.add({ priority: i + 1 }));
    expect(queue.machine.priorities()).toHaveLength(32);
    for (const handle of handles) queue.machine.cancel(handle, 0);
    expect(queue.add({ priority: -1 })).not.toBe(NO_HANDLE);
    expect(queue.machine.priorities()).toEqual([0, -1]);
  });

  it('bands tell the highest priority that waits', () => {
    const queue = new Queue();
    expect(queue.machine.highestWaiting()).toBeUndefined();
    queue.add({ priority: -4 });
    const handle = queue.add({ priority: 4 });
    expect(queue.machine.highestWaiting()).toBe(4);
    queue.machine.cancel(handle, 0);
    expect(queue.machine.highestWaiting()).toBe(-4);
  });
});

describe('limits', () => {
  const limited = (limits: Partial<FlowControlSettings['limits']>, band: Partial<FlowControlSettings['limits']> = {}) =>
    new Queue({
      limits: { ...NO_LIMITS, ...limits },
      bands: [{ priority: 0, ...PLAIN_BAND, limits: { ...NO_LIMITS, ...band } }],
    });

  it.each([
    ['pool-requests', 3, 2, limited({ requests: 2 })],
    ['pool-bytes', 300, 250, limited({ bytes: 250 })],
    ['pool-tokens', 33, 25, limited({ tokens: 25 })],
    ['band-requests', 3, 2, limited({}, { requests: 2 })],
    ['band-bytes', 300, 250, limited({}, { bytes: 250 })],
    ['band-tokens', 33, 25, limited({}, { tokens: 25 })],
  ] as const)('limits refuse by %s with its figures, and not when one has left', (cause, used, limit, queue) => {
    const [first] = [queue.add(), queue.add()];
    expect(queue.add()).toBe(NO_HANDLE);
    expect(queue.machine.refusal).toEqual({ outcome: 'RejectedCapacity', cause, used, limit, retryAfterSeconds: 1 });
    expect(queue.machine.totals.refused[cause]).toBe(1);
    queue.machine.cancel(first, 0);
    expect(queue.add()).not.toBe(NO_HANDLE);
  });

  it('limits say that there are no endpoints while there are none', () => {
    const queue = limited({ requests: 1 });
    queue.machine.poolEmpty(true, 0);
    queue.add();
    queue.add();
    expect(queue.machine.refusal.outcome).toBe('RejectedNoEndpoints');
  });

  it('limits hold for a dispatched request no more', () => {
    const queue = limited({ requests: 1 });
    queue.add();
    expect(queue.serve(1)).toHaveLength(1);
    expect(queue.add()).not.toBe(NO_HANDLE);
  });

  it('limits of the machine itself refuse too', () => {
    const queue = new Queue({}, { requests: 4, flows: 2 });
    for (const flow of ['a', 'b']) queue.add({ flow });
    expect(queue.add({ flow: 'c' })).toBe(NO_HANDLE);
    expect(queue.machine.refusal.cause).toBe('too-many-flows');
    for (const flow of ['a', 'b']) queue.add({ flow });
    expect(queue.add({ flow: 'a' })).toBe(NO_HANDLE);
    expect(queue.machine.refusal.cause).toBe('too-many-waiting');
  });

  it('limits leave half of the records to those that wait: what runs beyond that is not followed', () => {
    const queue = new Queue({}, { requests: 4, flows: 4 });
    for (let i = 0; i < 6; i++) {
      expect(queue.add()).not.toBe(NO_HANDLE);
      expect(queue.serve(1)).toHaveLength(1);
    }
    expect([queue.machine.running, queue.machine.waiting]).toEqual([2, 0]);
  });
});

describe('flows', () => {
  it('flows are forgotten five minutes after their last request', () => {
    const queue = new Queue();
    const handle = queue.add({ flow: 'gone' });
    queue.machine.cancel(handle, 0);
    queue.add({ flow: 'here' });
    queue.nowMs = 299_999;
    queue.add({ flow: 'here' });
    expect(queue.machine.flowCount).toBe(2);
    queue.nowMs = 300_000;
    queue.add({ flow: 'here' });
    expect(queue.machine.flowCount).toBe(1);
  });

  it('flows are known exactly once, also when a request comes back from its dispatch or the policies change', () => {
    const fairness = { kind: 'round-robin' } as const;
    const queue = new Queue({}, { requests: 64, flows: 16 });
    queue.machine.cancel(queue.add({ flow: 'idle' }), 0);
    const handle = queue.add({ flow: 'back' });
    queue.serve(1);
    const other = queue.add({ flow: 'idle' });
    queue.machine.requeue(handle, undefined, 0);
    queue.machine.cancel(other, 0);
    queue.machine.configure(settings({ fallback: { ...PLAIN_BAND, fairness } }), 0);
    queue.machine.cancel(handle, 0);
    queue.nowMs = 300_000;
    queue.add({ flow: 'new' });
    expect(queue.machine.flowCount).toBe(1);
  });

  it('flows make room for a new one when they are idle, the longest idle first', () => {
    const queue = new Queue({}, { requests: 8, flows: 2 });
    queue.machine.cancel(queue.add({ flow: 'a' }), 0);
    queue.machine.cancel(queue.add({ flow: 'b' }), 0);
    expect(queue.add({ flow: 'c' })).not.toBe(NO_HANDLE);
    const names = queue.machine.snapshot(0, 9).bands[0]!.flows.map(({ flow }) => flow);
    expect(names.sort()).toEqual(['b', 'c']);
  });
});

describe('waits', () => {
  it('waits end at the time to live, at the deadline of the request, and while the pool is empty at a budget of their own', () => {
    const queue = new Queue({ ttlMs: 1_000, noEndpointTtlMs: 5_000 });
    queue.add({ reference: 1 });
    queue.add({ reference: 2, deadlineMs: 400 });
    queue.nowMs = 399.9;
    expect(queue.expire()).toEqual([]);
    queue.nowMs = queue.machine.nextDeadline();
    expect(queue.expire()).toEqual([[2, 'EvictedTTL']]);
    queue.machine.poolEmpty(true, 900);
    expect(queue.machine.nextDeadline()).toBe(5_900);
    queue.nowMs = 5_900;
    expect(queue.expire()).toEqual([[1, 'EvictedNoEndpoints']]);
    expect(queue.machine.nextDeadline()).toBe(Infinity);
  });

  it.each([
    ['shorter', 300, 300],
    ['longer', 5_000, 5_000],
    ['without an end', Infinity, Infinity],
  ])('waits of a band end at the time to live of the band: %s', (_what, ttlMs, end) => {
    const queue = new Queue({ ttlMs: 1_000, bands: [{ priority: 7, ...PLAIN_BAND, ttlMs }] });
    queue.add({ priority: 7 });
    expect(queue.machine.nextDeadline()).toBe(end);
    expect(queue.machine.ttlMs(7)).toBe(end);
    queue.add({ priority: 0 });
    expect(queue.machine.nextDeadline()).toBe(Math.min(end, 1_000));
  });

  it('waits of bands that come into being end as the template says', () => {
    const template = { ...PLAIN_BAND, ttlMs: 300 };
    const queue = new Queue({ ttlMs: 1_000, template, negativeTemplate: { ...PLAIN_BAND, ttlMs: 9_000 } });
    queue.add({ priority: -1 });
    expect(queue.machine.nextDeadline()).toBe(9_000);
    queue.add({ priority: 4 });
    expect(queue.machine.nextDeadline()).toBe(300);
  });

  it('waits while the pool is empty have one budget, whatever the band', () => {
    const bands = [{ priority: 7, ...PLAIN_BAND, ttlMs: 300 }];
    const queue = new Queue({ ttlMs: 1_000, noEndpointTtlMs: 60_000, bands });
    queue.machine.poolEmpty(true, 0);
    queue.add({ priority: 7 });
    expect(queue.machine.nextDeadline()).toBe(60_000);
    queue.machine.poolEmpty(false, 10_000);
    expect(queue.machine.nextDeadline()).toBe(10_300);
  });

  it('waits end at the deadline of the request within a band without an end', () => {
    const queue = new Queue({ ttlMs: 1_000, bands: [{ priority: 7, ...PLAIN_BAND, ttlMs: Infinity }] });
    queue.add({ priority: 7, deadlineMs: 4_000 });
    expect(queue.machine.nextDeadline()).toBe(4_000);
  });

  it('waits begin anew when the first endpoint comes', () => {
    const queue = new Queue({ ttlMs: 1_000, noEndpointTtlMs: 60_000 });
    queue.machine.poolEmpty(true, 0);
    queue.add();
    queue.machine.poolEmpty(false, 20_000);
    expect(queue.machine.nextDeadline()).toBe(21_000);
  });

  it('waits without an end need no timer', () => {
    const queue = new Queue({ ttlMs: Infinity });
    queue.add();
    expect(queue.machine.nextDeadline()).toBe(Infinity);
  });

  it('waits of those whose endpoints have all left end as for an empty pool', () => {
    const queue = new Queue({ ttlMs: 100 });
    queue.add({ candidates: slots(3), reference: 7 });
    queue.machine.endpointGone(3);
    queue.nowMs = 100;
    expect(queue.expire()).toEqual([[7, 'EvictedNoEndpoints']]);
  });

  it('waits end all at once for a shutdown, in the order of service', () => {
    const queue = new Queue();
    for (const [reference, priority] of [-1, 5, 5, 0].entries()) queue.add({ reference, priority });
    const order: number[] = [];
    expect(queue.machine.evictAll((_handle, reference) => order.push(reference), 0)).toBe(4);
    expect(order).toEqual([1, 2, 3, 0]);
    expect(queue.machine.totals).toMatchObject({ entered: 4, evicted: 4 });
  });
});

describe('classes of candidates', () => {
  const candidates = new Map([
    [1, [0]],
    [2, [1]],
    [3, [0]],
  ]);

  it('candidate sets do not hold each other up, and are tried again when an endpoint opens', () => {
    const queue = new Queue();
    queue.add({ reference: 1, candidates: slots(0) });
    queue.add({ reference: 2, candidates: slots(1) });
    queue.add({ reference: 3, candidates: slots(0) });
    expect(queue.serve(9, [1], candidates)).toEqual([2]);
    expect(queue.machine.closedFor(0)).toBe(true);
    expect(queue.machine.closedFor(1)).toBe(false);
    // Nobody has said that slot 0 is open, so it is not asked for.
    expect(queue.serve(9, [0, 1], candidates)).toEqual([]);
    queue.machine.opened(0);
    expect(queue.serve(9, [0, 1], candidates)).toEqual([1, 3]);
  });

  it('candidate sets are asked again when their first request goes away', () => {
    const queue = new Queue();
    const large = queue.add({ reference: 1 });
    queue.add({ reference: 2 });
    const tryDispatch = (_handle: number, reference: number): DispatchResult =>
      reference === 1 ? 'closed' : 'dispatched';
    expect(queue.machine.dispatch(tryDispatch, 0, 9)).toBe(0);
    queue.machine.cancel(large, 0);
    expect(queue.machine.dispatch(tryDispatch, 0, 9)).toBe(1);
  });

  it('classes of candidates beyond the 64th look sixteen requests deep', () => {
    const queue = new Queue();
    const set = (i: number) => [i & 7, 8 + (i >> 3), 40];
    for (let i = 0; i < 61; i++) queue.add({ reference: i, candidates: slots(...set(i)) });
    const deep = new Map<number, readonly number[]>();
    for (let i = 0; i < 20; i++) {
      deep.set(100 + i, [50 + i]);
      queue.add({ reference: 100 + i, candidates: slots(50 + i) });
    }
    for (let i = 0; i < 61; i++) deep.set(i, set(i));
    expect(queue.serve(9, [65, 66], deep)).toEqual([115, 116]);
    queue.machine.opened(60);
    // The order of the others is as it was.
    expect(queue.serve(9, [50, 60], deep)).toEqual([100, 110]);
    expect(queue.machine.snapshot(0, 0).classes.find(({ id }) => id === 63)?.waiting).toBe(16);
  });

  it('classes of candidates lose an endpoint that has left and keep their requests', () => {
    const queue = new Queue();
    queue.add({ reference: 1, candidates: slots(0, 1) });
    queue.machine.endpointGone(0);
    expect(queue.machine.snapshot(0, 0).classes).toEqual([{ id: 1, slots: [1], waiting: 1 }]);
    queue.add({ reference: 2, candidates: slots(1) });
    expect(queue.machine.snapshot(0, 0).classes).toEqual([{ id: 1, slots: [1], waiting: 2 }]);
  });
});

describe('a request whose prefix is on a full endpoint', () => {
  let queue: Queue;
  beforeEach(() => {
    queue = new Queue({ ttlMs: 60_000 });
    queue.add({ reference: 1, stickySlot: 2 });
  });

  it('a request whose prefix is on a full endpoint waits for it half a second, beside the others, then goes anywhere', () => {
    queue.add({ reference: 2 });
    expect(queue.serve(9, [0])).toEqual([2]);
    expect(queue.machine.nextDeadline()).toBe(500);
    queue.nowMs = 500;
    expect(queue.expire()).toEqual([]);
    expect(queue.serve(9, [0])).toEqual([1]);
  });

  it('a request whose prefix is on a full endpoint goes there when it opens', () => {
    expect(queue.serve(9, [0])).toEqual([]);
    queue.machine.opened(2);
    expect(queue.serve(9, [0, 2])).toEqual([1]);
    expect(queue.machine.nextDeadline()).toBe(Infinity);
  });

  it('a request whose prefix is on a full endpoint goes anywhere at once when that endpoint leaves, and stands where it came', () => {
    queue.add({ reference: 2 });
    queue.machine.endpointGone(2);
    expect(queue.serve(9, [0])).toEqual([1, 2]);
  });

  it('a request whose prefix is on a full endpoint does not wait for it in the highest of several bands', () => {
    queue.add({ reference: 5, priority: 9, stickySlot: 2 });
    expect(queue.serve(9, [0])).toEqual([5]);
  });
});

describe('a dispatch', () => {
  it('a dispatch that cannot be used puts the request back to the head, with its old deadline', () => {
    const queue = new Queue({ ttlMs: 100 });
    const handle = queue.add({ reference: 1 });
    queue.nowMs = 40;
    queue.add({ reference: 2 });
    expect(queue.serve(1)).toEqual([1]);
    expect(queue.machine.requeue(handle, undefined, 50)).toBe(true);
    expect(queue.machine.nextDeadline()).toBe(100);
    expect(queue.machine.totals).toMatchObject({ entered: 2, dispatched: 0, requeued: 1 });
    expect(queue.serve(9)).toEqual([1, 2]);
  });

  it('a dispatch for an owner that is gone takes the request out as cancelled', () => {
    const queue = new Queue();
    queue.add({ reference: 1 });
    queue.add({ reference: 2 });
    const results: DispatchResult[] = ['gone', 'dispatched'];
    expect(queue.machine.dispatch(() => results.shift()!, 0, 9)).toBe(1);
    expect(queue.machine.totals).toMatchObject({ cancelled: 1, dispatched: 1 });
  });

  it('a dispatch stops at the bound of a turn and says that there is more', () => {
    const queue = new Queue();
    for (let i = 0; i < 5; i++) queue.add();
    expect(queue.machine.dispatch(() => 'dispatched', 0, 3)).toBe(3);
    expect(queue.machine.unfinished).toBe(true);
    expect(queue.machine.dispatch(() => 'dispatched', 0, 3)).toBe(2);
    expect(queue.machine.unfinished).toBe(false);
  });

  it('a dispatch ends for this band and all below when it is stopped', () => {
    const queue = new Queue();
    queue.add({ priority: 5 });
    queue.add({ priority: 0 });
    const asked: number[] = [];
    queue.machine.dispatch(
      (_handle, _reference, priority) => {
        asked.push(priority);
        return 'stopped';
      },
      0,
      9,
    );
    expect(asked).toEqual([5]);
    expect(queue.machine.closedFor(3)).toBe(true);
  });

  it('a dispatch is over after its end: later calls do nothing', () => {
    const queue = new Queue();
    const handle = queue.add();
    queue.serve(1);
    queue.machine.end(handle, 5, 0);
    queue.machine.end(handle, 5, 0);
    queue.machine.progress(handle, 500, 0);
    expect([queue.machine.running, queue.machine.requeue(handle, undefined, 0)]).toEqual([0, false]);
    expect(queue.machine.cancel(handle, 0)).toBe(false);
  });
});

describe('a new configuration', () => {
  const fair = { kind: 'start-time', weights: {} } as const;

  it('a new configuration leaves everything that waits where it is, under the new limits and times', () => {
    const queue = new Queue({ ttlMs: 1_000 });
    for (const reference of [1, 2]) queue.add({ reference });
    const limits = { ...NO_LIMITS, requests: 2 };
    expect(queue.machine.configure(settings({ ttlMs: 200, fallback: { ...PLAIN_BAND, limits } }), 50)).toBe(true);
    expect([queue.machine.waiting, queue.machine.nextDeadline()]).toEqual([2, 200]);
    expect(queue.add()).toBe(NO_HANDLE);
    expect(queue.serve(9)).toEqual([1, 2]);
  });

  it('a new configuration brings other policies to what waits, and counts nothing twice', () => {
    const queue = new Queue();
    for (const [reference, tokens] of [40, 30, 10].entries())
      queue.add({ reference, uncachedTokens: tokens, flow: `f${reference}` });
    const ordering = { kind: 'shortest-first', msPerToken: 1, ageBoundMs: 100 } as const;
    queue.machine.configure(settings({ fallback: { ...PLAIN_BAND, ordering } }), 0);
    expect(queue.machine.totals.entered).toBe(3);
    expect(queue.serve(9)).toEqual([2, 1, 0]);
    expect(queue.machine.snapshot(0, 9)).toMatchObject({ waiting: 0, tokens: 0, bytes: 0, classes: [] });
  });

  it('a new configuration keeps the accounts of flows when the policy stays and its weights change', () => {
    const queue = new Queue({ fallback: { ...PLAIN_BAND, fairness: fair } });
    for (let i = 0; i < 3; i++) queue.add({ flow: 'served', uncachedTokens: 1_000, reference: 10 + i });
    queue.serve(1);
    queue.add({ flow: 'new', reference: 20 });
    const weights = { other: 2 };
    queue.machine.configure(settings({ fallback: { ...PLAIN_BAND, fairness: { kind: 'start-time', weights } } }), 0);
    queue.add({ flow: 'newer', reference: 30 });
    expect(queue.serve(3).sort()).toEqual([11, 20, 30]);
  });

  it('a new configuration never promotes what waits in a band that it removes', () => {
    const queue = new Queue({ bands: [10, 5].map((priority) => ({ priority, ...PLAIN_BAND })) });
    const references = [...[5, 10, 7, 0].entries()].map(([reference, priority]) => queue.add({ reference, priority }));
    queue.machine.configure(settings({ bands: [{ priority: 5, ...PLAIN_BAND }] }), 0);
    expect(references).not.toContain(NO_HANDLE);
    expect(queue.machine.priorities()).toEqual([10, 7, 5, 0]);
    expect(queue.serve(9)).toEqual([1, 2, 0, 3]);
  });

  it('a new configuration gives a removed band the settings of the template, or of the band next below', () => {
    const band = { priority: 10, ...PLAIN_BAND, fairness: fair };
    const below = { priority: 5, ...PLAIN_BAND, ordering: { kind: 'deadline' } } as const;
    const queue = new Queue({ bands: [band] });
    queue.add({ priority: 10 });
    queue.machine.configure(settings({ bands: [below] }), 0);
    const shown = () => queue.machine.snapshot(0, 0).bands[0]!;
    expect(shown()).toMatchObject({ priority: 10, configured: false, ordering: 'deadline', fairness: 'global-strict' });
    queue.machine.configure(settings({ bands: [below], template: { ...PLAIN_BAND, fairness: fair } }), 0);
    expect(shown()).toMatchObject({ priority: 10, waiting: 1, ordering: 'arrival', fairness: 'start-time' });
  });

  it('a new configuration with another time to live puts deadlines in order anew, of what waits too', () => {
    const ordering = { kind: 'deadline' } as const;
    const fallback = { ...PLAIN_BAND, ordering };
    const queue = new Queue({ ttlMs: 60_000, fallback });
    queue.add({ reference: 1 });
    queue.machine.configure(settings({ ttlMs: 10_000, fallback }), 2_000);
    queue.nowMs = 5_000;
    queue.add({ reference: 2 });
    expect(queue.machine.nextDeadline()).toBe(10_000);
    expect(queue.serve(9)).toEqual([1, 2]);
  });

  it('a new configuration gives the waits of a band another time to live, and their deadlines another order', () => {
    const band = { priority: 7, ...PLAIN_BAND, ordering: { kind: 'deadline' } } as const;
    const queue = new Queue({ ttlMs: 60_000, bands: [band] });
    queue.add({ priority: 7, reference: 1 });
    queue.machine.configure(settings({ ttlMs: 60_000, bands: [{ ...band, ttlMs: 10_000 }] }), 2_000);
    queue.nowMs = 5_000;
    queue.add({ priority: 7, reference: 2 });
    expect(queue.machine.nextDeadline()).toBe(10_000);
    expect(queue.serve(9)).toEqual([1, 2]);
  });

  it('a new configuration leaves no debt behind in a band that it drops', () => {
    const fallback = { ...PLAIN_BAND, fairness: fair };
    const queue = new Queue({ fallback });
    const handle = queue.add({ priority: 4, flow: 'served', uncachedTokens: 9_000 });
    queue.serve(9);
    queue.machine.end(handle, 0, 0);
    queue.machine.configure(settings({ fallback, ttlMs: 1_000 }), 0);
    expect(queue.machine.priorities()).toEqual([0]);
    for (const reference of [1, 2]) queue.add({ priority: 4, flow: 'new', reference, uncachedTokens: 5 });
    queue.add({ priority: 4, flow: 'served', reference: 3 });
    expect(queue.serve(2)).toEqual([1, 3]);
  });

  it('a new configuration that would make too many bands is refused and changes nothing', () => {
    const queue = new Queue();
    for (let priority = 1; priority <= 20; priority++) queue.add({ priority });
    const bands = Array.from({ length: 24 }, (_, i) => ({ priority: -1 - i, ...PLAIN_BAND }));
    expect(queue.machine.configure(settings({ bands }), 0)).toBe(false);
    expect(queue.machine.waiting).toBe(20);
  });
});

describe('memory', () => {
  it('memory of a waiting request is less than 1 KB with its lane and its flow, and is all there from the start', () => {
    const requests = 2 ** 15;
    const before = process.memoryUsage().arrayBuffers;
    const machine = new QueueMachine(settings({ ttlMs: 1_000 }), 0, { requests, flows: requests });
    const bytes = process.memoryUsage().arrayBuffers - before;
    expect(bytes / requests).toBeLessThan(1_024);
    for (let i = 0; i < requests; i++) machine.enqueue(request({ flow: `f${i}`, reference: i }), 0);
    expect(machine.waiting).toBe(requests);
    expect(machine.enqueue(request(), 0)).toBe(NO_HANDLE);
  });
});

describe('requests that no endpoint takes', () => {
  const headsOf = ({ machine }: Queue, most = 9) => {
    const heads: [number, number][] = [];
    machine.blocked((handle, priority) => heads.push([handle, priority]) < most);
    return heads;
  };

  it('requests that no endpoint takes are told by the first one of every set of candidates, highest band first', () => {
    const queue = new Queue();
    const [low, high] = [queue.add({ priority: -1 }), queue.add({ priority: 5, candidates: slots(1) })];
    queue.add({ priority: 5, candidates: slots(1) });
    const other = queue.add({ priority: 5, candidates: slots(2) });
    expect(headsOf(queue)).toEqual([]);
    queue.serve(9, []);
    expect(headsOf(queue)).toEqual([
      [high, 5],
      [other, 5],
      [low, -1],
    ]);
    expect(headsOf(queue, 1)).toEqual([[high, 5]]);
  });

  it('requests that no endpoint takes are not those whose class has opened again', () => {
    const queue = new Queue();
    queue.add({ candidates: slots(1) });
    queue.serve(9, []);
    queue.machine.opened(1);
    expect(headsOf(queue)).toEqual([]);
  });
});

describe('a running request that is ended for another one', () => {
  /** How many of flow a's requests are among the next eight, when its first large one has come to an end somehow. */
  const servedAfter = (end: (queue: Queue, first: number) => void) => {
    const queue = new Queue({ fallback: { ...PLAIN_BAND, fairness: { kind: 'start-time', weights: {} } } });
    const first = queue.add({ flow: 'a', uncachedTokens: 1_000, maxTokens: 200 });
    queue.add({ flow: 'b', reference: 100 });
    queue.serve(1);
    for (let i = 0; i < 8; i++) {
      queue.add({ flow: 'a', uncachedTokens: 100, maxTokens: 200, reference: i });
      queue.add({ flow: 'b', uncachedTokens: 100, maxTokens: 200, reference: 100 + i });
    }
    end(queue, first);
    expect(queue.machine.running).toBe(0);
    return queue.serve(8).filter((reference) => reference < 100).length;
  };

  it('a running request that is ended for another one gives its flow back everything that it has paid for it', () => {
    const refunded = servedAfter(({ machine }, first) => machine.refund(first, 0));
    const paid = servedAfter(({ machine }, first) => machine.end(first, 200, 0));
    expect(refunded).toBeGreaterThan(paid);
  });

  it('a running request that is ended for another one is released once', () => {
    const once = servedAfter(({ machine }, first) => machine.refund(first, 0));
    const twice = servedAfter(({ machine }, first) => {
      machine.refund(first, 0);
      machine.refund(first, 0);
      machine.end(first, 0, 0);
    });
    expect(twice).toBe(once);
  });
});

describe('a request whose turn comes while the endpoint that holds its prefix is closed', () => {
  const stuck = () => {
    const queue = new Queue();
    queue.add({ reference: 1, prefixSlot: 2 });
    const asked: [number, number][] = [];
    /** Slot 2 is closed; the request sticks to it once. */
    const serve = (open2 = false) => {
      queue.machine.openedAll();
      queue.machine.dispatch(
        (_handle, reference, _priority, onlySlot): DispatchResult => {
          asked.push([reference, onlySlot]);
          if (onlySlot === 2 && !open2) return 'closed';
          return reference === 1 && onlySlot < 0 && asked.length === 1 ? 'sticks' : 'dispatched';
        },
        queue.nowMs,
        256,
      );
    };
    return { queue, asked, serve };
  };

  it('a request whose turn finds the endpoint of its prefix closed waits for it, and those beside it are dispatched', () => {
    const { queue, asked, serve } = stuck();
    queue.add({ reference: 5 });
    serve();
    expect(asked.map(([reference]) => reference)).toContain(5);
    expect([queue.machine.waiting, queue.machine.totals.dispatched]).toEqual([1, 1]);
    serve(true);
    expect([queue.machine.waiting, queue.machine.totals.dispatched]).toEqual([0, 2]);
  });

  it('a request that comes up while its prefix’s endpoint is closed goes anywhere after half a second', () => {
    const { queue, asked, serve } = stuck();
    queue.nowMs = 1_000;
    serve();
    expect(queue.machine.nextDeadline()).toBe(1_500);
    queue.nowMs = 1_499;
    queue.expire();
    serve();
    expect(queue.machine.waiting).toBe(1);
    queue.nowMs = 1_500;
    queue.expire();
    serve();
    expect(queue.machine.waiting).toBe(0);
    expect(asked.at(-1)).toEqual([1, -1]);
  });

  it('a request that comes up while its prefix’s endpoint is closed waits no longer when that endpoint leaves the pool', () => {
    const { queue, serve } = stuck();
    serve();
    queue.machine.endpointGone(2);
    serve();
    expect(queue.machine.waiting).toBe(0);
  });
});

describe('a band that waits behind long answers', () => {
  it('a band that waits behind long answers lets requests wait though none of it has been dispatched yet', () => {
    const limits = { ...NO_LIMITS, tokensByRate: true };
    const queue = new Queue({ ttlMs: 60_000, fallback: { ...PLAIN_BAND, limits } });
    queue.add();
    queue.nowMs = 2_000;
    expect([queue.add(), queue.add()]).not.toContain(NO_HANDLE);
  });
});
