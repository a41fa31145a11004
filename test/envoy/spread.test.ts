import { describe, expect, test } from 'vitest';
import { type Backend, type Behaviour, startBackend } from '../tools/gateway/backend.ts';
import { ask, chatBody, eventually, manyConnections } from '../tools/gateway/client.ts';
import { skipReason } from './envoy.ts';
import { startTestBed } from './test-bed.ts';

const SERVERS = 8;
const REQUESTS = 1_000;
/** System prompts. */
const SHARED = 16;

/**
 * Sends the first prompts one after another and the others at once, and answers none before all have arrived.
 * @returns the requests of each server
 */
async function burst(prompts: readonly string[], inTurn = 0): Promise<number[]> {
  let release = () => {};
  const all = new Promise<void>((resolve) => {
    release = resolve;
  });
  const hold: Behaviour = async (_received, response) => {
    await all;
    response.end('{}');
  };
  const servers: Backend[] = [];
  for (let index = 0; index < SERVERS; index++) servers.push(await startBackend(`s${index}`, hold));
  const bed = await startTestBed(servers);
  const counts = () => servers.map((server) => server.received.length);
  const agent = manyConnections();
  try {
    const send = (prompt: string) => ask(bed.envoy.port, { body: chatBody(prompt) }, agent);
    const arrived = (count: number) =>
      eventually(`${count} requests arrive`, () => counts().reduce((a, b) => a + b) === count);
    const answers: ReturnType<typeof send>[] = [];
    for (const prompt of prompts.slice(0, inTurn)) await arrived(answers.push(send(prompt)));
    answers.push(...prompts.slice(inTurn).map(send));
    await Promise.race([arrived(prompts.length), Promise.all(answers)]);
    release();
    const statuses = (await Promise.all(answers)).map((answer) => answer.status);
    expect(statuses.every((status) => status === 200)).toBe(true);
    return counts();
  } finally {
    release();
    agent.destroy();
    await bed.stop();
  }
}

describe.skipIf(skipReason !== '')(`a burst of ${REQUESTS} through Envoy${skipReason}`, () => {
  test('a burst through Envoy of different prompts spreads over idle endpoints to within eight of each other', async () => {
    const counts = await burst(Array.from({ length: REQUESTS }, (_, index) => unique(index, 1_000)));
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(8);
  });

  // Which endpoint a conversation gets is decided by its first request: in another order of these, an endpoint may get
  // three of the conversations and another one, with any picker that scores prefixes above load.
  test('a burst through Envoy with 16 shared system prompts loads no endpoint more than twice as much as another one', async () => {
    const prompts = Array.from(
      { length: REQUESTS },
      (_, index) => `${unique(index % SHARED, 3_000)}${unique(index, 1_000)}`,
    );
    const counts = await burst(prompts, SHARED);
    expect(Math.max(...counts)).toBeLessThanOrEqual(2 * Math.min(...counts));
  });
});

/** Text that differs from its first bytes on. */
function unique(number: number, bytes: number): string {
  return `${number} is my number. `.repeat(Math.ceil(bytes / 15)).slice(0, bytes);
}
