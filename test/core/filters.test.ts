import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { hookColumn } from '../../dist/src/core/hook-columns.js';
import type { Decider, DecisionRequest, EndpointSignals, Operation } from '../../dist/src/core/index.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.js';
import { prompt } from './pool-history.js';

const WAITING = 3;
const RUNNING = 4;
const KV_USAGE = 5;
const ATTRIBUTE = 8;
const LESS = 0;
const NOT_EQUAL = 5;
const never = Number.POSITIVE_INFINITY;

/** Slots that a filter leaves; undefined when it leaves none and the request is turned away. */
function left(pool: ReturnType<typeof makePool>, slots: number, request: DecisionRequest = plainRequest) {
  const { status } = pool.decider.decide({ ...request, charged: false });
  if (status === 'filtered') return undefined;
  return Array.from({ length: slots }, (_, slot) => slot).filter((slot) => pool.decider.isCandidate(slot));
}

/** Notes of the last decision: number of the filter, outcome, candidates, and those of which nothing is known. */
function notesOf(decider: Decider): string[] {
  const notes: string[] = [];
  decider.filterNotes(({ filter, outcome, candidates, unknown }) =>
    notes.push(`${filter} ${outcome} ${candidates} ${unknown}`),
  );
  return notes;
}

function kept(operation: Operation, signals: readonly EndpointSignals[]) {
  return left(makePool([operation, pickMax], signals), signals.length);
}

describe('endpoint-attribute-filter', () => {
  const three = [{ waiting: 3 }, { waiting: 9 }, { waiting: 0 }, {}];

  it('endpoint-attribute-filter keeps values that compare with the limit, and endpoints without a value when it is told to', () => {
    expect(kept(scorer('OP_FILTER_THRESHOLD', 1, WAITING, LESS, 3, 0, 0), three)).toEqual([2]);
    expect(kept(scorer('OP_FILTER_THRESHOLD', 1, WAITING, LESS, 3, 1, 0), three)).toEqual([2, 3]);
    expect(kept(scorer('OP_FILTER_THRESHOLD', 1, WAITING, NOT_EQUAL, 3, 0, 0), three)).toEqual([1, 2]);
  });

  it.each([
    [0, [2]],
    [1, [0, 2]],
    [2, [1]],
    [3, [0, 1]],
    [4, [0]],
    [5, [1, 2]],
  ])('operator %d of less, at most, greater, at least, equal, not equal', (operator, expected) => {
    expect(kept(scorer('OP_FILTER_THRESHOLD', 1, WAITING, operator, 3, 0, 0), three)).toEqual(expected);
  });

  it('endpoint-attribute-filter turns the request away when none is left, or keeps all when it is told to', () => {
    expect(kept(scorer('OP_FILTER_THRESHOLD', 1, WAITING, LESS, 0, 0, 0), three)).toBeUndefined();
    expect(kept(scorer('OP_FILTER_THRESHOLD', 1, WAITING, LESS, 0, 0, 1), three)).toEqual([0, 1, 2, 3]);
  });

  it('endpoint-attribute-filter keeps values between two bounds, both included', () => {
    expect(kept(scorer('OP_FILTER_RANGE', 1, WAITING, 0, 3, 0, 0), three)).toEqual([0, 2]);
    expect(kept(scorer('OP_FILTER_RANGE', 1, WAITING, 1, never, 1, 0), three)).toEqual([0, 1, 3]);
  });

  it('endpoint-attribute-filter reads named values of an endpoint, and forgets them when its signals are stale', () => {
    const pool = makePool([scorer('OP_FILTER_THRESHOLD', 1, ATTRIBUTE + 7, LESS, 0, 0, 0), pickMax], [{}, {}, {}]);
    expect(left(pool, 3)).toBeUndefined();
    pool.table.setAttribute(0, 7, -0.5);
    pool.table.setAttribute(1, 7, 0.5);
    expect(left(pool, 3)).toEqual([0]);
    pool.table.markStale(0);
    expect(left(pool, 3)).toBeUndefined();
  });

  const values = fc.array(
    fc.option(fc.double({ min: -100, max: 100, noNaN: true }).map(Math.fround), { nil: undefined, freq: 5 }),
    { minLength: 1, maxLength: 30 },
  );

  it('endpoint-attribute-filter keeps the k lowest or highest values and those equal to the last of them', () => {
    fc.assert(
      fc.property(values, fc.integer({ min: 1, max: 35 }), fc.boolean(), (given, k, lowest) => {
        const sign = lowest ? 1 : -1;
        const pool = makePool(
          [scorer('OP_FILTER_LOWEST', 1, ATTRIBUTE, sign, k, 0, 0, 0), pickMax],
          given.map(() => ({})),
        );
        for (const [slot, value] of given.entries()) pool.table.setAttribute(slot, 0, value);
        const known = given.filter((value) => value !== undefined).sort((a, b) => sign * (a - b));
        const limit = known[Math.min(k, known.length) - 1];
        const expected = given.flatMap((value, slot) =>
          value !== undefined && sign * value <= sign * limit! ? [slot] : [],
        );
        expect(left(pool, given.length)).toEqual(expected.length === 0 ? undefined : expected);
      }),
      { numRuns: 60 },
    );
  });

  it('endpoint-attribute-filter keeps a share of the endpoints, rounded up', () => {
    const ten = Array.from({ length: 10 }, (_, i) => ({ kvUsage: i / 20 }));
    expect(kept(scorer('OP_FILTER_LOWEST', 1, KV_USAGE, 1, 0, 0.1, 0, 0), ten)).toEqual([0]);
    expect(kept(scorer('OP_FILTER_LOWEST', 1, KV_USAGE, -1, 0, 0.25, 0, 0), ten)).toEqual([7, 8, 9]);
    expect(kept(scorer('OP_FILTER_LOWEST', 1, KV_USAGE, 1, 0, 1, 0, 0), ten)).toHaveLength(10);
  });

  it('endpoint-attribute-filter judges one endpoint alone, and keeps all when all are equal', () => {
    expect(kept(scorer('OP_FILTER_LOWEST', 1, RUNNING, 1, 1, 0, 0, 0), [{ running: 7 }])).toEqual([0]);
    const equal = [{ running: 7 }, { running: 7 }, { running: 7 }];
    expect(kept(scorer('OP_FILTER_LOWEST', 1, RUNNING, 1, 1, 0, 0, 0), equal)).toEqual([0, 1, 2]);
  });
});

describe('utilization-filter', () => {
  const pool = [
    { waiting: 3, kvUsage: 0.2, running: 1 },
    { waiting: 9, kvUsage: 0.5, running: 5 },
    { waiting: 0, kvUsage: 0.9, running: 9 },
    {},
  ];

  it('utilization-filter keeps endpoints that are at most so busy in every named way; what is unknown counts as 0', () => {
    expect(kept(scorer('OP_FILTER_UTILIZATION', 1, never, never, 3, never, 0), pool)).toEqual([0, 2, 3]);
    expect(kept(scorer('OP_FILTER_UTILIZATION', 1, never, 4, never, 0.5, 0), pool)).toEqual([0, 3]);
  });

  it('utilization-filter counts requests in flight from here', () => {
    const { decider, ...rest } = makePool(
      [scorer('OP_FILTER_UTILIZATION', 1, 1, never, never, never, 0), pickMax],
      pool,
    );
    for (const slot of [0, 0, 1]) decider.decide({ ...plainRequest, subset: [slot] });
    expect(left({ decider, ...rest }, 4)).toEqual([1, 2, 3]);
  });

  it('utilization-filter keeps all when none is left and it is told to', () => {
    const busy = [{ waiting: 5 }, { waiting: 6 }];
    expect(kept(scorer('OP_FILTER_UTILIZATION', 1, never, never, 4, never, 0), busy)).toBeUndefined();
    expect(kept(scorer('OP_FILTER_UTILIZATION', 1, never, never, 4, never, 1), busy)).toEqual([0, 1]);
  });
});

describe('utilization-detector as a filter', () => {
  const filter = scorer('OP_FILTER_UNSATURATED', 1, 5, 0.8, 200);
  const pool = () =>
    makePool(
      [filter, pickMax],
      [
        { waiting: 4, kvUsage: 0.2 },
        { waiting: 5, kvUsage: 0.2 },
        { waiting: 0, kvUsage: 0.8 },
        { waiting: 0, kvUsage: 0.7 },
        { waiting: 0 },
      ],
    );

  it('utilization-detector as a filter keeps endpoints below both thresholds whose signals are known', () => {
    expect(left(pool(), 5)).toEqual([0, 3]);
  });

  it('utilization-detector as a filter drops endpoints whose signals are older than the staleness threshold', () => {
    const aged = pool();
    aged.table.publish(3, { waiting: 0, kvUsage: 0 }, 1000);
    expect(left(aged, 5, { ...plainRequest, nowMs: 1200 })).toEqual([3]);
  });

  it('utilization-detector as a filter keeps all when none is below', () => {
    expect(left(pool(), 5, { ...plainRequest, nowMs: 10_000 })).toEqual([0, 1, 2, 3, 4]);
  });
});

describe('concurrency-detector as a filter', () => {
  function busy(...limits: number[]) {
    const pool = makePool([scorer('OP_FILTER_CONCURRENCY', 1, ...limits), pickMax], [{}, {}, {}]);
    for (const slot of [0, 0, 0, 1]) pool.decider.decide({ ...plainRequest, promptTokens: 10, subset: [slot] });
    return left(pool, 3);
  }

  it('concurrency-detector as a filter keeps endpoints with less in flight than the limits', () => {
    expect(busy(4, never)).toEqual([0, 1, 2]);
    const held = makePool([scorer('OP_FILTER_CONCURRENCY', 1, 2, never), pickMax], [{}, {}]);
    for (const slot of [0, 0, 1]) held.decider.decide({ ...plainRequest, subset: [slot] });
    expect(left(held, 2)).toEqual([1]);
    expect(busy(never, 31)).toEqual([0, 1, 2]);
  });

  it('concurrency-detector as a filter turns the request away when none is left', () => {
    const held = makePool([scorer('OP_FILTER_CONCURRENCY', 1, never, 10), pickMax], [{}]);
    held.decider.decide({ ...plainRequest, promptTokens: 10 });
    expect(left(held, 1)).toBeUndefined();
  });

  it('concurrency-detector as a filter keeps all when none is left and it may fail open', () => {
    const held = makePool([scorer('OP_FILTER_CONCURRENCY', 1, never, 10, 1), pickMax], [{}, {}]);
    for (const slot of [0, 1]) held.decider.decide({ ...plainRequest, promptTokens: 10, subset: [slot] });
    expect(left(held, 2)).toEqual([0, 1]);
  });
});

describe('context-length-aware as a filter', () => {
  it('context-length-aware as a filter keeps endpoints without label or whose range holds the prompt; a bad label drops them', () => {
    const pool = makePool([scorer('OP_FILTER_CONTEXT_LENGTH', 1, 2), pickMax], [{}, {}, {}, {}, {}]);
    const ranges = [undefined, { min: 0, max: 500 }, { min: 501, max: 900 }, 'bad', { min: 500, max: 500 }] as const;
    for (const [slot, range] of ranges.entries()) pool.table.setLabelRange(2, slot, range);
    expect(left(pool, 5, { ...plainRequest, promptTokens: 500 })).toEqual([0, 1, 4]);
  });
});

/** A pool of three whose first endpoint was sent a prompt of 10 blocks. */
function warm(filter: Operation) {
  const pool = makePool([filter, pickMax], [{}, {}, {}]);
  pool.programs.publish(0, [pickMax], { inserts: true });
  const placed = pool.decider.decide({ ...plainRequest, ...prompt(pool.core, 1, 10), subset: [0] });
  pool.decider.release(placed.ticket, placed.ticketGeneration);
  pool.programs.publish(1, [filter, pickMax], { inserts: false });
  pool.programs.publish(2, [pickMax], { inserts: false });
  const load = (slot: number, promptTokens: number) =>
    pool.decider.decide({ ...plainRequest, profile: 2, promptTokens, subset: [slot] });
  const ask = (own: number, name = 1) =>
    left(pool, 3, { ...plainRequest, ...prompt(pool.core, name, 10, own), profile: 1 });
  return { ...pool, load, ask };
}

describe('prefix-cache-affinity-filter', () => {
  const affinity = (threshold: number, exploration: number, penaltyMs: number) =>
    scorer('OP_FILTER_PREFIX_AFFINITY', 1, threshold, exploration, penaltyMs, 1000);

  it('prefix-cache-affinity-filter keeps the endpoints that hold the threshold of the prompt', () => {
    const pool = warm(affinity(0.8, 0, 1000));
    expect(pool.ask(0)).toEqual([0]);
    expect(pool.ask(2)).toEqual([0]);
  });

  it('prefix-cache-affinity-filter keeps all when none holds that much', () => {
    const pool = warm(affinity(0.8, 0, 1000));
    expect(pool.ask(3)).toEqual([0, 1, 2]);
    expect(pool.ask(0, 2)).toEqual([0, 1, 2]);
  });

  it('prefix-cache-affinity-filter keeps all when tokens in flight cost more than the penalty beyond the best of the others', () => {
    const pool = warm(affinity(0.8, 0, 1000));
    pool.load(0, 1000);
    expect(pool.ask(0)).toEqual([0]);
    pool.load(0, 1);
    expect(pool.ask(0)).toEqual([0, 1, 2]);
    pool.load(1, 500);
    expect(pool.ask(0)).toEqual([0, 1, 2]);
    pool.load(2, 500);
    expect(pool.ask(0)).toEqual([0]);
  });

  it('prefix-cache-affinity-filter lets a share of the requests explore', () => {
    expect(warm(affinity(0.8, 1, 1000)).ask(0)).toEqual([0, 1, 2]);
  });

  it('prefix-cache-affinity-filter notes why it keeps what it keeps', () => {
    const noteAfter = (pool: ReturnType<typeof warm>, own: number, name = 1) => {
      pool.ask(own, name);
      return notesOf(pool.decider);
    };
    const pool = warm(affinity(0.8, 0, 1000));
    expect(noteAfter(pool, 0)).toEqual(['0 sticky 3 0']);
    expect(noteAfter(pool, 3)).toEqual(['0 no_match 3 0']);
    pool.load(0, 1001);
    expect(noteAfter(pool, 0)).toEqual(['0 load_override 3 0']);
    expect(noteAfter(warm(affinity(0.8, 1, 1000)), 0)).toEqual(['0 exploration 3 0']);
    expect(noteAfter(warm(affinity(0, 0, 1000)), 0)).toEqual(['0 not_applicable 3 0']);
  });

  it('prefix-cache-affinity-filter does nothing to one endpoint alone', () => {
    const pool = makePool([affinity(0.8, 0, 1000), pickMax], [{}]);
    expect(left(pool, 1, { ...plainRequest, ...prompt(pool.core, 3, 4) })).toEqual([0]);
  });
});

describe('served-model-filter', () => {
  const { SERVES_OTHERS, SERVES_ANY, SERVES_MODEL, SERVES_ADAPTER, SERVES_UNKNOWN } = CORE;
  /** What is left of endpoints whose lists say this of the model, and the filter's note. */
  const served = (told: readonly number[], passes: boolean, fallback: boolean) => {
    const filter = scorer('OP_FILTER_SERVED_MODEL', 1, 1, passes ? 1 : 0, fallback ? 1 : 0);
    const pool = makePool(
      [filter, pickMax],
      told.map(() => ({})),
    );
    hookColumn(pool.core, 1).set(told);
    return { left: left(pool, told.length), notes: notesOf(pool.decider) };
  };

  it('served-model-filter keeps the endpoints that list the model, and those without a list', () => {
    const told = [SERVES_OTHERS, SERVES_MODEL, SERVES_UNKNOWN];
    expect(served(told, true, false)).toEqual({ left: [1, 2], notes: ['0 listed 3 1'] });
    expect(served(told, false, false)).toEqual({ left: [1], notes: ['0 listed 3 1'] });
  });

  it('served-model-filter drops endpoints without a list where another one lists the model as an adapter', () => {
    const told = [SERVES_UNKNOWN, SERVES_ADAPTER, SERVES_MODEL, SERVES_OTHERS];
    expect(served(told, true, false)).toEqual({ left: [1, 2], notes: ['0 listed 4 1'] });
  });

  it('served-model-filter keeps those without a list when none lists the model', () => {
    const told = [SERVES_OTHERS, SERVES_UNKNOWN, SERVES_UNKNOWN];
    expect(served(told, true, false)).toEqual({ left: [1, 2], notes: ['0 unlisted 3 2'] });
    expect(served(told, false, false)).toEqual({ left: undefined, notes: ['0 empty 3 2'] });
    expect(served(told, false, true)).toEqual({ left: [0, 1, 2], notes: ['0 fallback 3 2'] });
  });

  it('served-model-filter turns a request for a model that no list has away, or keeps all when it is told to', () => {
    const told = [SERVES_OTHERS, SERVES_OTHERS];
    expect(served(told, true, false)).toEqual({ left: undefined, notes: ['0 empty 2 0'] });
    expect(served(told, true, true)).toEqual({ left: [0, 1], notes: ['0 fallback 2 0'] });
  });

  it('served-model-filter keeps all endpoints of a request without a model', () => {
    expect(served([SERVES_ANY, SERVES_ANY], false, false)).toEqual({ left: [0, 1], notes: ['0 not_applicable 2 0'] });
  });

  it('served-model-filter compares the endpoints that the filters before it have left', () => {
    const before = scorer('OP_FILTER_MASK', 1, 0);
    const filter = scorer('OP_FILTER_SERVED_MODEL', 1, 1, 1, 0);
    const pool = makePool([before, filter, pickMax], [{}, {}, {}]);
    pool.table.setMask(0, [1, 2]);
    hookColumn(pool.core, 1).set([SERVES_ADAPTER, SERVES_UNKNOWN, SERVES_OTHERS]);
    expect(left(pool, 3)).toEqual([1]);
    expect(notesOf(pool.decider)).toEqual(['1 unlisted 2 1']);
  });
});

describe('sticky-until-saturated-filter', () => {
  const sticky = scorer('OP_FILTER_STICKY', 1, 0.8, 1000);

  it('sticky-until-saturated-filter stays with the holder up to the limit, however idle the others are', () => {
    const pool = warm(sticky);
    pool.load(0, 1000);
    expect(pool.ask(0)).toEqual([0]);
  });

  it('sticky-until-saturated-filter then takess all that are not saturated, then all', () => {
    const pool = warm(sticky);
    pool.load(0, 1001);
    expect(pool.ask(0)).toEqual([1, 2]);
    pool.load(1, 1001);
    expect(pool.ask(0)).toEqual([2]);
    pool.load(2, 1001);
    expect(pool.ask(0)).toEqual([0, 1, 2]);
  });

  it('sticky-until-saturated-filter takes all that are not saturated for a prompt without a holder', () => {
    const pool = warm(sticky);
    pool.load(1, 1001);
    expect(pool.ask(0, 2)).toEqual([0, 2]);
  });
});

describe('overload-filter', () => {
  const LEARNED = -1;
  const overloaded = (waiting: number, usage: number, batches = 1, all = 1) =>
    scorer('OP_FILTER_OVERLOAD', 1, waiting, usage, batches, all);
  const busy = (waiting: number, kvUsage = 0): EndpointSignals => ({ waiting, running: 4, kvUsage });

  it('overload-filter vetoes endpoints at or above a given limit', () => {
    expect(kept(overloaded(5, never), [busy(4), busy(5), busy(9)])).toEqual([0]);
    expect(kept(overloaded(never, 0.9), [busy(0, 0.89), busy(0, 0.9), busy(0, 1)])).toEqual([0]);
  });

  it('overload-filter learns the limit of waiting requests from a queue that lasts', () => {
    const pool = makePool([overloaded(LEARNED, never, 2), pickMax], [busy(20), busy(7), busy(8)]);
    expect(left(pool, 3)).toEqual([0, 1, 2]);
    for (let scrape = 2; scrape < 4; scrape++) {
      for (const [slot, waiting] of [20, 7, 8].entries()) pool.table.publish(slot, busy(waiting), scrape);
    }
    // All three run 4 requests at most: twice as many may wait.
    expect(left(pool, 3)).toEqual([1]);
  });

  it('overload-filter learns where the uncached part of a prompt has no room in the KV cache', () => {
    const cache = (kvUsage: number): EndpointSignals => ({ ...busy(0, kvUsage), blockTokens: 16, blockCount: 100 });
    const pool = makePool([overloaded(never, LEARNED), pickMax], [cache(0.7), cache(0.75), cache(0.8), busy(0, 0.9)]);
    // 400 tokens of 1,600: a quarter. An engine that tells no size is kept.
    expect(left(pool, 4, { ...plainRequest, promptTokens: 400 })).toEqual([0, 1, 3]);
  });

  it('overload-filter counts only what the endpoint does not hold of the prompt', () => {
    const cache: EndpointSignals = { ...busy(0, 0.8), blockTokens: 16, blockCount: 100 };
    const pool = makePool([overloaded(never, LEARNED), pickMax], [cache, cache]);
    pool.programs.publish(1, [pickMax], { inserts: true });
    pool.decider.decide({ ...plainRequest, profile: 1, ...prompt(pool.core, 1, 6), subset: [1] });
    expect(left(pool, 2, { ...plainRequest, ...prompt(pool.core, 1, 6) })).toEqual([1]);
  });

  it('overload-filter keeps endpoints of which nothing is known', () => {
    expect(kept(overloaded(1, 0.1), [{}, busy(3, 0.5), { waiting: 3 }])).toEqual([0]);
  });

  it('overload-filter keeps all when all are overloaded, or turns the request away when it is told to', () => {
    expect(kept(overloaded(1, never), [busy(3), busy(4)])).toEqual([0, 1]);
    expect(kept(overloaded(1, never, 1, 0), [busy(3), busy(4)])).toBeUndefined();
  });
});
