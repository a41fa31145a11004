import { describe, expect, it } from 'vitest';
import { serverName } from '../../dist/src/ingress/server-name.js';
import type { Placement } from '../../dist/src/scheduling/decision.js';

/** A placement of endpoints a, b, … on ports from 1. */
function placed(...names: string[]): Placement {
  const endpoints = names.map((name, slot) => ({ slot, address: `10.0.0.1:${slot + 1}`, endpoint: { name } }));
  return { kind: 'placed', endpoints } as unknown as Placement;
}

describe('the name of the endpoint that served', () => {
  it.each([
    ['the only pick', placed('a'), { status: 200, served: undefined }, 'a'],
    ['the one of several picks that the proxy tells', placed('a', 'b'), { status: 200, served: '10.0.0.1:2' }, 'b'],
    ['an address of no pick', placed('a'), { status: 200, served: '10.0.0.9:1' }, '10.0.0.9:1'],
    ['the one that the proxy tells, with an error of its own', placed('a'), { status: 503, served: '10.0.0.1:1' }, 'a'],
    ['the only pick, with an error that no proxy gives', placed('a'), { status: 500, served: undefined }, 'a'],
    ['nobody of several picks', placed('a', 'b'), { status: 200, served: undefined }, undefined],
    ['nobody, with an error that the proxy may have given', placed('a'), { status: 503, served: undefined }, undefined],
  ])('the name is %s', (_what, placement, head, name) => {
    expect(serverName(placement, head)).toBe(name);
  });
});
