import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { checkHealth, collect, dialPicker, firstReply, type ProxyClient } from '../ingress/proxy-client.ts';
import { profile as queues } from '../picker/queued-requests.ts';
import { ask, metric, type ServeProcess, Setting, startServe } from '../picker/serving.ts';
import { eventually } from '../tools/gateway/client.ts';

const NOT_SERVING = 2;
const QUEUE_SIZE = 'llm_d_epp_flow_control_queue_size';
const UNAVAILABLE = 14;
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(...flags: string[]): Promise<ServeProcess> {
  const setting = await Setting.create([{ name: 'server', port: 20_000 }]);
  cleanups.push(() => setting.remove());
  const serve = await startServe([...setting.flags, ...flags]);
  cleanups.push(() => serve.kill());
  return serve;
}

function dial(port: number): ProxyClient {
  const client = dialPicker(port);
  cleanups.push(() => client.close());
  return client;
}

/** The states that a health watch has told. */
function watched(port: number): number[] {
  const states: number[] = [];
  const watch = dial(port).watch(Buffer.alloc(0));
  watch.on('error', () => undefined);
  watch.on('data', (reply: Buffer) => states.push(reply[1]!));
  return states;
}

describe.each([1, 2])('SIGTERM to a picker of %i shard(s)', (shards) => {
  it('SIGTERM makes the picker not ready at once, lets open streams finish, keeps the metrics up, then exits with 0', async () => {
    const serve = await start(`--shards=${shards}`, '--lame-duck=0s');
    const [onHealthPort, onGrpcPort] = [watched(serve.healthPort), watched(serve.grpcPort)];
    await eventually('both watches have begun', () => onHealthPort.length === 1 && onGrpcPort.length === 1);
    const call = ask(dial(serve.grpcPort), 'hello');
    const reply = firstReply(call);
    const collected = collect(call);
    expect(decodeReply(await reply).kind).toBe('requestHeaders');
    serve.child.kill('SIGTERM');
    await eventually('both watches tell', () => onHealthPort.length === 2 && onGrpcPort.length === 2);
    expect([onHealthPort[1], onGrpcPort[1]]).toEqual([NOT_SERVING, NOT_SERVING]);
    expect(await checkHealth(dial(serve.healthPort), 'liveness')).toBe('SERVING');
    expect(await metric(serve.metricsPort, 'pointsman_ledger_entries')).toBe(1);
    expect((await collect(ask(dial(serve.grpcPort), 'too late'))).code).toBe(UNAVAILABLE);
    call.write(responseHeaders({ ':status': '200', 'content-type': 'application/json' }));
    call.write(responseBody('{}', true));
    call.end();
    expect((await collected).code).toBe(0);
    expect(await serve.ended).toBe(0);
  });
});

describe('the lame duck time of a drain', () => {
  it('the lame duck time of a drain serves new connections and requests after not being ready, then ends', async () => {
    const serve = await start('--lame-duck=2s', '--drain-timeout=20s');
    const states = watched(serve.healthPort);
    await eventually('the watch has begun', () => states.length === 1);
    serve.child.kill('SIGTERM');
    await eventually('it is not ready', () => states.at(-1) === NOT_SERVING);
    const call = ask(dial(serve.grpcPort), 'still served');
    expect(decodeReply(await firstReply(call)).kind).toBe('requestHeaders');
    call.end();
    expect(await serve.ended).toBe(0);
  });

  it('the lame duck time of a drain is cut short by a second signal', async () => {
    const serve = await start('--lame-duck=10m', '--drain-timeout=20m');
    serve.child.kill('SIGTERM');
    await eventually('it drains', () => serve.log().includes('draining'));
    serve.child.kill('SIGTERM');
    expect(await serve.ended).toBe(1);
  });
});

describe('--debug-core', () => {
  it('--debug-core serves requests with the build of the core that checks itself', async () => {
    const serve = await start('--debug-core', '--lame-duck=0s');
    const call = ask(dial(serve.grpcPort), 'hello');
    expect(decodeReply(await firstReply(call)).kind).toBe('requestHeaders');
    call.end();
    expect(serve.log()).toContain('the core checks itself at every release of a lock');
  });
});

describe('other signals', () => {
  it('SIGUSR1 opens no inspector, and the picker goes on', async () => {
    const serve = await start();
    serve.child.kill('SIGUSR1');
    await eventually('it says so', () => serve.log().includes('SIGUSR1 has no effect'));
    expect(serve.log()).not.toContain('Debugger listening');
    expect(await checkHealth(dial(serve.healthPort), 'liveness')).toBe('SERVING');
  });
});

describe('a drain', () => {
  it('a drain is over at once without open streams', async () => {
    const serve = await start('--drain-timeout=10m', '--lame-duck=0s');
    serve.child.kill('SIGINT');
    expect(await serve.ended).toBe(0);
  });

  it('a drain ends at its time-out, with streams that do not', async () => {
    const serve = await start('--drain-timeout=200ms');
    const call = ask(dial(serve.grpcPort), 'hello');
    const collected = collect(call);
    await firstReply(call);
    serve.child.kill('SIGTERM');
    expect(await serve.ended).toBe(0);
    expect((await collected).code).not.toBe(0);
  });

  it.each(['lean', 'grpc-js'])(
    'a drain over %s answers requests that wait when a second signal comes: 503 with the reason',
    async (transport) => {
      const setting = await Setting.create([{ name: 'server', port: 20_000 }], queues({ places: 1 }));
      cleanups.push(() => setting.remove());
      const serve = await startServe([
        ...setting.flags,
        '--lame-duck=0s',
        '--drain-timeout=10m',
        `--transport=${transport}`,
      ]);
      const client = dial(serve.grpcPort);
      const running = ask(client, 'runs');
      await firstReply(running);
      const waiting = collect(ask(client, 'waits'));
      await eventually('it waits', async () => (await metric(serve.metricsPort, QUEUE_SIZE)) === 1);
      serve.child.kill('SIGTERM');
      await eventually('it drains', () => serve.log().includes('draining'));
      serve.child.kill('SIGTERM');
      const { replies } = await waiting;
      const reply = decodeReply(replies[0]!);
      expect([reply.kind, reply.status]).toEqual(['immediate', 503]);
      expect(reply.headers['x-llm-d-request-dropped-reason']).toBe('rejected-shutting-down');
      expect(await serve.ended).toBe(1);
    },
  );

  it('a drain is cut short by a second signal, which is told from a good end by exit code 1', async () => {
    const serve = await start('--drain-timeout=10m', '--lame-duck=0s');
    const call = ask(dial(serve.grpcPort), 'hello');
    await firstReply(call);
    serve.child.kill('SIGTERM');
    await eventually('it drains', () => serve.log().includes('draining'));
    serve.child.kill('SIGTERM');
    expect(await serve.ended).toBe(1);
  });
});
