import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { makePool, pickMax, plainRequest } from './pool.ts';

/** A pool of idle endpoints whose doubts are looked after. */
function watched(endpoints: number) {
  const pool = makePool(
    [pickMax],
    Array.from({ length: endpoints }, () => ({ waiting: 0, running: 0, kvUsage: 0 })),
  );
  pool.table.watchDoubts();
  const { decider, table } = pool;
  const decide = (nowMs: number, subset?: readonly number[]) => decider.decide({ ...plainRequest, nowMs, subset });
  /** Slots that forty requests reach, one after the other. */
  const reached = (nowMs: number, subset?: readonly number[]) =>
    new Set(
      Array.from({ length: 40 }, () => {
        const { slots, ticket, ticketGeneration } = decide(nowMs, subset);
        const slot = slots[0];
        decider.release(ticket, ticketGeneration);
        return slot;
      }),
    );
  const unanswered = (slot: number, nowMs: number) => decider.noteOutcome(slot, 1, 'unanswered', nowMs);
  const die = (slot: number, nowMs: number) => table.setDead(slot, 1, nowMs);
  return { ...pool, decide, reached, unanswered, die };
}

describe('a dead endpoint', () => {
  it('a dead endpoint is no candidate, however many others are dead: no bound applies', () => {
    const { die, reached, table } = watched(4);
    expect(die(0, 0)).toBe('changed');
    expect(die(0, 1)).toBe('same');
    die(1, 0);
    die(2, 0);
    expect(table.dead).toBe(3);
    expect(reached(100_000)).toEqual(new Set([3]));
  });

  it('a dead endpoint is no candidate beside one that is ejected', () => {
    const { die, reached, decider } = watched(2);
    decider.noteOutcome(1, 1, 'failed', 0);
    decider.noteOutcome(1, 1, 'failed', 0);
    die(0, 0);
    expect(reached(1)).toEqual(new Set([1]));
  });

  it('a dead endpoint is neither judged nor counted with the ejected ones, whose bound is half of the others', () => {
    const { die, decider, table } = watched(4);
    for (const slot of [0, 1]) decider.noteOutcome(slot, 1, 'failed', 0);
    expect(decider.noteOutcome(0, 1, 'failed', 0)).toBe(CORE.NOTED_EJECTED);
    die(0, 1);
    die(3, 1);
    expect([table.ejected, table.dead]).toEqual([0, 2]);
    expect(decider.noteOutcome(1, 1, 'failed', 1)).toBe(CORE.NOTED_EJECTED);
    for (let i = 0; i < 9; i++) expect(decider.noteOutcome(2, 1, 'failed', 1)).toBe(0);
    expect(decider.noteOutcome(0, 1, 'failed', 2)).toBe(0);
  });

  it('a dead endpoint that takes connections again gets one request, and its share after the answer', () => {
    const { die, decide, decider, reached, table } = watched(3);
    die(1, 0);
    expect(table.setAlive(1, 1, 500)).toBe('changed');
    expect([table.dead, table.ejected]).toEqual([0, 1]);
    const picks = Array.from({ length: 60 }, () => {
      const { slots, ticket, ticketGeneration } = decide(500);
      return { slot: slots[0], ticket, ticketGeneration };
    });
    expect(picks.filter(({ slot }) => slot === 1)).toHaveLength(1);
    for (const { ticket, ticketGeneration } of picks) decider.release(ticket, ticketGeneration);
    decider.noteOutcome(1, 1, 'answered', 501);
    expect(reached(501)).toEqual(new Set([0, 1, 2]));
  });

  it('a dead endpoint stays dead when an answer came that another endpoint may have given', () => {
    const { die, decider, reached } = watched(3);
    die(1, 0);
    decider.noteOutcome(1, 1, 'answered', 1);
    expect(reached(2)).toEqual(new Set([0, 2]));
    decider.noteOutcome(1, 1, 'answered-itself', 250);
    expect(reached(251)).toEqual(new Set([0, 1, 2]));
  });

  it('a dead endpoint stays dead when an answer comes that it gave before', () => {
    const { die, decider, reached } = watched(3);
    die(1, 0);
    decider.noteOutcome(1, 1, 'answered-itself', 249);
    expect(reached(250)).toEqual(new Set([0, 2]));
  });

  it('a dead endpoint keeps its state from another endpoint of the slot, and loses it when it drains', () => {
    const { die, table } = watched(2);
    expect(table.setDead(1, 7, 0)).toBe('same');
    expect(table.dead).toBe(0);
    die(1, 0);
    table.setState(1, 'draining');
    expect([table.dead, table.read(1).death]).toEqual([0, 0]);
    expect(die(1, 0)).toBe('same');
    expect(table.dead).toBe(0);
  });

  it('a dead endpoint is counted again when a thread died inside the lock', () => {
    const { die, control, table, core } = watched(4);
    die(1, 0);
    die(2, 0);
    const word = (CORE.HEADER + CORE.HEADER_POOL + CORE.POOL_DEAD) >>> 2;
    expect(core.call.lockAcquire(CORE.HEADER + CORE.HEADER_COMMIT_LOCK, 1)).not.toBe(0);
    core.u32[word] = 40;
    control.call.reclaimThread(1);
    expect(table.dead).toBe(2);
  });

  it('a dead endpoint has no part in the saturation of the pool', () => {
    const { die, control, decide } = watched(2);
    expect(control.call.gateConfigure(CORE.GATE_CONCURRENCY_REQUESTS, 16, 1, 1, 1, 0, 1, 1, 0)).toBe(0);
    decide(0, [0]);
    const subset = control.call.subsetAddress() >>> 0;
    control.u32[subset >>> 2] = 0b11;
    expect(control.call.gateSaturation(0)).toBe(0.5);
    die(1, 0);
    expect(control.call.gateSaturation(0)).toBe(1);
  });
});

describe('a pool whose endpoints are all dead', () => {
  it('a pool whose endpoints are all dead tries the one whose last try is longest ago', () => {
    const { die, decide } = watched(3);
    die(2, 1);
    die(0, 2);
    die(1, 3);
    const picks = [10, 11, 12, 13, 14].map((nowMs) => decide(nowMs).slots[0]);
    expect(picks).toEqual([2, 0, 1, 2, 0]);
  });

  it('a pool whose endpoints are all dead keeps to the subset that the proxy allows', () => {
    const { die, decide } = watched(4);
    for (const slot of [3, 1, 2]) die(slot, 10 - slot);
    expect([20, 21, 22].map((nowMs) => decide(nowMs, [1, 2]).slots[0])).toEqual([2, 1, 2]);
  });

  it('a pool whose endpoints are all dead takes an answer for that of the endpoint that was tried', () => {
    const { die, decide, decider, reached } = watched(2);
    die(0, 0);
    die(1, 1);
    expect(decide(2).slots).toEqual([0]);
    decider.noteOutcome(0, 1, 'answered', 3);
    expect(reached(4)).toEqual(new Set([0]));
  });
});

describe('an endpoint in doubt', () => {
  it('an endpoint in doubt gets no request until the control thread has looked', () => {
    const { unanswered, reached, table } = watched(3);
    expect(unanswered(1, 0)).toBe(CORE.NOTED_DOUBTED);
    expect(reached(1)).toEqual(new Set([0, 2]));
    expect(table.setAlive(1, 1, 2)).toBe('same');
    expect(reached(3)).toEqual(new Set([0, 1, 2]));
  });

  it('an endpoint in doubt is taken again after a second without a look', () => {
    const { unanswered, reached } = watched(3);
    unanswered(1, 0);
    expect(reached(999)).not.toContain(1);
    expect(reached(1_000)).toContain(1);
  });

  it('an endpoint in doubt is not doubted again within a second after the look', () => {
    const { unanswered, table, decider } = watched(3);
    unanswered(1, 0);
    table.setAlive(1, 1, 2);
    decider.noteOutcome(1, 1, 'answered', 3);
    expect(unanswered(1, 900) & CORE.NOTED_DOUBTED).toBe(0);
    decider.noteOutcome(1, 1, 'answered', 901);
    expect(unanswered(1, 1_002) & CORE.NOTED_DOUBTED).toBe(CORE.NOTED_DOUBTED);
  });

  it('an endpoint in doubt is a candidate when the others are in doubt or dead', () => {
    const { unanswered, die, reached } = watched(3);
    unanswered(0, 0);
    unanswered(1, 0);
    die(2, 0);
    expect(reached(1)).toEqual(new Set([0, 1]));
  });

  it('an endpoint is not in doubt by an error of its own, nor where nobody looks', () => {
    const { decider, table } = watched(3);
    decider.noteOutcome(1, 1, 'failed', 0);
    expect(table.dead).toBe(0);
    const unwatched = makePool([pickMax], [{}, {}]);
    unwatched.decider.noteOutcome(1, 1, 'unanswered', 0);
    expect(unwatched.table.dead).toBe(0);
  });
});

describe('the count of doubted and dead endpoints', () => {
  it('the count of doubted and dead endpoints is that of their states, and picks avoid them while another one is left', () => {
    const event = fc.record({
      slot: fc.nat(4),
      what: fc.constantFrom('die', 'live', 'unanswered', 'answered', 'failed', 'itself', 'drain', 'take'),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const { table, decider, decide } = watched(5);
        for (const [nowMs, { slot, what }] of events.entries()) {
          if (what === 'die') table.setDead(slot, 1, nowMs);
          else if (what === 'live') table.setAlive(slot, 1, nowMs);
          else if (what === 'drain') table.setState(slot, 'draining');
          else if (what === 'take') table.setState(slot, 'live');
          else if (what === 'itself') decider.noteOutcome(slot, 1, 'answered-itself', nowMs);
          else decider.noteOutcome(slot, 1, what as 'failed', nowMs);
          const readings = [0, 1, 2, 3, 4].map((at) => table.read(at));
          expect(table.dead).toBe(readings.filter(({ death }) => death !== 0).length);
          expect(table.ejected).toBe(readings.filter(({ ejection }) => ejection !== 0).length);
          expect(readings.some(({ death, ejection }) => death === 2 && ejection !== 0)).toBe(false);
          const pick = decide(nowMs).slots[0];
          const isAlive = readings.some(({ state, death }) => state === 1 && death !== 2);
          if (isAlive) expect(readings[pick!]!.death).not.toBe(2);
        }
      }),
    );
  });
});
