import { afterEach, describe, expect, it } from 'vitest';
import { type Gateway, startGateway } from '../../dist/tools/gateway/gateway.js';
import { type ModelServer, startModelServer } from '../../dist/tools/simulator/server/model-server.js';
import { firstReply } from '../ingress/proxy-client.ts';
import { ask, chatBody, eventually, manyConnections } from '../tools/gateway/client.ts';
import { metric, overConnection, ask as place, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const defaultProfile = `plugins:
- type: queue-scorer
- type: kv-cache-utilization-scorer
- type: prefix-cache-scorer
`;

interface TestBed {
  readonly servers: readonly ModelServer[];
  readonly gateway: Gateway;
  readonly metricsPort: number;
}

/** Simulated servers of the given speeds behind a picker and the embedded gateway. */
async function bed(speedups: readonly number[], section: string, profile = defaultProfile): Promise<TestBed> {
  const servers = await Promise.all(
    speedups.map((speedup, i) => startModelServer({ name: `server-${i}`, engine: { speedup, seed: i + 1 } })),
  );
  cleanups.push(() => Promise.all(servers.map((server) => server.stop())));
  const setting = await Setting.create(
    servers.map(({ name, port }) => ({ name, port })),
    `${profile}${section}`,
  );
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker(setting.flags);
  cleanups.push(() => picker.stop(0));
  const gateway = await startGateway({ port: 0, picker: { host: '127.0.0.1', port: ports.grpcPort } });
  cleanups.push(() => gateway.stop());
  return { servers, gateway, metricsPort: ports.metricsPort };
}

/** `count` streamed answers, some at a time, no prompt like another. */
async function stream({ gateway }: TestBed, count: number): Promise<void> {
  const agent = manyConnections();
  let next = 0;
  const one = async () => {
    while (next < count) {
      const body = chatBody(`${next++} ${'word '.repeat(20 + ((next * 37) % 100))}`, {
        stream: true,
        max_tokens: 10,
        stream_options: { include_usage: true },
      });
      expect((await ask(gateway.port, { body }, agent)).status).toBe(200);
    }
  };
  await Promise.all(Array.from({ length: 4 }, one));
  agent.destroy();
}

interface Shown {
  readonly mode: string;
  readonly state: string;
  readonly arm: string;
  readonly samples: { readonly learned: number };
  readonly coefficients: { readonly stepMs: number };
  readonly agreement: number | undefined;
  readonly endpoints: readonly { readonly endpoint: string; readonly speed: number }[];
}

async function shown({ metricsPort }: TestBed): Promise<Shown> {
  return (await (await fetch(`http://127.0.0.1:${metricsPort}/debug/adaptation`)).json()) as Shown;
}

const speedOf = ({ endpoints }: Shown, name: string) => endpoints.find(({ endpoint }) => endpoint === name)?.speed ?? 1;

describe('adaptation', () => {
  it('adaptation finds in shadow which of two servers is slow, from the answers that pass', async () => {
    // So far apart that a busy machine does not level them: some 2 ms and some 60 ms per token.
    const all = await bed([4, 0.1], 'adaptation: {mode: shadow}\n');
    await eventually(
      'the slow one is known',
      async () => {
        await stream(all, 8);
        return speedOf(await shown(all), 'server-1') > 1.2;
      },
      100_000,
    );
    const now = await shown(all);
    expect(now).toMatchObject({ mode: 'shadow', state: 'shadow', arm: 'static' });
    expect(speedOf(now, 'server-0')).toBeLessThan(speedOf(now, 'server-1'));
    expect(now.agreement).toBeGreaterThan(0);
    expect(await metric(all.metricsPort, 'pointsman_adaptation_driving')).toBe(0);
    expect(
      await metric(all.metricsPort, 'pointsman_adaptation_endpoint_slowness', 'endpoint="server-1"'),
    ).toBeGreaterThan(1.2);
    expect(await metric(all.metricsPort, 'pointsman_adaptation_labels_total', 'outcome="lost"')).toBe(0);
  }, 120_000);

  it('adaptation learns nothing when it is off', async () => {
    const all = await bed([50, 50], 'adaptation: {mode: "off"}\n');
    await stream(all, 20);
    expect(await shown(all)).toMatchObject({ mode: 'off', arm: 'static', samples: { learned: 0 }, endpoints: [] });
    expect(await metric(all.metricsPort, 'pointsman_adaptation_state', 'state="off"')).toBe(1);
  });
});

describe('a burst of 1,000 requests with 16 beginnings over 8 idle endpoints', () => {
  it('a burst of 1,000 requests with 16 beginnings ends within 15 % when learned costs decide', async () => {
    const endpoints = Array.from({ length: 8 }, (_, i) => ({ name: `e${i}`, address: `127.0.3.${i + 1}`, port: 9 }));
    const setting = await Setting.create(endpoints, `${defaultProfile}adaptation: {mode: always}\n`);
    cleanups.push(() => setting.remove());
    const { picker, ports } = await startPicker([...setting.flags, '--refresh-metrics-interval=1h']);
    cleanups.push(() => picker.stop(0));
    const counts = new Map<string, number>();
    await overConnection(ports.grpcPort, async (client) => {
      const beginnings = Array.from({ length: 16 }, (_, i) => `system prompt ${i} `.repeat(300));
      // The streams stay open: nothing of the burst has ended while it is decided.
      const calls = Array.from({ length: 1000 }, (_, i) => place(client, `${beginnings[i % 16]} question ${i}`));
      for (const reply of await Promise.all(calls.map((call) => firstReply(call)))) {
        const address = /127\.0\.3\.\d/.exec(reply.toString('latin1'))?.[0] ?? 'none';
        counts.set(address, (counts.get(address) ?? 0) + 1);
      }
      for (const call of calls) call.cancel();
    });
    expect(counts.size).toBe(8);
    expect(Math.max(...counts.values()) / Math.min(...counts.values())).toBeLessThanOrEqual(1.15);
  });
});
