import { afterEach, describe, expect, it } from 'vitest';
import { FlowController } from '../../dist/src/flow-control/flow-controller.js';
import { Ceilings } from '../../dist/src/flow-control/policies/usage-limits.js';
import { QueueMachine } from '../../dist/src/flow-control/queue-machine.js';
import { makeGate } from '../core/gate-pool.ts';
import { settings } from '../flow-control/settings.ts';
import { eventually } from '../tools/gateway/client.ts';
import { cleanUp, dial, ENDPOINTS, request, start, waiting } from './queued-requests.ts';

afterEach(cleanUp);

const HOLDBACK = '- {type: priority-holdback-policy, name: holdback, parameters: {minCeiling: 0.5}}\n';
const SECTION = '  usageLimitPolicyPluginRef: holdback\n';
const FLAG = '--allow-experimental-plugins';

/** Places of two endpoints with 4 each that requests of priority 0 get, of 8 that come at once. */
async function placesOfLow({ ports }: Awaited<ReturnType<typeof start>>): Promise<number> {
  const client = dial(ports.grpcPort);
  const calls = Array.from({ length: 8 }, (_, i) => request(client, `prompt ${i}`));
  const placed = () => calls.filter(({ reply }) => reply !== undefined).length;
  await eventually('each is placed or waits', async () => placed() + (await waiting(ports)) === 8);
  return placed();
}

describe('the priority holdback policy of a picker', () => {
  it('a configured band has its part of the pool held back before a request of it has come', async () => {
    const section = `${SECTION}  priorityBands: [{priority: 10}]\n`;
    const picker = await start({ places: 4, plugins: HOLDBACK, section }, FLAG);
    expect(await placesOfLow(picker)).toBe(4);
  });

  it('the priority of an objective has its part of the pool held back before a request of it has come', async () => {
    const picker = await start({ places: 4, plugins: HOLDBACK, section: SECTION }, FLAG);
    await picker.setting.writeEndpoints(ENDPOINTS, 'objectives:\n- {name: interactive, priority: 10}\n');
    const url = `http://127.0.0.1:${picker.ports.metricsPort}/debug/flow-control`;
    await eventually('the ceilings are those of two bands', async () => {
      const { bands } = (await (await fetch(url)).json()) as { bands: { priority: number; ceiling: number }[] };
      return bands.find(({ priority }) => priority === 0)?.ceiling === 0.5;
    });
    expect(await placesOfLow(picker)).toBe(4);
  });

  it('a pool with one priority has all of its places', async () => {
    expect(await placesOfLow(await start({ places: 4, plugins: HOLDBACK, section: SECTION }, FLAG))).toBe(8);
  });
});

describe('the ceilings of a pool', () => {
  it('a standing band keeps its part without a request for an hour, and another one loses it', () => {
    let now = 1;
    const gateSettings = { mode: 'requests', maxRequests: 4, maxTokens: 1 } as const;
    const pool = makeGate(gateSettings, [{ waiting: 0, running: 0, kvUsage: 0 }]);
    const controller = new FlowController({
      gate: pool.gate,
      queues: new QueueMachine(settings(), now),
      shards: [1],
      saturation: () => 0,
      nowMs: () => now,
      wallMs: () => now,
      counts: {
        dispatched: () => undefined,
        arrived: () => undefined,
        refused: () => undefined,
        held: () => undefined,
      },
      evictions: { tell: () => undefined, issued: () => undefined, ended: () => undefined },
      blockTokens: 16,
    });
    const ceilings = new Ceilings({ kind: 'holdback', domain: 'rank', minCeiling: 0.5, maxCeiling: 1 });
    controller.configure({
      gate: gateSettings,
      ceilings,
      share: 1,
      standing: [10, 0],
      sessions: { mode: 'off', smallPrompt: 0.02, stretch: 0.1, maxWaitMs: 300_000 },
    });
    controller.wake();
    const shard = pool.shard(1);
    shard.decide({ priority: 20, nowMs: now });
    controller.wake();
    expect([...controller.ceilings]).toEqual(
      expect.arrayContaining([
        [20, 1],
        [10, 0.75],
        [0, 0.5],
      ]),
    );
    for (let minute = 0; minute < 60; minute++) {
      now += 60_001;
      controller.wake();
    }
    controller.stop();
    expect([...controller.ceilings]).toEqual([
      [10, 1],
      [0, 0.5],
    ]);
  });
});
