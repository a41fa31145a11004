import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import type { PlacedSession } from '../../dist/src/core/session-news.js';
import { BLOCK, CACHE, RULE, SessionReplica, wordsOf } from './session-replica.ts';

const LAPSE = { ...RULE, idleLeaseMs: 10_000 };
const COUNTS = { ...RULE, mode: 'shadow' } as const;
const TOLD: PlacedSession = {
  begins: false,
  before: 0n,
  anchor: 0n,
  earlyAnchor: 0n,
  prefix: 0n,
  within: 0n,
  tokens: 10 * BLOCK,
  shared: 0,
  withinTokens: 0,
  named: false,
  turns: 3,
  ageMs: 0,
  waits: false,
  lapsedAfter: undefined,
  forgotten: false,
  peer: 0,
  slot: 0,
  generation: 1,
};

/** Sessions as peers can be told them, with their numbers as texts. */
function sessionsOf(replica: SessionReplica): string[] {
  const text = (_: string, value: unknown) => (typeof value === 'bigint' ? `${value}` : value);
  const told = [...replica.news.known()].flatMap((entry) => replica.news.session(entry) ?? []);
  return told.map((session) => JSON.stringify(session, text)).sort();
}

const usedOf = (replica: SessionReplica) => [0, 1].map((slot) => replica.used(slot));

function learn(replica: SessionReplica, part: Partial<PlacedSession>): void {
  expect(replica.news.learn({ ...TOLD, ...part }, 1, replica.now)).toBe(true);
}

describe('a replica that joins', () => {
  it('a replica that joins knows what sessions of the others use, running and idle, and recognises their turns', () => {
    const [first, joined] = [new SessionReplica(1), new SessionReplica(2)];
    first.end(first.begin(wordsOf(1, 20), [1]), 100);
    first.begin(wordsOf(2, 30), [0]);
    expect(first.join(joined)).toHaveLength(2);
    expect(usedOf(joined)).toEqual(usedOf(first));
    expect([1, 2].map((entry) => joined.elsewhere(entry)).sort()).toEqual([false, true]);
    joined.begin(wordsOf(1, 24), [1]);
    expect(joined.counts.recognised).toMatchObject({ prompt: 1, new: 0 });
    joined.begin(wordsOf(2, 34), [0]);
    expect(joined.counts.recognised).toMatchObject({ prompt: 1, new: 0, fork: 1 });
    joined.check();
  });

  it('what replicas use is equal after a join, whatever was begun, ended, shared and given away before', () => {
    let joins = 0;
    const step = fc.record({
      session: fc.nat(7),
      blocks: fc.integer({ min: 1, max: 30 }),
      what: fc.constantFrom('turn', 'turn', 'begin', 'end', 'lapse'),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 5, maxLength: 60 }), (steps) => {
        const rule = { ...COUNTS, idleLeaseMs: 4_000 };
        const [first, joined] = [new SessionReplica(1, { rule }), new SessionReplica(2, { rule })];
        const running: ReturnType<SessionReplica['begin']>[] = [];
        const length = new Map<number, number>();
        for (const { session, blocks, what } of steps) {
          first.wait(500);
          const [oldest] = running;
          if (what === 'end' && oldest !== undefined) first.end(running.shift()!);
          else if (what === 'lapse') first.pool.gate.sessions.tick(first.now);
          else {
            length.set(session, (length.get(session) ?? 4) + blocks);
            const beginning = [...wordsOf(99, 4), ...wordsOf(session, length.get(session)! - 4)];
            // Each at one endpoint: what a session leaves behind elsewhere is no session's, and not told.
            running.push(first.begin(beginning, [session % 2]));
            if (what === 'turn') first.end(running.pop()!);
          }
        }
        for (const each of running) first.end(each);
        joined.wait(first.now - joined.now);
        const used = usedOf(first);
        if (Math.max(...used) > CACHE) return;
        first.join(joined);
        expect(sessionsOf(joined)).toEqual(sessionsOf(first));
        expect(joined.states.toSorted()).toEqual(first.states.toSorted());
        expect(usedOf(joined)).toEqual(used);
        joins++;
      }),
      { numRuns: 25 },
    );
    expect(joins).toBeGreaterThan(10);
  });

  it('a session that has lapsed is told as one, with the time after which it did', () => {
    const [first, joined] = [new SessionReplica(1, { rule: LAPSE }), new SessionReplica(2, { rule: LAPSE })];
    first.end(first.begin(wordsOf(1, 20), [1]));
    first.wait(12_000);
    first.pool.gate.sessions.tick(first.now);
    first.wait(50_000);
    const [told] = first.join(joined);
    expect(told).toMatchObject({ lapsedAfter: 120, forgotten: false, turns: 1 });
    expect(joined.used(1)).toBe(0);
    expect(joined.states).toEqual([CORE.SESSION_LAPSED]);
    joined.begin(wordsOf(1, 24), [1]);
    expect(joined.counts.recognised).toMatchObject({ prompt: 1, new: 0 });
    expect(joined.counts.released).toMatchObject({ lapsed: 1 });
  });

  it('sessions stand in the order of their last use, between those that are known already', () => {
    const joined = new SessionReplica(2, { endpoints: 1, rule: COUNTS });
    learn(joined, { anchor: 1n, ageMs: 300 });
    learn(joined, { anchor: 2n, ageMs: 100 });
    learn(joined, { anchor: 3n, ageMs: 200 });
    // The engine forgets those used longest ago: 1, then 3.
    joined.end(joined.begin(wordsOf(9, 85), [0]));
    expect(joined.states.slice(0, 3)).toEqual([CORE.SESSION_LAPSED, CORE.SESSION_IDLE, CORE.SESSION_LAPSED]);
    joined.check();
  });

  it('a lapsed session counts as in use behind an older one that is protected, and else not', () => {
    const joined = new SessionReplica(2);
    learn(joined, { anchor: 1n, ageMs: 300, lapsedAfter: 9 });
    expect(joined.used(0)).toBe(0);
    learn(joined, { anchor: 2n, ageMs: 200 });
    learn(joined, { anchor: 3n, ageMs: 100, lapsedAfter: 9 });
    expect(joined.used(0)).toBe(20 * BLOCK);
    expect(joined.states).toEqual([CORE.SESSION_LAPSED, CORE.SESSION_IDLE, CORE.SESSION_LISTED]);
  });

  it('lapsed sessions that are told take no room of the pool until the next tick', () => {
    const joined = new SessionReplica(2);
    for (let i = 1; i <= 40; i++) learn(joined, { anchor: BigInt(i), lapsedAfter: 9 });
    // A pool without room would be crowded from here on, and count a look for room.
    joined.begin(wordsOf(1, 60));
    joined.begin(wordsOf(2, 60));
    expect(joined.counts.looks).toMatchObject({ room: 2, none: 0 });
  });

  it('a session that is known already stays as it is', () => {
    const [first, joined] = [new SessionReplica(1), new SessionReplica(2)];
    first.end(first.begin(wordsOf(1, 20), [1]));
    first.tell(joined);
    const before = joined.states;
    first.join(joined);
    expect(joined.states).toEqual(before);
    expect(usedOf(joined)).toEqual(usedOf(first));
  });

  it('a session of an endpoint that has left here is passed over', () => {
    const joined = new SessionReplica(2);
    learn(joined, { anchor: 1n, generation: 2 });
    expect(joined.states).toEqual([]);
  });

  it('a turn in flight at a third replica is over when that one is gone', () => {
    const [second, third, joined] = [new SessionReplica(2), new SessionReplica(3), new SessionReplica(4)];
    third.begin(wordsOf(1, 20), [1]);
    third.tell(second);
    expect(second.join(joined)).toMatchObject([{ begins: true, peer: 3 }]);
    joined.news.peerGone(2);
    expect(joined.elsewhere(1)).toBe(true);
    joined.news.peerGone(3);
    expect(joined.elsewhere(1)).toBe(false);
  });

  it('a session whose turn waits has come back: it is kept until it is heard of, or its replica is gone', () => {
    const joined = new SessionReplica(2, { rule: LAPSE });
    joined.wait(100_000);
    learn(joined, { anchor: 1n, ageMs: 60_000, waits: true });
    joined.pool.gate.sessions.tick(joined.now);
    expect(joined.states).toEqual([CORE.SESSION_IDLE]);
    joined.news.peerGone(1);
    joined.pool.gate.sessions.tick(joined.now);
    expect(joined.states).toEqual([CORE.SESSION_LAPSED]);
  });

  it('a session that its header names goes on by it', () => {
    const [first, joined] = [new SessionReplica(1), new SessionReplica(2)];
    first.end(first.begin(wordsOf(1, 20), [1], { session: 'anne' }));
    expect(first.join(joined)).toMatchObject([{ named: true }]);
    joined.end(joined.begin(wordsOf(1, 24), [1], { session: 'anne' }));
    expect(joined.counts.recognised).toMatchObject({ header: 1, prompt: 0, new: 0 });
    expect(joined.counts.splits).toEqual({ rewritten: 0, merged: 0, renamed: 0 });
  });

  it('a session behind 1,024 later ones of its endpoint is passed over', () => {
    const joined = new SessionReplica(2, { rule: { ...COUNTS, smallPrompt: 0 } });
    for (let i = 1; i <= 1_024; i++) learn(joined, { anchor: BigInt(i) << 16n, tokens: 1 });
    learn(joined, { anchor: 1n << 60n, tokens: 1, ageMs: 500 });
    expect(joined.states).toHaveLength(1_025);
    learn(joined, { anchor: 1n << 61n, tokens: 1, ageMs: 700 });
    expect(joined.states).toHaveLength(1_025);
    joined.check();
  });
});
