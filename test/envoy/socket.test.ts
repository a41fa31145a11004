import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet } from '../../dist/tools/simulator/server/fleet.js';
import type { ModelServer } from '../../dist/tools/simulator/server/model-server.js';
import { ask, chatBody } from '../tools/gateway/client.ts';
import { skipReason } from './envoy.ts';
import { startTestBed, type TestBed } from './test-bed.ts';

describe.skipIf(skipReason !== '')(`Envoy and a picker over a Unix domain socket${skipReason}`, () => {
  let folder: string;
  let bed: TestBed<ModelServer>;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pointsman-socket-'));
    const socket = join(folder, 'ext-proc.sock');
    const owner = `${process.getuid!()}:${process.getgid!()}`;
    const flags = [`--grpc-socket=${socket}`, '--grpc-socket-mode=0600', `--grpc-socket-owner=${owner}`, '--shards=2'];
    bed = await startTestBed((await startFleet(2)).servers, { configuration: 'envoy-socket.yaml', socket, flags });
  });
  afterAll(async () => {
    await bed?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test('Envoy and a picker over a Unix domain socket serve requests', async () => {
    const answer = await ask(bed.envoy.port, { body: chatBody('over a file') });
    expect(answer.status).toBe(200);
  });

  test('Envoy and a picker over a Unix domain socket share a file that has the mode that was asked for', async () => {
    expect((await stat(join(folder, 'ext-proc.sock'))).mode & 0o777).toBe(0o600);
  });
});
