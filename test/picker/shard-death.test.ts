import { once } from 'node:events';
import { connect } from 'node:net';
import type { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { attachCore } from '../../dist/src/core/memory.js';
import type { Picker } from '../../dist/src/picker/picker.js';
import { decodeReply, requestBody, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import * as frames from '../ingress/http2/frames.ts';
import { type Call, collect, dialPicker, firstReply, type ProxyClient } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, askAndEnd, metric, type Ports, Setting, startPicker } from './serving.ts';

/** How often a shard is killed: POINTSMAN_STRESS=1000 for a long night. */
const DEATHS = Number(process.env.POINTSMAN_STRESS ?? 10);
const ENDPOINTS = Array.from({ length: 8 }, (_, index) => ({ name: `server-${index}`, port: 20_000 + index }));

const cleanups: (() => unknown)[] = [];
const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  expect(unhandled).toEqual([]);
});

async function start(...flags: string[]): Promise<{ picker: Picker; ports: Ports }> {
  const setting = await Setting.create(ENDPOINTS);
  cleanups.push(() => setting.remove());
  const started = await startPicker([...setting.flags, ...flags]);
  cleanups.push(() => started.picker.stop(0));
  return started;
}

function dial(port: number): ProxyClient {
  const client = dialPicker(port);
  cleanups.push(() => client.close());
  return client;
}

/** Tells the picker that a request was answered: it ends its stream's charge. */
function answer(call: Call): void {
  call.write(responseHeaders({ ':status': '200', 'content-type': 'application/json' }));
  call.write(responseBody('{}', true));
  call.end();
}

function worker(picker: Picker, index: number): Worker {
  const { threads } = picker.shards.workers;
  return threads[index % threads.length]!;
}

/** Kills a shard thread from outside. Only while no messages come in: Node aborts otherwise (nodejs/node#38418). */
async function kill(picker: Picker, index: number): Promise<void> {
  await worker(picker, index).terminate();
}

/** Makes a shard thread throw what nobody catches: it cannot read this message. */
function crash(picker: Picker, index: number): void {
  worker(picker, index).postMessage({ niceIncrement: 0 });
}

/** A connection for each open stream, so that streams fall to every shard. */
async function openStreams(port: number, count: number): Promise<{ call: Call; over: Promise<number> }[]> {
  const streams = Array.from({ length: count }, (_, index) => {
    const call = ask(dial(port), `prompt ${index}`);
    const reply = firstReply(call);
    const over = collect(call).then(({ code }) => code);
    return { call, over, reply };
  });
  for (const { reply } of streams) expect(decodeReply(await reply).kind).toBe('requestHeaders');
  return streams;
}

const settled = (picker: Picker, shards: number, deaths: number, port: number) =>
  eventually('every shard listens again', async () => {
    // In this order: just after a blow the shard still counts as listening.
    return (await metric(port, 'pointsman_shard_deaths_total')) === deaths && picker.shards.listening === shards;
  });

describe('a shard that is killed', () => {
  it('a shard that is killed in the middle of a frame leaves nothing behind: its charges come back, and a new one serves', async () => {
    const { picker, ports } = await start('--transport=lean');
    const [placed] = await openStreams(ports.grpcPort, 1);
    const half = connect({ port: ports.grpcPort, host: '127.0.0.1' });
    half.on('error', () => undefined);
    // Bytes that the shard has not read make the end of the connection a reset.
    const closed = new Promise((resolve) => half.once('close', resolve));
    await once(half, 'connect');
    const content = frames.message(requestBody('x'.repeat(10_000), false));
    const frame = frames.data(1, content);
    half.write(Buffer.concat([frames.PREFACE, frames.settings(), frames.headers(1), frame.subarray(0, 6_000)]));
    await once(half, 'data');
    await kill(picker, 0);
    await Promise.all([closed, placed!.over]);
    await settled(picker, 1, 1, ports.metricsPort);
    expect(await metric(ports.metricsPort, 'pointsman_ledger_entries')).toBe(0);
    const { replies } = await askAndEnd(dial(ports.grpcPort), 'another');
    expect(decodeReply(replies[0]!).kind).toBe('requestHeaders');
  });

  it('a shard that is killed takes only its own streams along: those of the other shard finish, and no charge stays behind', async () => {
    const { picker, ports } = await start('--shards=2');
    const streams = await openStreams(ports.grpcPort, 40);
    let closed = 0;
    for (const { over } of streams) over.then(() => closed++);
    expect(await metric(ports.metricsPort, 'pointsman_ledger_entries')).toBe(40);
    await kill(picker, 0);
    await settled(picker, 2, 1, ports.metricsPort);
    // Its connections are closed before the next one listens: proxies have turned to the other shard by then.
    const closedBefore = closed;
    const left = (await metric(ports.metricsPort, 'pointsman_ledger_entries'))!;
    expect(closedBefore).toBe(40 - left);
    for (const { call } of streams) answer(call);
    const codes = await Promise.all(streams.map(({ over }) => over));
    expect(codes.filter((code) => code === 0)).toHaveLength(left);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThan(40);
    expect(await metric(ports.metricsPort, 'pointsman_ledger_entries')).toBe(0);
  });

  it('a shard that is killed is replaced by one that serves, while the port keeps answering', async () => {
    const { picker, ports } = await start('--shards=2');
    crash(picker, 1);
    for (let i = 0; i < 10; i++) {
      let { replies } = await askAndEnd(dial(ports.grpcPort), 'hello');
      // A connection that the dying shard had accepted already is lost with it: a proxy dials again, and so do we,
      // once.
      if (replies.length === 0) ({ replies } = await askAndEnd(dial(ports.grpcPort), 'hello'));
      expect(decodeReply(replies[0]!).headers['x-gateway-destination-endpoint']).toMatch(/^127\.0\.0\.1:2000\d$/);
    }
    await settled(picker, 2, 1, ports.metricsPort);
  });

  it(`a shard that is killed leaves the core whole, ${DEATHS} times under load`, {
    timeout: 60_000 + DEATHS * 2_000,
  }, async () => {
    const { picker, ports } = await start('--shards=2');
    // The first thread number behind the shards is free for the test itself.
    const core = attachCore(picker.memory, 3);
    let going = true;
    let answered = 0;
    const load = Array.from({ length: 8 }, async (_, worker) => {
      while (going) {
        const client = dialPicker(ports.grpcPort);
        const outcomes = await Promise.all(
          Array.from({ length: 20 }, (_, i) => askAndEnd(client, `${worker} ${i % 4} `.repeat(200))),
        );
        answered += outcomes.filter(({ code, replies }) => code === 0 && replies.length === 2).length;
        client.close();
      }
    });
    for (let death = 0; death < DEATHS; death++) {
      const before = answered;
      await eventually('requests are answered', () => answered > before + 40);
      crash(picker, death);
      await settled(picker, 2, death + 1, ports.metricsPort);
    }
    going = false;
    await Promise.all(load);
    await eventually('every charge is released', async () => {
      return (await metric(ports.metricsPort, 'pointsman_ledger_entries')) === 0;
    });
    expect(core.call.ledgerCheck()).toBe(0);
    for (const load of ['inflight_requests', 'inflight_tokens', 'active_blocks']) {
      expect(await metric(ports.metricsPort, `pointsman_endpoint_${load}`)).toBe(0);
    }
  });

  it('a shard that is killed alone takes the port along for the time of a start, then serves again', async () => {
    const { picker, ports } = await start();
    const streams = await openStreams(ports.grpcPort, 5);
    await kill(picker, 0);
    expect(await Promise.all(streams.map(({ over }) => over))).toEqual([14, 14, 14, 14, 14]);
    await settled(picker, 1, 1, ports.metricsPort);
    expect(await metric(ports.metricsPort, 'pointsman_ledger_entries')).toBe(0);
    const { replies } = await askAndEnd(dial(ports.grpcPort), 'hello');
    expect(decodeReply(replies[0]!).kind).toBe('requestHeaders');
  });

  it('a shard that is killed while it starts is replaced too', async () => {
    const { picker, ports } = await start();
    await kill(picker, 0);
    await eventually('a new thread is there', () => picker.shards.workers.threads.length === 1);
    await kill(picker, 0);
    await eventually('it listens', () => picker.shards.listening === 1);
    const { replies } = await askAndEnd(dial(ports.grpcPort), 'hello');
    expect(decodeReply(replies[0]!).kind).toBe('requestHeaders');
  });

  it('a shard that is killed is known to health: a picker without shards is not ready until one listens', async () => {
    const { picker, ports } = await start();
    const watch = dial(ports.healthPort).watch(Buffer.alloc(0));
    watch.on('error', () => undefined);
    const states: number[] = [];
    watch.on('data', (reply: Buffer) => states.push(reply[1]!));
    await once(watch, 'data');
    await kill(picker, 0);
    await eventually('it is ready again', () => states.length === 3);
    expect(states).toEqual([1, 2, 1]);
    watch.cancel();
  });
});
