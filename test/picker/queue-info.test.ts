import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../tools/gateway/client.ts';
import { answer, cleanUp, dial, profile, request, start, waiting } from './queued-requests.ts';

afterEach(cleanUp);

const ASKS = { 'x-pointsman-queue-info': '1' };

/** A picker whose two places are taken, and its client. */
async function full(section = '') {
  const bed = await start({ section });
  const client = dial(bed.ports.grpcPort);
  const running = [request(client, 'a'), request(client, 'b')];
  await eventually('both are placed', () => running.every(({ reply }) => reply !== undefined));
  const wait = async (count: number) => {
    for (let i = 0; i < count; i++) request(client, `waits ${i}`);
    await eventually('they wait', async () => (await waiting(bed.ports)) === count);
  };
  return { bed, client, running, wait };
}

describe('x-pointsman-queue-info', () => {
  it('x-pointsman-queue-info tells a request that waited in vain where it stood and how long', async () => {
    const { client, wait } = await full();
    await wait(1);
    const asked = request(client, 'asks', { ...ASKS, 'x-pointsman-deadline-ms': '50' });
    await eventually('it is answered', () => asked.reply !== undefined);
    expect(asked.reply).toMatchObject({ kind: 'immediate', status: 429 });
    const { headers } = asked.reply!;
    expect(headers).toMatchObject({ 'x-pointsman-queue-position': '1', 'retry-after': expect.stringMatching(/^\d+$/) });
    expect(Number(headers['x-pointsman-queue-wait-ms'])).toBeGreaterThanOrEqual(50);
    // Nothing has left the band yet, so nobody knows.
    expect(headers['x-pointsman-queue-expected-wait-ms']).toBeUndefined();
  });

  it('x-pointsman-queue-info tells a request that is not let in where it would have stood', async () => {
    const { client, wait } = await full('  maxRequests: 2\n');
    await wait(2);
    const refused = request(client, 'more', ASKS);
    await eventually('it is answered', () => refused.reply !== undefined);
    expect(refused.reply).toMatchObject({ kind: 'immediate', status: 429 });
    expect(refused.reply!.headers).toMatchObject({
      'x-pointsman-queue-position': '2',
      'x-pointsman-queue-wait-ms': expect.stringMatching(/^\d+$/),
    });
  });

  it('x-pointsman-queue-info tells the expected wait once the band has drained, and Retry-After follows it', async () => {
    const { bed, client, running, wait } = await full();
    await wait(20);
    // The rate is measured in steps of half a second: one request leaves in the first one.
    answer(running[0]!.call);
    await eventually('it leaves', async () => (await waiting(bed.ports)) === 19);
    let expected: number | undefined;
    await eventually('the wait is known', async () => {
      const asked = request(client, 'asks', { ...ASKS, 'x-pointsman-deadline-ms': '20' });
      await eventually('it is answered', () => asked.reply !== undefined);
      const told = asked.reply!.headers['x-pointsman-queue-expected-wait-ms'];
      expected = told === undefined ? undefined : Number(told);
      return expected !== undefined;
    });
    // 19 equal ones wait, at one or fewer in half a second.
    expect(expected).toBeGreaterThan(8_000);
    const late = request(client, 'late', { 'x-pointsman-deadline-ms': '1' });
    await eventually('it is answered', () => late.reply !== undefined);
    expect(late.reply!.headers['x-llm-d-request-dropped-reason']).toBe('rejected-ttl-expired');
    expect(Number(late.reply!.headers['retry-after'])).toBeGreaterThanOrEqual(10);
    await bed.setting.configure(profile({ section: '  maxRequests: 1\n' }));
    await eventually('a request is not let in, and told when to come again', async () => {
      const refused = request(client, 'refused', { 'x-pointsman-deadline-ms': '1' });
      await eventually('it is answered', () => refused.reply !== undefined);
      const { headers } = refused.reply!;
      return headers['x-llm-d-request-dropped-reason'] === 'rejected-saturated' && Number(headers['retry-after']) >= 10;
    });
  });
});
