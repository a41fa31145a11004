import { Agent } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import type { Header } from '../../../dist/tools/gateway/messages.js';
import { Upstream } from '../../../dist/tools/gateway/upstream.js';
import { type Backend, startBackend } from './backend.ts';

const HEADERS: Header[] = [
  [':method', 'POST'],
  [':path', '/v1/completions'],
  [':authority', 'test'],
];

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** Writes a body of so many bytes before any connection can be made, with a first destination that refuses. */
async function send(bytes: number): Promise<{ outcome: number | string; backend: Backend }> {
  const backend = await startBackend('s0', (_received, response) => response.end());
  stops.push(backend.stop);
  const outcome = await new Promise<number | string>((resolve) => {
    const upstream = new Upstream(new Agent(), HEADERS, ['127.0.0.1:1', `127.0.0.1:${backend.port}`], {
      response: (answer) => resolve(answer.resume().statusCode!),
      failed: (error) => resolve(error.message),
      writable: () => {},
    });
    for (let left = bytes; left > 0; left -= 65_536) upstream.write(Buffer.alloc(Math.min(left, 65_536), 'x'));
    upstream.end();
  });
  return { outcome, backend };
}

test('a body that no connection has taken yet goes to the next destination', async () => {
  const { outcome, backend } = await send(1_000_000);
  expect(outcome).toBe(200);
  expect(backend.received[0]!.body).toHaveLength(1_000_000);
});

test('a body over the bound is not kept, and the request fails', async () => {
  const { outcome } = await send(9 * 1024 * 1024);
  expect(outcome).toContain('ECONNREFUSED');
});
