import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Backend, type Behaviour, startBackend } from '../tools/gateway/backend.ts';
import { ask, chatBody, eventually } from '../tools/gateway/client.ts';
import { skipReason } from './envoy.ts';
import { startTestBed, type TestBed } from './test-bed.ts';

/** Says who it is in its body alone. */
const modest: Behaviour = ({ body }, response, backend) => {
  if (body.includes('pretend')) response.setHeader('x-served-by', 'an engine that pretends');
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ object: 'chat.completion', model: 'm', choices: [], server: backend.name }));
};

describe.skipIf(skipReason !== '')(`--served-by-header behind Envoy${skipReason}`, () => {
  let bed: TestBed<Backend>;
  beforeAll(async () => {
    const servers = await Promise.all(['s0', 's1', 's2'].map((name) => startBackend(name, modest)));
    const profile = 'plugins:\n- {type: random-picker}\n';
    bed = await startTestBed(servers, { profile, flags: ['--served-by-header=X-Served-By'] });
  });
  afterAll(() => bed?.stop());

  test('every answer names the endpoint that served it, with streams and without', async () => {
    const seen = new Set<string>();
    await eventually('all three have served', async () => {
      const answer = await ask(bed.envoy.port, { body: chatBody('who serves?', { stream: seen.size % 2 === 0 }) });
      const name = JSON.parse(answer.body.toString()).server as string;
      expect(answer.headers['x-served-by']).toBe(name);
      return seen.add(name).size === 3;
    });
  });

  test('the name replaces what a model server says of itself', async () => {
    const answer = await ask(bed.envoy.port, { body: chatBody('pretend') });
    expect(answer.headers['x-served-by']).toBe(JSON.parse(answer.body.toString()).server);
  });

  test('an answer that Envoy gives itself names nobody', async () => {
    await Promise.all(bed.servers.map((server) => server.stop()));
    const answer = await ask(bed.envoy.port, { body: chatBody('is anybody there?') });
    expect(answer.status).toBe(503);
    expect(answer.headers['x-served-by']).toBeUndefined();
  });
});
