import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WakeWheel } from '../../dist/src/pool/sources/wake-wheel.js';

const sleeper = (name: string) => ({ name, wakeTurn: 0 });

describe('a wheel that wakes', () => {
  it('an entry is woken in the turn of its time, once', () => {
    const wheel = new WakeWheel<ReturnType<typeof sleeper>>(5, 1_000);
    const entry = sleeper('a');
    wheel.wakeAt(entry, 1_020);
    const woken = [1_005, 1_015, 1_020, 1_025].map((ms) => wheel.woken(ms).map(({ name }) => name));
    expect(woken).toEqual([[], [], ['a'], []]);
  });

  it('an entry is woken at the time it was given last, whether sooner or later', () => {
    const wheel = new WakeWheel<ReturnType<typeof sleeper>>(5, 0);
    const [sooner, later] = [sleeper('sooner'), sleeper('later')];
    wheel.wakeAt(sooner, 100);
    wheel.wakeAt(sooner, 20);
    wheel.wakeAt(later, 20);
    wheel.wakeAt(later, 100);
    expect([20, 100, 200].map((ms) => wheel.woken(ms).map(({ name }) => name))).toEqual([['sooner'], ['later'], []]);
  });

  it('an entry whose time is past is woken in the next turn, and a forgotten one is not', () => {
    const wheel = new WakeWheel<ReturnType<typeof sleeper>>(5, 1_000);
    const [past, gone] = [sleeper('past'), sleeper('gone')];
    wheel.wakeAt(past, 3);
    wheel.wakeAt(gone, 1_010);
    wheel.forget(gone);
    expect(wheel.woken(1_100).map(({ name }) => name)).toEqual(['past']);
  });

  it('an entry is woken at the end of the round where its time is later, and after a jump of the clock', () => {
    const wheel = new WakeWheel<ReturnType<typeof sleeper>>(5, 0);
    const entry = sleeper('a');
    wheel.wakeAt(entry, 1e9);
    expect(wheel.woken(4_094 * 5)).toEqual([]);
    expect(wheel.woken(4_095 * 5)).toEqual([entry]);
    wheel.wakeAt(entry, 4_100 * 5);
    expect(wheel.woken(1e9)).toEqual([entry]);
  });

  it('each entry is woken by its last time, in any order of calls', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(4), fc.nat(900), fc.nat(30)), { maxLength: 60 }), (steps) => {
        const wheel = new WakeWheel<ReturnType<typeof sleeper>>(10, 0);
        const entries = Array.from({ length: 5 }, (_, i) => sleeper(String(i)));
        const times = new Map<string, number>();
        let now = 0;
        for (const [which, ahead, passes] of steps) {
          wheel.wakeAt(entries[which]!, now + ahead);
          times.set(String(which), Math.max(Math.floor(now / 10) + 1, Math.round((now + ahead) / 10)));
          now += passes;
          const due = [...times].filter(([, turn]) => turn <= Math.floor(now / 10)).map(([name]) => name);
          expect(
            wheel
              .woken(now)
              .map(({ name }) => name)
              .sort(),
          ).toEqual(due.sort());
          for (const name of due) times.delete(name);
        }
      }),
    );
  });
});
