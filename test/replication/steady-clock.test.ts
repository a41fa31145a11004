import { describe, expect, it } from 'vitest';
import { steadyClock } from '../../dist/src/replication/message-freshness.js';

describe('the clock of a replica', () => {
  const times = { system: 1_000_000, elapsed: 500 };
  const pass = (ms: number, correctionMs = 0) => {
    times.elapsed += ms;
    times.system += ms + correctionMs;
  };

  it('the clock of a replica goes on evenly over small corrections, and follows one of a minute', () => {
    const now = steadyClock(
      () => times.system,
      () => times.elapsed,
    );
    expect(now()).toBe(1_000_000);
    pass(100, 59_000);
    expect(now()).toBe(1_000_100);
    pass(100, 1_000);
    expect(now()).toBe(times.system);
    pass(100, -30_000);
    expect(now()).toBe(times.system + 30_000);
    pass(0, -3_600_000);
    expect(now()).toBe(times.system);
  });
});
