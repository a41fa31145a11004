import { describe, expect, it } from 'vitest';
import type { SessionRule } from '../../dist/src/core/session-ledger.js';
import { LoggedPool, RULE, wordsOf } from './logged-sessions.ts';

function poolWith(given: Partial<SessionRule>, endpoints = 1): LoggedPool {
  const pool = new LoggedPool(endpoints);
  expect(pool.pool.gate.sessions.configure({ ...RULE, ...given })).toBe(true);
  return pool;
}

describe('bounds of sessions that are given', () => {
  it('idleLeaseMs keeps the place of an idle session for so long, and no longer', () => {
    for (const [idleMs, status] of [
      [29_000, 'waiting'],
      [31_000, 'decided'],
    ] as const) {
      const pool = poolWith({ idleLeaseMs: 30_000 });
      for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
      pool.wait(idleMs);
      expect([idleMs, pool.turn(wordsOf(3, 40)).status]).toEqual([idleMs, status]);
    }
  });

  it('idleLeaseMs of 0 keeps the place of no idle session', () => {
    const pool = poolWith({ idleLeaseMs: 0 });
    for (const name of [1, 2, 3]) expect(pool.turn(wordsOf(name, 46)).status).toBe('decided');
    expect(pool.pool.gate.sessions.keptSeconds()).toEqual([0, 0, 0]);
  });

  it('idleLeaseMs that is taken back leaves what is learned', () => {
    const pool = poolWith({ idleLeaseMs: 0 });
    pool.pool.gate.sessions.configure(RULE);
    for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
    expect(pool.turn(wordsOf(3, 46)).status).toBe('waiting');
  });

  it('usableCache leaves the rest of a cache free of held turns', () => {
    const half = poolWith({ usableCache: 0.5 });
    half.turn(wordsOf(1, 46));
    const record = half.turn(wordsOf(2, 20));
    expect(record.status).toBe('waiting');
    // 3,200 of 6,400 tokens, of which 2,944 are in use.
    expect(half.log.columns(record)!.endpoints).toMatchObject([{ roomTokens: 256 }]);
    const whole = poolWith({});
    whole.turn(wordsOf(1, 46));
    expect(whole.turn(wordsOf(2, 20)).status).toBe('decided');
  });

  it('capacityTokens counts for an endpoint that does not tell the size of its cache', () => {
    for (const [capacityTokens, status] of [
      [undefined, 'decided'],
      [6_400, 'waiting'],
    ] as const) {
      const pool = new LoggedPool(1, 'on', { blockCount: 0 });
      pool.pool.gate.sessions.configure({ ...RULE, capacityTokens });
      for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
      expect([capacityTokens, pool.turn(wordsOf(3, 40)).status]).toEqual([capacityTokens, status]);
    }
  });

  it('capacityTokens does not count for an endpoint that tells the size of its cache', () => {
    const pool = poolWith({ capacityTokens: 64_000 });
    for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
    expect(pool.turn(wordsOf(3, 40)).status).toBe('waiting');
  });

  it('forgetAfterMs forgets a session without a place, and none that has one', () => {
    const pool = new LoggedPool(1, 'shadow');
    // A lease beyond the waits below: with the learned one the tick would let the sessions lapse.
    pool.pool.gate.sessions.configure({ ...RULE, mode: 'shadow', forgetAfterMs: 60_000, idleLeaseMs: 600_000 });
    // The engine forgets the first one.
    for (const name of [1, 2, 3]) pool.turn(wordsOf(name, 40));
    pool.wait(59_000);
    expect(pool.turn(wordsOf(1, 41)).session).toMatchObject({ fate: 'forgotten' });
    pool.wait(61_000);
    expect(pool.turn(wordsOf(2, 41)).session).toMatchObject({ fate: 'new' });
    expect(pool.turn(wordsOf(1, 42)).session).toMatchObject({ fate: 'protected' });
  });
});
