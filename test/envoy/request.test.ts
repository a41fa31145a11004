import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet } from '../../dist/tools/simulator/server/fleet.js';
import type { ModelServer } from '../../dist/tools/simulator/server/model-server.js';
import { type Backend, type Behaviour, Gate, sseEvent, startBackend } from '../tools/gateway/backend.ts';
import { ask, begin, chatBody, eventually, nextPiece, open } from '../tools/gateway/client.ts';
import { skipReason } from './envoy.ts';
import { pickerMetric, startTestBed, type TestBed } from './test-bed.ts';

const gate = new Gate();

/** Streams in lockstep with the test, holds an answer for ever, or echoes what it received. */
const obedient: Behaviour = async ({ path, body }, response, backend) => {
  const asked = JSON.parse(body.toString()) as { model: string; stream?: boolean; messages: { content: string }[] };
  if (asked.messages[0]!.content === 'hold') return;
  response.setHeader('x-inference-pod', backend.name);
  if (asked.stream !== true) {
    const received = createHash('sha256').update(body).digest('hex');
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ object: 'chat.completion', model: asked.model, choices: [], received, path }));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let index = 0; index < 5; index++) {
    response.write(sseEvent(asked.model, `token ${index}`));
    await gate.next();
  }
  response.end('data: [DONE]\n\n');
};

describe.skipIf(skipReason !== '')(`a request through Envoy${skipReason}`, () => {
  let bed: TestBed<Backend>;
  beforeAll(async () => {
    bed = await startTestBed(await Promise.all(['s0', 's1', 's2', 's3'].map((name) => startBackend(name, obedient))));
  });
  afterAll(() => bed?.stop());

  test('a request through Envoy is served by the endpoint that the picker put into the header', async () => {
    const answer = await ask(bed.envoy.port, { body: chatBody('who serves?') });
    expect(answer.status).toBe(200);
    const server = bed.servers.find((one) => one.name === answer.headers['x-inference-pod'])!;
    expect(server.received.at(-1)!.headers['x-gateway-destination-endpoint']).toBe(`127.0.0.1:${server.port}`);
  });

  test('a request through Envoy keeps its body to the byte, odd spacing and all, when nothing is rewritten', async () => {
    const body =
      '{ "model" : "m",\t"messages":[{"role":"user","content":"caf\\u00e9 \u00fc 1.0e2"}] , "seed": 9007199254740993 }';
    const answer = await ask(bed.envoy.port, { body });
    expect(JSON.parse(answer.body.toString()).received).toBe(sha(body));
  });

  test('a request through Envoy of five megabytes arrives whole', async () => {
    const body = chatBody('0123456789abcdef'.repeat(320 * 1024));
    const answer = await ask(bed.envoy.port, { body });
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body.toString()).received).toBe(sha(body));
  });

  test('a request through Envoy has its model rewritten in the body, and back in the answer', async () => {
    const headers = { 'x-llm-d-model-name-rewrite': 'the-real-model-name' };
    const answer = await ask(bed.envoy.port, { body: chatBody('rewrite me'), headers });
    const server = bed.servers.find((one) => one.name === answer.headers['x-inference-pod'])!;
    const received = server.received.at(-1)!;
    expect(JSON.parse(received.body.toString()).model).toBe('the-real-model-name');
    expect(JSON.parse(answer.body.toString()).model).toBe('m');
  });

  test('a request through Envoy gets its stream token by token: each is here before the server writes the next', async () => {
    const { answer } = await begin(bed.envoy.port, { body: chatBody('stream', { stream: true }) });
    expect(answer.headers['content-type']).toBe('text/event-stream');
    for (let index = 0; index < 5; index++) {
      expect(await nextPiece(answer)).toBe(sseEvent('m', `token ${index}`));
      gate.go();
    }
    expect(await nextPiece(answer)).toBe('data: [DONE]\n\n');
  });

  test('a request through Envoy gets the model name back in every event of a stream that was rewritten', async () => {
    const headers = { 'x-llm-d-model-name-rewrite': 'the-real-model-name' };
    for (let index = 0; index < 5; index++) gate.go();
    const answer = await ask(bed.envoy.port, { body: chatBody('stream', { stream: true }), headers });
    const events = answer.body.toString().split('\n\n');
    const models = events.filter((event) => event.includes('{')).map((event) => JSON.parse(event.slice(6)).model);
    expect(models).toEqual(['m', 'm', 'm', 'm', 'm']);
  });

  test('a request through Envoy without a body is served too', async () => {
    const fleet = await startFleet(1);
    const other = await startTestBed<ModelServer>(fleet.servers);
    try {
      const answer = await ask(other.envoy.port, { method: 'GET', path: '/v1/models' });
      expect(answer.status).toBe(200);
      expect(JSON.parse(answer.body.toString()).object).toBe('list');
    } finally {
      await other.stop();
    }
  });

  test('a request through Envoy whose client hangs up is charged no longer', async () => {
    const running = () => pickerMetric(bed.picker, 'llm_d_epp_request_running');
    await eventually('nothing is left of the tests before', async () => (await running()) === 0);
    const request = open(bed.envoy.port, { body: chatBody('hold') });
    request.on('error', () => {});
    request.end(chatBody('hold'));
    await eventually('the request is charged', async () => (await running()) === 1);
    request.destroy();
    await eventually('the charge is released', async () => (await running()) === 0);
  });
});

describe.skipIf(skipReason !== '')(`conversations through Envoy${skipReason}`, () => {
  test('conversations through Envoy go back to the server that holds their prefix', async () => {
    const fleet = await startFleet(4, { engine: { speedup: 20 } });
    const bed = await startTestBed<ModelServer>(fleet.servers);
    try {
      for (let conversation = 0; conversation < 4; conversation++) {
        const first = chatBody(`conversation ${conversation} ${'context '.repeat(500)}`, { max_tokens: 4 });
        const second = first.replace('context "', 'context and a second question"');
        const before = await ask(bed.envoy.port, { body: first });
        const after = await ask(bed.envoy.port, { body: second });
        expect(after.headers['x-inference-pod']).toBe(before.headers['x-inference-pod']);
        const { usage } = JSON.parse(after.body.toString());
        expect(usage.prompt_tokens_details.cached_tokens).toBeGreaterThan(0.9 * usage.prompt_tokens);
      }
    } finally {
      await bed.stop();
    }
  });
});

function sha(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
