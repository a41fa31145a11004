import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { attachCore, Decider, DecisionLog, PrefixIndex } from '../../dist/src/core/index.js';
import { makePool, pickMax, plainRequest, scorer, smallSizes } from './pool.js';

const idle = (count: number) => Array.from({ length: count }, () => ({ waiting: 0, running: 0, kvUsage: 0 }));

describe('decide', () => {
  it('a decision spreads simultaneous requests over idle endpoints to within one of each other', () => {
    const { decider, table } = makePool(
      [scorer('OP_SCORE_QUEUE', 2), scorer('OP_SCORE_KV_USAGE', 2), pickMax],
      idle(7),
    );
    for (let i = 0; i < 100; i++) decider.decide(plainRequest);
    const counts = Array.from({ length: 7 }, (_, slot) => table.read(slot).inflight);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  });

  it('a decision gives the same picks for the same seed and another order for another seed', () => {
    const picks = () => {
      const { decider } = makePool([scorer('OP_PICK_RANDOM', 1, 1)], idle(40));
      return Array.from({ length: 50 }, () => decider.decide(plainRequest).slots[0]);
    };
    expect(picks()).toEqual(picks());
    expect(new Set(picks()).size).toBeGreaterThan(15);
  });

  it('a decision answers no candidates for an empty pool and for a subset without a live endpoint', () => {
    const empty = makePool([pickMax], []);
    expect(empty.decider.decide(plainRequest).status).toBe('no-candidates');
    const two = makePool([pickMax], idle(2));
    expect(two.decider.decide({ ...plainRequest, subset: [] }).status).toBe('no-candidates');
    expect(two.decider.decide({ ...plainRequest, subset: [5] }).status).toBe('no-candidates');
    expect(two.decider.decide({ ...plainRequest, subset: [1] }).slots).toEqual([1]);
  });

  it('a decision can be looked ahead of: the blocks of a prompt that each endpoint holds', () => {
    const { core, decider } = makePool([pickMax], idle(3));
    const index = new PrefixIndex(core);
    index.writeHashes(BigUint64Array.of(11n, 22n, 33n));
    index.insert(0, 2);
    index.insert(2, 3);
    decider.matchAhead(3, false);
    expect([0, 1, 2].map((slot) => decider.matchedOf(slot))).toEqual([2, 0, 3]);
  });

  it('a decision does not pick a draining endpoint', () => {
    const { decider, table } = makePool([pickMax], idle(2));
    table.setState(0, 'draining');
    for (let i = 0; i < 10; i++) expect(decider.decide(plainRequest).slots).toEqual([1]);
  });

  it('a decision has the candidates of its own time, whatever decisions and changes came before it', () => {
    const slots = 6;
    const step = fc.oneof(
      fc.record({ slot: fc.nat(slots - 1), state: fc.constantFrom('live' as const, 'draining' as const) }),
      fc.record({ slot: fc.nat(slots - 1), failed: fc.boolean() }),
      fc.record({ profile: fc.nat(2), subset: fc.option(fc.subarray([0, 1, 2, 3]), { nil: undefined }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const { memory, table, programs, decider } = makePool([pickMax], idle(slots));
        programs.publish(1, [scorer('OP_FILTER_MASK', 1, 3), pickMax], { inserts: false });
        programs.publish(2, [scorer('OP_PICK_MAX_SCORE', 1, 3)], { inserts: false });
        table.setMask(3, [1, 4]);
        for (const change of steps) {
          if ('state' in change) table.setState(change.slot, change.state);
          else if ('failed' in change) decider.noteOutcome(change.slot, 1, change.failed ? 'failed' : 'answered', 0);
          else decider.decide({ ...plainRequest, ...change, charged: false });
        }
        const seen = (by: Decider) => {
          const { status, candidates } = by.decide({ ...plainRequest, charged: false });
          return { status, candidates, marked: Array.from({ length: slots }, (_, slot) => by.isCandidate(slot)) };
        };
        expect(seen(decider)).toEqual(seen(new Decider(attachCore(memory, 2), 1n)));
      }),
    );
  });

  it('a decision keeps only the endpoints of a filter mask and says when none is left', () => {
    const { decider, table } = makePool([scorer('OP_FILTER_MASK', 1, 3), pickMax], idle(6));
    table.setMask(3, [2, 4]);
    const seen = new Set(Array.from({ length: 30 }, () => decider.decide(plainRequest).slots[0]));
    expect(seen).toEqual(new Set([2, 4]));
    table.setMask(3, []);
    expect(decider.decide(plainRequest).status).toBe('filtered');
  });

  it('a decision says which of several filters leaves none', () => {
    const filters = [4, 5, 6].map((mask) => scorer('OP_FILTER_MASK', 1, mask));
    const { decider, table } = makePool([scorer('OP_SCORE_QUEUE'), ...filters, pickMax], idle(3));
    const decide = (...masks: number[][]) => {
      for (const [index, slots] of masks.entries()) table.setMask(4 + index, slots);
      const { status, filter } = decider.decide({ ...plainRequest, charged: false });
      return [status, filter];
    };
    expect(decide([], [0, 1], [2])).toEqual(['filtered', 0]);
    expect(decide([0, 1], [2], [2])).toEqual(['filtered', 1]);
    expect(decide([0, 1], [1, 2], [2])).toEqual(['filtered', 2]);
    expect(decide([0, 1], [1, 2], [1])).toEqual(['decided', undefined]);
  });

  it('a decision returns several endpoints in order of preference', () => {
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

  it('a decision routes on uncharged and counts it when the ledger is full', () => {
    const { decider, core, control } = makePool([pickMax], idle(4));
    for (let i = 0; i < smallSizes.requests; i++) expect(decider.decide(plainRequest).ticket).not.toBe(0);
    const over = decider.decide(plainRequest);
    expect(over.status).toBe('decided');
    expect(over.ticket).toBe(0);
    expect(core.call.ledgerFull()).toBe(1);
    expect(control.call.ledgerCheck()).toBe(0);
  });
});

describe('the decision log', () => {
  it('the decision log tells the last decisions of every thread, newest first', () => {
    const { decider, control } = makePool([scorer('OP_SCORE_QUEUE'), pickMax], [{ waiting: 5 }, { waiting: 1 }]);
    decider.decide({ ...plainRequest, nowMs: 1, promptTokens: 9 });
    decider.decide({ ...plainRequest, nowMs: 2, subset: [0], promptTokens: 70 });
    decider.decide({ ...plainRequest, nowMs: 3, subset: [] });
    expect(new DecisionLog(control).recent(2)).toMatchObject([
      { timeMs: 3, thread: 1, status: 'no-candidates', slot: undefined, candidates: 0 },
      { timeMs: 2, thread: 1, status: 'decided', slot: 0, candidates: 1, promptTokens: 70, uncachedTokens: 70 },
    ]);
  });

  it('the decision log keeps the newest when it has gone round', () => {
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

  it('charges stay while another thread holds the lock, and their release says so', () => {
    const { control, core, table } = makePool([pickMax], idle(1));
    // Of the control thread, which waits the shortest.
    const decider = new Decider(control, 42n);
    const { ticket, ticketGeneration } = decider.decide(plainRequest);
    const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
    expect(core.call.lockAcquire(lock, 1)).toBe(1);
    expect([decider.release(ticket, ticketGeneration), table.read(0).inflight]).toEqual([false, 1]);
    core.call.lockRelease(lock);
    expect([decider.release(ticket, ticketGeneration), table.read(0).inflight]).toEqual([true, 0]);
  });

  it('charges of an endpoint that is gone do not touch the next one in its slot', () => {
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

  it('the change since a scrape is what was sent less what has ended', () => {
    const { decider, table } = makePool([pickMax], idle(1));
    const before = { ...decider.decide(plainRequest) };
    expect(table.read(0).sinceScrape).toBe(1);
    table.publish(0, { waiting: 0 }, 5);
    expect(table.read(0).sinceScrape).toBe(0);
    decider.decide(plainRequest);
    expect(table.read(0).sinceScrape).toBe(1);
    decider.release(before.ticket, before.ticketGeneration);
    expect(table.read(0).sinceScrape).toBe(0);
  });
});

describe('ejection of failing endpoints', () => {
  const failing = () => {
    const pool = makePool([pickMax], idle(4));
    const fail = (slot: number, nowMs: number) => pool.decider.noteOutcome(slot, 1, 'failed', nowMs);
    const reached = (nowMs: number) =>
      new Set(
        Array.from({ length: 40 }, () => {
          const decision = pool.decider.decide({ ...plainRequest, nowMs });
          const slot = decision.slots[0]!;
          pool.decider.release(decision.ticket, decision.ticketGeneration);
          return slot;
        }),
      );
    /** The pool decides so many requests for its other endpoints. */
    const others = (count: number) => {
      for (let i = 0; i < count; i++) pool.decider.decide({ ...plainRequest, subset: [0, 2, 3], charged: false });
    };
    return { ...pool, fail, reached, others };
  };
  /** Both failures that put an endpoint out, at time 0. */
  const out = () => {
    const pool = failing();
    for (let i = 0; i < 2; i++) pool.fail(1, 0);
    const pick = (subset: readonly number[], nowMs: number) =>
      pool.decider.decide({ ...plainRequest, subset, nowMs }).slots[0];
    return { ...pool, pick };
  };

  it('ejection of failing endpoints takes an endpoint out after two failures in a row', () => {
    const { fail, reached } = failing();
    expect(fail(1, 0)).toBe(0);
    expect(reached(0)).toContain(1);
    expect(fail(1, 0)).toBe(CORE.NOTED_EJECTED);
    expect(reached(799)).toEqual(new Set([0, 2, 3]));
  });

  it('ejection of failing endpoints counts only failures in a row', () => {
    const { fail, decider, reached } = failing();
    fail(1, 0);
    decider.noteOutcome(1, 1, 'answered', 0);
    fail(1, 0);
    expect(reached(0)).toContain(1);
  });

  it('ejection of failing endpoints lets one probe at a time through within a second, and a success brings it back', () => {
    const { decider, table, others, pick } = out();
    others(32);
    const picks = [pick([1, 2], 900)];
    while (picks.at(-1) !== 1 && picks.length < 1_000) picks.push(pick([1], 900));
    expect(picks.at(-1)).toBe(1);
    expect(table.read(1).ejection).toBe(2);
    for (let i = 0; i < 20; i++) expect(decider.decide({ ...plainRequest, nowMs: 900 }).slots[0]).not.toBe(1);
    decider.noteOutcome(1, 1, 'answered', 901);
    expect(table.read(1).ejection).toBe(0);
  });

  it('ejection of failing endpoints spoils one request in 32 at most when it never recovers', () => {
    const { decider, fail, table } = out();
    let failed = 0;
    for (let i = 0; i < 320; i++) {
      const { slots, ticket, ticketGeneration } = decider.decide({ ...plainRequest, nowMs: i * 1000 });
      if (slots[0] === 1) failed++;
      if (slots[0] === 1) fail(1, i * 1000);
      decider.release(ticket, ticketGeneration);
    }
    expect(failed).toBeGreaterThanOrEqual(5);
    expect(failed).toBeLessThanOrEqual(10);
    expect(table.read(1).ejection).toBe(1);
  });

  it('an ejected endpoint is probed once a minute in a pool that decides few requests', () => {
    const { pick } = out();
    expect(pick([1, 0], 59_000)).toBe(0);
    expect(pick([1, 0], 60_000) === 1 || pick([1, 0], 60_000) === 1).toBe(true);
  });

  it('an ejected endpoint gets no probe while it refuses connections, and one at once when it takes them again', () => {
    const { table, others, pick } = out();
    others(32);
    for (let nowMs = 0; nowMs < 70_000; nowMs += 250) {
      table.setReachable(1, 1, false, nowMs);
      expect(pick([1, 0], nowMs)).toBe(0);
    }
    table.setReachable(1, 1, true, 70_000);
    expect([pick([1, 0], 70_000), pick([1, 0], 70_000)]).toContain(1);
  });

  it('ejection of failing endpoints is judged by what is found at its own endpoint, not at one that had the slot before', () => {
    const { table, others, pick } = out();
    others(32);
    table.setReachable(1, 7, false, 900);
    expect([pick([1, 0], 900), pick([1, 0], 900)]).toContain(1);
  });

  it('ejection of failing endpoints lets the next probe through when a probe ended without an answer', () => {
    const { decider, table, others } = out();
    others(32);
    const probe = { ...decider.decide({ ...plainRequest, subset: [1], nowMs: 1000 }) };
    decider.release(probe.ticket, probe.ticketGeneration);
    expect(table.read(1).ejection).toBe(1);
    expect(decider.decide({ ...plainRequest, subset: [1], nowMs: 1000 }).slots).toEqual([1]);
  });

  it.each([
    ['OP_PICK_MAX_SCORE', []],
    ['OP_PICK_RANDOM', []],
    ['OP_PICK_WEIGHTED_RANDOM', []],
    ['OP_PICK_BEST_OF', [2]],
    ['OP_PICK_LEAST_REQUEST', []],
    ['OP_PICK_ROUND_ROBIN', []],
  ] as const)(
    'ejection of failing endpoints keeps an endpoint that is out from all places of a list by %s but that of its probe',
    (code, more) => {
      const pool = makePool([scorer(code, 1, 3, ...more)], idle(6));
      for (const slot of [1, 4]) for (let i = 0; i < 2; i++) pool.decider.noteOutcome(slot, 1, 'failed', 0);
      for (let i = 0; i < 60; i++) pool.decider.decide({ ...plainRequest, charged: false, nowMs: 1 });
      let probes = 0;
      for (let i = 0; i < 60; i++) {
        const { slots } = pool.decider.decide({ ...plainRequest, nowMs: 1000 });
        expect(slots).toHaveLength(3);
        expect(new Set(slots).size).toBe(3);
        for (const slot of slots.slice(1)) expect([0, 2, 3, 5]).toContain(slot);
        if ([1, 4].includes(slots[0]!)) probes++;
      }
      expect(probes).toBeLessThanOrEqual(2);
    },
  );

  it('ejection of failing endpoints never takes more than half of the pool out', () => {
    const { fail, reached } = failing();
    for (let slot = 0; slot < 4; slot++) for (let i = 0; i < 5; i++) fail(slot, 0);
    expect(reached(0).size).toBe(2);
  });

  it('ejection of failing endpoints takes all endpoints of a subset in when all of them are out', () => {
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
