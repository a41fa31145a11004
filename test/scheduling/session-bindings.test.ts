import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SessionBindings } from '../../dist/src/scheduling/session/session-bindings.js';

const options = { capacity: 3, ttlMs: 300_000, sweepMs: 10_000 };
const bound = (endpoint: string, at: number) => ({ endpoint, boundAt: at, usedAt: at });

describe('session bindings', () => {
  it('session bindings find where a session went until its time is over', () => {
    const bindings = new SessionBindings(options);
    bindings.bind('s', bound('default/a', 0), 0);
    expect(bindings.find('s', 300_000)?.endpoint).toBe('default/a');
    expect(bindings.find('s', 300_001)).toBeUndefined();
  });

  it('session bindings live on when they are used', () => {
    const bindings = new SessionBindings(options);
    bindings.bind('s', bound('default/a', 0), 0);
    bindings.touch('s', 200_000);
    expect(bindings.find('s', 450_000)?.endpoint).toBe('default/a');
  });

  it('session bindings lose the least recently used session when they are full', () => {
    const bindings = new SessionBindings(options);
    for (const [at, session] of ['a', 'b', 'c'].entries()) bindings.bind(session, bound('default/x', at), at);
    bindings.touch('a', 3);
    bindings.bind('d', bound('default/x', 4), 4);
    expect(['a', 'b', 'c', 'd'].filter((session) => bindings.find(session, 5) !== undefined)).toEqual(['a', 'c', 'd']);
  });

  it('session bindings remove what is over at the next sweep', () => {
    const bindings = new SessionBindings(options);
    bindings.bind('a', bound('default/x', 0), 0);
    bindings.bind('b', bound('default/x', 299_000), 299_000);
    bindings.bind('c', bound('default/x', 310_000), 310_000);
    expect(bindings.size).toBe(2);
  });

  it('session bindings keep ids of any length at a bounded size', () => {
    const bindings = new SessionBindings(options);
    bindings.bind('x'.repeat(100_000), bound('default/a', 0), 0);
    expect(bindings.find('x'.repeat(100_000), 1)?.endpoint).toBe('default/a');
  });

  it('session bindings never hold more than their capacity', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 3 }), { maxLength: 60 }), (sessions) => {
        const bindings = new SessionBindings({ ...options, capacity: 5 });
        for (const [at, session] of sessions.entries()) {
          bindings.bind(session, bound('default/x', at), at);
          expect(bindings.size).toBeLessThanOrEqual(5);
          expect(bindings.find(session, at)).toBeDefined();
        }
      }),
    );
  });
});
