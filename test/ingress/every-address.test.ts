import dns from 'node:dns';
import { afterEach, expect, test, vi } from 'vitest';
import { listen } from '../../dist/src/ingress/transports/listener.js';
import { everyAddress } from '../../dist/src/serve/port.js';

afterEach(() => vi.restoreAllMocks());

async function listened(host: string): Promise<number> {
  const listener = await listen({ host, port: 0, reusePort: false }, (socket) => socket);
  await listener.close();
  return listener.port;
}

test('a listener on every address looks nothing up', async () => {
  const lookup = vi.spyOn(dns, 'lookup');

  const port = await listened(await everyAddress());

  expect(port).toBeGreaterThan(0);
  expect(lookup.mock.calls.filter(([host]) => host === '::')).toEqual([]);
});

test('a listener on an address of its own listens there alone', async () => {
  const lookup = vi.spyOn(dns, 'lookup');

  await listened('127.0.0.1');

  expect(lookup.mock.calls.map(([host]) => host)).toEqual(['127.0.0.1']);
});
