import { describe, expect, it } from 'vitest';
import { SilenceTable } from '../../dist/src/core/silence-table.js';
import { makePool, pickMax } from './pool.ts';

/** A pool of idle endpoints, and what is written about their silence. */
function silences(endpoints: number) {
  const pool = makePool(
    [pickMax],
    Array.from({ length: endpoints }, () => ({ waiting: 0, running: 0, kvUsage: 0 })),
  );
  return { ...pool, silence: new SilenceTable(pool.control) };
}

describe('a silent endpoint', () => {
  it('a silent endpoint is out of the picks until output comes', () => {
    const { silence } = silences(4);
    expect(silence.silence(1, 1, 5)).toBe('out');
    expect([silence.isSilent(1), silence.isOut(1)]).toEqual([true, true]);
    expect(silence.takeBack(1, 1)).toBe(true);
    expect([silence.isSilent(1), silence.isOut(1)]).toEqual([false, false]);
  });

  it('a silent endpoint stays in where half of the others are out', () => {
    const { silence } = silences(2);
    expect(silence.silence(0, 1, 5)).toBe('out');
    expect(silence.silence(1, 1, 5)).toBe('in');
    expect([silence.isSilent(1), silence.isOut(1)]).toEqual([true, false]);
  });

  it('a silent endpoint that was ejected before is not counted a second time', () => {
    const { silence, decider } = silences(4);
    for (let i = 0; i < 2; i++) decider.noteOutcome(0, 1, 'failed', 1);
    for (const slot of [0, 1]) expect(silence.silence(slot, 1, 5)).toBe('out');
    expect(silence.silence(2, 1, 5)).toBe('in');
  });

  it('a slot that another endpoint has by now is not judged', () => {
    const { silence } = silences(4);
    expect(silence.silence(1, 2, 5)).toBe('in');
    expect([silence.isSilent(1), silence.isOut(1)]).toEqual([false, false]);
  });
});
