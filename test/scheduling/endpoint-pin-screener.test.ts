import { describe, expect, it } from 'vitest';
import { CONTROL_HEADERS } from '../../dist/src/request/control-headers.js';
import { endpointPinScreener, PIN_HEADER } from '../../dist/src/scheduling/screeners/endpoint-pin-screener.js';
import { HookPool } from './hook-pool.ts';

const pool = () => new HookPool([{ definition: endpointPinScreener, parameters: {} }], [{}, {}, {}]);
const pinned = (value: string, more: object = {}) => pool().pick({ headers: { [PIN_HEADER]: value }, ...more });

describe('endpoint-pin-screener', () => {
  it('a request goes to the endpoint that it names', () => {
    expect(pinned('10.0.0.2:8000')).toBe('pod-1');
    expect(pinned(' 10.0.0.3:8000 ')).toBe('pod-2');
  });

  it.each(['10.0.0.9:8000', '10.0.0.2:9000', '10.0.0.2', 'pod-1', '', '[::1]:8000', '10.0.0.2:8000, 10.0.0.3:8000'])(
    'a request whose endpoint is not there is refused with 503: %j',
    (value) => {
      expect(pinned(value)).toBe('ServiceUnavailable');
    },
  );

  it('a request that the proxy does not allow there is refused', () => {
    expect(pinned('10.0.0.2:8000', { subset: ['10.0.0.1:8000'] })).toBe('ServiceUnavailable');
  });

  it('a request without the header may go anywhere', () => {
    expect(pool().pick()).toMatch(/^pod-/);
  });

  it('the model server does not get the header', () => {
    expect(CONTROL_HEADERS.has(PIN_HEADER)).toBe(true);
  });
});
