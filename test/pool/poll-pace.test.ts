import { describe, expect, it } from 'vitest';
import { intervalsFor, PollPace } from '../../dist/src/pool/sources/poll-pace.js';

/** A pace of 50 ms after windows in which a poll took so many milliseconds. */
function paced(share: number | undefined, numbers: { busy: number; quiet: number }, pollMs: number, windows = 1) {
  let cpuMs = 0;
  const pace = new PollPace(50, share, () => {
    cpuMs += 1e6;
    return { userMs: cpuMs, systemMs: 0 };
  });
  for (let window = 0; window <= windows; window++) {
    pace.spent(10 * pollMs);
    for (let i = 0; i < 10; i++) pace.polled();
    pace.look(window * 500, () => numbers);
  }
  return pace;
}

interface Played {
  /** Time of a poll that is told, by window. */
  pollMs: (window: number) => number;
  /** Polls for each that the intervals ask for. */
  more?: number;
  /** Time of a poll in the system that is not told. */
  systemMs?: number;
}

/** Shares of a core that the polls of 120 windows truly take. */
function sharesOf(share: number, numbers: { busy: number; quiet: number }, played: Played): number[] {
  const { pollMs, more = 1, systemMs = 0 } = played;
  const cpu = { userMs: 0, systemMs: 0 };
  const pace = new PollPace(50, share, () => ({ ...cpu }));
  const shares: number[] = [];
  pace.look(0, () => numbers);
  for (let window = 1; window <= 120; window++) {
    const { busyMs, quietMs } = pace.intervals;
    const polls = Math.round(500 * more * (numbers.busy / busyMs + numbers.quiet / quietMs));
    for (let i = 0; i < polls; i++) pace.polled();
    pace.spent(polls * pollMs(window));
    cpu.userMs += polls * pollMs(window);
    cpu.systemMs += polls * systemMs;
    shares.push((polls * (pollMs(window) + systemMs)) / 500);
    pace.look(500 * window, () => numbers);
  }
  return shares;
}

describe('intervals of polls within a number of polls a second', () => {
  it.each([
    ['all endpoints at the base interval where that is few enough', 8, 56, 2_000, [50, 50]],
    ['only those without traffic more rarely', 10, 990, 1_500, [50, 762]],
    ['those with traffic too, once the others are asked once a second', 100, 900, 1_900, [100, 1_000]],
    ['all alike where even once a second is too often', 500, 9_500, 5_000, [2_000, 2_000]],
    ['ten seconds apart at most', 500, 9_500, 1, [10_000, 10_000]],
    ['nothing for a pool without endpoints', 0, 0, 100, [50, 50]],
  ])('intervals are %s', (_what, busy, quiet, perSecond, [busyMs, quietMs]) => {
    const intervals = intervalsFor({ busy, quiet }, perSecond, 50);
    expect([Math.round(intervals.busyMs), Math.round(intervals.quietMs)]).toEqual([busyMs, quietMs]);
  });

  it('intervals take no more polls than given, unless the longest is too short', () => {
    for (const busy of [0, 1, 40, 1_000, 10_240]) {
      for (const quiet of [0, 3, 500, 10_240]) {
        for (const perSecond of [1_100, 2_000, 20_000, 1e6]) {
          const { busyMs, quietMs } = intervalsFor({ busy, quiet }, perSecond, 50);
          const polls = (busy * 1_000) / busyMs + (quiet * 1_000) / quietMs;
          expect(polls).toBeLessThanOrEqual(Math.max(perSecond, (busy + quiet) / 10) * 1.000_001);
          expect(quietMs).toBeGreaterThanOrEqual(busyMs);
        }
      }
    }
  });

  it('a base interval above a second holds for all endpoints that fit', () => {
    expect(intervalsFor({ busy: 10, quiet: 10 }, 100, 2_000)).toEqual({ busyMs: 2_000, quietMs: 2_000 });
  });
});

describe('the pace of polls', () => {
  it('the pace is the base interval before anything was measured, and without a bound', () => {
    expect(new PollPace(50, 0.1).intervals).toEqual({ busyMs: 50, quietMs: 50 });
    const pace = paced(undefined, { busy: 1_000, quiet: 9_000 }, 5);
    expect(pace.intervals).toEqual({ busyMs: 50, quietMs: 50 });
    expect([pace.isStretched, pace.isOver]).toEqual([false, false]);
  });

  it('the pace slows the endpoints without traffic by what a poll was seen to take', () => {
    // 0.1 ms a poll and a quarter of a core are 2,500 polls a second: 400 for 20 busy endpoints.
    const pace = paced(0.25, { busy: 20, quiet: 980 }, 0.1);
    expect(pace.intervals.busyMs).toBe(50);
    expect(pace.intervals.quietMs).toBeCloseTo(980 / 2.1, 6);
    expect([pace.isStretched, pace.isOver]).toEqual([true, false]);
  });

  it('the pace is told to be over its share only where the longest interval is not enough', () => {
    expect(paced(0.01, { busy: 10_000, quiet: 0 }, 100, 3).isOver).toBe(true);
    expect(paced(0.01, { busy: 10, quiet: 0 }, 1, 3).isOver).toBe(false);
  });

  it('the pace counts no time in which the thread had no core', () => {
    let cpuMs = 0;
    const pace = new PollPace(50, 0.25, () => ({ userMs: cpuMs, systemMs: 0 }));
    pace.look(0, () => ({ busy: 4, quiet: 4 }));
    for (const nowMs of [500, 1_000]) {
      // Eight polls, each held up for 50 ms.
      for (let i = 0; i < 8; i++) pace.polled();
      pace.spent(400);
      cpuMs += 1;
      pace.look(nowMs, () => ({ busy: 4, quiet: 4 }));
    }
    expect([pace.intervals, pace.usedShare]).toEqual([{ busyMs: 50, quietMs: 50 }, 0.002]);
  });

  it.each([
    ['the time of a poll is the same in all windows', { pollMs: () => 0.1 }],
    ['one window in ten takes four times as long', { pollMs: (window: number) => (window % 10 === 0 ? 0.4 : 0.1) }],
    ['endpoints that get traffic are polled half as often again', { pollMs: () => 0.1, more: 1.5 }],
    ['the system reads the pages before they are told', { pollMs: () => 0.07, systemMs: 0.04 }],
    ['pages grow to four times their size', { pollMs: (window: number) => (window < 60 ? 0.05 : 0.2) }],
  ])('the pace keeps to a quarter of a core within a twentieth where %s', (_what, played) => {
    const shares = sharesOf(0.25, { busy: 50, quiet: 950 }, played);
    const last = shares.slice(-50);
    expect(last.reduce((sum, share) => sum + share, 0) / last.length).toBeCloseTo(0.25, 1.6);
  });

  it('the pace goes back to the base interval when the endpoints are gone', () => {
    const pace = paced(0.25, { busy: 20, quiet: 980 }, 0.1);
    pace.look(10_000, () => ({ busy: 4, quiet: 4 }));
    expect(pace.intervals).toEqual({ busyMs: 50, quietMs: 50 });
  });
});
