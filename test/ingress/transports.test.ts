import { once } from 'node:events';
import { connect as connectHttp2, constants } from 'node:http2';
import { connect, createServer, type Socket } from 'node:net';
import { type ChannelCredentials, credentials, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TransportName } from '../../dist/src/contract/listen-settings.js';
import { HeldBytes } from '../../dist/src/ingress/byte-budget.js';
import type {
  HealthSource,
  ProcessHandler,
  ProcessStream,
  ServingStatus,
  Transport,
  TransportOptions,
} from '../../dist/src/ingress/transport.js';
import { createTransport, listenHealth } from '../../dist/src/ingress/transports/create.js';
import { eventually } from '../tools/gateway/client.js';
import { bytesField, decodeReply, requestBody, requestHeaders } from './envoy-messages.js';
import { collect, dialPicker, firstReply, type ProxyClient } from './proxy-client.js';
import { FakeShard } from './shard-fakes.js';
import { TEST_CERTIFICATE, TEST_KEY } from './tls-material.js';

const OPTIONS = {
  host: '127.0.0.1',
  port: 0,
  reusePort: false,
  maxReceiveBytes: 4_194_304,
  maxSendBytes: 4_194_304,
  streamsMax: 20_000,
  stallMs: 60_000,
};
const NAMES: readonly TransportName[] = ['lean', 'grpc-js'];
let name: TransportName = 'lean';
const BODY = '{"model":"m","prompt":"hello"}';
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function dial(port: number, channel?: ChannelCredentials): ProxyClient {
  const client = dialPicker(port, channel);
  cleanups.push(() => client.close());
  return client;
}

async function serve(
  open: (stream: ProcessStream) => ProcessHandler,
  options: Partial<TransportOptions> = {},
  health?: HealthSource,
): Promise<{ transport: Transport; port: number }> {
  const transport = await createTransport(name);
  const port = await transport.listen({ ...OPTIONS, budget: new HeldBytes(5e8), ...options }, open, health);
  cleanups.push(() => transport.close());
  return { transport, port };
}

/** Something that happens once. */
function signal(): { heard: Promise<void>; give: () => void } {
  let give = (): void => undefined;
  const heard = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { heard, give };
}

const nothing = (): void => undefined;
const SILENT: ProcessHandler = {
  message: nothing,
  halfClosed: nothing,
  overflowed: nothing,
  stalled: nothing,
  closed: nothing,
};

class FakeHealth implements HealthSource {
  readonly states = new Map<string, ServingStatus>([
    ['', 'SERVING'],
    ['liveness', 'SERVING'],
    ['readiness', 'NOT_SERVING'],
  ]);
  readonly watchers = new Set<() => void>();
  status(service: string): ServingStatus {
    return this.states.get(service) ?? 'SERVICE_UNKNOWN';
  }
  services(): readonly string[] {
    return [...this.states.keys()];
  }
  watch(changed: () => void): () => void {
    this.watchers.add(changed);
    return () => this.watchers.delete(changed);
  }
  set(service: string, state: ServingStatus): void {
    this.states.set(service, state);
    for (const changed of this.watchers) changed();
  }
}

describe.each(NAMES)('the %s transport', (given) => {
  beforeEach(() => {
    name = given;
  });

  it('the transport carries a whole request and ends with OK when the proxy half-closes', async () => {
    const shard = new FakeShard();
    const { port } = await serve(shard.opener);
    const call = dial(port).process();
    const collected = collect(call);
    call.write(requestHeaders({ ':path': '/v1/completions' }));
    call.write(requestBody(BODY));
    call.end();
    const { replies, code } = await collected;
    expect(code).toBe(status.OK);
    expect(replies.map((reply) => decodeReply(reply).kind)).toEqual(['requestHeaders', 'requestBody']);
    expect(shard.opener.load().openStreams).toBe(0);
    expect(shard.recorder.named('streamClosed')[0]?.[1]).toBe('OK');
  });

  it('the transport takes any number of resets: a proxy so ends each stream that was turned away', async () => {
    let opened = 0;
    let closed = 0;
    const { port } = await serve(() => {
      opened++;
      return { ...SILENT, closed: () => closed++ };
    });
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    session.on('error', () => undefined);
    cleanups.push(() => session.destroy());
    let goaway = false;
    session.on('goaway', () => {
      goaway = true;
    });
    const path = '/envoy.service.ext_proc.v3.ExternalProcessor/Process';
    const open = () => {
      const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' });
      // An empty message: the stream has a handler with every transport.
      stream.write(Buffer.alloc(5));
      return stream.on('error', () => undefined);
    };
    const held = open();
    // Node.js bears a thousand at once by itself.
    for (let i = 1; i <= 15; i++) {
      const streams = Array.from({ length: 100 }, open);
      await eventually('they are open', () => goaway || opened === 100 * i + 1);
      for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL);
      await eventually('they are closed', () => goaway || closed === 100 * i);
    }
    expect([goaway, session.destroyed, held.closed]).toEqual([false, false, false]);
  });

  it('the transport carries large bodies both ways', async () => {
    const { port } = await serve(new FakeShard({ bounds: { maxRequestBodyBytes: 2e7, maxBufferedBytes: 4e7 } }).opener);
    const call = dial(port).process();
    const collected = collect(call);
    const body = Buffer.from(JSON.stringify({ model: 'm', prompt: 'x'.repeat(5_000_000) }));
    call.write(requestHeaders({ ':path': '/v1/completions' }));
    for (let at = 0; at < body.length; at += 60_000) {
      call.write(requestBody(body.subarray(at, at + 60_000), at + 60_000 >= body.length));
    }
    call.end();
    const { replies } = await collected;
    const bodies = replies.slice(1).map((reply) => decodeReply(reply).body);
    expect(Buffer.concat(bodies).equals(body)).toBe(true);
  });

  it('the transport sends all replies of one message', async () => {
    const { port } = await serve((stream) => ({
      ...SILENT,
      message: () => {
        for (let i = 0; i < 3; i++) stream.send(Buffer.alloc(10));
        stream.end();
      },
    }));
    const call = dial(port).process();
    const collected = collect(call);
    call.write(Buffer.alloc(1));
    expect((await collected).replies).toHaveLength(3);
  });

  it('the transport reads no more from a proxy that does not take its replies', async () => {
    let received = 0;
    let most = 0;
    const done = signal();
    const { port } = await serve((stream) => ({
      ...SILENT,
      message: () => {
        received++;
        stream.send(Buffer.alloc(500_000));
        most = Math.max(most, stream.pendingBytes);
      },
      halfClosed: () => stream.end(),
      closed: () => done.give(),
    }));
    const call = dial(port).process();
    // Nobody listens for data yet: the windows fill up, then the server must stop reading.
    for (let i = 0; i < 200; i++) call.write(Buffer.alloc(10));
    call.end();
    await firstReply(call);
    call.pause();
    expect(received).toBeLessThan(200);
    const collected = collect(call);
    call.resume();
    await done.heard;
    await collected;
    expect(received).toBe(200);
    expect(most).toBeLessThan(3_000_000);
  });

  it('the transport advertises receive windows that hold many bodies at once', async () => {
    const { port } = await serve(() => SILENT);
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    cleanups.push(() => session.destroy());
    while ((session.remoteSettings?.initialWindowSize ?? 0) < 1_048_576) await once(session, 'remoteSettings');
    session.destroy();
  });

  it('the transport counts opened streams, also of connections that have ended, and no set-up', async () => {
    const { port, transport } = await serve(new FakeShard().opener);
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    cleanups.push(() => session.destroy());
    await once(session, 'remoteSettings');
    await new Promise((resolve) => session.ping(resolve));
    expect(transport.opened).toBe(0);
    for (const count of [1, 2]) {
      const client = dial(port);
      const call = client.process();
      const collected = collect(call);
      call.write(requestHeaders({ ':path': '/v1/completions' }));
      call.end();
      await collected;
      client.close();
      expect(transport.opened).toBe(count);
    }
    const last = connectHttp2(`http://127.0.0.1:${port}`);
    await once(last, 'remoteSettings');
    last.destroy();
    expect(transport.opened).toBe(2);
  });

  it('the transport fails a stream with its code and text', async () => {
    const { port } = await serve(new FakeShard().opener);
    const call = dial(port).process();
    const collected = collect(call);
    call.write(requestBody(BODY));
    expect(await collected).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: 'a request body came before its headers',
    });
  });

  it('the transport tells a cancelled stream from an ended one, once', async () => {
    const closed: boolean[] = [];
    const gone = signal();
    const { port } = await serve((stream) => ({
      ...SILENT,
      message: () => stream.send(Buffer.alloc(1)),
      closed: (cancelled) => {
        closed.push(cancelled);
        gone.give();
      },
    }));
    const call = dial(port).process();
    call.on('error', () => undefined);
    call.write(Buffer.alloc(1));
    await firstReply(call);
    call.cancel();
    await gone.heard;
    expect(closed).toEqual([true]);
  });

  it('the transport closes every stream of a connection that breaks', async () => {
    const shard = new FakeShard();
    const all = signal();
    let open = 0;
    const { port } = await serve((stream) => {
      const handler = shard.opener(stream);
      open++;
      return {
        ...SILENT,
        message: (...given) => handler.message(...given),
        halfClosed: () => handler.halfClosed(),
        closed: (cancelled) => {
          handler.closed(cancelled);
          if (--open === 0) all.give();
        },
      };
    });
    const wire: Socket[] = [];
    const relay = createServer((socket) => {
      const onward = connect(port, '127.0.0.1');
      for (const end of [socket, onward]) end.on('error', () => undefined);
      wire.push(socket, onward);
      socket.pipe(onward).pipe(socket);
    }).listen(0, '127.0.0.1');
    await once(relay, 'listening');
    cleanups.push(() => relay.close());
    const client = dial((relay.address() as { port: number }).port);
    const calls = [client.process(), client.process(), client.process()];
    for (const call of calls) {
      call.on('error', () => undefined);
      call.write(requestHeaders({ ':path': '/v1/completions' }));
      call.write(requestBody(BODY));
    }
    await Promise.all(calls.map(firstReply));
    for (const socket of wire) socket.resetAndDestroy();
    await all.heard;
    expect(shard.charges.map((charge) => charge.releases)).toEqual([1, 1, 1]);
  });

  it('the transport refuses a message over the bound with RESOURCE_EXHAUSTED', async () => {
    const { port } = await serve(() => SILENT, { maxReceiveBytes: 1_000 });
    const call = dial(port).process();
    const collected = collect(call);
    call.write(Buffer.alloc(2_000));
    expect((await collected).code).toBe(status.RESOURCE_EXHAUSTED);
  });

  it('the transport names a busy port', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    cleanups.push(() => taken.close());
    const { port } = taken.address() as { port: number };
    await expect(serve(() => SILENT, { port })).rejects.toThrow(`port ${port} is in use`);
  });

  it('the transport lets two listeners share a port', async () => {
    const served = [0, 0];
    const first = await serve(new FakeShard().opener, { reusePort: true });
    const counted = (stream: ProcessStream): ProcessHandler => {
      served[1]!++;
      return new FakeShard().opener(stream);
    };
    await serve(counted, { reusePort: true, port: first.port });
    for (let i = 0; i < 24; i++) {
      const call = dial(first.port).process();
      const collected = collect(call);
      call.end(requestHeaders({}, true));
      expect((await collected).replies).toHaveLength(1);
    }
    // 24 connections that all fall to one of two listeners by chance: once in eight million runs.
    expect(served[1]).toBeGreaterThan(0);
    expect(served[1]).toBeLessThan(24);
  });

  it('the transport speaks TLS', async () => {
    const { port } = await serve(new FakeShard().opener, { tls: { key: TEST_KEY, cert: TEST_CERTIFICATE } });
    const call = dial(port, credentials.createSsl(Buffer.from(TEST_CERTIFICATE))).process();
    const collected = collect(call);
    call.end(requestHeaders({}, true));
    expect((await collected).replies).toHaveLength(1);
  });

  it('the transport finishes its streams before a drain is over, and takes no new connections', async () => {
    const { transport, port } = await serve(new FakeShard().opener);
    const call = dial(port).process();
    const collected = collect(call);
    call.write(requestHeaders({ ':path': '/v1/completions' }));
    call.write(requestBody(BODY));
    await firstReply(call);
    let drained = false;
    const draining = transport.drain(20_000).then(() => {
      drained = true;
    });
    const late = await collect(dial(port).process());
    expect([late.code, drained]).toEqual([status.UNAVAILABLE, false]);
    call.end();
    expect((await collected).code).toBe(status.OK);
    await draining;
  });

  it('the transport closes although a client keeps its half of a connection open', async () => {
    const { transport, port } = await serve(() => SILENT);
    const idle = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    idle.on('error', () => undefined);
    await once(idle, 'connect');
    await transport.close();
    idle.destroy();
  });

  it('the transport gives up a drain after its time', async () => {
    const { transport, port } = await serve((stream) => ({ ...SILENT, message: () => stream.send(Buffer.alloc(1)) }));
    const call = dial(port).process();
    call.on('error', () => undefined);
    call.write(Buffer.alloc(1));
    await firstReply(call);
    await transport.drain(10);
  });
});

describe.each(NAMES)('gRPC health over %s', (given) => {
  beforeEach(() => {
    name = given;
  });

  describe.each([
    ['the ext_proc port', async (health: HealthSource) => (await serve(() => SILENT, {}, health)).port],
    [
      'a port of its own',
      async (health: HealthSource) => {
        const listener = await listenHealth(name, { host: '127.0.0.1', port: 0 }, health);
        cleanups.push(() => listener.close());
        return listener.port;
      },
    ],
  ])('health on %s', (_name, listen) => {
    const ask = (client: ProxyClient, service: string): Promise<number | string> =>
      new Promise((resolve) => {
        client.check(bytesField(1, service), (error, reply) =>
          resolve(error === null ? reply!.toString('hex') : error.code),
        );
      });

    it('gRPC health answers Check per service, and NOT_FOUND for an unknown one', async () => {
      const client = dial(await listen(new FakeHealth()));
      expect(await ask(client, '')).toBe('0801');
      expect(await ask(client, 'readiness')).toBe('0802');
      expect(await ask(client, 'nobody')).toBe(status.NOT_FOUND);
    });

    it('gRPC health lists every service', async () => {
      const client = dial(await listen(new FakeHealth()));
      const reply = await new Promise<Buffer>((resolve) =>
        client.list(Buffer.alloc(0), (_error, bytes) => resolve(bytes!)),
      );
      const entry = (name: string, state: number): Buffer =>
        bytesField(1, bytesField(1, name), bytesField(2, Buffer.from([8, state])));
      expect(reply).toEqual(Buffer.concat([entry('', 1), entry('liveness', 1), entry('readiness', 2)]));
    });

    it('gRPC health watches a service: its state at once, then every change', async () => {
      const health = new FakeHealth();
      const client = dial(await listen(health));
      const watch = client.watch(bytesField(1, 'readiness'));
      watch.on('error', () => undefined);
      expect((await firstReply(watch)).toString('hex')).toBe('0802');
      health.set('liveness', 'NOT_SERVING');
      health.set('readiness', 'SERVING');
      expect((await firstReply(watch)).toString('hex')).toBe('0801');
      watch.cancel();
      while (health.watchers.size > 0) await new Promise(setImmediate);
    });

    it('gRPC health watches a service that does not exist yet', async () => {
      const health = new FakeHealth();
      const watch = dial(await listen(health)).watch(bytesField(1, 'later'));
      watch.on('error', () => undefined);
      expect((await firstReply(watch)).toString('hex')).toBe('0803');
      health.set('later', 'SERVING');
      expect((await firstReply(watch)).toString('hex')).toBe('0801');
    });

    it('gRPC health refuses a request that is no protobuf', async () => {
      const client = dial(await listen(new FakeHealth()));
      const code = await new Promise((resolve) =>
        client.check(Buffer.from([0x0a, 0x7f]), (error) => resolve(error?.code)),
      );
      expect(code).toBe(status.INVALID_ARGUMENT);
    });
  });
});
