import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { endStart } from '../../dist/src/serve/serve.js';

/** @returns tries to keep the code within so many seconds, where the first ones fail */
function triesWithin(seconds: number, tries: number, failures: number): number {
  const keep = vi.fn(() => keep.mock.calls.length > failures);
  endStart(keep, () => 0, tries);
  vi.advanceTimersByTime(seconds * 1_000);
  return keep.mock.calls.length;
}

describe('the end of a start', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('the compiled code is kept a second after the start, and once', () => {
    expect(triesWithin(0.999, 15, 0)).toBe(0);
    vi.clearAllTimers();
    expect(triesWithin(60, 15, 0)).toBe(1);
  });

  test('code that V8 would refuse at present is tried again each second', () => {
    expect(triesWithin(2.5, 15, 3)).toBe(2);
    vi.clearAllTimers();
    expect(triesWithin(60, 15, 3)).toBe(4);
  });

  test('code that cannot be kept is given up behind the last try', () => {
    expect(triesWithin(60, 15, 1_000)).toBe(15);
  });

  test('the start does not end while requests come, and ends a second after the last one', () => {
    let requests = 0;
    const coming = setInterval(() => requests++, 700);
    const keep = vi.fn(() => true);
    endStart(keep, () => requests, 1);
    vi.advanceTimersByTime(60_000);
    expect(keep).not.toHaveBeenCalled();
    clearInterval(coming);
    vi.advanceTimersByTime(2_000);
    expect(keep).toHaveBeenCalledOnce();
  });

  test('the start ends after ten minutes of requests without a pause', () => {
    let requests = 0;
    const coming = setInterval(() => requests++, 700);
    const keep = vi.fn(() => true);
    endStart(keep, () => requests, 1);
    vi.advanceTimersByTime(602_000);
    clearInterval(coming);
    expect(keep).toHaveBeenCalledOnce();
  });
});
