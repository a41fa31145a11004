import { describe, expect, it } from 'vitest';
import { LoggedPool, wordsOf } from './logged-sessions.ts';

const CACHE = 6_400;

function tallied(pool: LoggedPool, endpoints: number) {
  const caches = Array.from({ length: endpoints }, (_, slot) => ({ slot, capacity: CACHE }));
  return pool.pool.gate.sessions.tally(caches, pool.now);
}

describe('the sums over all sessions', () => {
  it('the sums over all sessions tell their states, and those of each endpoint what it holds for them', () => {
    const pool = new LoggedPool(1);
    pool.turn(wordsOf(1, 10));
    pool.begin(wordsOf(2, 20));
    expect(tallied(pool, 1)).toMatchObject({
      running: 1,
      idle: 1,
      lapsed: 0,
      endpoints: [{ slot: 0, capacity: CACHE, used: 1_920, protected: 1_920 }],
    });
  });

  it('the sums over all sessions count what lies behind a protected session as in use, and not as protected', () => {
    const pool = new LoggedPool(1);
    pool.turn(wordsOf(1, 10));
    // Too small for a session of its own.
    pool.turn(wordsOf(2, 1));
    expect(tallied(pool, 1).endpoints).toMatchObject([{ used: 704, protected: 640 }]);
  });

  it('the sums over all sessions tell how many of the active ones fit, each beginning counted once', () => {
    const pool = new LoggedPool(2);
    for (const name of [1, 2, 3, 4]) pool.turn([...wordsOf(9, 5), ...wordsOf(name, 10)]);
    const { active, meanTokens, fit, endpoints } = tallied(pool, 2);
    expect(active).toBe(4);
    const shared = endpoints.reduce((sum, each) => sum + each.protected, 0) - active * meanTokens;
    expect(shared).toBeGreaterThan(0);
    expect(fit).toBeCloseTo((2 * CACHE - shared) / meanTokens, 5);
  });

  it('the sums over all sessions leave those without a turn in the last five minutes out of the active ones', () => {
    const pool = new LoggedPool(1);
    pool.turn(wordsOf(1, 10));
    pool.now += 301_000;
    pool.turn(wordsOf(2, 10));
    expect(tallied(pool, 1)).toMatchObject({ idle: 2, active: 1, meanTokens: 640 });
  });

  it('the sums over all sessions tell no number that fits where none is active, or no cache is known', () => {
    const pool = new LoggedPool(1);
    expect(tallied(pool, 1).fit).toBeUndefined();
    pool.turn(wordsOf(1, 10));
    expect(pool.pool.gate.sessions.tally([{ slot: 0, capacity: 0 }], pool.now).fit).toBeUndefined();
  });
});

describe('what sessions had before their turns', () => {
  it('what sessions had before their turns is counted of those that began, and of those that were held', () => {
    const pool = new LoggedPool(1);
    pool.turn(wordsOf(1, 45));
    pool.turn(wordsOf(1, 46));
    pool.turn(wordsOf(2, 46));
    pool.turn(wordsOf(3, 40));
    expect(pool.counts.released).toEqual({ protected: 1, lapsed: 0, new: 2 });
    expect(pool.counts.held).toEqual({ protected: 0, lapsed: 0, new: 1 });
  });

  it('what sessions had before their turns is counted of one that had lost its place', () => {
    const pool = new LoggedPool(1, 'shadow');
    for (const name of [1, 2, 3, 1]) pool.turn(wordsOf(name, 40));
    expect(pool.counts.released).toEqual({ protected: 0, lapsed: 1, new: 3 });
  });
});

describe('pauses between turns', () => {
  it('pauses between turns are a histogram in seconds with their sum', () => {
    const pool = new LoggedPool(1);
    pool.turn(wordsOf(1, 10));
    for (const [i, ms] of [300, 9_900, 59_900].entries()) {
      pool.now += ms;
      pool.turn(wordsOf(1, 11 + i));
    }
    const { buckets, sum, count } = pool.pool.gate.sessions.pauses();
    expect([count, sum]).toEqual([3, 70.4]);
    const upTo = (seconds: number) => buckets.findLast((bucket) => bucket.upTo <= seconds)?.count;
    expect([upTo(0.5), upTo(20), upTo(100)]).toEqual([1, 2, 3]);
    expect(buckets.at(-1)).toEqual({ upTo: Number.POSITIVE_INFINITY, count: 3 });
  });
});
