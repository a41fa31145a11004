import { afterEach, describe, expect, it } from 'vitest';
import { startGateway } from '../../dist/tools/gateway/gateway.js';
import { startModelServer } from '../../dist/tools/simulator/server/model-server.js';
import { ask, chatBody } from '../tools/gateway/client.ts';
import { Setting, startPicker } from './serving.ts';

const stops: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const PROFILE = `plugins:
- type: lora-affinity-scorer
- type: max-score-picker
schedulingProfiles:
- name: default
  plugins:
  - pluginRef: lora-affinity-scorer
  - pluginRef: max-score-picker
`;

/** Two of the picker's scrapes of a server, give or take. */
const SCRAPES_MS = 1_000;

/** A picker and a gateway in front of three servers that have an adapter whose requests take two milliseconds. */
async function startThree() {
  const lora = { max: 4, names: ['fast'] };
  const servers = await Promise.all(
    [0, 1, 2].map((i) => startModelServer({ name: `server-${i}`, lora, engine: { speedup: 100 } })),
  );
  stops.push(...servers.map((server) => server.stop));
  const setting = await Setting.create(
    servers.map(({ name, address, port }) => ({ name, address, port })),
    PROFILE,
  );
  stops.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, '--shards=1', '--refresh-metrics-interval=400ms']);
  stops.push(() => picker.stop(0));
  const gateway = await startGateway({ port: 0, picker: { host: '127.0.0.1', port: ports.grpcPort } });
  stops.push(gateway.stop);
  return async (count: number) => {
    const served = new Set<unknown>();
    for (let i = 0; i < count; i++) {
      const { status, headers } = await ask(gateway.port, {
        body: chatBody(`question ${i}`, { model: 'fast', max_tokens: 1 }),
      });
      expect(status).toBe(200);
      served.add(headers['x-inference-pod']);
    }
    return served;
  };
}

describe('an adapter whose requests are over before the next scrape', () => {
  it('an adapter whose requests are over before the next scrape stays on the server that it was sent to', async () => {
    const send = await startThree();
    await send(3);
    await new Promise((resolve) => setTimeout(resolve, SCRAPES_MS));
    expect((await send(12)).size).toBe(1);
  });
});
