import { describe, expect, test, vi } from 'vitest';
import { once } from '../../dist/src/runtime/once.js';

describe('a value that is made once', () => {
  test('the value is made when it is first asked for, and kept, also when it is undefined', () => {
    for (const value of [{}, undefined]) {
      const make = vi.fn(() => value);
      const get = once(make);
      expect(make).not.toHaveBeenCalled();
      expect(get()).toBe(value);
      expect(get()).toBe(value);
      expect(make).toHaveBeenCalledOnce();
    }
  });

  test('a value that could not be made is tried again', () => {
    let fails = true;
    const get = once(() => {
      if (fails) throw new Error('not yet');
      return 1;
    });
    expect(get).toThrow('not yet');
    fails = false;
    expect(get()).toBe(1);
  });
});
