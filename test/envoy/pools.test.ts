import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { endpointsYaml } from '../../dist/tools/simulator/server/fleet.js';
import { type Backend, startBackend } from '../tools/gateway/backend.ts';
import { ask, chatBody } from '../tools/gateway/client.ts';
import { skipReason } from './envoy.ts';
import { startTestBed, type TestBed } from './test-bed.ts';

describe.skipIf(skipReason !== '')(`pools behind Envoy${skipReason}`, () => {
  let bed: TestBed<Backend>;
  let folder: string;
  beforeAll(async () => {
    const servers = await Promise.all(['s0', 's1', 's2'].map((name) => startBackend(name)));
    folder = await mkdtemp(join(tmpdir(), 'pointsman-envoy-pools-'));
    await writeFile(join(folder, 'second.yaml'), endpointsYaml([servers[1]!]));
    await writeFile(join(folder, 'third.yaml'), endpointsYaml([servers[2]!]));
    const pools = [
      { name: 'second', endpointsFile: 'second.yaml' },
      { name: 'third', endpointsFile: 'third.yaml', models: ['m'] },
    ];
    const file = join(folder, 'pools.yaml');
    await writeFile(file, JSON.stringify({ pools }));
    bed = await startTestBed(servers, { flags: [`--pools=${file}`] });
  });
  afterAll(async () => {
    await bed?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const served = async (headers: Readonly<Record<string, string>>) => {
    const before = bed.servers.map(({ received }) => received.length);
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, i) => ask(bed.envoy.port, { headers, body: chatBody(`prompt ${i}`) })),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
    return bed.servers.map(({ received }, i) => received.length - before[i]!);
  };

  test('pools behind Envoy are chosen by the header, which does not go on', async () => {
    expect(await served({ 'x-pointsman-pool': 'second' })).toEqual([0, 6, 0]);
    expect(bed.servers[1]!.received.at(-1)!.headers['x-pointsman-pool']).toBeUndefined();
  });

  test('pools behind Envoy are chosen by the model', async () => {
    expect(await served({})).toEqual([0, 0, 6]);
  });

  test('pools behind Envoy that are not there are a 404 for the client', async () => {
    const answer = await ask(bed.envoy.port, { headers: { 'x-pointsman-pool': 'none' }, body: chatBody('hello') });
    expect(answer.status).toBe(404);
  });
});
