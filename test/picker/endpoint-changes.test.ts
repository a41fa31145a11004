import { afterEach, describe, expect, it } from 'vitest';
import { attachCore } from '../../dist/src/core/memory.js';
import type { HealthReport } from '../../dist/src/operations/health-report.js';
import type { Picker } from '../../dist/src/picker/picker.js';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { collect, dialPicker, firstReply, type ProxyClient } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, askAndEnd, type FileEndpoint, metric, type Ports, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Started {
  readonly setting: Setting;
  readonly picker: Picker;
  readonly ports: Ports;
  /** Connections enough to reach every shard. */
  readonly clients: readonly ProxyClient[];
}

async function start(endpoints: readonly FileEndpoint[], flags: readonly string[], profile?: string): Promise<Started> {
  const setting = await Setting.create(endpoints, profile);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, ...flags]);
  cleanups.push(() => picker.stop(0));
  const clients = Array.from({ length: 8 }, () => dialPicker(ports.grpcPort));
  cleanups.push(() => clients.map((client) => client.close()));
  return { setting, picker, ports, clients };
}

/** Destination ports of `count` requests over each connection. */
async function destinations({ clients }: Started, count = 5): Promise<number[]> {
  const asked = clients.flatMap((client, c) =>
    Array.from({ length: count }, (_, i) => askAndEnd(client, `prompt ${c} ${i} ${Math.random()}`)),
  );
  return (await Promise.all(asked)).map(({ replies }) => {
    const { headers } = decodeReply(replies[0]!);
    return Number(headers['x-gateway-destination-endpoint']?.split(':')[1]);
  });
}

const distinct = (ports: readonly number[]): number[] => [...new Set(ports)].sort((a, b) => a - b);

const [ONE, TWO, THREE] = [
  { name: 'one', port: 20_001 },
  { name: 'two', port: 20_002 },
  { name: 'three', port: 20_003 },
] as const;

describe.each([1, 2])('a change of the endpoints file under %i shard(s)', (shards) => {
  it('a change of the endpoints file takes removed endpoints out of the picks and lets added ones in', async () => {
    const started = await start([ONE, TWO], [`--shards=${shards}`]);
    expect(distinct(await destinations(started))).toEqual([20_001, 20_002]);
    await started.setting.writeEndpoints([ONE, THREE]);
    await eventually('the new one is picked', async () => (await destinations(started)).includes(20_003));
    expect(distinct(await destinations(started))).toEqual([20_001, 20_003]);
    await started.setting.writeEndpoints([]);
    const answers = () => Promise.all(started.clients.map((client) => askAndEnd(client, 'hello')));
    await eventually('every shard says that there is none', async () => {
      return (await answers()).every(({ replies }) => decodeReply(replies[0]!).status === 503);
    });
    await started.setting.writeEndpoints([TWO]);
    await eventually('it is back', async () => (await destinations(started)).every((port) => port === 20_002));
  });

  it('a change of the endpoints file moves the filters along when labels change', async () => {
    const profile = `plugins:
- type: label-selector-filter
  name: gold
  parameters: {matchLabels: {tier: gold}}
schedulingProfiles:
- name: default
  plugins: [{pluginRef: gold}]
`;
    const labelled = (one: string, two: string) => [
      { ...ONE, labels: { tier: one } },
      { ...TWO, labels: { tier: two } },
    ];
    const started = await start(labelled('gold', 'silver'), [`--shards=${shards}`], profile);
    expect(distinct(await destinations(started))).toEqual([20_001]);
    await started.setting.writeEndpoints(labelled('silver', 'gold'));
    await eventually('the other one is picked', async () => (await destinations(started)).includes(20_002));
    expect(distinct(await destinations(started))).toEqual([20_002]);
  });
});

describe('slots that go to other endpoints while requests are in flight', () => {
  it('slots that go to other endpoints while requests are in flight start without load and keep none', async () => {
    const pool = (name: string, first: number) =>
      Array.from({ length: 64 }, (_, index) => ({ name: `${name}-${index}`, port: first + index }));
    // 64 slots is the least that a pool has: all of them change hands.
    const started = await start(pool('old', 21_000), ['--max-endpoints=64', '--shards=2']);
    const { ports, picker, clients, setting } = started;
    const held = Array.from({ length: 128 }, (_, i) => ask(clients[i % clients.length]!, `held ${i} `.repeat(200)));
    for (const call of held) expect(decodeReply(await firstReply(call)).kind).toBe('requestHeaders');
    expect(await metric(ports.metricsPort, 'pointsman_endpoint_inflight_requests')).toBe(128);
    await setting.writeEndpoints(pool('new', 22_000));
    await eventually('a new one is picked', async () => (await destinations(started)).every((port) => port >= 22_000));
    expect(await metric(ports.metricsPort, 'pointsman_endpoint_inflight_requests')).toBe(0);
    expect(await metric(ports.metricsPort, 'pointsman_ledger_entries')).toBe(128);
    const core = attachCore(picker.memory, 3);
    expect(core.call.ledgerCheck()).toBe(0);
    const over = held.map(collect);
    for (const call of held) call.end();
    await Promise.all(over);
    await eventually('every charge is released', async () => {
      return (await metric(ports.metricsPort, 'pointsman_ledger_entries')) === 0;
    });
    expect(core.call.ledgerCheck()).toBe(0);
    for (const load of ['inflight_requests', 'inflight_tokens', 'active_blocks']) {
      expect(await metric(ports.metricsPort, `pointsman_endpoint_${load}`)).toBe(0);
    }
  });
});

describe('a pool of fewer endpoints than it has slots', () => {
  it('a pool of fewer endpoints than it has slots is not full, whatever --max-endpoints says', async () => {
    const endpoints = Array.from({ length: 20 }, (_, index) => ({ name: `s${index}`, port: 20_000 + index }));
    const { ports } = await start(endpoints, ['--max-endpoints=16']);
    const answer = await fetch(`http://127.0.0.1:${ports.metricsPort}/debug/health`);
    const { bounds } = (await answer.json()) as HealthReport;
    expect(bounds.find(({ name }) => name === 'endpoints')).toMatchObject({ used: 20, limit: 64 });
  });
});

describe('--seed', () => {
  it('--seed gives the same picks for the same requests', async () => {
    const profile =
      'plugins:\n- type: random-picker\nschedulingProfiles:\n- name: default\n  plugins: [{pluginRef: ' +
      'random-picker}]\n';
    const endpoints = Array.from({ length: 16 }, (_, index) => ({ name: `s${index}`, port: 20_000 + index }));
    const rows: number[][] = [];
    for (const seed of [7, 7, 8]) {
      const { clients } = await start(endpoints, [`--seed=${seed}`], profile);
      const row: number[] = [];
      for (let i = 0; i < 30; i++) {
        const { replies } = await askAndEnd(clients[0]!, `prompt ${i}`);
        row.push(Number(decodeReply(replies[0]!).headers['x-gateway-destination-endpoint']!.split(':')[1]));
      }
      rows.push(row);
    }
    expect(rows[1]).toEqual(rows[0]);
    expect(rows[2]).not.toEqual(rows[0]);
  });
});
