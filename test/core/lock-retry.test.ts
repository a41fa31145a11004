import { describe, expect, it } from 'vitest';
import { LateReleases } from '../../dist/core/lock-retry.js';

/** Releases that succeed once the lock is free, and a clock that is turned by hand. */
function blocked() {
  const timers: { run: () => void; ms: number }[] = [];
  const late = new LateReleases((run, ms) => timers.push({ run, ms }));
  const lock = { free: false };
  const released: string[] = [];
  const add = (name: string) =>
    late.add(() => {
      if (lock.free) released.push(name);
      return lock.free;
    });
  /** Let the one timer fire. @returns how long it was set for */
  const fire = () => {
    expect(timers).toHaveLength(1);
    const { run, ms } = timers.shift()!;
    run();
    return ms;
  };
  return { add, fire, lock, released, timers };
}

describe('charges that cannot be released yet', () => {
  it('are tried together, with one timer, in their order', () => {
    const { add, fire, lock, released, timers } = blocked();
    for (const name of ['a', 'b', 'c']) add(name);
    fire();
    expect(released).toEqual([]);
    lock.free = true;
    fire();
    expect(released).toEqual(['a', 'b', 'c']);
    expect(timers).toEqual([]);
  });

  it('are tried more and more seldom, at most once in a second', () => {
    const { add, fire } = blocked();
    add('a');
    const pauses = Array.from({ length: 10 }, fire);
    expect(pauses).toEqual([5, 10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]);
  });

  it('begin with short pauses again when the lock is free', () => {
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
