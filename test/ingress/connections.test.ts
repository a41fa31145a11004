import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { HeldBytes } from '../../dist/ingress/byte-budget.js';
import type { ProcessHandler, TransportName } from '../../dist/ingress/transport.js';
import { createTransport } from '../../dist/ingress/transports/create.js';
import { eventually } from '../gateway/client.ts';
import { data, headers, message, PREFACE, settings } from './http2/frames.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const nothing = (): void => undefined;

async function listen(name: TransportName, connectionsMax: number, received: () => void = nothing): Promise<number> {
  const transport = await createTransport(name);
  cleanups.push(() => transport.close());
  const sizes = { maxReceiveBytes: 4_194_304, maxSendBytes: 4_194_304, streamsMax: 100, stallMs: 60_000 };
  const where = { host: '127.0.0.1', port: 0, reusePort: false, connectionsMax, budget: new HeldBytes(1e9) };
  const handler: ProcessHandler = {
    message: received,
    ...{ halfClosed: nothing, overflowed: nothing, stalled: nothing, closed: nothing },
  };
  return transport.listen({ ...where, ...sizes }, () => handler);
}

/** A connection that has said its preface. */
async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  cleanups.push(() => socket.destroy());
  socket.on('error', nothing);
  await once(socket, 'connect');
  socket.write(Buffer.concat([PREFACE, settings()]));
  return socket;
}

/** Whether the picker has answered, or has closed the connection. */
function answered(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    socket.once('data', () => resolve(true));
    socket.once('close', () => resolve(false));
  });
}

describe('--max-connections', () => {
  it.each(['lean', 'grpc-js'] as const)(
    '--max-connections over %s: a connection beyond the bound is closed, and has its place when another one has ended',
    async (name) => {
      const port = await listen(name, 2);
      const taken = [await open(port), await open(port)];
      expect(await Promise.all(taken.map(answered))).toEqual([true, true]);
      expect(await answered(await open(port))).toBe(false);
      taken[0]!.destroy();
      await eventually('its place is free', async () => answered(await open(port)));
    },
  );
});

describe('a connection that sends a hundred thousand messages of one byte', () => {
  it('a connection of many messages is read once in a turn of the event loop when that has taken its share', async () => {
    const flood = Array.from({ length: 100_000 }, () => data(1, message('x')));
    let messages = 0;
    let inTurn = 0;
    let most = 0;
    const turnEnds = (): void => {
      most = Math.max(most, inTurn);
      inTurn = 0;
    };
    const port = await listen('lean', 2, () => {
      messages++;
      if (inTurn++ === 0) setImmediate(turnEnds);
      // The bytes of one read take longer than a turn of the connection.
      const until = performance.now() + 0.002;
      while (performance.now() < until);
    });
    const socket = await open(port);
    socket.write(Buffer.concat([headers(1), ...flood]));
    await eventually('all messages are there', () => messages === flood.length, 20_000);
    expect(most).toBeLessThanOrEqual(Math.ceil(65_536 / flood[0]!.length) + 1);
  });
});
