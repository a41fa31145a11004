import { describe, expect, it } from 'vitest';
import { FailurePause } from '../../dist/src/remote/failure-pause.js';

function paused(failures: number) {
  const clock = { now: 0 };
  const pause = new FailurePause(() => clock.now);
  for (let i = 0; i < failures; i++) pause.failed();
  return { clock, pause };
}

describe('a source that fails', () => {
  it('a source that fails is asked on until it has failed five times in a row', () => {
    const { pause } = paused(4);
    expect(pause.admits()).toBe(true);
    pause.succeeded();
    for (let i = 0; i < 4; i++) pause.failed();
    expect(pause.admits()).toBe(true);
    pause.failed();
    expect(pause.admits()).toBe(false);
  });

  it('a source that fails is tried by one request after a second', () => {
    const { clock, pause } = paused(5);
    clock.now = 999;
    expect(pause.admits()).toBe(false);
    clock.now = 1_000;
    expect(pause.admits()).toBe(true);
    expect(pause.admits()).toBe(false);
  });

  it('a source that fails is left alone for a time that doubles up to thirty seconds', () => {
    const { clock, pause } = paused(5);
    for (const length of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
      clock.now += length - 1;
      expect(pause.admits()).toBe(false);
      clock.now += 1;
      expect(pause.admits()).toBe(true);
      pause.failed();
    }
  });

  it('a source that fails is used again by all once it answers', () => {
    const { clock, pause } = paused(5);
    clock.now = 1_000;
    expect(pause.admits()).toBe(true);
    pause.succeeded();
    expect(pause.admits()).toBe(true);
    expect(pause.admits()).toBe(true);
  });
});
