import { describe, expect, it } from 'vitest';
import { type Beginner, Beginnings } from '../../../dist/src/ingress/transports/http2/beginnings.js';

/** Beginnings whose turns of the event loop are the test's. */
function turns() {
  const deferred: (() => void)[] = [];
  const beginnings = new Beginnings((run) => deferred.push(run));
  const begun: string[] = [];
  return {
    beginnings,
    begun,
    /** Lets a client send its first bytes. @returns whether its connection begins now */
    enter(name: string, address: string | undefined, heldBytes = 50): boolean {
      const beginner: Beginner = { address, heldBytes, begin: () => begun.push(name) };
      return beginnings.enter(beginner);
    },
    next(): void {
      for (const run of deferred.splice(0)) run();
    },
  };
}

describe('connections that begin at one time', () => {
  it('a crowd of connections begins 16 in one turn, then four in each, in the order of their arrival', () => {
    const { beginnings, enter, begun, next } = turns();
    const atOnce = Array.from({ length: 26 }, (_, i) => enter(`${i}`, '10.0.0.1'));
    expect(atOnce.filter(Boolean)).toHaveLength(16);
    next();
    expect(begun).toEqual(['16', '17', '18', '19']);
    next();
    next();
    expect(begun).toHaveLength(10);
    expect(beginnings.waiting).toBe(0);
  });

  it('a connection of another address goes before a crowd that waits', () => {
    const { enter, next } = turns();
    for (let i = 0; i < 100; i++) enter(`${i}`, '10.0.0.1');
    next();
    expect(enter('good', '10.0.0.2')).toBe(true);
    expect(enter('late', '10.0.0.1')).toBe(false);
  });

  it('a connection over a Unix domain socket begins at once', () => {
    const { enter } = turns();
    for (let i = 0; i < 100; i++) enter(`${i}`, '10.0.0.1');
    expect(enter('proxy', undefined)).toBe(true);
  });

  it('connections begin at once while those that wait hold 4 MiB of first bytes', () => {
    const { beginnings, enter, next } = turns();
    const atOnce = Array.from({ length: 100 }, (_, i) => enter(`${i}`, '10.0.0.1', 65_536));
    expect(atOnce.filter(Boolean)).toHaveLength(100 - 64);
    expect(beginnings.waiting).toBe(64);
    for (let i = 0; i < 16; i++) next();
    expect(beginnings.waiting).toBe(0);
    expect(enter('after', '10.0.0.1', 65_536)).toBe(true);
  });
});
