import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../tools/gateway/client.ts';
import {
  answer,
  cleanUp,
  dial,
  ENDPOINTS,
  profile,
  type QueuedSetting,
  request,
  start,
  waiting,
} from './queued-requests.ts';
import { metric } from './serving.ts';

afterEach(cleanUp);

/** The machine may have much else to do. */
const PATIENCE_MS = 25_000;

/** Waits end by the deadlines of the requests alone. */
const ENDLESS = '  defaultRequestTTL: 0s\n';

type TestBed = Awaited<ReturnType<typeof start>>;

async function reload({ ports, setting }: TestBed, text: string, outcome: string): Promise<void> {
  const count = async () =>
    (await metric(ports.metricsPort, 'pointsman_config_reloads_total', `outcome="${outcome}"`)) ?? 0;
  const before = await count();
  await setting.configure(text);
  await eventually(`the file is ${outcome}`, async () => (await count()) === before + 1);
}

/** A picker whose two places are taken. */
async function full(given: QueuedSetting = {}) {
  const bed = await start(given);
  const client = dial(bed.ports.grpcPort);
  const running = [request(client, 'a'), request(client, 'b')];
  await eventually('both are placed', () => running.every(({ reply }) => reply !== undefined));
  const wait = async (headers: Readonly<Record<string, string>> = {}) => {
    const already = await waiting(bed.ports);
    const next = request(client, 'waits', headers);
    await eventually('it waits', async () => (await waiting(bed.ports)) === already + 1, PATIENCE_MS);
    return next;
  };
  return { bed, client, running, wait };
}

describe('a reload while requests wait', () => {
  it('a reload while requests wait serves them by the new policies, and loses none', async () => {
    const { bed, running, wait } = await full({ section: ENDLESS });
    const late = await wait({ 'x-pointsman-deadline-ms': '7200000' });
    const soon = await wait({ 'x-pointsman-deadline-ms': '3600000' });
    const section = `${ENDLESS}  priorityBands: [{priority: 0, orderingPolicyRef: edf-ordering-policy}]\n`;
    await reload(bed, profile({ section, plugins: '- type: edf-ordering-policy\n' }), 'applied');
    answer(running[0]!.call);
    await eventually('the one whose time is over first goes on', () => soon.reply !== undefined);
    expect(late.reply).toBeUndefined();
    answer(running[1]!.call);
    await eventually('the other one too', () => late.reply !== undefined);
  });

  it('a reload while requests wait holds them to a shorter time to live at once', async () => {
    const { bed, wait } = await full();
    const third = await wait();
    await reload(bed, profile({ section: '  defaultRequestTTL: 1ms\n' }), 'applied');
    await eventually('it is answered', () => third.reply !== undefined);
    expect(third.reply).toMatchObject({ kind: 'immediate', status: 429 });
    expect(third.reply!.headers['x-llm-d-request-dropped-reason']).toBe('rejected-ttl-expired');
  });

  it('a reload while requests wait refuses new requests beyond a smaller limit, and keeps all that wait', async () => {
    const { bed, client, running, wait } = await full();
    const waits = [await wait(), await wait()];
    await reload(bed, profile({ section: '  maxRequests: 1\n' }), 'applied');
    const more = request(client, 'more');
    await eventually('it is answered', () => more.reply !== undefined);
    expect(more.reply).toMatchObject({ kind: 'immediate', status: 429 });
    for (const { call } of running) answer(call);
    await eventually('they go on', () => waits.every(({ reply }) => reply?.kind === 'requestHeaders'));
  });

  it('a reload while requests wait gives them the room that other limits make', async () => {
    const { bed, wait } = await full();
    const waits = [await wait(), await wait()];
    await reload(bed, profile({ places: 2 }), 'applied');
    await eventually('they go on', () => waits.every(({ reply }) => reply?.kind === 'requestHeaders'));
  });

  it('a reload while requests wait lets a picker that is one of fewer have more of the endpoints', async () => {
    const { bed, wait } = await full({ places: 2, section: '  replicas: 2\n' });
    const third = await wait();
    await reload(bed, profile({ places: 2, section: '  replicas: 1\n' }), 'applied');
    await eventually('it goes on', () => third.reply?.kind === 'requestHeaders');
  });

  it('a reload while requests wait keeps the queues as they are when any part of the new section is wrong', async () => {
    const { bed, running, wait } = await full();
    const third = await wait();
    const section = '  defaultRequestTTL: 1ms\n  priorityBands: [{priority: 0, maxRequests: -1}]\n';
    await reload(bed, profile({ section }), 'invalid');
    answer(running[0]!.call);
    await eventually('it goes on', () => third.reply?.kind === 'requestHeaders');
  });

  it('a reload while requests wait waits for a restart when it turns flow control off', async () => {
    const { bed, running, wait } = await full();
    const third = await wait();
    await reload(bed, profile({}).replace('featureGates: [flowControl]\n', ''), 'restart_required');
    answer(running[0]!.call);
    await eventually('it goes on', () => third.reply?.kind === 'requestHeaders');
  });

  it('a reload while requests wait follows endpoints, policies and limits that change together', async () => {
    const { bed, running, wait } = await full();
    const waits = [await wait(), await wait()];
    await bed.setting.writeEndpoints([...ENDPOINTS, { name: 'server-2', port: 20_002 }]);
    await reload(bed, profile({ section: '  maxRequests: 5\n' }), 'applied');
    await eventually('the new endpoint serves one', () => waits[0]!.reply?.kind === 'requestHeaders');
    answer(running[0]!.call);
    await eventually('the other follows', () => waits[1]!.reply?.kind === 'requestHeaders');
  });
});
