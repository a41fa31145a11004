import { describe, expect, it } from 'vitest';
import { FAILURES_MAX, PluginGuard } from '../../dist/src/scheduling/hooks/plugin-guard.js';

function makeGuard() {
  const state = { clock: 0, failures: [] as string[], logged: [] as object[] };
  const log = { info: () => {}, warn: () => {}, error: (details: object) => state.logged.push(details) };
  const failed = (plugin: string) => state.failures.push(plugin);
  const guard = new PluginGuard({ name: 'mine', budgetMs: 5, now: () => state.clock, failed, log });
  return { state, guard };
}

const boom = (): number => {
  throw new Error('boom');
};

describe('the guard of a hook plugin', () => {
  it('the guard of a hook plugin hands on what a hook answers', () => {
    const { guard, state } = makeGuard();
    expect(guard.run('score', () => 7, 0)).toBe(7);
    expect(state.failures).toEqual([]);
  });

  it('the guard of a hook plugin answers neutrally for a hook that throws, and counts it', () => {
    const { guard, state } = makeGuard();
    expect(guard.run('score', boom, 3)).toBe(3);
    expect(state.failures).toEqual(['mine']);
  });

  it('the guard of a hook plugin drops the answer of a hook beyond its budget, not of one that just meets it', () => {
    const { guard, state } = makeGuard();
    const taking = (ms: number) => () => {
      state.clock += ms;
      return 7;
    };
    expect(guard.run('score', taking(5), 0)).toBe(7);
    expect(guard.run('score', taking(5.1), 0)).toBe(0);
    expect(state.failures).toEqual(['mine']);
  });

  it('the guard of a hook plugin refuses a promise, also one that is rejected', async () => {
    const { guard, state } = makeGuard();
    const answer: unknown = guard.run<unknown>('admit', () => Promise.reject(new Error('later')), 'neutral');
    expect(answer).toBe('neutral');
    expect(state.failures).toEqual(['mine']);
    await new Promise((resolve) => setImmediate(resolve));
  });

  it('the guard of a hook plugin does not call a plugin any more after failures in a row, and says so once', () => {
    const { guard, state } = makeGuard();
    for (let i = 0; i < FAILURES_MAX; i++) {
      expect(guard.disabled).toBe(false);
      guard.run('score', boom, 0);
    }
    expect(guard.disabled).toBe(true);
    let called = false;
    for (let i = 0; i < 5; i++) guard.run('score', () => (called = true), false);
    expect(called).toBe(false);
    expect(state.failures).toHaveLength(FAILURES_MAX);
    expect(state.logged).toEqual([
      {
        plugin: 'mine',
        hook: 'score',
        failures: FAILURES_MAX,
        error: expect.stringMatching(/plugin-guard\.test\.ts:\d+:\d+: boom$/),
      },
    ]);
  });

  it('the guard of a hook plugin forgets failures at a call that went well', () => {
    const { guard } = makeGuard();
    for (let i = 0; i < 3 * FAILURES_MAX; i++) guard.run('score', i % FAILURES_MAX === 0 ? () => 1 : boom, 0);
    expect(guard.disabled).toBe(false);
  });
});
