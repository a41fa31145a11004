import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { LoggedPool, wordsOf } from './logged-sessions.ts';

const ANNE = { session: 'anne' };
const BERT = { session: 'bert' };

function check(pool: LoggedPool): readonly number[] {
  const { call } = pool.pool.control;
  const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
  expect(call.lockAcquire(lock, 1_000)).toBe(1);
  const found = [call.sessionsCheck(), call.turnsCheck()];
  call.lockRelease(lock);
  return found;
}

describe('a session that a header names', () => {
  it('a session that a header names goes on by both, where its prompt goes on too', () => {
    const pool = new LoggedPool(2);
    pool.turn(wordsOf(1, 10), ANNE);
    const { session } = pool.turn(wordsOf(1, 12), ANNE);
    expect(session).toMatchObject({ fate: 'protected', byHeader: false, turns: 1 });
    expect(pool.counts.recognised).toMatchObject({ header: 1, prompt: 0, new: 1 });
    expect(pool.counts.splits).toEqual({ rewritten: 0, merged: 0, renamed: 0 });
  });

  it('a session that a header names goes on although its client has rewritten its history', () => {
    const pool = new LoggedPool(2);
    pool.turn(wordsOf(1, 10), ANNE);
    expect(pool.turn(wordsOf(2, 6), ANNE).session).toMatchObject({ fate: 'protected', byHeader: true, turns: 1 });
    expect(pool.counts.splits).toEqual({ rewritten: 1, merged: 0, renamed: 0 });
    expect(pool.turn(wordsOf(2, 7), ANNE).session).toMatchObject({ byHeader: false, turns: 2 });
    expect(check(pool)).toEqual([0, 0]);
  });

  it('a session that a header names is another one for another model', () => {
    const pool = new LoggedPool(2);
    pool.turn(wordsOf(1, 10), { ...ANNE, adapter: 'small' });
    expect(pool.turn(wordsOf(2, 10), { ...ANNE, adapter: 'large' }).session).toMatchObject({ fate: 'new' });
  });

  it('a session that a header names goes on by its prompt where a request has no header, and by both again then', () => {
    const pool = new LoggedPool(2);
    pool.turn(wordsOf(1, 10), ANNE);
    pool.turn(wordsOf(1, 12));
    expect(pool.counts.recognised).toMatchObject({ header: 0, prompt: 1 });
    expect(pool.turn(wordsOf(3, 5), ANNE).session).toMatchObject({ byHeader: true, turns: 2 });
  });

  it('a session without a header takes the name of the first one that its next turn has', () => {
    const pool = new LoggedPool(2);
    pool.turn(wordsOf(1, 10));
    pool.turn(wordsOf(1, 12), ANNE);
    expect(pool.turn(wordsOf(2, 6), ANNE).session).toMatchObject({ byHeader: true, turns: 2 });
  });

  it('two sessions with equal prompts go on as their headers say', () => {
    const pool = new LoggedPool(1);
    for (const named of [ANNE, BERT]) pool.turn(wordsOf(1, 10), named);
    // The second one began as a session of its own.
    expect(pool.counts.recognised).toMatchObject({ new: 2 });
    expect(pool.turn(wordsOf(1, 12), ANNE).session).toMatchObject({ turns: 1 });
    expect(pool.turn(wordsOf(1, 14), BERT).session).toMatchObject({ turns: 1 });
  });

  it('a turn under the header of a session with a turn in flight is another conversation, and is counted', () => {
    const pool = new LoggedPool(2);
    const parent = pool.begin(wordsOf(1, 10), ANNE);
    expect(pool.turn(wordsOf(2, 5), ANNE).session).toMatchObject({ fate: 'new' });
    parent.end();
    expect(pool.counts.splits).toEqual({ rewritten: 0, merged: 1, renamed: 0 });
    expect(pool.turn(wordsOf(1, 12), ANNE).session).toMatchObject({ fate: 'protected', turns: 1, byHeader: false });
    expect(check(pool)).toEqual([0, 0]);
  });

  it('a header that changes within a conversation begins a new session, and is counted', () => {
    const pool = new LoggedPool(2);
    pool.turn(wordsOf(1, 10), ANNE);
    expect(pool.turn(wordsOf(1, 12), BERT).session).toMatchObject({ fate: 'new' });
    expect(pool.counts.splits).toEqual({ rewritten: 0, merged: 0, renamed: 1 });
  });

  it('a small prompt under the header of a session is no turn of it', () => {
    const pool = new LoggedPool(2);
    pool.turn(wordsOf(1, 10), ANNE);
    expect(pool.turn(wordsOf(2, 1), ANNE).session).toBeUndefined();
    expect(pool.turn(wordsOf(1, 12), ANNE).session).toMatchObject({ turns: 1 });
  });
});

describe('the end of a session that its client tells', () => {
  it('the end of a session that its client tells frees its room when the turn ends', () => {
    const pool = new LoggedPool(1);
    const { slot } = pool.turn(wordsOf(1, 10));
    expect(pool.pool.gate.sessions.usedTokens(slot!)).toBe(640);
    const last = pool.begin(wordsOf(1, 12), { sessionEnds: true });
    expect(pool.pool.gate.sessions.usedTokens(slot!)).toBe(768);
    last.end();
    expect(pool.pool.gate.sessions.usedTokens(slot!)).toBe(0);
    expect(pool.counts.lapsed).toEqual({ 'given-up': 0, forgotten: 0, ended: 1 });
    expect(check(pool)).toEqual([0, 0]);
  });

  it('a prompt that goes on from an ended session begins a new one', () => {
    const pool = new LoggedPool(1);
    pool.turn(wordsOf(1, 10), { ...ANNE, sessionEnds: true });
    expect(pool.turn(wordsOf(1, 12), ANNE).session).toMatchObject({ fate: 'new' });
  });

  it('a session without a header that is ended leaves those of others alone', () => {
    const pool = new LoggedPool(1);
    pool.turn(wordsOf(1, 10), ANNE);
    pool.turn(wordsOf(2, 10), { sessionEnds: true });
    expect(pool.turn(wordsOf(1, 12), ANNE).session).toMatchObject({ fate: 'protected' });
  });
});

describe('a history that its client rewrites', () => {
  it('a history that its client rewrites is counted where an endpoint holds most of it and nobody shares that', () => {
    const pool = new LoggedPool(1);
    pool.turn(wordsOf(1, 20));
    pool.turn([...wordsOf(1, 14), ...wordsOf(2, 8)]);
    expect(pool.counts.splits.rewritten).toBe(1);
  });

  it('a beginning that many share is no rewritten history', () => {
    const pool = new LoggedPool(1);
    for (const name of [2, 3, 4, 5]) pool.turn([...wordsOf(1, 4), ...wordsOf(name, 8)]);
    expect(pool.counts).toMatchObject({ recognised: { new: 4 }, splits: { rewritten: 0 } });
  });
});
