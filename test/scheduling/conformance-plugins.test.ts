import { describe, expect, it } from 'vitest';
import { headerBasedTestingFilter } from '../../dist/src/scheduling/filters/header-based-testing-filter.js';
import { destinationEndpointServedVerifier } from '../../dist/src/scheduling/reporters/destination-endpoint-served-verifier.js';
import { HookPool, idle } from './hook-pool.ts';

describe('header-based-testing-filter', () => {
  const pool = new HookPool([{ definition: headerBasedTestingFilter }], idle(4));
  const picks = (selection: string) => pool.picks({ headers: { 'test-epp-endpoint-selection': selection } });

  it('header-based-testing-filter keeps the endpoints that the header lists, by IP or with port', () => {
    expect(picks('10.0.0.2')).toEqual(['pod-1']);
    expect(picks('10.0.0.2:8000, 10.0.0.4')).toEqual(['pod-1', 'pod-3']);
  });

  it('header-based-testing-filter keeps none for another port, an unknown address, an empty header or none', () => {
    for (const selection of ['10.0.0.2:9', '10.9.9.9', '']) expect(picks(selection)).toEqual(['ResourceExhausted']);
    expect(pool.picks()).toEqual(['ResourceExhausted']);
  });

  it('header-based-testing-filter with withoutHeader=all keeps all for an empty header or none, and only the named else', () => {
    const open = new HookPool(
      [{ definition: headerBasedTestingFilter, parameters: { withoutHeader: 'all' } }],
      idle(4),
    );
    const withHeader = (selection: string) => open.picks({ headers: { 'test-epp-endpoint-selection': selection } });
    for (const picks of [open.picks(), withHeader('')]) expect(picks[0]).toMatch(/^pod-[0-3]$/);
    expect(withHeader('10.0.0.3')).toEqual(['pod-2']);
    expect(withHeader('10.9.9.9')).toEqual(['ResourceExhausted']);
  });
});

describe('destination-endpoint-served-verifier', () => {
  it.each([
    ['127.0.0.9:1', true, '127.0.0.9:1'],
    [undefined, true, 'fail: missing destination endpoint served metadata'],
    [undefined, false, 'fail: missing envoy lb metadata'],
  ])(
    'destination-endpoint-served-verifier tells what the proxy said: %s, metadata %s',
    (served, balanced, expected) => {
      const pool = new HookPool([{ definition: destinationEndpointServedVerifier }], idle(1));
      const request = pool.begin();
      const placement = pool.schedule({}, request);
      if (placement.kind !== 'placed') throw new Error('not placed');
      const head = { status: 200, headers: new Map(), served, balanced };
      const added = pool.plugins.responseHeaders(request, placement, head);
      expect(added.get('x-conformance-test-served-endpoint')).toBe(expected);
    },
  );
});
