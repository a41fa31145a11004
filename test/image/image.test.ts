import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { checkHealth, firstReply } from '../ingress/proxy-client.ts';
import { ask, overConnection } from '../picker/serving.ts';
import { eventually } from '../tools/gateway/client.ts';
import { type ImageSettings, ImageStore, imageSkipReason, inContainer } from './buildah.ts';

const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const run = (program: string, args: readonly string[]) =>
  promisify(execFile)(program, args, { maxBuffer: OUTPUT_BYTES_MAX });
const BUILD_MS_MAX = 900_000;
const BASE = 'localhost/node:24-debian';
const IMAGE = 'localhost/pointsman:test';

let folder: string;
let store: ImageStore | undefined;
let mount: string;
let settings: ImageSettings;
let bytes: number;

/** Runs a command in the image and waits for its output. */
async function inside(...command: readonly string[]): Promise<string> {
  return (await run('unshare', inContainer(mount, settings, command))).stdout.trim();
}

describe.skipIf(imageSkipReason !== '')(`the container image${imageSkipReason}`, () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'image-'));
    store = await ImageStore.open(folder);
    await store.base(BASE);
    await store.build(
      IMAGE,
      '--build-arg',
      `NODE_IMAGE=${BASE}`,
      '--build-arg',
      'VERSION=1.2.3',
      '--build-arg',
      'REVISION=abc',
    );
    const container = await store.buildah('from', '--pull-never', IMAGE);
    mount = await store.buildah('mount', container);
    settings = await store.settings(IMAGE);
    bytes = Number((await run('du', ['-sb', join(mount, 'app')])).stdout.split('\t')[0]);
    console.log(`the program in the image: ${(bytes / 1e6).toFixed(1)} MB`);
  }, BUILD_MS_MAX);
  afterAll(async () => {
    await store?.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('the image says what it is, by the labels of OCI', () => {
    expect(settings.Labels).toMatchObject({
      'org.opencontainers.image.title': 'Pointsman',
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.version': '1.2.3',
      'org.opencontainers.image.revision': 'abc',
    });
  });

  test('the image runs as a user that is not root and opens the three ports', () => {
    expect(settings.User).toBe('65532:65532');
    expect(Object.keys(settings.ExposedPorts).sort()).toEqual(['9002/tcp', '9003/tcp', '9090/tcp']);
  });

  test('the image has no Node.js of the development, no files of other platforms, no types and no source maps', async () => {
    const files = (await run('find', [join(mount, 'app'), '-type', 'f'])).stdout.split('\n');
    expect(files.filter((file) => file.includes('/node_modules/node/'))).toEqual([]);
    expect(files.filter((file) => /\/build\/(darwin|win32)\/.*\.node$/.test(file))).toEqual([]);
    expect(files.filter((file) => /\.(d\.[cm]?ts|map)$/.test(file))).toEqual([]);
    expect(bytes).toBeLessThan(60_000_000);
  });

  test('the image brings code compiled by its own Node.js', async () => {
    const version = await inside('node', '-p', 'process.version + "-" + process.arch');
    const files = (await run('ls', [join(mount, 'app/dist/program/compiled')])).stdout.trim().split('\n');
    expect(files.sort()).toEqual([`serve.cjs.${version}`, `shard.cjs.${version}`]);
  });

  test('the image serves health and a pick on a read-only file system, and ends with SIGTERM', async () => {
    const image = await started();
    try {
      expect(await overConnection(image.healthPort, (client) => checkHealth(client))).toBe('SERVING');
      const call = await overConnection(image.grpcPort, async (client) => {
        const asked = ask(client, 'hello');
        const { headers } = decodeReply(await firstReply(asked));
        asked.cancel();
        return headers['x-gateway-destination-endpoint'];
      });
      expect(call).toBe('127.0.0.1:20001');
      await expect(inside('touch', '/app/file')).rejects.toThrow(/Read-only file system/);
    } finally {
      image.child.kill('SIGTERM');
    }
    expect(await once(image.child, 'exit')).toEqual([0, null]);
  });
});

interface Started {
  readonly child: ChildProcess;
  readonly grpcPort: number;
  readonly healthPort: number;
}

/** The image by its entry point, with arguments as a container gets them. */
async function started(): Promise<Started> {
  await mkdir(join(mount, 'config'), { recursive: true });
  const endpoints = join(folder, 'endpoints.yaml');
  await writeFile(endpoints, 'endpoints:\n- {name: server, address: 127.0.0.1, port: 20001}\n');
  await copyFile(endpoints, join(mount, 'config/endpoints.yaml'));
  const ports = ['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0'];
  const flags = ['--endpoints-file=/config/endpoints.yaml', '--secure-serving=false', '--lame-duck=0s', ...ports];
  const child = spawn('unshare', inContainer(mount, settings, [...settings.Entrypoint, ...flags]), {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (log += piece));
  const line = () => log.split('\n').find((each) => each.includes('pointsman is serving'));
  await eventually('the image serves', () => child.exitCode !== null || line() !== undefined);
  if (line() === undefined) throw new Error(log);
  return { child, ...(JSON.parse(line()!) as { grpcPort: number; healthPort: number }) };
}
