import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply, responseHeaders } from '../ingress/envoy-messages.ts';
import type { Call } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ADDRESSES, answer, cleanUp, dial, ENDPOINTS, request, start, waiting } from './queued-requests.ts';
import { metric } from './serving.ts';

afterEach(cleanUp);

describe('a request that finds no room', () => {
  it('a request that finds no room waits, and goes to the endpoint that another one leaves', async () => {
    const { ports } = await start({});
    const client = dial(ports.grpcPort);
    const first = [request(client, 'a'), request(client, 'b')];
    await eventually('both are placed', () => first.every(({ reply }) => reply !== undefined));
    const third = request(client, 'c');
    await eventually('it waits', async () => (await waiting(ports)) === 1);
    expect(third.reply).toBeUndefined();
    const left = first[1]!.reply!.headers['x-gateway-destination-endpoint'];
    answer(first[1]!.call);
    await eventually('it goes on', () => third.reply !== undefined);
    expect(third.reply!.headers['x-gateway-destination-endpoint']).toBe(left);
    expect(await waiting(ports)).toBe(0);
    expect(await metric(ports.metricsPort, 'llm_d_epp_flow_control_requests_total', 'outcome="Dispatched"')).toBe(3);
  });

  it('a request that finds no room waits across shards: never are more placed than there are places', async () => {
    const { ports } = await start({ places: 2 }, '--shards=2');
    const calls = Array.from({ length: 20 }, (_, i) => request(dial(ports.grpcPort), `prompt ${i}`));
    const placed = () => calls.filter(({ reply }) => reply !== undefined);
    await eventually('the places are taken', async () => placed().length === 4 && (await waiting(ports)) === 16);
    const served = new Set<Call>();
    while (served.size < 20) {
      expect(await metric(ports.metricsPort, 'pointsman_ledger_entries')).toBeLessThanOrEqual(4);
      const next = placed().filter(({ call }) => !served.has(call));
      for (const { call } of next) {
        served.add(call);
        answer(call);
      }
      await eventually('the next ones are placed', () => served.size === 20 || placed().length > served.size);
    }
    expect(calls.every(({ reply }) => ADDRESSES.includes(reply!.headers['x-gateway-destination-endpoint']!))).toBe(
      true,
    );
    await eventually('nothing is charged any more', async () => {
      return (await metric(ports.metricsPort, 'pointsman_ledger_entries')) === 0;
    });
  });

  it('a request that finds no room is told how it waited when it asks', async () => {
    const { ports } = await start({});
    const client = dial(ports.grpcPort);
    const first = [request(client, 'a'), request(client, 'b')];
    await eventually('both are placed', () => first.every(({ reply }) => reply !== undefined));
    const third = request(client, 'c', { 'x-pointsman-queue-info': '1' });
    await eventually('it waits', async () => (await waiting(ports)) === 1);
    answer(first[0]!.call);
    await eventually('it goes on', () => third.reply !== undefined);
    const replies: Buffer[] = [];
    third.call.on('data', (reply: Buffer) => replies.push(reply));
    third.call.write(responseHeaders({ ':status': '200', 'content-type': 'application/json' }));
    await eventually('its answer passes', () => replies.some((reply) => decodeReply(reply).kind === 'responseHeaders'));
    const { headers } = decodeReply(replies.find((reply) => decodeReply(reply).kind === 'responseHeaders')!);
    expect(headers['x-pointsman-queue-position']).toBe('0');
    expect(Number(headers['x-pointsman-queue-wait-ms'])).toBeGreaterThan(0);
  });

  it('a request that finds no room leaves the queue when its client goes away', async () => {
    const { ports } = await start({});
    const client = dial(ports.grpcPort);
    const first = [request(client, 'a'), request(client, 'b')];
    await eventually('both are placed', () => first.every(({ reply }) => reply !== undefined));
    const [gone, stays] = [request(client, 'c'), request(client, 'd')];
    await eventually('two wait', async () => (await waiting(ports)) === 2);
    gone.call.cancel();
    await eventually('one waits', async () => (await waiting(ports)) === 1);
    answer(first[0]!.call);
    await eventually('the other one goes on', () => stays.reply !== undefined);
    const outcome = 'outcome="EvictedContextCancelled"';
    expect(await metric(ports.metricsPort, 'llm_d_epp_flow_control_requests_total', outcome)).toBe(1);
  });

  it('a request that finds no room is turned away when its time is over', async () => {
    const { ports } = await start({ section: '  defaultRequestTTL: 100ms\n' });
    const client = dial(ports.grpcPort);
    const first = [request(client, 'a'), request(client, 'b')];
    await eventually('both are placed', () => first.every(({ reply }) => reply !== undefined));
    const third = request(client, 'c');
    await eventually('it is answered', () => third.reply !== undefined);
    expect(third.reply).toMatchObject({ kind: 'immediate', status: 429 });
    expect(third.reply!.headers).toMatchObject({
      'x-llm-d-request-dropped-reason': 'rejected-ttl-expired',
      'retry-after': '1',
    });
  });

  it('a request that finds no room is turned away when the band is full', async () => {
    const section = '  priorityBands: [{priority: 0, maxRequests: 1}]\n';
    const { ports } = await start({ section });
    const client = dial(ports.grpcPort);
    const first = [request(client, 'a'), request(client, 'b')];
    await eventually('both are placed', () => first.every(({ reply }) => reply !== undefined));
    request(client, 'c');
    await eventually('it waits', async () => (await waiting(ports)) === 1);
    const fourth = request(client, 'd');
    await eventually('it is answered', () => fourth.reply !== undefined);
    expect(fourth.reply).toMatchObject({ kind: 'immediate', status: 429 });
    expect(fourth.reply!.headers).toMatchObject({ 'x-llm-d-request-dropped-reason': 'rejected-saturated' });
  });
});

describe('a pool without endpoints', () => {
  it('a pool without endpoints holds requests until an endpoint comes', async () => {
    const { ports, setting } = await start({ endpoints: [] });
    const client = dial(ports.grpcPort);
    const calls = [request(client, 'a'), request(client, 'b')];
    await eventually('both wait', async () => (await waiting(ports)) === 2);
    await setting.writeEndpoints(ENDPOINTS);
    await eventually('both go on', () => calls.every(({ reply }) => reply !== undefined));
    expect(calls.map(({ reply }) => reply!.headers['x-gateway-destination-endpoint']).sort()).toEqual(ADDRESSES);
  });

  it('a pool without endpoints lets those that waited go on in their order, and only as there is room', async () => {
    const { ports, setting } = await start({ endpoints: [] });
    const client = dial(ports.grpcPort);
    const calls: ReturnType<typeof request>[] = [];
    for (let i = 0; i < 4; i++) {
      calls.push(request(client, `prompt ${i}`));
      await eventually('it waits', async () => (await waiting(ports)) === calls.length);
    }
    await setting.writeEndpoints(ENDPOINTS.slice(0, 1));
    for (const [i, { call }] of calls.entries()) {
      await eventually('the next one goes on', () => calls[i]!.reply !== undefined);
      expect(calls.map(({ reply }) => reply !== undefined)).toEqual(calls.map((_, other) => other <= i));
      answer(call);
    }
    expect(calls.every(({ reply }) => reply!.kind === 'requestHeaders')).toBe(true);
  });

  it('a pool without endpoints answers 503 when none comes in time', async () => {
    const { ports } = await start({ endpoints: [], section: '  noEndpointRequestTTL: 50ms\n' });
    const call = request(dial(ports.grpcPort), 'a');
    await eventually('it is answered', () => call.reply !== undefined);
    expect(call.reply).toMatchObject({ kind: 'immediate', status: 503 });
    expect(call.reply!.headers).toMatchObject({ 'x-llm-d-request-dropped-reason': 'rejected-no-endpoints' });
  });
});

describe('a request whose body is larger than its band may hold', () => {
  it('a request whose body is larger than its band may hold is turned away although an endpoint is free', async () => {
    const { ports } = await start({ section: '  maxBytes: "100"\n' });
    const client = dial(ports.grpcPort);
    const small = request(client, 'a');
    await eventually('a small one is placed', () => small.reply?.kind === 'requestHeaders');
    const large = request(client, 'a hundred bytes and more '.repeat(4));
    await eventually('it is answered', () => large.reply !== undefined);
    expect(large.reply).toMatchObject({ kind: 'immediate', status: 429 });
    expect(large.reply!.headers).toMatchObject({ 'x-llm-d-request-dropped-reason': 'rejected-saturated' });
  });
});

describe('a shard that dies', () => {
  it('a shard that dies takes only its own waiting requests along', async () => {
    const { picker, ports } = await start({}, '--shards=2');
    const calls = Array.from({ length: 12 }, (_, i) => request(dial(ports.grpcPort), `prompt ${i}`));
    await eventually('ten wait', async () => (await waiting(ports)) === 10);
    const ended = new Set<Call>();
    for (const { call } of calls) call.on('status', () => ended.add(call));
    await picker.shards.workers.threads[0]!.terminate();
    await eventually('the shard is back', () => picker.shards.listening === 2);
    const alive = () => calls.filter(({ call }) => !ended.has(call));
    const served = new Set<Call>();
    await eventually('everyone else is served', () => {
      for (const { call, reply } of alive()) {
        if (reply === undefined || served.has(call)) continue;
        served.add(call);
        answer(call);
      }
      return alive().every(({ call }) => served.has(call));
    });
    await eventually('nothing is left', async () => {
      return (await waiting(ports)) === 0 && (await metric(ports.metricsPort, 'pointsman_ledger_entries')) === 0;
    });
  });
});

describe('a drain', () => {
  it('a drain serves on what waits, and tells the rest at its end', async () => {
    const { picker, ports } = await start({});
    const client = dial(ports.grpcPort);
    const first = [request(client, 'a'), request(client, 'b')];
    await eventually('both are placed', () => first.every(({ reply }) => reply !== undefined));
    const [third, fourth] = [request(client, 'c'), request(client, 'd')];
    await eventually('two wait', async () => (await waiting(ports)) === 2);
    const stopped = picker.stop(1_500);
    answer(first[0]!.call);
    await eventually('the queue is served on', () => third.reply?.kind === 'requestHeaders');
    await eventually('the rest is told', () => fourth.reply !== undefined);
    expect(fourth.reply).toMatchObject({ kind: 'immediate', status: 503 });
    expect(fourth.reply!.headers).toMatchObject({ 'x-llm-d-request-dropped-reason': 'rejected-shutting-down' });
    await stopped;
  });
});
