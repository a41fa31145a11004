import { once } from 'node:events';
import { connect, Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { TlsMaterial, TransportName } from '../../dist/src/contract/listen-settings.js';
import { HeldBytes } from '../../dist/src/ingress/byte-budget.js';
import type { ProcessHandler } from '../../dist/src/ingress/transport.js';
import { createTransport } from '../../dist/src/ingress/transports/create.js';
import { Beginnings } from '../../dist/src/ingress/transports/http2/beginnings.js';
import { Http2Server, type Http2ServerOptions } from '../../dist/src/ingress/transports/http2/server.js';
import { eventually } from '../tools/gateway/client.ts';
import { data, frame, headers, message, PREFACE, PROCESS, reset, settings } from './http2/frames.ts';
import { TEST_CERTIFICATE, TEST_KEY } from './tls-material.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const nothing = (): void => undefined;
const HANDLER: ProcessHandler = {
  ...{ message: nothing, halfClosed: nothing, overflowed: nothing, stalled: nothing, closed: nothing },
};

async function listen(
  name: TransportName,
  connectionsMax: number,
  received: () => void = nothing,
  tls?: TlsMaterial,
): Promise<number> {
  const transport = await createTransport(name);
  cleanups.push(() => transport.close());
  const sizes = { maxReceiveBytes: 4_194_304, maxSendBytes: 4_194_304, streamsMax: 100, stallMs: 60_000 };
  const where = { host: '127.0.0.1', port: 0, reusePort: false, connectionsMax, tls, budget: new HeldBytes(1e9) };
  return transport.listen({ ...where, ...sizes }, () => ({ ...HANDLER, message: received }));
}

/** A server whose clock is the test's. */
async function serve(own: Partial<Http2ServerOptions> = {}, connectionsMax?: number) {
  const clock = { ms: 0 };
  const server = new Http2Server({
    methods: new Map([[PROCESS, { open: () => HANDLER }]]),
    budget: new HeldBytes(1e9),
    heldBytesMax: 1e9,
    ...{ messageBytesMax: 4_194_304, replyBytesMax: 4_194_304, streamsMax: 100, stallMs: 60_000 },
    now: () => clock.ms,
    ...own,
  });
  cleanups.push(() => server.close());
  const where = { host: '127.0.0.1', port: 0, reusePort: false };
  const bound = connectionsMax === undefined ? {} : { connectionsMax };
  return { clock, server, port: await server.listen({ ...where, ...bound }) };
}

/** A connection that has said its preface. */
async function open(port: number, isSecure = false, localAddress = '127.0.0.1'): Promise<Socket> {
  const where = { port, host: '127.0.0.1', localAddress };
  const socket = isSecure ? connectTls({ ...where, ALPNProtocols: ['h2'], ca: TEST_CERTIFICATE }) : connect(where);
  cleanups.push(() => socket.destroy());
  socket.on('error', nothing);
  await once(socket, isSecure ? 'secureConnect' : 'connect');
  socket.write(Buffer.concat([PREFACE, settings()]));
  return socket;
}

/** Opens a stream, and waits until the picker has read it. */
async function use(socket: Socket): Promise<void> {
  const ping = Buffer.alloc(8, 7);
  const acknowledged = new Promise<void>((resolve) => {
    socket.on('data', (bytes: Buffer) => {
      if (bytes.includes(ping)) resolve();
    });
  });
  socket.write(Buffer.concat([headers(1), frame('PING', 0, 0, ping)]));
  await acknowledged;
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
      for (const socket of taken) await use(socket);
      expect(await answered(await open(port))).toBe(false);
      taken[0]!.destroy();
      await eventually('its place is free', async () => answered(await open(port)));
    },
  );

  it.each(['lean', 'lean with TLS'])(
    '--max-connections over %s: a connection that is not in use gives way to a new one, one in use does not',
    async (name) => {
      const secure = name !== 'lean';
      const port = await listen('lean', 2, nothing, secure ? { key: TEST_KEY, cert: TEST_CERTIFICATE } : undefined);
      const [used, idle] = [await open(port, secure), await open(port, secure)];
      expect(await Promise.all([used, idle].map(answered))).toEqual([true, true]);
      await use(used);
      const gone = once(idle, 'close');
      expect(await answered(await open(port, secure))).toBe(true);
      await gone;
      expect(used.closed).toBe(false);
    },
  );

  it('--max-connections: a connection that has said nothing gives way first', async () => {
    const port = await listen('lean', 2);
    const [idle, silent] = [await open(port), connect({ port, host: '127.0.0.1' })];
    cleanups.push(() => silent.destroy());
    expect(await answered(idle)).toBe(true);
    const gone = once(silent.on('error', nothing).resume(), 'close');
    expect(await answered(await open(port))).toBe(true);
    await gone;
    expect(idle.closed).toBe(false);
  });
});

describe('a full port with connections that wait for their turn to begin', () => {
  /** A full port: two idle connections, 16 of as many other addresses, and four of one address that wait. */
  async function crowded(silentOnes = 0) {
    const turns: (() => void)[] = [];
    const beginnings = new Beginnings((run) => void turns.push(run));
    const next = () => {
      for (const run of turns.splice(0)) run();
    };
    const { port } = await serve({ beginnings }, 22 + silentOnes);
    const openAll = (addresses: readonly string[]) => Promise.all(addresses.map((each) => open(port, false, each)));
    const idle = [await open(port), await open(port)];
    await Promise.all(idle.map(answered));
    next();
    const others = await openAll(Array.from({ length: 16 }, (_, i) => `127.0.1.${i + 1}`));
    await Promise.all(others.map(answered));
    const late = await openAll(Array.from({ length: 4 }, () => '127.0.0.2'));
    await eventually('the first bytes of four wait', () => beginnings.waiting === 4);
    return { port, idle, late, next };
  }

  it('a full port takes the place of a socket that has sent nothing, not of one whose bytes wait', async () => {
    const { port, late, next } = await crowded(1);
    const silent = connect({ port, host: '127.0.0.1' }).on('error', nothing).resume();
    cleanups.push(() => silent.destroy());
    await once(silent, 'connect');
    const gone = once(silent, 'close');
    const areAnswered = Promise.all(late.map(answered));
    await open(port);
    await gone;
    next();
    expect(await areAnswered).toEqual([true, true, true, true]);
  });

  it('a full port takes the place of one of a crowd that waits, not of the idle connections of an address', async () => {
    const { port, idle, late } = await crowded();
    const gone = Promise.race(late.map((socket) => once(socket.resume(), 'close')));
    await open(port);
    await gone;
    expect(idle.map(({ closed }) => closed)).toEqual([false, false]);
  });

  it('a connection that waits for its turn to begin does not outlive its server', async () => {
    const { late } = await crowded();
    const gone = Promise.all(late.map((socket) => once(socket.resume(), 'close')));
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
    await gone;
  });
});

describe('a crowd of connections', () => {
  it('a crowd of connections that begin in one turn are all answered', async () => {
    const { port } = await serve();
    const sockets = Array.from({ length: 100 }, () => connect({ port, host: '127.0.0.1' }));
    cleanups.push(() => sockets.map((socket) => socket.destroy()));
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    const answers = sockets.map(answered);
    for (const socket of sockets) socket.write(Buffer.concat([PREFACE, settings()]));
    expect((await Promise.all(answers)).filter(Boolean)).toHaveLength(100);
  });

  it('a crowd of connections without a request is ended beyond 64 while another address is there', async () => {
    const { clock, port } = await serve();
    const crowd = await Promise.all(Array.from({ length: 70 }, () => open(port, false, '127.0.0.2')));
    expect((await Promise.all(crowd.map(answered))).filter(Boolean)).toHaveLength(70);
    let ended = 0;
    for (const socket of crowd) socket.resume().once('end', () => ended++);
    const good = await open(port);
    expect(await answered(good)).toBe(true);
    clock.ms = 1_000;
    await eventually('those that came last are ended', () => ended === 6);
    expect(good.closed).toBe(false);
  });
});

describe('an address that resets streams before their turn', () => {
  it('an address that resets streams before their turn is not let in for a second, and others are', async () => {
    const { clock, port } = await serve();
    expect(await answered(await open(port))).toBe(true);
    const hostile = await open(port, false, '127.0.0.2');
    const ended = once(hostile.resume(), 'end');
    const ids = Array.from({ length: 20_001 }, (_, i) => 2 * i + 1);
    hostile.write(Buffer.concat(ids.flatMap((id) => [headers(id), reset(id)])));
    await ended;
    expect(await answered(await open(port, false, '127.0.0.2'))).toBe(false);
    expect(await answered(await open(port))).toBe(true);
    clock.ms = 1_000;
    expect(await answered(await open(port, false, '127.0.0.2'))).toBe(true);
  });
});

describe('a connection that sends a hundred thousand messages of one byte', () => {
  it('a connection of many messages leaves the rest of what was read for later once its share is used', async () => {
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
      // A quarter of the bytes of one read take longer than a turn of the connection.
      const until = performance.now() + 0.002;
      while (performance.now() < until);
    });
    const socket = await open(port);
    socket.write(Buffer.concat([headers(1), ...flood]));
    await eventually('all messages are there', () => messages === flood.length, 20_000);
    // The clock is looked at every 16 KB; what was left for a turn is handed over before the count of the one before
    // ends.
    expect(most).toBeLessThanOrEqual(2 * (Math.ceil(16_384 / flood[0]!.length) + 1));
  });
});

/** Sockets of the server whose method is called for the first time, in each turn of the event loop that has any. */
function callsInTurns(method: 'destroy' | 'write'): readonly number[] {
  const turns: number[] = [];
  const called = new Set<Socket>();
  let inTurn = 0;
  const turnEnds = (): void => {
    turns.push(inTurn);
    inTurn = 0;
  };
  const original = Socket.prototype[method] as (...given: unknown[]) => unknown;
  const spy = vi.spyOn(Socket.prototype, method as 'write').mockImplementation(function (this: Socket, ...given) {
    const isNew = (this as { server?: object | null }).server != null && !called.has(this);
    called.add(this);
    if (isNew && inTurn++ === 0) setImmediate(turnEnds);
    return original.apply(this, given) as boolean;
  });
  cleanups.push(() => spy.mockRestore());
  return turns;
}

describe('a connection that says nothing', () => {
  /** A connection on which nothing is sent, and what comes on it. */
  async function silent(port: number): Promise<{ socket: Socket; bytes: () => number; isClosed: () => boolean }> {
    const socket = connect({ port, host: '127.0.0.1' });
    cleanups.push(() => socket.destroy());
    let bytes = 0;
    socket.on('data', (data: Buffer) => (bytes += data.length)).on('error', nothing);
    await once(socket, 'connect');
    return { socket, bytes: () => bytes, isClosed: () => socket.closed };
  }

  it('a connection that says nothing is sent nothing until its first byte comes', async () => {
    const { port } = await serve();
    const { socket, bytes } = await silent(port);
    expect(await answered(await open(port))).toBe(true);
    expect(bytes()).toBe(0);
    socket.write(PREFACE.subarray(0, 1));
    await eventually('it is sent settings', () => bytes() > 0);
  });

  it('a connection that says nothing is closed after ten seconds', async () => {
    const { port, clock } = await serve();
    const early = await silent(port);
    expect(await answered(await open(port))).toBe(true);
    clock.ms = 10_001;
    await eventually('it is closed', early.isClosed);
  });

  it('connections that say nothing are closed in small groups, so that others are read in between', async () => {
    const { port, clock } = await serve();
    const silents = await Promise.all(Array.from({ length: 100 }, () => silent(port)));
    expect(await answered(await open(port))).toBe(true);
    const groups = callsInTurns('destroy');
    clock.ms = 10_001;
    await eventually('all are closed', () => silents.every(({ isClosed }) => isClosed()));
    await new Promise(setImmediate);
    expect(groups).toEqual([32, 32, 32, 4]);
  });

  it('connections that were silent for half a minute are asked in small groups whether they are there', async () => {
    const { port, clock } = await serve();
    const opened = await Promise.all(Array.from({ length: 100 }, () => open(port)));
    expect(await Promise.all(opened.map(answered))).toEqual(opened.map(() => true));
    const groups = callsInTurns('write');
    const asked = opened.map((socket) => once(socket, 'data'));
    clock.ms = 30_001;
    await Promise.all(asked);
    await new Promise(setImmediate);
    expect(groups).toEqual([32, 32, 32, 4]);
  });

  it('a connection that says nothing does not outlive a drain, and one that begins in it is told', async () => {
    const { port, server } = await serve();
    const [quiet, late] = [await silent(port), await silent(port)];
    expect(await answered(await open(port))).toBe(true);
    const drained = server.drain(5_000);
    late.socket.write(Buffer.concat([PREFACE, settings()]));
    await drained;
    await eventually('both are closed', () => quiet.isClosed() && late.isClosed());
    expect([quiet.bytes(), late.bytes() > 0]).toEqual([0, true]);
  });
});
