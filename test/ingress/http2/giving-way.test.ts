import { describe, expect, it } from 'vitest';
import {
  idlest,
  ofCrowdingAddress,
  type PlacedConnection,
  unusedBeyondBound,
} from '../../../dist/src/ingress/transports/http2/giving-way.js';

interface Named extends PlacedConnection {
  readonly name: string;
}

/** Connections of one address. */
function of(address: string, own: readonly Partial<Named>[], isTrusted = false): Named[] {
  const share = { address, isTrusted, connections: own.length };
  return own.map((each, i) => ({
    name: `${address}#${i}`,
    share,
    streamCount: 0,
    opened: 1,
    openedAt: 0,
    heardAt: 0,
    ...each,
  }));
}

const chosen = (connections: readonly Named[]) => idlest(connections)?.name;

describe('the connection that gives way when it is not in use', () => {
  it('the idlest connection is one of the address with most connections that are not in use', () => {
    const good = of('good', [{ opened: 0 }, { streamCount: 1 }, { streamCount: 1 }, { streamCount: 1 }]);
    expect(chosen([...good, ...of('hostile', [{}, {}])])).toBe('hostile#0');
  });

  it('the idlest connection is one that had no stream so far, then the one that is silent for longest', () => {
    const two = of('a', [{ heardAt: 5 }, { heardAt: 3 }, { heardAt: 4 }]);
    expect(chosen(two)).toBe('a#1');
    expect(chosen([...two, ...of('a', [{ name: 'new', opened: 0, heardAt: 9 }])])).toBe('new');
  });

  it('the idlest connection is a trusted one only when no other is idle', () => {
    const trusted = of('proxy', [{}, {}, {}], true);
    expect(chosen([...trusted, ...of('stranger', [{}])])).toBe('stranger#0');
    expect(chosen(trusted)).toBe('proxy#0');
  });

  it('the idlest connection is none while all have streams', () => {
    expect(chosen(of('a', [{ streamCount: 1 }]))).toBeUndefined();
  });
});

describe('the connection that gives way although it is in use', () => {
  const busy = { streamCount: 2 };

  it('a connection in use gives way when its address has more than half, the one with the fewest streams', () => {
    const all = new Set([...of('hostile', [busy, { streamCount: 1 }, busy]), ...of('good', [busy, busy])]);
    expect(ofCrowdingAddress(all)?.name).toBe('hostile#1');
  });

  it('a connection in use does not give way when its address has half, or is trusted', () => {
    expect(ofCrowdingAddress(new Set([...of('a', [busy]), ...of('b', [busy])]))).toBeUndefined();
    expect(ofCrowdingAddress(new Set([...of('a', [busy, busy], true), ...of('b', [busy])]))).toBeUndefined();
  });
});

describe('connections without a request', () => {
  const unused = (count: number, own: Partial<Named> = {}) =>
    Array.from({ length: count }, () => ({ opened: 0, ...own }));

  it('connections without a request are ended beyond 64 of an address, those that came last', () => {
    const all = [...of('hostile', unused(66)), ...of('other', unused(64))];
    expect(unusedBeyondBound(all, 1_000).map(({ name }) => name)).toEqual(['hostile#64', 'hostile#65']);
  });

  it('connections without a request stay for a second, and those of trusted addresses for ever', () => {
    expect(unusedBeyondBound(of('new', unused(100, { openedAt: 1 })), 1_000)).toEqual([]);
    expect(unusedBeyondBound(of('proxy', unused(100), true), 1_000)).toEqual([]);
  });

  it('connections that have had a request do not count as such', () => {
    expect(unusedBeyondBound(of('proxy', [...unused(64), ...Array.from({ length: 100 }, () => ({}))]), 1_000)).toEqual(
      [],
    );
  });
});
