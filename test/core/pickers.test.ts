import { describe, expect, it } from 'vitest';
import type { Operation } from '../../dist/src/core/operations.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.js';

const kv = (...usage: number[]) => usage.map((kvUsage) => ({ kvUsage }));
const free = scorer('OP_SCORE_KV_USAGE');

describe('endpoints with the same score', () => {
  const waiting = (...counts: (number | undefined)[]) =>
    counts.map((each) => (each === undefined ? {} : { waiting: each }));
  const queue = scorer('OP_SCORE_QUEUE');
  const picksOf = ({ decider }: ReturnType<typeof makePool>) =>
    new Set(Array.from({ length: 40 }, () => decider.decide({ ...plainRequest, charged: false }).slots[0]!));

  it('endpoints with the same score are picked among those whose signals are known', () => {
    expect(picksOf(makePool([queue, pickMax], waiting(0, undefined, 0, undefined)))).toEqual(new Set([0, 2]));
    // Three times 0.7 is more than 2.1 in single precision: the mean must not be more than each.
    expect(picksOf(makePool([free, pickMax], [...kv(0.3, 0.3, 0.3), {}]))).toEqual(new Set([0, 1, 2]));
  });

  it('endpoints with the same score are picked among those known even when others have fewer requests in flight', () => {
    const { decider } = makePool([queue, pickMax], waiting(0, undefined));
    for (let i = 0; i < 5; i++) expect(decider.decide(plainRequest).slots).toEqual([0]);
  });

  it('endpoints with the same score are all picked at times when no signal is known, or none is asked for', () => {
    expect(picksOf(makePool([queue, pickMax], [{}, {}, {}]))).toEqual(new Set([0, 1, 2]));
    expect(picksOf(makePool([pickMax], waiting(0, undefined)))).toEqual(new Set([0, 1]));
  });

  it('endpoints with the same score are told apart by known signals between two choices drawn by lot', () => {
    const { decider } = makePool([queue, scorer('OP_PICK_BEST_OF', 1, 1, 2)], waiting(undefined, 0));
    for (let i = 0; i < 20; i++) expect(decider.decide({ ...plainRequest, charged: false }).slots).toEqual([1]);
  });
});

describe('power-of-two-picker', () => {
  it('power-of-two-picker never picks the worst of three or more, and each other one at times', () => {
    const { decider } = makePool([free, scorer('OP_PICK_BEST_OF', 1, 1, 2)], kv(0.9, 0.5, 0.1, 0.3));
    const counts = [0, 0, 0, 0];
    for (let i = 0; i < 600; i++) counts[decider.decide({ ...plainRequest, charged: false }).slots[0]!]!++;
    // Of the six pairs the best is in three, the second in two more, the third in the last but one.
    expect(counts[0]).toBe(0);
    expect(counts[2]).toBeGreaterThan(240);
    expect(counts[3]).toBeGreaterThan(140);
    expect(counts[1]).toBeGreaterThan(50);
  });

  it('power-of-two-picker takes the one with fewer requests in flight of two with the same score', () => {
    const { decider, table } = makePool([scorer('OP_PICK_BEST_OF', 1, 1, 2)], [{}, {}]);
    for (let i = 0; i < 20; i++) decider.decide(plainRequest);
    expect([table.read(0).inflight, table.read(1).inflight]).toEqual([10, 10]);
  });

  it('power-of-two-picker names several endpoints, each once, as many as there are', () => {
    const { decider } = makePool([free, scorer('OP_PICK_BEST_OF', 1, 9, 2)], kv(0.9, 0.5, 0.1));
    for (let i = 0; i < 20; i++) {
      const { slots } = decider.decide({ ...plainRequest, charged: false });
      expect([...slots].sort()).toEqual([0, 1, 2]);
    }
  });

  it('power-of-two-picker takes one endpoint alone, and with many choices the best of all', () => {
    const one = makePool([scorer('OP_PICK_BEST_OF', 1, 1, 2)], [{}]);
    expect(one.decider.decide(plainRequest).slots).toEqual([0]);
    const all = makePool([free, scorer('OP_PICK_BEST_OF', 1, 1, 64)], kv(0.9, 0.5, 0.1));
    for (let i = 0; i < 10; i++) expect(all.decider.decide({ ...plainRequest, charged: false }).slots).toEqual([2]);
  });
});

describe('least-request-picker', () => {
  const pick = scorer('OP_PICK_LEAST_REQUEST', 1, 1);

  it('least-request-picker picks the fewest requests in flight, whatever the scores', () => {
    const { decider, table } = makePool([free, pick], kv(0, 0.9, 0.9));
    for (let i = 0; i < 9; i++) decider.decide(plainRequest);
    expect([0, 1, 2].map((slot) => table.read(slot).inflight)).toEqual([3, 3, 3]);
  });

  it('least-request-picker takes the highest score of those with equally few', () => {
    const { decider } = makePool([free, pick], kv(0.5, 0.1, 0.3));
    expect([0, 1, 2].map(() => decider.decide(plainRequest).slots[0])).toEqual([1, 2, 0]);
  });

  it('least-request-picker names several in the order of their requests, and leaves the race as it was', () => {
    const { decider } = makePool([free, scorer('OP_PICK_LEAST_REQUEST', 1, 3)], kv(0.5, 0.1, 0.3));
    for (const slot of [1, 1, 2]) decider.decide({ ...plainRequest, subset: [slot] });
    expect(decider.decide(plainRequest).slots).toEqual([0, 2, 1]);
  });
});

describe('round-robin-picker', () => {
  const pick = scorer('OP_PICK_ROUND_ROBIN', 1, 1);
  const four = [{}, {}, {}, {}];

  it('round-robin-picker takes the candidates one after the other', () => {
    const { decider } = makePool([pick], four);
    expect(Array.from({ length: 9 }, () => decider.decide(plainRequest).slots[0])).toEqual([0, 1, 2, 3, 0, 1, 2, 3, 0]);
  });

  it('round-robin-picker goes on behind an endpoint that is no candidate', () => {
    const { decider, table } = makePool([pick], four);
    decider.decide(plainRequest);
    table.setState(1, 'draining');
    expect(Array.from({ length: 4 }, () => decider.decide(plainRequest).slots[0])).toEqual([2, 3, 0, 2]);
    table.setState(3, 'free');
    expect(decider.decide(plainRequest).slots).toEqual([0]);
  });

  it('round-robin-picker keeps a turn for each profile, and does not move it for a decision that charges nothing', () => {
    const { decider, programs } = makePool([pick], four);
    programs.publish(1, [pick], { inserts: false });
    decider.decide(plainRequest);
    expect(decider.decide({ ...plainRequest, profile: 1 }).slots).toEqual([0]);
    expect(decider.decide({ ...plainRequest, charged: false }).slots).toEqual([1]);
    expect(decider.decide(plainRequest).slots).toEqual([1]);
  });

  it('round-robin-picker names the following ones as fallbacks', () => {
    const { decider } = makePool([scorer('OP_PICK_ROUND_ROBIN', 1, 3)], four);
    expect(decider.decide(plainRequest).slots).toEqual([0, 1, 2]);
    expect(decider.decide(plainRequest).slots).toEqual([1, 2, 3]);
    expect(decider.decide(plainRequest).slots).toEqual([2, 3, 0]);
  });
});

describe('further picks', () => {
  /** Slots in the order of the picks: scores fall with the slot, and slots with equal texts share a host. */
  const order = (
    hosts: readonly string[],
    picker: number | Operation,
    more: (pool: ReturnType<typeof makePool>) => void = () => {},
    nowMs = 0,
  ) => {
    const pick = typeof picker === 'number' ? scorer('OP_PICK_MAX_SCORE', 1, picker, 3) : picker;
    const pool = makePool([free, pick], kv(...hosts.map((_, slot) => slot / 10)));
    for (const [slot, host] of hosts.entries()) pool.table.setLabelText(2, slot, host);
    more(pool);
    return [...pool.decider.decide({ ...plainRequest, nowMs, charged: false }).slots];
  };

  it('further picks are the best ones of other hosts, as long as there are any', () => {
    expect(order(['a', 'a', 'a', 'b', 'b', 'c'], 3)).toEqual([0, 3, 5]);
  });

  it.each([
    ['power-of-two-picker', scorer('OP_PICK_BEST_OF', 1, 3, 64, 3), [0, 3, 5]],
    ['least-request-picker', scorer('OP_PICK_LEAST_REQUEST', 1, 3, 3), [0, 3, 5]],
    ['round-robin-picker', scorer('OP_PICK_ROUND_ROBIN', 1, 3, 3), [0, 3, 5]],
  ])('further picks of %s are on other hosts too', (_, picker, expected) => {
    expect(order(['a', 'a', 'a', 'b', 'b', 'c'], picker)).toEqual(expected);
  });

  it('further picks of round-robin-picker go on behind the one before, in each round of the hosts', () => {
    expect(order(['a', 'a', 'b', 'b'], scorer('OP_PICK_ROUND_ROBIN', 1, 4, 3))).toEqual([0, 2, 3, 1]);
  });

  it('further picks begin again with the hosts when every one is named', () => {
    expect(order(['a', 'a', 'a', 'b', 'b'], 5)).toEqual([0, 3, 1, 4, 2]);
  });

  it('further picks are in the order of their scores where every host is another one, or all are the same', () => {
    expect(order(['a', 'b', 'c', 'd'], 3)).toEqual([0, 1, 2]);
    expect(order(['a', 'a', 'a', 'a'], 3)).toEqual([0, 1, 2]);
  });

  const eject = (slot: number) => {
    return ({ decider }: ReturnType<typeof makePool>) => {
      for (let i = 0; i < 2; i++) decider.noteOutcome(slot, 1, 'failed', 0);
    };
  };

  it('further picks pass over an endpoint that is out', () => {
    expect(order(['a', 'a', 'b', 'c'], 3, eject(2))).toEqual([0, 3, 1]);
  });

  it('further picks take another endpoint of the host of one that is out and due for a probe', () => {
    expect(order(['a', 'b', 'a', 'b'], 2, eject(1), 1e9)).toEqual([0, 3]);
  });
});
