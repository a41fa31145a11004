import { describe, expect, it } from 'vitest';
import type { SessionTally } from '../../dist/src/core/session-ledger.js';
import { type SessionFigures, sessionsShown } from '../../dist/src/picker/control/session-page.js';

const TALLY: SessionTally = {
  running: 1,
  idle: 2,
  lapsed: 3,
  active: 6,
  meanTokens: 20_000,
  fit: 9.7,
  endpoints: [
    { slot: 0, capacity: 100_000, used: 80_000, protected: 60_000 },
    { slot: 1, capacity: 100_000, used: 130_000, protected: 90_000 },
    { slot: 2, capacity: 0, used: 5, protected: 5 },
  ],
};

const TURN = { flow: 'f', priority: 0, promptTokens: 61_000, needTokens: 46_000, known: true };

const FIGURES: SessionFigures = {
  mode: 'on',
  tally: TALLY,
  held: { count: 11, longest: [{ ...TURN, waitedMs: 84_300 }] },
  lastMinute: { found: 400_000, none: 12 },
  refillMs: 20_000,
};

const shown = (figures: Partial<SessionFigures>) =>
  sessionsShown({ ...FIGURES, ...figures }, (slot) => ['a', 'b'][slot]);

describe('the page on sessions', () => {
  it('the page on sessions says who waits, what protected places have saved, and how many fit', () => {
    // 200,000 tokens for each of two endpoints, of which one computes 100,000 in 20 s.
    expect(shown({}).text).toBe(
      '11 agents wait for KV room, longest 84 s. Protected places saved 40 s of prefill per endpoint in the last ' +
        'minute. 6 sessions were active in the last five minutes, and 9 of their size fit.',
    );
  });

  it.each<[Partial<SessionFigures>, string]>([
    [{ held: { count: 0, longest: [] } }, 'No turn is held.'],
    [{ held: { count: 1, longest: [{ ...TURN, waitedMs: 400 }] } }, '1 agent waits for KV room, longest 0 s.'],
    [{ mode: 'shadow' }, '12 turns of the last minute found no KV cache with room; none is held in mode shadow.'],
    [
      { mode: 'shadow', lastMinute: { found: 0, none: 0 } },
      'Every turn of the last minute had room beside the others.',
    ],
  ])('the page on sessions begins, with %j, with: %s', (figures, text) => {
    expect(shown(figures).text.startsWith(text)).toBe(true);
  });

  it.each([[{ refillMs: 0 }], [{ lastMinute: { found: 0, none: 0 } }], [{ tally: { ...TALLY, endpoints: [] } }]])(
    'the page on sessions says nothing of savings that nobody knows: %j',
    (figures) => {
      expect(shown(figures).text).not.toContain('saved');
    },
  );

  it('the page on sessions shows what is in use of each cache, and what of it is protected', () => {
    expect(shown({}).endpoints).toEqual([
      { id: 'a', capacity: 100_000, usedTokens: 80_000, protectedTokens: 60_000 },
      { id: 'b', capacity: 100_000, usedTokens: 130_000, protectedTokens: 90_000 },
    ]);
    expect(sessionsShown(FIGURES, (slot) => (slot === 2 ? 'c' : undefined)).endpoints).toMatchObject([
      { id: 'c', capacity: null },
    ]);
  });

  it('the page on sessions shows what held turns need, and the best room that there is', () => {
    expect(shown({}).held).toEqual([
      { promptTokens: 61_000, waitedMs: 84_300, needTokens: 46_000, bestRoomTokens: 20_000, known: true, priority: 0 },
    ]);
    expect(shown({ tally: { ...TALLY, endpoints: [] } }).held).toMatchObject([{ bestRoomTokens: null }]);
  });
});
