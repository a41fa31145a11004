import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DecisionLog } from '../../dist/core/index.js';
import { makePool, pickMax, plainRequest, scorer, smallSizes } from './pool.js';

const idle = (count: number) => Array.from({ length: count }, () => ({ waiting: 0, running: 0, kvUsage: 0 }));

describe('decide', () => {
  it('spreads simultaneous requests over idle endpoints to within one of each other', () => {
    const { decider, table } = makePool(
      [scorer('OP_SCORE_QUEUE', 2), scorer('OP_SCORE_KV_USAGE', 2), pickMax],
      idle(7),
    );
    for (let i = 0; i < 100; i++) decider.decide(plainRequest);
    const counts = Array.from({ length: 7 }, (_, slot) => table.read(slot).inflight);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  });

  it('gives the same picks for the same seed and another order for another seed', () => {
    const picks = () => {
      const { decider } = makePool([scorer('OP_PICK_RANDOM', 1, 1)], idle(40));
      return Array.from({ length: 50 }, () => decider.decide(plainRequest).slots[0]);
    };
    expect(picks()).toEqual(picks());
    expect(new Set(picks()).size).toBeGreaterThan(15);
  });

  it('answers no candidates for an empty pool and for a subset without a live endpoint', () => {
    const empty = makePool([pickMax], []);
    expect(empty.decider.decide(plainRequest).status).toBe('no-candidates');
    const two = makePool([pickMax], idle(2));
    expect(two.decider.decide({ ...plainRequest, subset: [] }).status).toBe('no-candidates');
    expect(two.decider.decide({ ...plainRequest, subset: [5] }).status).toBe('no-candidates');
    expect(two.decider.decide({ ...plainRequest, subset: [1] }).slots).toEqual([1]);
  });

  it('decide does not pick a draining endpoint', () => {
    const { decider, table } = makePool([pickMax], idle(2));
    table.setState(0, 'draining');
    for (let i = 0; i < 10; i++) expect(decider.decide(plainRequest).slots).toEqual([1]);
  });

  it('keeps only the endpoints of a filter mask and says when none is left', () => {
    const { decider, table } = makePool([scorer('OP_FILTER_MASK', 1, 3), pickMax], idle(6));
    table.setMask(3, [2, 4]);
    const seen = new Set(Array.from({ length: 30 }, () => decider.decide(plainRequest).slots[0]));
    expect(seen).toEqual(new Set([2, 4]));
    table.setMask(3, []);
    expect(decider.decide(plainRequest).status).toBe('filtered');
  });

  it('returns several endpoints in order of preference', () => {
    const signals = [{ waiting: 5 }, { waiting: 1 }, { waiting: 9 }, { waiting: 3 }];
    const { decider } = makePool([scorer('OP_SCORE_QUEUE'), scorer('OP_PICK_MAX_SCORE', 1, 3)], signals);
    expect(decider.decide(plainRequest).slots).toEqual([1, 3, 0]);
  });

  it('weighted-random-picker draws in proportion to the score', () => {
    const { decider } = makePool(
      [scorer('OP_SCORE_KV_USAGE'), scorer('OP_PICK_WEIGHTED_RANDOM', 1, 1)],
      [{ kvUsage: 0.75 }, { kvUsage: 0.25 }, { kvUsage: 1 }],
    );
    const counts = [0, 0, 0];
    for (let i = 0; i < 4000; i++) counts[decider.decide({ ...plainRequest, charged: false }).slots[0]!]!++;
    expect(counts[2]).toBe(0);
    expect(counts[1]! / counts[0]!).toBeGreaterThan(2.5);
    expect(counts[1]! / counts[0]!).toBeLessThan(3.6);
  });

  it('routes on uncharged and counts it when the ledger is full', () => {
    const { decider, core, control } = makePool([pickMax], idle(4));
    for (let i = 0; i < smallSizes.requests; i++) expect(decider.decide(plainRequest).ticket).not.toBe(0);
    const over = decider.decide(plainRequest);
    expect(over.status).toBe('decided');
    expect(over.ticket).toBe(0);
    expect(core.call.ledgerFull()).toBe(1);
    expect(control.call.ledgerCheck()).toBe(0);
  });
});

describe('the decision ring', () => {
  it('tells the last decisions of every thread, newest first', () => {
    const { decider, control } = makePool([scorer('OP_SCORE_QUEUE'), pickMax], [{ waiting: 5 }, { waiting: 1 }]);
    decider.decide({ ...plainRequest, nowMs: 1, promptTokens: 9 });
    decider.decide({ ...plainRequest, nowMs: 2, subset: [0], promptTokens: 70 });
    decider.decide({ ...plainRequest, nowMs: 3, subset: [] });
    expect(new DecisionLog(control).recent(2)).toMatchObject([
      { timeMs: 3, thread: 1, status: 'no-candidates', slot: undefined, candidates: 0 },
      { timeMs: 2, thread: 1, status: 'decided', slot: 0, candidates: 1, promptTokens: 70, uncachedTokens: 70 },
    ]);
  });

  it('keeps the newest when it has gone round', () => {
    const { decider, control } = makePool([pickMax], idle(1));
    for (let i = 1; i <= 3000; i++) decider.decide({ ...plainRequest, nowMs: i, charged: false });
    const times = new DecisionLog(control).recent(5000).map(({ timeMs }) => timeMs);
    expect(times[0]).toBe(3000);
    expect(times).toHaveLength(1023);
  });
});

describe('charges', () => {
  it('charges are released exactly once, in any order and however often release is called', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 400 })), { maxLength: 200 }),
        (steps) => {
          const { decider, control, table } = makePool([scorer('OP_SCORE_ACTIVE_REQUEST', 1, 0, 1), pickMax], idle(5));
          const live: { ticket: number; generation: number }[] = [];
          for (const [action, number] of steps) {
            const held = live[number % Math.max(1, live.length)];
            if (action <= 1 || held === undefined) {
              const decision = decider.decide({ ...plainRequest, promptTokens: number });
              live.push({ ticket: decision.ticket, generation: decision.ticketGeneration });
            } else if (action === 2) decider.prefillDone(held.ticket, held.generation, 1);
            else if (action === 3) decider.grow(held.ticket, held.generation, number % 9, (number % 9) * 64);
            else {
              decider.release(held.ticket, held.generation);
              if (action === 5) decider.release(held.ticket, held.generation);
            }
            expect(control.call.ledgerCheck()).toBe(0);
          }
          for (const { ticket, generation } of live) decider.release(ticket, generation);
          expect(control.call.ledgerCheck()).toBe(0);
          for (let slot = 0; slot < 5; slot++) {
            const reading = table.read(slot);
            expect([reading.inflight, reading.inflightTokens, reading.outputBlocks]).toEqual([0, 0, 0]);
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  it('of an endpoint that is gone do not touch the next one in its slot', () => {
    const { decider, table, control } = makePool([pickMax], idle(1));
    const first = { ...decider.decide({ ...plainRequest, promptTokens: 100 }) };
    table.setState(0, 'free');
    table.open(0, 2);
    table.setState(0, 'live');
    decider.decide({ ...plainRequest, promptTokens: 7 });
    decider.release(first.ticket, first.ticketGeneration);
    expect(table.read(0)).toMatchObject({ inflight: 1, inflightTokens: 7 });
    expect(control.call.ledgerCheck()).toBe(0);
  });

  it('forget what was dispatched before a scrape', () => {
    const { decider, table } = makePool([pickMax], idle(1));
    const before = { ...decider.decide(plainRequest) };
    expect(table.read(0).sinceScrape).toBe(1);
    table.publish(0, { waiting: 0 }, 5);
    decider.decide(plainRequest);
    decider.release(before.ticket, before.ticketGeneration);
    expect(table.read(0).sinceScrape).toBe(1);
  });
});

describe('ejection of failing endpoints', () => {
  const failing = () => {
    const pool = makePool([pickMax], idle(4));
    const fail = (slot: number, nowMs: number) => pool.decider.noteOutcome(slot, 1, true, nowMs);
    const reached = (nowMs: number) =>
      new Set(
        Array.from({ length: 40 }, () => {
          const decision = pool.decider.decide({ ...plainRequest, nowMs });
          const slot = decision.slots[0]!;
          pool.decider.release(decision.ticket, decision.ticketGeneration);
          return slot;
        }),
      );
    return { ...pool, fail, reached };
  };

  it('takes an endpoint out after three failures in a row', () => {
    const { fail, reached } = failing();
    expect([fail(1, 0), fail(1, 0)]).toEqual([false, false]);
    expect(reached(0)).toContain(1);
    expect(fail(1, 0)).toBe(true);
    expect(reached(999)).toEqual(new Set([0, 2, 3]));
  });

  it('counts only failures in a row', () => {
    const { fail, decider, reached } = failing();
    fail(1, 0);
    fail(1, 0);
    decider.noteOutcome(1, 1, false, 0);
    fail(1, 0);
    expect(reached(0)).toContain(1);
  });

  it('lets one probe at a time through when the time is over, and a success brings it back', () => {
    const { fail, decider, table } = failing();
    for (let i = 0; i < 3; i++) fail(1, 0);
    const probe = { ...decider.decide({ ...plainRequest, subset: [1, 2], nowMs: 1000 }) };
    let other = { ...probe };
    while (probe.slots[0] !== 1 && other.slots[0] !== 1)
      other = { ...decider.decide({ ...plainRequest, subset: [1], nowMs: 1000 }) };
    expect(table.read(1).ejection).toBe(2);
    for (let i = 0; i < 20; i++) expect(decider.decide({ ...plainRequest, nowMs: 1000 }).slots[0]).not.toBe(1);
    decider.noteOutcome(1, 1, false, 1001);
    expect(table.read(1).ejection).toBe(0);
  });

  it('doubles the time out with each failed probe', () => {
    const { fail, decider, table } = failing();
    for (let i = 0; i < 3; i++) fail(1, 0);
    decider.decide({ ...plainRequest, subset: [1], nowMs: 1000 });
    fail(1, 1000);
    expect(decider.decide({ ...plainRequest, subset: [1, 0], nowMs: 2999 }).slots).toEqual([0]);
    expect(table.read(1).ejection).toBe(1);
    decider.decide({ ...plainRequest, subset: [1], nowMs: 3000 });
    expect(table.read(1).ejection).toBe(2);
  });

  it('lets the next probe through when a probe ended without an answer', () => {
    const { fail, decider, table } = failing();
    for (let i = 0; i < 3; i++) fail(1, 0);
    const probe = { ...decider.decide({ ...plainRequest, subset: [1], nowMs: 1000 }) };
    decider.release(probe.ticket, probe.ticketGeneration);
    expect(table.read(1).ejection).toBe(1);
    expect(decider.decide({ ...plainRequest, subset: [1], nowMs: 1000 }).slots).toEqual([1]);
  });

  it('never takes more than half of the pool out', () => {
    const { fail, reached } = failing();
    for (let slot = 0; slot < 4; slot++) for (let i = 0; i < 5; i++) fail(slot, 0);
    expect(reached(0).size).toBe(2);
  });

  it('takes all endpoints of a subset in when all of them are out', () => {
    const { fail, decider } = failing();
    for (let i = 0; i < 3; i++) fail(1, 0);
    expect(decider.decide({ ...plainRequest, subset: [1], nowMs: 1 }).slots).toEqual([1]);
  });

  it('ejection of failing endpoints can be switched off', () => {
    const { fail, table, reached } = failing();
    table.disableEjection();
    for (let i = 0; i < 9; i++) fail(1, 0);
    expect(reached(0)).toContain(1);
  });
});
