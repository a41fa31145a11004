import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply, requestBody, requestHeaders } from '../ingress/envoy-messages.ts';
import { collect, dialPicker, firstReply, type ProxyClient } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, askAndEnd, chat, metric, type ServeProcess, Setting, startServe } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(...flags: string[]): Promise<ServeProcess> {
  const setting = await Setting.create([
    { name: 'one', port: 20_000 },
    { name: 'two', port: 20_001 },
  ]);
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

describe('a picker with more streams than it may have', () => {
  it('a picker with more streams than it may have answers the excess with 503 and Retry-After until there is room', async () => {
    const serve = await start('--max-streams=10');
    const client = dial(serve.grpcPort);
    const held = Array.from({ length: 10 }, (_, index) => ask(client, `held ${index}`));
    for (const call of held) expect(decodeReply(await firstReply(call)).kind).toBe('requestHeaders');
    const excess = await Promise.all(Array.from({ length: 30 }, (_, index) => askAndEnd(client, `excess ${index}`)));
    for (const { code, replies } of excess) {
      const reply = decodeReply(replies[0]!);
      expect([code, replies.length, reply.kind, reply.status]).toEqual([0, 1, 'immediate', 503]);
      expect(reply.headers['retry-after']).toMatch(/^\d+$/);
    }
    const over = held.map(collect);
    for (const call of held) call.end();
    await Promise.all(over);
    const after = await askAndEnd(client, 'after');
    expect(decodeReply(after.replies[0]!).kind).toBe('requestHeaders');
    expect(await metric(serve.metricsPort, 'pointsman_ledger_entries')).toBe(0);
  });
});

describe('a picker that holds as many request bytes as it may', () => {
  it('a picker that holds as many request bytes as it may answers further ones with 503 until the bodies are gone', async () => {
    const serve = await start('--max-buffered-bytes=1Mi');
    const client = dial(serve.grpcPort);
    const piece = `{"model":"m","prompt":"${'x'.repeat(200_000)}`;
    const calls = Array.from({ length: 8 }, () => {
      const call = client.process();
      const collected = collect(call);
      call.write(requestHeaders({ ':path': '/v1/completions' }));
      call.write(requestBody(piece, false));
      return { call, collected };
    });
    const refused = await Promise.race(calls.map(({ collected }) => collected));
    const reply = decodeReply(refused.replies[0]!);
    expect([reply.kind, reply.status]).toEqual(['immediate', 503]);
    expect(reply.headers['retry-after']).toMatch(/^\d+$/);
    for (const { call } of calls) call.cancel();
    await Promise.all(calls.map(({ collected }) => collected));
    const after = await askAndEnd(client, 'after');
    expect(decodeReply(after.replies[0]!).kind).toBe('requestHeaders');
  });
});

describe('a burst of 5,000 streams at once', () => {
  it('a burst of 5,000 streams at once gets an answer for each of them, and the picker is as before', async () => {
    const serve = await start('--max-streams=2000');
    const clients = Array.from({ length: 10 }, () => dial(serve.grpcPort));
    const body = requestBody(chat('x'.repeat(4_000)));
    const outcomes = await Promise.all(
      Array.from({ length: 5_000 }, (_, index) => {
        const call = clients[index % clients.length]!.process();
        const collected = collect(call);
        call.write(requestHeaders({ ':path': '/v1/chat/completions' }));
        call.write(body);
        call.end();
        return collected;
      }),
    );
    const kinds = outcomes.map(({ replies }) => decodeReply(replies[0]!));
    const placed = kinds.filter(({ kind }) => kind === 'requestHeaders').length;
    const refused = kinds.filter(({ kind, status }) => kind === 'immediate' && status === 503).length;
    expect(placed + refused).toBe(5_000);
    expect(placed).toBeGreaterThan(0);
    expect(serve.child.exitCode).toBeNull();
    await eventually('every charge is released', async () => {
      return (await metric(serve.metricsPort, 'pointsman_ledger_entries')) === 0;
    });
    const after = await askAndEnd(clients[0]!, 'after');
    expect(decodeReply(after.replies[0]!).kind).toBe('requestHeaders');
    // 5,000 bodies of 4 KB and their streams: far below what an unbounded queue of copies would take.
    expect(await metric(serve.metricsPort, 'process_resident_memory_bytes')).toBeLessThan(600e6);
  });
});
