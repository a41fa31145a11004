import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Pressure } from '../../dist/src/ingress/pressure.js';

const NOT_BEHIND = Number.POSITIVE_INFINITY;

/** New work that comes once a window of 10 ms. */
class Arrivals {
  clock = 1_000;
  readonly pressure: Pressure;

  constructor(coldWork = 0) {
    const windows = { suspectWindows: 2, overloadWindows: 3, latestWindows: 4 };
    this.pressure = new Pressure({ calmMs: 40, windowMs: 10, coldWork, ...windows });
  }

  /**
   * @param waits what waits in each window: all of it is long
   * @returns whether it is an overload behind each of them
   */
  windows(
    waits: readonly number[],
    { refused = 0, taken = 1, behindSince = NOT_BEHIND, isLong = true } = {},
  ): boolean[] {
    return waits.map((waiting) => {
      this.clock += 10;
      this.pressure.came(this.clock, isLong, waiting, behindSince);
      for (let i = 0; i < refused; i++) this.pressure.refused();
      for (let i = 0; i < taken; i++) this.pressure.taken();
      return this.pressure.isOverload(this.clock);
    });
  }
}

describe('pressure', () => {
  it('a queue that grows in three windows behind the first long wait is an overload', () => {
    expect(new Arrivals().windows([10, 20, 30, 40])).toEqual([false, false, false, true]);
  });

  it('a thread that has taken no 100 requests yet has windows of twice the length', () => {
    const waits = [10, 20, 30, 40, 50, 60, 70, 80];
    expect(new Arrivals(100).windows(waits)).toEqual([false, false, false, false, false, false, true, true]);
    const warm = new Arrivals(100);
    warm.windows([0, 0], { taken: 100, isLong: false });
    expect(warm.windows(waits.slice(0, 5))).toEqual([false, false, false, true, true]);
  });

  it('a queue that grows in two windows may be that of an overload, until it is one or shrinks', () => {
    const arrivals = new Arrivals();
    const suspect = (waits: readonly number[]): boolean[] =>
      waits.map((waiting) => {
        arrivals.windows([waiting]);
        return arrivals.pressure.isSuspect(arrivals.clock);
      });
    expect(suspect([10, 20, 30, 0, 10, 20, 25])).toEqual([false, false, true, false, false, true, false]);
  });

  it('a queue that shrinks in every other window is none, however long it is', () => {
    expect(new Arrivals().windows([1_000, 3_000, 2_900, 3_900, 3_800, 4_800, 4_700])).not.toContain(true);
  });

  it('a queue that shrinks in one of four windows and has become longer over all four is that of an overload', () => {
    expect(new Arrivals().windows([100, 200, 150, 250, 350])).toEqual([false, false, false, false, true]);
  });

  it('a queue that grows in three of four windows and has become shorter over all four is that of none', () => {
    expect(new Arrivals().windows([1_000, 1_020, 900, 920, 940, 800, 820, 840])).not.toContain(true);
  });

  it('a queue that is empty once in every three windows is that of none, whatever comes in between', () => {
    const between = fc.array(fc.nat(4_000), { maxLength: 2 });
    fc.assert(
      fc.property(fc.array(between, { minLength: 1, maxLength: 40 }), (pieces) => {
        const waits = pieces.flatMap((piece) => [...piece, 0]);
        expect(new Arrivals().windows(waits)).not.toContain(true);
      }),
    );
  });

  it('a queue that grows by less than a twentieth of what is taken is none', () => {
    expect(new Arrivals().windows([100, 105, 110, 115, 120, 125], { taken: 100 })).not.toContain(true);
    expect(new Arrivals().windows([100, 106, 112, 118], { taken: 100 })).toEqual([false, false, false, true]);
  });

  it('a queue that grows without a long wait is none', () => {
    expect(new Arrivals().windows([10, 20, 30, 40, 50, 60], { isLong: false })).not.toContain(true);
  });

  it('a full queue whose work is refused counts as growing', () => {
    expect(new Arrivals().windows([100, 100, 100, 100], { refused: 1 })).toEqual([false, false, false, true]);
  });

  it('sockets that are behind for a whole window count as growing', () => {
    const { windows } = new Arrivals();
    expect(windows.call(new Arrivals(), [0, 0, 0, 0], { behindSince: 1_005 })).toEqual([false, false, false, true]);
    const late = new Arrivals();
    expect(late.windows([0, 0, 0], { behindSince: 1_015 })).toEqual([false, false, false]);
  });

  it('an overload lasts while more than a twentieth is refused, and ends 40 ms after that', () => {
    const arrivals = new Arrivals();
    arrivals.windows([10, 20, 30, 40]);
    const rest = { isLong: false, taken: 100 };
    expect(arrivals.windows(new Array(20).fill(0), { ...rest, refused: 6 })).not.toContain(false);
    expect(arrivals.windows(new Array(7).fill(0), { ...rest, refused: 4 })).toEqual(
      // The first window ends the last one of those above.
      [true, true, true, true, true, false, false],
    );
  });

  it('a trial comes every 3 s, lasts until the first long wait, and does not come again before the next one', () => {
    const arrivals = new Arrivals();
    arrivals.windows([10, 20, 30, 40]);
    const { pressure } = arrivals;
    const trials = (from: number, isLong: boolean): boolean[] =>
      [0, 20, 49, 51].map((ms) => pressure.isTrial(pressure.since + from + ms, isLong));
    expect(trials(1_000, false)).toEqual([false, false, false, false]);
    expect(trials(3_000, false)).toEqual([true, true, true, false]);
    expect(trials(3_010, true)[0]).toBe(false);
    expect(trials(3_011, false)[0]).toBe(false);
    expect(trials(6_000, false)).toEqual([true, true, true, false]);
  });

  it('pressure is forgotten after a calm time', () => {
    const arrivals = new Arrivals();
    arrivals.windows([10, 20, 30, 40]);
    expect(arrivals.pressure.ms(arrivals.clock)).toBe(30);
    arrivals.clock += 50;
    expect(arrivals.windows([10, 20, 30])).toEqual([false, false, false]);
    expect(arrivals.pressure.ms(arrivals.clock)).toBe(20);
  });
});
