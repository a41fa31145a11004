import { afterEach, describe, expect, it } from 'vitest';
import type { Picker } from '../../dist/src/picker/picker.js';
import { decodeReply, requestBody, requestHeaders } from '../ingress/envoy-messages.ts';
import { collect, dialPicker, type ProxyClient } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { askAndEnd, metric, type Ports, Setting, startPicker } from './serving.ts';

const ENDPOINTS = [
  { name: 'a', port: 20_001, labels: { zone: 'a' } },
  { name: 'b', port: 20_002, labels: { zone: 'b' } },
];
const zone = (name: string) =>
  `plugins:\n- {type: label-selector-filter, parameters: {matchLabels: {zone: ${name}}}}\n- type: queue-scorer\n`;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface TestBed {
  readonly setting: Setting;
  readonly picker: Picker;
  readonly ports: Ports;
  readonly client: ProxyClient;
}

async function start(profile: string, ...flags: string[]): Promise<TestBed> {
  const setting = await Setting.create(ENDPOINTS, profile);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, ...flags]);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  return { setting, picker, ports, client };
}

const configure = ({ setting }: TestBed, profile: string) => setting.configure(profile);

async function reloads({ ports }: TestBed, outcome: string): Promise<number | undefined> {
  return metric(ports.metricsPort, 'pointsman_config_reloads_total', `outcome="${outcome}"`);
}

const counted = (bed: TestBed, outcome: string, count: number) =>
  eventually(`${count} reloads are ${outcome}`, async () => (await reloads(bed, outcome)) === count);

async function destination({ client }: TestBed): Promise<string | undefined> {
  const { replies } = await askAndEnd(client, 'hello');
  return decodeReply(replies[0]!).headers['x-gateway-destination-endpoint'];
}

describe('a changed configuration file', () => {
  it('a changed configuration file is applied to the requests that follow', async () => {
    const bed = await start(zone('a'));
    expect(await destination(bed)).toBe('127.0.0.1:20001');
    await configure(bed, zone('b'));
    await counted(bed, 'applied', 1);
    expect(await destination(bed)).toBe('127.0.0.1:20002');
  });

  it('a changed configuration file that is invalid changes nothing, and the next valid one is applied', async () => {
    const bed = await start(zone('a'));
    await configure(bed, 'plugins:\n- type: queu-scorer\n');
    await counted(bed, 'invalid', 1);
    expect(await destination(bed)).toBe('127.0.0.1:20001');
    await configure(bed, zone('b'));
    await counted(bed, 'applied', 1);
    expect(await destination(bed)).toBe('127.0.0.1:20002');
  });

  it('a changed configuration file that needs a restart changes nothing, also not the part that would need none', async () => {
    const bed = await start(zone('a'));
    await configure(bed, `${zone('b')}featureGates: [haPopulateNonLeaderDatastore=false]\n`);
    await counted(bed, 'restart_required', 1);
    expect(await destination(bed)).toBe('127.0.0.1:20001');
  });

  it('a changed configuration file that says the same in other words is told so', async () => {
    const bed = await start(zone('a'));
    await configure(
      bed,
      `# nothing new\n${zone('a')}`.replace('# nothing new\nplugins:\n', 'plugins:\n# nothing new\n'),
    );
    await counted(bed, 'unchanged', 1);
    expect(await reloads(bed, 'applied')).toBe(0);
  });

  it('a changed configuration file with other parsers counts for requests that begin then, not for those under way', async () => {
    const bed = await start(zone('a'));
    const begun = bed.client.process();
    const answered = collect(begun);
    begun.write(requestHeaders({ ':path': '/v1/chat/completions' }));
    begun.write(requestBody('{"model":', false));
    // On the same connection: when this one is answered, the first one has been read.
    await askAndEnd(bed.client, 'behind it');
    await configure(bed, `${zone('a')}requestHandler: {parsers: [{pluginRef: passthrough-parser}]}\n`);
    await counted(bed, 'applied', 1);
    const opaque = bed.client.process();
    const passed = collect(opaque);
    opaque.write(requestHeaders({ ':path': '/v1/chat/completions' }));
    opaque.write(requestBody('no JSON'));
    opaque.end();
    expect(decodeReply((await passed).replies[0]!).headers['x-gateway-destination-endpoint']).toBe('127.0.0.1:20001');
    begun.write(requestBody('no JSON'));
    begun.end();
    expect(decodeReply((await answered).replies[0]!).status).toBe(400);
  });

  it('a changed configuration file is what a shard that starts later begins with', async () => {
    const bed = await start(zone('a'));
    await configure(bed, `${zone('b')}requestHandler: {parsers: [{pluginRef: passthrough-parser}]}\n`);
    await counted(bed, 'applied', 1);
    bed.client.close();
    await bed.picker.shards.workers.threads[0]!.terminate();
    await eventually('the shard is back', () => bed.picker.shards.listening === 1);
    const client = dialPicker(bed.ports.grpcPort);
    cleanups.push(() => client.close());
    const call = client.process();
    const collected = collect(call);
    call.write(requestHeaders({ ':path': '/v1/chat/completions' }));
    call.write(requestBody('no JSON'));
    call.end();
    expect(decodeReply((await collected).replies[0]!).headers['x-gateway-destination-endpoint']).toBe(
      '127.0.0.1:20002',
    );
  });

  it('a changed configuration file is read on request (SIGHUP) when it is not watched', async () => {
    const bed = await start(zone('a'), '--watch-config=false');
    await configure(bed, zone('b'));
    await bed.picker.reload();
    await counted(bed, 'applied', 1);
    expect(await destination(bed)).toBe('127.0.0.1:20002');
  });

  it('a changed configuration file stays unread with --watch-config=false', async () => {
    const bed = await start(zone('a'), '--watch-config=false');
    await configure(bed, zone('b'));
    // The endpoints file lies in the same folder and is followed in the same way: its change has been noticed by then.
    await bed.setting.writeEndpoints([...ENDPOINTS, { name: 'c', port: 20_003 }]);
    const added = () => metric(bed.ports.metricsPort, 'pointsman_endpoint_inflight_requests', 'endpoint="c"');
    await eventually('the new endpoint is known', async () => (await added()) === 0);
    expect(await reloads(bed, 'applied')).toBe(0);
    expect(await destination(bed)).toBe('127.0.0.1:20001');
  });
});
