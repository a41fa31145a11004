import { describe, expect, it } from 'vitest';
import { cacheLossOf } from '../../dist/src/core/cache-loss.js';
import { cacheLossOfRecord } from '../../dist/src/core/decision-log.js';
import { BLOCK, LoggedPool, RULE, wordsOf } from './logged-sessions.ts';

describe('what a record tells of the session of its prompt', () => {
  it('a record tells that a turn is the first one of its session', () => {
    const { session } = new LoggedPool(2).turn(wordsOf(1, 10));
    expect(session).toMatchObject({ fate: 'new', turns: 0, home: undefined, missedTokens: undefined });
  });

  it('a record tells the size and home of a session before its turn, and how long its place was kept', () => {
    const pool = new LoggedPool(2);
    const { slot } = pool.turn(wordsOf(1, 10));
    pool.wait(1_900);
    expect(pool.turn(wordsOf(1, 12)).session).toEqual({
      fate: 'protected',
      byHeader: false,
      turns: 1,
      home: slot,
      idleMs: 2_000,
      keptMs: expect.any(Number),
      tokens: 640,
      sharedTokens: 0,
      missedTokens: undefined,
    });
  });

  it('a record of a held turn tells what it needs, and what sessions leave of each cache', () => {
    const pool = new LoggedPool(1);
    for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
    const record = pool.turn(wordsOf(3, 40));
    expect([record.status, record.session]).toMatchObject(['waiting', { fate: 'new', missedTokens: 2_560 }]);
    expect(pool.log.columns(record)!.endpoints).toMatchObject([{ removed: 'session', roomTokens: 512 }]);
  });

  it('a record in shadow mode tells the room that its turn did not find, and its pick', () => {
    const pool = new LoggedPool(1, 'shadow');
    for (const name of [1, 2]) pool.turn(wordsOf(name, 46));
    expect(pool.turn(wordsOf(3, 40))).toMatchObject({ status: 'decided', session: { missedTokens: 2_560 } });
  });

  it('a record tells that the place of a session was given up, after which pause, and up to which one it is kept', () => {
    const pool = new LoggedPool(1);
    pool.turn(wordsOf(1, 45));
    pool.wait(3_000_000);
    pool.turn(wordsOf(2, 46));
    pool.turn(wordsOf(3, 40));
    const { session } = pool.turn(wordsOf(1, 47));
    expect(session).toMatchObject({ fate: 'given-up', turns: 1, home: 0, tokens: 45 * BLOCK });
    // As many tenths of a second as 16 bits hold: less than two hours.
    expect(session!.idleMs).toBe(3_000_200);
    expect(session!.keptMs).toBeGreaterThan(0);
    expect(session!.keptMs).toBeLessThan(3_000_000);
  });

  it('a record tells that an engine has forgotten a session', () => {
    const pool = new LoggedPool(1, 'shadow');
    for (const name of [1, 2, 3]) pool.turn(wordsOf(name, 40));
    expect(pool.turn(wordsOf(1, 41)).session).toMatchObject({ fate: 'forgotten', turns: 1, idleMs: 200 });
  });

  it('a record of a small prompt tells of no session', () => {
    expect(new LoggedPool(1).turn(wordsOf(1, 1)).session).toBeUndefined();
  });

  it('a record without sessions tells of none, also where an older record had one', () => {
    const pool = new LoggedPool(1);
    const kept = pool.pool.control.sizes.decisions ?? 0;
    pool.turn(wordsOf(1, 10));
    pool.pool.gate.sessions.configure({ ...RULE, mode: 'off' });
    for (let i = 0; i < kept; i++) expect(pool.turn(wordsOf(1, 10)).session).toBeUndefined();
  });
});

describe('the loss of a cache that a session explains', () => {
  it.each([
    ['evicted-predicted', 'session-lapsed'],
    ['evicted-told', 'session-lost'],
  ] as const)('a loss by %s has the cause %s of its session', (former, session) => {
    const cached = { promptTokens: 640, blockTokens: 64, held: 0, best: 0, bestCause: 'by-load', told: 0 } as const;
    expect(cacheLossOf({ ...cached, former, session })).toEqual({ cause: session, tokens: 640 });
  });

  it('a loss that an engine told of the picked endpoint has the cause of its session', () => {
    const cached = { promptTokens: 640, blockTokens: 64, held: 640, best: 640, bestCause: 'by-load' } as const;
    expect(cacheLossOf({ ...cached, former: undefined, told: 0, session: 'session-lost' })).toMatchObject({
      cause: 'session-lost',
    });
  });

  it.each(['engine-restarted', undefined] as const)('a loss by %s keeps its own cause', (former) => {
    const cached = { promptTokens: 640, blockTokens: 64, held: 0, best: 0, bestCause: 'by-load', told: 0 } as const;
    const loss = cacheLossOf({ ...cached, former, session: 'session-lost' });
    expect(loss).toMatchObject({ cause: former ?? 'never-stored' });
  });

  it('a record whose session was given up and evicted tells that cause', () => {
    const pool = new LoggedPool(1);
    const record = pool.turn(wordsOf(1, 10));
    const session = { ...record.session!, fate: 'given-up' } as const;
    expect(cacheLossOfRecord({ ...record, formerLoss: 'evicted-told', session })).toMatchObject({
      cause: 'session-lapsed',
    });
  });
});
