import { describe, expect, it } from 'vitest';
import { plainBound } from '../../dist/src/contract/refusing-bound.js';
import type { GateSettings } from '../../dist/src/core/capacity-gate.js';
import { CORE } from '../../dist/src/core/core-names.js';
import { makeGate } from './gate-pool.ts';
import { makePool, pickMax, plainRequest, scorer } from './pool.ts';

const REJECTION = { outcome: 3, retryAfterSeconds: 2, bound: plainBound('shutting-down') };

const slots = (maxRequests: number): GateSettings => ({ mode: 'requests', maxRequests, maxTokens: 1 });
const idle = (count: number) => Array.from({ length: count }, () => ({ waiting: 0, running: 0, kvUsage: 0 }));

describe('the gate, off', () => {
  it('the gate, off, changes no decision', () => {
    const picks = (gated: boolean) => {
      const { decider } = makePool([scorer('OP_SCORE_QUEUE'), scorer('OP_PICK_RANDOM', 1, 1)], idle(20));
      const gate = gated ? { waitSlots: 3, held: undefined, blind: false } : undefined;
      return Array.from({ length: 200 }, () => ({ ...decider.decide({ ...plainRequest, gate }), slots: [] }));
    };
    expect(picks(true)).toEqual(picks(false));
  });
});

describe('the gate, on', () => {
  it('the gate lets exactly as many in as there are places, on whichever shard they ask', () => {
    const { shard } = makeGate(slots(2), idle(3));
    const shards = [shard(1), shard(2)];
    const answers = Array.from({ length: 10 }, (_, i) => shards[i % 2]!.ask());
    expect(answers.filter(({ status }) => status === 'decided')).toHaveLength(6);
    expect(answers.filter(({ status }) => status === 'waiting')).toHaveLength(4);
    const counts = [0, 1, 2].map((slot) => answers.filter((a) => a.status === 'decided' && a.slots[0] === slot).length);
    expect(counts).toEqual([2, 2, 2]);
  });

  it('the gate counts a charge that is moved on the endpoint that has answered', () => {
    const { shard, gate, control } = makeGate({ mode: 'learned' }, idle(2));
    const one = shard(1);
    const { ticket, ticketGeneration } = one.ask({ promptTokens: 100, subset: [0] });
    const held = () => [0, 1].map((slot) => control.call.heldTokens(slot));
    expect([held(), gate.room(0).pendingTokens]).toEqual([[100, 0], 100]);
    expect(one.decider.moveCharge(ticket, ticketGeneration, 1, 1)).toBe(true);
    expect([held(), gate.room(0).pendingTokens]).toEqual([[0, 100], 0]);
    one.decider.release(ticket, ticketGeneration);
    expect(held()).toEqual([0, 0]);
  });

  it('the gate dispatches a place that was released, charged before the shard hears of it', () => {
    const { shard, gate, table, control } = makeGate(slots(1), idle(1));
    const one = shard(1);
    const first = one.ask();
    const second = one.ask({ promptTokens: 7 }, { flow: 'täglich', bodyBytes: 12, maxOutputTokens: 5 });
    const seen: number[] = [];
    gate.takeEnqueued(
      1,
      (slot) => seen.push(slot),
      () => expect.unreachable(),
    );
    expect(seen).toEqual([second.waitSlot]);
    expect(gate.read(1, second.waitSlot)).toMatchObject({
      priority: 0,
      promptTokens: 7,
      uncachedTokens: 7,
      flow: 'täglich',
      bodyBytes: 12,
      maxOutputTokens: 5,
      candidates: undefined,
      again: false,
    });
    expect(gate.dispatch(1, second.waitSlot, -1, 2)).toBe('closed');
    one.decider.release(first.ticket, first.ticketGeneration);
    expect(gate.dispatch(1, second.waitSlot, -1, 3)).toBe('done');
    expect(table.read(0)).toMatchObject({ inflight: 1, inflightTokens: 7 });
    const [back] = one.returns();
    expect(back).toMatchObject({ slot: second.waitSlot, result: { kind: 'dispatched', endpoint: 0 } });
    expect(gate.waiting()).toEqual([{ priority: 0, requests: 0 }]);
    expect(control.call.ledgerCheck() + control.call.gateCheck()).toBe(0);
  });

  it('the gate decides a dispatched request by its own scores, without giving its place away', () => {
    const { shard, gate, table } = makeGate(
      slots(1),
      [{ waiting: 9 }, { waiting: 0 }],
      [scorer('OP_SCORE_QUEUE'), pickMax],
    );
    const one = shard(1);
    const running = [one.ask(), one.ask()];
    const waiting = one.ask();
    for (const { ticket, ticketGeneration } of running) one.decider.release(ticket, ticketGeneration);
    expect(gate.dispatch(1, waiting.waitSlot, -1, 2)).toBe('done');
    const { result } = one.returns()[0]!;
    if (result.kind !== 'dispatched') throw new Error(result.kind);
    const decision = one.decide({}, result);
    expect(decision).toMatchObject({ status: 'decided', slots: [1] });
    expect([0, 1].map((slot) => table.read(slot).inflight)).toEqual([0, 1]);
  });

  it('the gate keeps the dispatched endpoint when nothing else is open', () => {
    const { shard, gate, table, control } = makeGate(slots(1), idle(2));
    const one = shard(1);
    const [first] = [one.ask(), one.ask()];
    const waiting = one.ask();
    one.decider.release(first!.ticket, first!.ticketGeneration);
    gate.dispatch(1, waiting.waitSlot, -1, 2);
    const { result } = one.returns()[0]!;
    if (result.kind !== 'dispatched') throw new Error(result.kind);
    expect(one.decide({}, result)).toMatchObject({ status: 'decided', slots: [result.endpoint] });
    expect([0, 1].map((slot) => table.read(slot).inflight)).toEqual([1, 1]);
    expect(control.call.gateCheck()).toBe(0);
  });

  it('the gate lets only requests of a higher band overtake one that waits', () => {
    const { shard, gate } = makeGate(slots(1), idle(1));
    const [one, two] = [shard(1), shard(2)];
    const first = one.ask({ priority: 5 });
    expect(one.ask({ priority: 5 }).status).toBe('waiting');
    one.decider.release(first.ticket, first.ticketGeneration);
    expect(two.ask({ priority: 5 }).status).toBe('waiting');
    expect(two.ask({ priority: 0 }).status).toBe('waiting');
    expect(two.ask({ priority: 9 }).status).toBe('decided');
    expect(gate.waiting()).toEqual([
      { priority: 9, requests: 0 },
      { priority: 5, requests: 2 },
      { priority: 0, requests: 1 },
    ]);
  });

  it('the gate notes who may serve a request with a subset or a label filter', () => {
    const { shard, gate, table } = makeGate(slots(1), idle(5), [scorer('OP_FILTER_MASK', 1, 3), pickMax]);
    table.setMask(3, [1, 2, 3]);
    const one = shard(1);
    for (let i = 0; i < 3; i++) expect(one.ask().status).toBe('decided');
    expect(gate.read(1, one.ask().waitSlot).candidates![0]).toBe(0b1110);
    expect(gate.read(1, one.ask({ subset: [3, 4] }).waitSlot).candidates![0]).toBe(0b1000);
  });

  it('the gate dispatches only endpoints that the request may use, and only the wanted one when asked so', () => {
    const { shard, gate } = makeGate(slots(1), idle(3));
    const one = shard(1);
    const running = [one.ask(), one.ask(), one.ask()];
    const waiting = one.ask({ subset: [2] });
    const other = one.ask();
    const on = (slot: number) => running.find(({ slots: [picked] }) => picked === slot)!;
    one.decider.release(on(0).ticket, on(0).ticketGeneration);
    expect(gate.dispatch(1, waiting.waitSlot, -1, 2)).toBe('closed');
    expect(gate.dispatch(1, other.waitSlot, 2, 2)).toBe('closed');
    expect(gate.dispatch(1, other.waitSlot, 0, 2)).toBe('done');
    one.decider.release(on(2).ticket, on(2).ticketGeneration);
    expect(gate.dispatch(1, waiting.waitSlot, -1, 2)).toBe('done');
  });

  it('the gate enqueues everything while the pool is empty, and dispatches when an endpoint comes', () => {
    const { shard, gate, table } = makeGate(slots(1), []);
    const one = shard(1);
    const waiting = one.ask();
    expect(waiting.status).toBe('waiting');
    expect(gate.dispatch(1, waiting.waitSlot, -1, 2)).toBe('nowhere');
    table.open(4, 1);
    table.setState(4, 'live');
    expect(gate.dispatch(1, waiting.waitSlot, -1, 3)).toBe('done');
    expect(table.read(4).inflight).toBe(1);
  });

  it('the gate answers a subset without an endpoint at once when the pool has others', () => {
    const { shard } = makeGate(slots(1), idle(2));
    expect(shard(1).ask({ subset: [7] }).status).toBe('no-candidates');
  });

  it('the gate says so when no wait slot is left, and takes everyone again later', () => {
    const { shard, gate } = makeGate(slots(1), idle(1));
    const one = shard(1);
    one.ask();
    const waitSlot = Array.from({ length: 64 }, () => one.ask());
    expect(waitSlot.every(({ status }) => status === 'waiting')).toBe(true);
    expect(one.ask().status).toBe('no-wait-slot');
    gate.takeEnqueued(
      1,
      () => undefined,
      () => expect.unreachable(),
    );
    for (const { waitSlot: slot } of waitSlot) expect(gate.reject(1, slot, REJECTION)).toBe('done');
    expect(one.returns()).toHaveLength(64);
    expect(one.ask().status).toBe('waiting');
  });
});

describe('a waiting request that is given up', () => {
  it('a waiting request that is given up leaves its band at once and comes back when the control thread has forgotten it', () => {
    const { shard, gate } = makeGate(slots(1), idle(1));
    const one = shard(1);
    one.ask();
    const { waitSlot } = one.ask();
    expect(one.waitSlots.cancel(waitSlot)).toBe(true);
    expect(gate.waiting()).toEqual([{ priority: 0, requests: 0 }]);
    expect(gate.dispatch(1, waitSlot, -1, 2)).toBe('gone');
    const given: number[] = [];
    gate.takeEnqueued(
      1,
      () => undefined,
      (slot) => given.push(slot),
    );
    expect(given).toEqual([waitSlot]);
    expect(one.returns()).toEqual([]);
    gate.forgotten(1, waitSlot);
    expect(one.returns()).toEqual([{ slot: waitSlot, result: { kind: 'cancelled' } }]);
  });

  it('a waiting request that is given up after its dispatch still comes back as dispatched, with the charge to release', () => {
    const { shard, gate, table } = makeGate(slots(1), idle(1));
    const one = shard(1);
    const first = one.ask();
    const { waitSlot } = one.ask();
    one.decider.release(first.ticket, first.ticketGeneration);
    gate.dispatch(1, waitSlot, -1, 2);
    one.waitSlots.cancel(waitSlot);
    const { result } = one.returns()[0]!;
    if (result.kind !== 'dispatched') throw new Error(result.kind);
    one.decider.release(result.ticket, result.ticketGeneration);
    expect(table.read(0).inflight).toBe(0);
  });
});

describe('a shard that dies', () => {
  it('a shard that dies takes its waiting and dispatched requests along, in every state of a slot', () => {
    const { shard, gate, control, table } = makeGate(slots(2), idle(1));
    const [one, two] = [shard(1), shard(2)];
    const [first] = [one.ask(), two.ask()];
    const [dispatched, rejected, cancelled, waiting] = [two.ask(), two.ask(), two.ask(), two.ask()];
    const others = one.ask();
    one.decider.release(first!.ticket, first!.ticketGeneration);
    expect(gate.dispatch(2, dispatched!.waitSlot, -1, 2)).toBe('done');
    expect(gate.reject(2, rejected!.waitSlot, REJECTION)).toBe('done');
    two.waitSlots.cancel(cancelled!.waitSlot);
    expect(gate.read(2, waiting!.waitSlot).priority).toBe(0);
    expect(control.call.threadCharges(2)).toBe(6);
    expect(control.call.reclaimThread(2)).toBe(2);
    expect(control.call.threadCharges(2)).toBe(0);
    expect(table.read(0).inflight).toBe(0);
    expect(gate.waiting()).toEqual([{ priority: 0, requests: 1 }]);
    expect(gate.dispatch(1, others.waitSlot, -1, 3)).toBe('done');
    expect(control.call.gateCheck()).toBe(0);
  });
});

describe('bands', () => {
  it('bands count pending work nested: what waits below does not close the window above', () => {
    const { shard } = makeGate({ mode: 'learned' }, idle(1));
    const one = shard(1);
    // Nothing is known of the engine: a window of 40 ms at 0.05 ms per token, 800 tokens.
    expect(one.ask({ priority: 0, promptTokens: 700 }).status).toBe('decided');
    expect(one.ask({ priority: -1, promptTokens: 200 }).status).toBe('waiting');
    expect(one.ask({ priority: 1, promptTokens: 200 }).status).toBe('decided');
    expect(one.ask({ priority: 1, promptTokens: 700 }).status).toBe('waiting');
  });

  it('bands beyond the 32nd share the next lower one', () => {
    const { shard, gate } = makeGate(slots(1), idle(1));
    const one = shard(1);
    one.ask();
    for (let priority = 0; priority < 32; priority++) one.ask({ priority: priority * 10 });
    expect(gate.waiting()).toHaveLength(32);
    one.ask({ priority: 15 });
    expect(gate.waiting().find(({ priority }) => priority === 10)!.requests).toBe(2);
    one.ask({ priority: -7 });
    expect(gate.waiting().at(-1)).toEqual({ priority: 0, requests: 2 });
  });

  it('bands are forgotten only when nothing waits in them, and the sums stay right', () => {
    const { shard, gate, control } = makeGate({ mode: 'learned' }, idle(1));
    const one = shard(1);
    one.ask({ priority: 4, promptTokens: 10_000, nowMs: 100_000 });
    one.ask({ priority: 2, promptTokens: 10_000, nowMs: 500_000 });
    // It waits behind the others.
    one.ask({ priority: 0, promptTokens: 10, nowMs: 100_000 });
    expect(gate.forgetBands(300_000, 390_000)).toBe(0);
    expect(gate.forgetBands(300_000, 500_000)).toBe(1);
    expect(gate.waiting().map(({ priority }) => priority)).toEqual([2, 0]);
    expect(control.call.gateCheck()).toBe(0);
  });

  it('bands tell what they need for what waits in them, also when a band comes between', () => {
    const { shard, gate } = makeGate(slots(1), idle(1));
    const one = shard(1);
    one.ask({ priority: 4 });
    one.ask({ priority: 0 });
    expect(one.decider.drainSeconds(0)).toBeUndefined();
    expect(gate.setDrain(0, 12)).toBe(true);
    one.ask({ priority: 2 });
    expect([4, 2, 0].map((priority) => one.decider.drainSeconds(priority))).toEqual([undefined, undefined, 12]);
  });
});

describe('a picker that is one of several', () => {
  const shared = (settings: GateSettings, share: number, count = 1) => {
    const bed = makeGate(settings, idle(count));
    bed.gate.configure(settings, 64, share, 1);
    return bed;
  };
  const admitted = (shard: ReturnType<ReturnType<typeof makeGate>['shard']>, most: number, promptTokens = 10) =>
    Array.from({ length: most }, () => shard.ask({ promptTokens })).filter(({ status }) => status === 'decided').length;

  it.each([
    [1, 10],
    [1 / 2, 5],
    [1 / 3, 3],
    [1 / 4, 2],
    [1 / 100, 1],
  ])(
    'a picker that is one of several gives %f of the requests that an endpoint may have: %i of 10',
    (share, requests) => {
      expect(admitted(shared(slots(10), share).shard(1), 12)).toBe(requests);
    },
  );

  it('a picker that is one of several never gives all of them together more than there is, as long as one each fits', () => {
    for (const replicas of [2, 3, 5, 7]) {
      expect(replicas * admitted(shared(slots(16), 1 / replicas).shard(1), 20)).toBeLessThanOrEqual(16);
    }
  });

  it('a picker that is one of several gives its share of the learned window, and always one request', () => {
    const tokens = (share: number) => {
      const { shard } = shared({ mode: 'learned' }, share);
      return admitted(shard(1), 40, 100);
    };
    const whole = tokens(1);
    expect(whole).toBeGreaterThan(4);
    expect(tokens(0.5)).toBe(whole >> 1);
    expect(tokens(0.001)).toBe(1);
  });

  it('a picker that is one of several counts what the others have told, and takes what they leave', () => {
    const { gate, shard } = shared(slots(10), 1, 2);
    const none = { requests: 0, pendingTokens: 0, pendingRequests: 0, cacheTokens: 0 };
    expect(gate.setRemoteLoad(0, { ...none, requests: 8 })).toBe(true);
    expect(gate.room(0).remoteRequests).toBe(8);
    expect(admitted(shard(1), 30)).toBe(12);
    gate.setRemoteLoad(0, { ...none, requests: 3 });
    expect(admitted(shard(2), 30)).toBe(0);
  });

  it('a picker that is one of several leaves the learned window to what others have sent there and what has not been answered', () => {
    const windows = (pendingTokens: number) => {
      const { gate, shard } = shared({ mode: 'learned' }, 1);
      gate.setRemoteLoad(0, { requests: 5, pendingTokens, pendingRequests: 5, cacheTokens: 0 });
      return admitted(shard(1), 40, 100);
    };
    expect(windows(400)).toBe(windows(0) - 4);
    // One of its own may always be there: it would wait for ever beside busy others.
    expect(windows(1_000_000)).toBe(1);
  });

  it('a picker that is one of several forgets what others had on an endpoint that has left', () => {
    const { gate, table, shard } = shared(slots(4), 1);
    gate.setRemoteLoad(0, { requests: 4, pendingTokens: 0, pendingRequests: 0, cacheTokens: 0 });
    expect(admitted(shard(1), 1)).toBe(0);
    table.forget(0, 'endpoint-gone');
    table.open(0, 2);
    expect(gate.room(0).remoteRequests).toBe(0);
  });
});

describe('the learned limit', () => {
  const look = (gate: ReturnType<typeof makeGate>['gate'], from: number, count: number) => {
    for (let i = 1; i <= count; i++) gate.updateConditions(from + 50 * i, 50);
    return from + 50 * count;
  };

  it('the learned limit is cut to what runs, less 3 %, when two looks find the engine queueing', () => {
    const { shard, gate, table } = makeGate({ mode: 'learned' }, idle(1));
    const one = shard(1);
    for (let i = 0; i < 40; i++) {
      const { ticket, ticketGeneration } = one.ask({ nowMs: 1 });
      one.decider.prefillDone(ticket, ticketGeneration, 0);
    }
    table.publish(0, { waiting: 8, running: 32, kvUsage: 0.2 }, 1000);
    gate.updateConditions(1001, 50);
    expect(gate.room(0).limit).toBe(Number.POSITIVE_INFINITY);
    gate.updateConditions(1051, 50);
    expect(gate.room(0).limit).toBeCloseTo(32 * 0.97, 3);
    expect(one.ask({ nowMs: 1100 }).status).toBe('waiting');
  });

  it('the learned limit without metrics is cut when first tokens are late', () => {
    const { shard, gate } = makeGate({ mode: 'learned' }, [{}]);
    const one = shard(1);
    for (let i = 0; i < 30; i++) {
      const { ticket, ticketGeneration } = one.ask({ nowMs: 1 });
      if (i < 20) one.decider.prefillDone(ticket, ticketGeneration, 0);
    }
    // Two steps of 20 ms, doubled, and 20 ms more, times 1.75 for the missing metrics: late after 175 ms.
    look(gate, 60, 2);
    expect(gate.room(0).limit).toBe(Number.POSITIVE_INFINITY);
    look(gate, 200, 2);
    expect(gate.room(0).limit).toBeCloseTo(20 * 0.97, 3);
  });

  it('the learned limit rests, then grows by a request a second while it is what blocks', () => {
    const { shard, gate, table } = makeGate({ mode: 'learned' }, idle(1));
    const one = shard(1);
    for (let i = 0; i < 40; i++) {
      const { ticket, ticketGeneration } = one.ask({ nowMs: 1 });
      one.decider.prefillDone(ticket, ticketGeneration, 0);
    }
    table.publish(0, { waiting: 8, running: 32 }, 1000);
    look(gate, 1000, 2);
    const limit = gate.room(0).limit;
    const { waitSlot } = one.ask({ nowMs: 1100 });
    table.publish(0, { waiting: 0, running: 32 }, 1100);
    const blocked = (now: number) => gate.dispatch(1, waitSlot, -1, now);
    for (let now = 1150; now < 11_100; now += 50) {
      blocked(now);
      gate.updateConditions(now, 50);
    }
    expect(gate.room(0).limit).toBe(limit);
    for (let now = 11_150; now <= 13_100; now += 50) {
      blocked(now);
      gate.updateConditions(now, 50);
    }
    expect(gate.room(0).limit).toBeGreaterThan(limit + 1.5);
    expect(gate.room(0).limit).toBeLessThan(limit + 2.5);
  });

  it('the learned limit and everything else stays finite and in its range whatever engines report', () => {
    const { shard, gate, table } = makeGate({ mode: 'learned' }, idle(1));
    const one = shard(1);
    const odd = [Number.NaN, 0, -1, 1e18, Number.POSITIVE_INFINITY, 0.5];
    let now = 1;
    for (const waiting of odd) {
      for (const usage of odd) {
        const { ticket, ticketGeneration } = one.ask({ promptTokens: 500, nowMs: now });
        one.decider.stepped(0, waiting);
        one.decider.prefillDone(ticket, ticketGeneration, now + usage);
        table.publish(0, { waiting, running: usage, kvUsage: usage }, usage > 1 ? 0 : now);
        now = look(gate, now, 3) - (usage === 0 ? 100 : 0);
        one.decider.complete(ticket, ticketGeneration, 10, now);
        one.decider.release(ticket, ticketGeneration);
        const { window, limit, capacity, stepMs, tokenMs } = gate.room(0);
        expect(window).toBeGreaterThan(0);
        expect(window).toBeLessThanOrEqual(400 / 0.03 + 1);
        expect(limit).toBeGreaterThanOrEqual(4);
        expect(capacity).toBeGreaterThanOrEqual(0);
        expect(capacity).toBeLessThanOrEqual(1e9);
        expect(stepMs).toBeLessThanOrEqual(10_000);
        expect(tokenMs).toBeLessThanOrEqual(1000);
      }
    }
  });
});

describe('first tokens', () => {
  it('first tokens teach the time per token from prefills that nothing was ahead of, moving it by half the way at first', () => {
    const { shard, gate } = makeGate({ mode: 'learned' }, idle(1));
    const one = shard(1);
    const first = one.ask({ promptTokens: 1000, nowMs: 100 });
    // A step of 20 ms is not known yet: (90 − 20) / 1000 = 0.07 ms; half of the way from 0.05 is 0.06.
    one.decider.prefillDone(first.ticket, first.ticketGeneration, 190);
    expect(gate.room(0).tokenMs).toBeCloseTo(0.06, 5);
    expect(gate.room(0).window).toBeCloseTo(40 / 0.06, 1);
  });

  it('first tokens end the pending work; those that cannot be seen are taken to have come when the model says so', () => {
    const { shard, gate } = makeGate({ mode: 'learned' }, idle(1));
    const one = shard(1);
    one.ask({ promptTokens: 1000, nowMs: 100, gate: { waitSlots: -1, held: undefined, blind: true } });
    expect(gate.room(0).pendingTokens).toBe(1000);
    gate.updateConditions(180, 50);
    expect(gate.room(0).pendingTokens).toBe(1000);
    // 2 steps of 20 ms and 1,000 tokens of 0.05 ms.
    gate.updateConditions(191, 50);
    expect(gate.room(0)).toMatchObject({ pendingTokens: 0, pendingRequests: 0 });
  });

  it('first tokens of a prompt that another endpoint computes are not waited for, and teach nothing about this one', () => {
    const { shard, gate, control } = makeGate({ mode: 'learned' }, idle(1));
    const one = shard(1);
    const { ticket, ticketGeneration } = one.ask({ promptTokens: 1000, nowMs: 100 });
    one.decider.prefillElsewhere(ticket, ticketGeneration);
    expect(gate.room(0)).toMatchObject({ pendingTokens: 0, pendingRequests: 0 });
    one.decider.prefillDone(ticket, ticketGeneration, 5_000);
    expect(gate.room(0).tokenMs).toBe(0);
    one.decider.release(ticket, ticketGeneration);
    expect(control.call.gateCheck() + control.call.ledgerCheck()).toBe(0);
  });

  it('first tokens that cannot be seen are released by their times, without a wait for the next look', () => {
    const { shard, gate } = makeGate({ mode: 'learned' }, idle(2));
    const one = shard(1);
    const blind = { waitSlots: -1, held: undefined, blind: true };
    expect(gate.releaseUnseen(90)).toBe(Number.POSITIVE_INFINITY);
    one.ask({ promptTokens: 1000, nowMs: 100, gate: blind, subset: [0] });
    one.ask({ promptTokens: 200, nowMs: 130, gate: blind, subset: [1] });
    gate.updateConditions(140, 50);
    // 40 ms and 0.05 ms for each token: 190 for the first one, 180 for the second.
    expect(gate.nextUnseenMs).toBeCloseTo(180, 3);
    expect(gate.releaseUnseen(180)).toBeCloseTo(190, 3);
    expect([gate.room(0).pendingTokens, gate.room(1).pendingTokens]).toEqual([1000, 0]);
    expect(gate.releaseUnseen(191)).toBe(Number.POSITIVE_INFINITY);
    expect(gate.room(0).pendingTokens).toBe(0);
  });

  it('first tokens that cannot be seen widen the window by 2 % a look while nothing waits in the engine, however many they are', () => {
    const { shard, gate, control } = makeGate({ mode: 'learned' }, idle(1));
    const one = shard(1);
    for (let i = 0; i < 3; i++) {
      one.ask({ promptTokens: 0, nowMs: 100, gate: { waitSlots: -1, held: undefined, blind: true } });
    }
    const stretch = () => control.f32[(control.call.room(CORE.ROOM_STRETCH, 0) >>> 0) >>> 2];
    gate.updateConditions(110, 50);
    expect(stretch()).toBeCloseTo(1.02, 5);
  });
});

describe('the KV cache', () => {
  it('the KV cache counts every output at what an output usually has, so that a ramp of young requests is not underrated', () => {
    const { shard, table } = makeGate({ mode: 'learned' }, idle(1));
    const one = shard(1);
    table.publish(0, { waiting: 0, running: 0, kvUsage: 0, blockTokens: 16, blockCount: 100 }, 1);
    // 1,600 tokens: 0.95 × 1,600 = 1,520; each takes 400 + 0.6 × 200 = 520.
    const asked = [1, 2, 3].map(() => {
      const answer = one.ask({ promptTokens: 400 });
      one.decider.prefillDone(answer.ticket, answer.ticketGeneration, 0);
      return answer.status;
    });
    expect(asked).toEqual(['decided', 'decided', 'waiting']);
  });

  it('the KV cache has the size that its usage gauge and our tokens in it give, when the engine does not say', () => {
    const { shard, gate, table } = makeGate({ mode: 'learned' }, idle(1));
    const one = shard(1);
    one.ask({ promptTokens: 4000 });
    table.publish(0, { waiting: 0, running: 1, kvUsage: 0.2 }, 1);
    expect(gate.room(0).capacity).toBe(0);
    table.publish(0, { waiting: 0, running: 1, kvUsage: 0.5 }, 1);
    expect(gate.room(0).capacity).toBeCloseTo(8000, 0);
  });
});

describe('switching the gate on', () => {
  it('switching the gate on leaves what was charged before to the ledger', () => {
    const { shard, gate, control, table } = makeGate({ mode: 'off' }, idle(1));
    const one = shard(1);
    const before = one.ask({ promptTokens: 500 });
    gate.configure({ mode: 'learned' }, 64, 1, 10);
    expect(gate.room(0).pendingTokens).toBe(0);
    const after = one.ask({ promptTokens: 600 });
    one.decider.release(before.ticket, before.ticketGeneration);
    expect(gate.room(0).pendingTokens).toBe(600);
    one.decider.release(after.ticket, after.ticketGeneration);
    expect(gate.room(0)).toMatchObject({ pendingTokens: 0, pendingRequests: 0 });
    expect(table.read(0).inflight).toBe(0);
    expect(control.call.gateCheck()).toBe(0);
  });
});

describe('the bound that refuses a waiting request', () => {
  it('the bound comes back to its shard with its figures', () => {
    const pool = makeGate({ mode: 'requests', maxRequests: 1, maxTokens: 1 }, [{ waiting: 0, kvUsage: 0 }]);
    const shard = pool.shard(1);
    shard.decide();
    const { waitSlot } = shard.ask();
    const bound = { by: 'band-tokens', used: 300, limit: 250 } as const;
    pool.gate.reject(1, waitSlot, { outcome: 1, retryAfterSeconds: 1, bound });
    expect(shard.returns()).toMatchObject([{ result: { kind: 'rejected', bound } }]);
  });
});
