import { afterEach, describe, expect, test } from 'vitest';
import { type Backend, type Behaviour, Gate, sseEvent, startBackend } from '../tools/gateway/backend.ts';
import { ask, begin, chatBody, eventually, nextPiece } from '../tools/gateway/client.ts';
import { type Configuration, skipReason } from './envoy.ts';
import { startTestBed, type TestBed } from './test-bed.ts';

describe.skipIf(skipReason !== '')(`the picker killed and restarted behind Envoy${skipReason}`, () => {
  let bed: TestBed<Backend> | undefined;
  afterEach(() => bed?.stop());

  async function start(configuration: Configuration, gate: Gate): Promise<TestBed<Backend>> {
    const twoTokens: Behaviour = async (_received, response, backend) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'x-inference-pod': backend.name });
      response.write(sseEvent('m', 'one'));
      await gate.next();
      response.end(sseEvent('m', 'two'));
    };
    const servers = await Promise.all(['s0', 's1'].map((name) => startBackend(name, twoTokens)));
    bed = await startTestBed(servers, { configuration });
    return bed;
  }

  test('failing closed: streams break, requests get 500, and are served again after the restart', async () => {
    const gate = new Gate();
    const { envoy, killPicker, restartPicker } = await start('envoy.yaml', gate);
    const { answer } = await begin(envoy.port, { body: chatBody('hi', { stream: true }) });
    expect(await nextPiece(answer)).toBe(sseEvent('m', 'one'));
    const broken = new Promise((resolve) => answer.on('error', resolve));
    await killPicker();
    gate.go();
    await broken;
    expect((await ask(envoy.port, { body: chatBody('hi') })).status).toBeGreaterThanOrEqual(500);
    await restartPicker();
    await eventually('requests are served', async () => {
      gate.go();
      return (await ask(envoy.port, { body: chatBody('hi') })).status === 200;
    });
  });

  test('failing open: once Envoy knows, requests are spread in turn, and picked again after the restart', async () => {
    const gate = new Gate();
    const { envoy, killPicker, restartPicker, servers } = await start('envoy-fail-open.yaml', gate);
    const serve = () => {
      gate.go();
      return ask(envoy.port, { body: chatBody('hi') });
    };
    expect((await serve()).status).toBe(200);
    await killPicker();
    await eventually('requests pass without a picker', async () => (await serve()).status === 200);

    const pods = new Set<unknown>();
    for (let index = 0; index < 4; index++) {
      const answer = await serve();
      expect(answer.status).toBe(200);
      pods.add(answer.headers['x-inference-pod']);
    }
    expect(pods.size).toBe(2);

    const chosen = () => servers.some((server) => server.received.at(-1)!.headers['x-gateway-destination-endpoint']);
    for (const server of servers) server.received.splice(0, server.received.length - 1);
    expect(chosen()).toBe(false);
    await restartPicker();
    await eventually('the picker chooses again', async () => (await serve()).status === 200 && chosen());
  });
});
