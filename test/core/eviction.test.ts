import { describe, expect, it } from 'vitest';
import type { GateSettings } from '../../dist/src/core/capacity-gate.js';
import { CORE } from '../../dist/src/core/core-names.js';
import { makeGate } from './gate-pool.ts';

const LIMITED: GateSettings = { mode: 'requests', maxRequests: 2, maxTokens: 1 };
const idle = (count: number) => Array.from({ length: count }, () => ({ waiting: 0, running: 0, kvUsage: 0 }));

/** A gate with running requests by name, and a waiting one of priority 0. */
function scene(settings: GateSettings, endpoints = 1) {
  const pool = makeGate(settings, idle(endpoints));
  const shard = pool.shard(1);
  const running = new Map<string, ReturnType<typeof shard.ask>>();
  let now = 1;
  return {
    ...pool,
    shard1: shard,
    /** A request that goes on at once, on the endpoints `subset`. */
    run(name: string, priority: number, { tokens = 10, subset }: { tokens?: number; subset?: number[] } = {}) {
      const decision = shard.ask({ priority, promptTokens: tokens, nowMs: ++now, subset });
      expect(decision.status).toBe('decided');
      running.set(name, decision);
      return decision;
    },
    firstToken(name: string) {
      const { ticket, ticketGeneration } = running.get(name)!;
      shard.decider.prefillDone(ticket, ticketGeneration, ++now);
    },
    end(name: string) {
      const { ticket, ticketGeneration } = running.get(name)!;
      shard.decider.release(ticket, ticketGeneration);
    },
    /** A request that has to wait. @returns its wait slot */
    wait(priority = 0, { tokens = 10, subset }: { tokens?: number; subset?: number[] } = {}): number {
      const { status, waitSlot } = shard.ask({ priority, promptTokens: tokens, nowMs: ++now, subset });
      expect(status).toBe('waiting');
      return waitSlot;
    },
    /** Name of the request that is chosen for a waiting one. */
    evictRequest(waitSlot: number): string | undefined {
      const evicted = pool.gate.evictRequest(1, waitSlot, ++now);
      if (evicted === undefined) return undefined;
      for (const [name, { ticket, ticketGeneration }] of running) {
        if (ticket === evicted.ticket && ticketGeneration === evicted.ticketGeneration) return name;
      }
      return `unknown ticket ${evicted.ticket}`;
    },
    set(column: number, slot: number, value: number) {
      const { call, f32 } = pool.control;
      f32[(call.room(column, slot) >>> 0) >>> 2] = value;
    },
  };
}

describe('the running request that makes room', () => {
  it('the running request that makes room is the one of lowest priority', () => {
    const s = scene(LIMITED);
    s.run('low', -2);
    s.run('less low', -1);
    expect(s.evictRequest(s.wait())).toBe('low');
  });

  it('the running request that makes room among equals is one without a first token', () => {
    const s = scene(LIMITED);
    s.run('older, pending', -1);
    s.run('newer, answering', -1);
    s.firstToken('newer, answering');
    expect(s.evictRequest(s.wait())).toBe('older, pending');
  });

  it('the running request that makes room is then the newest', () => {
    const s = scene(LIMITED);
    s.run('older', -1);
    s.run('newer', -1);
    expect(s.evictRequest(s.wait())).toBe('newer');
  });

  it('the running request that makes room is told with its shard, ticket and priority', () => {
    const s = scene(LIMITED);
    const { ticket, ticketGeneration } = s.run('a', -3);
    s.run('b', 0);
    expect(s.gate.evictRequest(1, s.wait(), 9)).toEqual({ thread: 1, ticket, ticketGeneration, priority: -3 });
  });

  it('the running request that makes room is never one of priority 0 or higher', () => {
    const s = scene(LIMITED);
    s.run('a', 0);
    s.run('b', 1);
    expect(s.evictRequest(s.wait(5))).toBeUndefined();
  });

  it('the running request that makes room is never one of the same band', () => {
    const s = scene(LIMITED);
    s.run('a', -1);
    s.run('b', -1);
    expect(s.evictRequest(s.wait(-1))).toBeUndefined();
  });

  it('the running request that makes room runs on an endpoint that the waiting one may use', () => {
    const s = scene(LIMITED, 2);
    s.run('elsewhere', -9, { subset: [1] });
    for (const name of ['here', 'too']) s.run(name, -1, { subset: [0] });
    expect(s.evictRequest(s.wait(0, { subset: [0] }))).toBe('too');
  });

  it('the running request that makes room is chosen once: while it is on its way out its room counts as free', () => {
    const s = scene(LIMITED);
    for (const name of ['a', 'b']) s.run(name, -1);
    const waiting = s.wait();
    expect(s.evictRequest(waiting)).toBe('b');
    expect(s.evictRequest(waiting)).toBeUndefined();
  });

  it('the running request that makes room is followed by another one when it is lost, and is not chosen again', () => {
    const s = scene(LIMITED);
    for (const name of ['a', 'b']) s.run(name, -1);
    const waiting = s.wait();
    const lost = s.gate.evictRequest(1, waiting, 9)!;
    expect(s.gate.evictionLost(lost)).toBe(true);
    expect(s.evictRequest(waiting)).toBe('a');
    expect(s.evictRequest(waiting)).toBeUndefined();
  });

  it('the running request that makes room is known to have ended although another request has its ticket', () => {
    const s = scene(LIMITED);
    for (const name of ['a', 'b']) s.run(name, -1);
    const evicted = s.gate.evictRequest(1, s.wait(), 9)!;
    expect(s.gate.isHeld(evicted)).toBe(true);
    s.end('b');
    expect(s.gate.isHeld(evicted)).toBe(false);
    const next = s.shard1.decide({ priority: 3, nowMs: 20 });
    expect(next).toMatchObject({ status: 'decided', ticket: evicted.ticket });
    expect(s.gate.isHeld(evicted)).toBe(false);
    s.gate.evictionLost(evicted);
    expect(s.control.call.gateCheck()).toBe(0);
  });
});

describe('no request makes room', () => {
  it('no request makes room for a request that does not wait any more', () => {
    const s = scene(LIMITED);
    for (const name of ['a', 'b']) s.run(name, -1);
    const waiting = s.wait();
    s.shard1.waitSlots.cancel(waiting);
    expect(s.evictRequest(waiting)).toBeUndefined();
  });

  it('no request makes room where an endpoint has room by now', () => {
    const s = scene(LIMITED);
    for (const name of ['a', 'b']) s.run(name, -1);
    const waiting = s.wait();
    s.end('a');
    expect(s.evictRequest(waiting)).toBeUndefined();
  });

  it('no request makes room for a band that may take nothing at all', () => {
    const s = scene(LIMITED);
    for (const name of ['a', 'b']) s.run(name, -1);
    const waiting = s.wait();
    s.gate.setCeiling(0, 0);
    expect(s.evictRequest(waiting)).toBeUndefined();
  });

  it('no request makes room where those that may be ended would not make enough of it', () => {
    const s = scene({ mode: 'tokens', maxRequests: 1, maxTokens: 1000 });
    s.run('large', 0, { tokens: 990 });
    s.run('small', -1, { tokens: 5 });
    s.run('last', 0, { tokens: 300 });
    expect(s.evictRequest(s.wait())).toBeUndefined();
  });

  it('no request makes room where it would not be enough, however often that is asked', () => {
    const s = scene({ mode: 'tokens', maxRequests: 1, maxTokens: 1000 }, 2);
    s.run('large', 0, { tokens: 990, subset: [1] });
    s.run('small', -1, { tokens: 5, subset: [1] });
    s.run('last', 0, { tokens: 300, subset: [1] });
    const waiting = s.wait(0, { subset: [1] });
    for (let i = 0; i < 100; i++) expect(s.evictRequest(waiting)).toBeUndefined();
  });
});

describe('with the learned limits', () => {
  it('a full window alone ends no request: it empties within a step', () => {
    const s = scene({ mode: 'learned' });
    s.run('low', -1, { tokens: 0 });
    s.run('high', 0, { tokens: 60 });
    s.set(CORE.ROOM_WINDOW, 0, 50);
    expect(s.evictRequest(s.wait(0))).toBeUndefined();
  });

  it('no request makes room where only one of several endpoints is not out of slots', () => {
    const s = scene({ mode: 'learned' }, 2);
    s.run('low', -1, { tokens: 0, subset: [0] });
    for (const slot of [0, 1]) s.run(`high ${slot}`, 0, { tokens: 60, subset: [slot] });
    for (const slot of [0, 1]) s.set(CORE.ROOM_WINDOW, slot, 50);
    s.set(CORE.ROOM_LIMIT, 0, 1);
    s.gate.setCeiling(0, 0.4);
    expect(s.evictRequest(s.wait(0))).toBeUndefined();
  });

  it('an endpoint out of slots loses one request', () => {
    const s = scene({ mode: 'learned' });
    for (let i = 0; i < 8; i++) s.run(`low ${i}`, -1, { tokens: 0 });
    s.set(CORE.ROOM_LIMIT, 0, 4);
    const waiting = s.wait(0);
    // 8 in flight, and the highest band may have 4 × 1.06 + 2.
    expect([
      s.evictRequest(waiting),
      s.evictRequest(waiting),
      s.evictRequest(waiting),
      s.evictRequest(waiting),
    ]).toEqual(['low 7', 'low 6', 'low 5', undefined]);
  });

  it('a full KV cache loses as many as the waiting request needs', () => {
    const s = scene({ mode: 'learned' });
    s.run('high', 0, { tokens: 100 });
    s.firstToken('high');
    for (const [i, tokens] of [300, 200, 100].entries()) {
      s.run(`low ${i}`, -1, { tokens });
      s.firstToken(`low ${i}`);
    }
    s.set(CORE.ROOM_CAPACITY, 0, 700);
    // 700 tokens are held, 693 may be: 150 more need 157, which the newest two have.
    const waiting = s.wait(0, { tokens: 150 });
    expect([s.evictRequest(waiting), s.evictRequest(waiting), s.evictRequest(waiting)]).toEqual([
      'low 2',
      'low 1',
      undefined,
    ]);
  });

  it('the endpoint that needs the fewest to go is chosen before the newest request', () => {
    const s = scene({ mode: 'learned' }, 2);
    s.run('one large', -1, { tokens: 600, subset: [0] });
    for (let i = 0; i < 6; i++) s.run(`small ${i}`, -1, { tokens: 100, subset: [1] });
    for (const name of ['one large', 'small 0', 'small 1', 'small 2', 'small 3', 'small 4', 'small 5']) {
      s.firstToken(name);
    }
    s.run('high', 0, { tokens: 0, subset: [0] });
    s.firstToken('high');
    for (const slot of [0, 1]) s.set(CORE.ROOM_CAPACITY, slot, 620);
    expect(s.evictRequest(s.wait(0, { tokens: 300 }))).toBe('one large');
  });
});
