import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { ConnectionRefusals, EXT_PROC_REFUSALS } from '../../dist/src/ingress/connection-refusals.js';
import { type Listener, listen } from '../../dist/src/ingress/transports/listener.js';
import { eventually } from '../tools/gateway/client.ts';
import { TEST_CERTIFICATE, TEST_KEY } from './tls-material.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Port {
  readonly listener: Listener;
  readonly refusals: ConnectionRefusals;
  readonly accepted: Socket[];
  readonly clock: { ms: number };
}

/** A TLS port whose clock is the test's. Takes what comes and echoes it. */
async function open(connectionsMax = 4): Promise<Port> {
  const refusals = new ConnectionRefusals(EXT_PROC_REFUSALS, () => undefined);
  const accepted: Socket[] = [];
  const clock = { ms: 0 };
  const tls = { key: TEST_KEY, cert: TEST_CERTIFICATE };
  const where = { host: '127.0.0.1', port: 0, reusePort: false };
  const listener = await listen({ ...where, tls, connectionsMax, refusals, now: () => clock.ms }, (socket) => {
    accepted.push(socket);
    socket.on('error', () => undefined).pipe(socket);
    return socket;
  });
  cleanups.push(() => listener.close());
  return { listener, refusals, accepted, clock };
}

async function silent({ listener }: Port): Promise<Socket> {
  const socket = connect(listener.port, '127.0.0.1').on('error', () => undefined);
  cleanups.push(() => socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/** A client that has done its handshake; undefined = it was closed in it, or right behind it. */
async function secure({ listener }: Port): Promise<TLSSocket | undefined> {
  const socket = connectTls({ port: listener.port, host: '127.0.0.1', rejectUnauthorized: false });
  cleanups.push(() => socket.destroy());
  socket.on('error', () => undefined);
  const echoed = new Promise<boolean>((resolve) => {
    socket.once('data', () => resolve(true)).once('close', () => resolve(false));
  });
  socket.write('hello');
  return (await echoed) ? socket : undefined;
}

describe('unfinished TLS handshakes', () => {
  it('unfinished TLS handshakes take no place of established connections', async () => {
    const port = await open(2);
    for (let i = 0; i < 10; i++) await silent(port);
    expect(await secure(port)).toBeDefined();
    expect(await secure(port)).toBeDefined();
    expect(await secure(port)).toBeUndefined();
    expect([port.listener.handshakes, port.refusals.counts.connections]).toEqual([10, 1]);
  });

  it('the place of an established connection is free when it ends', async () => {
    const port = await open(1);
    const first = await secure(port);
    first!.destroy();
    await eventually('another has its place', async () => (await secure(port)) !== undefined);
  });

  it('the oldest unfinished handshake gives way to a new connection at the bound', async () => {
    const port = await open();
    const held: Socket[] = [];
    for (let i = 0; i < 1_024; i++) held.push(await silent(port));
    expect(await secure(port)).toBeDefined();
    await eventually('the oldest is closed', () => held[0]!.closed);
    expect([held.filter(({ closed }) => closed).length, port.refusals.counts.handshake_displaced]).toEqual([1, 1]);
  });

  it('an unfinished handshake ends ten seconds after its accept, and no established connection does', async () => {
    const port = await open();
    const established = await secure(port);
    const early = await silent(port);
    port.clock.ms = 9_000;
    const late = await silent(port);
    await eventually('both have come', () => port.listener.handshakes === 2);
    port.clock.ms = 10_000;
    await eventually('the early one is closed', () => early.closed);
    expect([late.closed, established!.closed, port.refusals.counts.handshake_timeout]).toEqual([false, false, 1]);
  });

  it('a handshake whose bytes come one by one is one', async () => {
    const port = await open();
    const socket = await silent(port);
    const hello = await clientHello();
    for (const byte of hello.subarray(0, 40)) {
      socket.write(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    socket.write(hello.subarray(40));
    const [reply] = (await once(socket, 'data')) as [Buffer];
    expect(reply[0]).toBe(0x16);
  });

  it('a connection whose first byte is none of TLS nor of HTTP is a failed handshake', async () => {
    const port = await open();
    const socket = await silent(port);
    socket.write(Buffer.of(0));
    if (!socket.closed) await once(socket, 'close');
    expect(port.refusals.counts).toMatchObject({ plain_text: 0, handshake_failed: 1 });
  });

  it('a client that goes before its handshake has ended is no refusal', async () => {
    const port = await open();
    const [quiet, begun] = [await silent(port), await silent(port)];
    begun.write(Buffer.of(0x16, 0x03, 0x01));
    await eventually('both have come', () => port.listener.handshakes === 2);
    quiet.destroy();
    begun.destroy();
    await eventually('both are gone', () => port.listener.handshakes === 0);
    expect(Object.values(port.refusals.counts).every((count) => count === 0)).toBe(true);
  });
});

/** The first bytes of a TLS client. */
async function clientHello(): Promise<Buffer> {
  const hello = Promise.withResolvers<Buffer>();
  const server = createServer((socket) => void socket.on('error', () => undefined).once('data', hello.resolve));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }).on('error', () => undefined);
  const bytes = await hello.promise;
  client.destroy();
  server.close();
  return bytes;
}
