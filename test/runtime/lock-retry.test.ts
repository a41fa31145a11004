import { describe, expect, it } from 'vitest';
import { LockRetry } from '../../dist/src/runtime/lock-retry.js';

/** Releases that succeed once the lock is free, and a clock that is turned by hand. */
function blocked() {
  const timers: { run: () => void; ms: number }[] = [];
  const stalls = { count: 0 };
  const late = new LockRetry({ later: (run, ms) => timers.push({ run, ms }), stalled: () => stalls.count++ });
  const lock = { free: false };
  const released: string[] = [];
  const add = (name: string) =>
    late.add(() => {
      if (lock.free) released.push(name);
      return lock.free;
    });
  /** Lets the one timer fire. @returns how long it was set for */
  const fire = () => {
    expect(timers).toHaveLength(1);
    const { run, ms } = timers.shift()!;
    run();
    return ms;
  };
  return { add, fire, late, lock, released, stalls, timers };
}

describe('charges that cannot be released yet', () => {
  it('charges that cannot be released yet are tried together, with one timer, in their order', () => {
    const { add, fire, lock, released, timers } = blocked();
    for (const name of ['a', 'b', 'c']) add(name);
    fire();
    expect(released).toEqual([]);
    lock.free = true;
    fire();
    expect(released).toEqual(['a', 'b', 'c']);
    expect(timers).toEqual([]);
  });

  it('charges that cannot be released yet are tried more and more seldom, at most once in a second', () => {
    const { add, fire } = blocked();
    add('a');
    const pauses = Array.from({ length: 10 }, fire);
    expect(pauses).toEqual([5, 10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]);
  });

  it('charges that cannot be released yet begin with short pauses again when the lock is free', () => {
    const { add, fire, lock, released } = blocked();
    add('a');
    for (let i = 0; i < 5; i++) fire();
    lock.free = true;
    fire();
    lock.free = false;
    add('b');
    expect(fire()).toBe(5);
    expect(released).toEqual(['a']);
  });
});

describe('an attempt', () => {
  it('an attempt is made at once when nothing waits', () => {
    const { late, timers } = blocked();
    let attempts = 0;
    late.run(() => ++attempts > 0);
    expect(attempts).toBe(1);
    expect(timers).toEqual([]);
  });

  it('an attempt is made behind those that wait, so that their order stays', () => {
    const { add, fire, late, lock, released } = blocked();
    add('first');
    lock.free = true;
    late.run(() => released.push('second') > 0);
    expect(released).toEqual([]);
    fire();
    expect(released).toEqual(['first', 'second']);
  });

  it('an attempt that fails for a second is told as a stall, once for every second', () => {
    const { add, fire, stalls } = blocked();
    add('a');
    const counts: number[] = [];
    // Pauses of 5, 10, … 320, 640 ms are 1,275 ms; each further one is a second.
    for (let i = 0; i < 10; i++) {
      fire();
      counts.push(stalls.count);
    }
    expect(counts).toEqual([0, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
  });
});
