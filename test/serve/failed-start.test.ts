import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { runToEnd, Setting } from '../picker/serving.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const cleanups: (() => unknown)[] = [];
let setting: Setting;

beforeAll(async () => {
  setting = await Setting.create([{ name: 'server', port: 20_000 }]);
});
afterAll(() => setting.remove());
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** What `pointsman` says when it cannot start; checked to be one line, an exit code of 1, and no stack trace. */
async function failure(args: readonly string[], program?: string): Promise<string> {
  const { code, stderr } = await runToEnd(args, program);
  // Lines may have been logged before, as JSON.
  const said = stderr.replaceAll(/^\{.*"level":"(?:info|warn)".*\}\n/gm, '');
  expect(said).toMatch(/^pointsman: [^\n]+\n$/);
  expect(said).not.toMatch(/ at \S+:\d+:\d+|node:internal/);
  expect(code).toBe(1);
  return said.slice('pointsman: '.length, -1);
}

async function file(name: string, text: string): Promise<string> {
  const path = join(setting.folder, name);
  await writeFile(path, text);
  return path;
}

async function busyPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '::', resolve));
  cleanups.push(() => server.close());
  return (server.address() as { port: number }).port;
}

const serve = (...flags: string[]) => failure(['serve', ...setting.flags, ...flags]);

describe('a start that fails says why in one line and exits with 1', () => {
  it('the start fails on an unknown command', async () => {
    expect(await failure(['sevre'])).toBe('unknown command "sevre"; did you mean "serve"?');
  });

  it('the start fails on an unknown flag, with the nearest one', async () => {
    expect(await serve('--max-stream=1')).toBe('unknown flag --max-stream; did you mean --max-streams?');
  });

  it('the start fails on a bad value of a flag', async () => {
    expect(await serve('--shards=none')).toMatch(/^--shards: .*"none"/);
  });

  it('the start fails on no source of endpoints', async () => {
    expect(await failure(['serve'])).toMatch(/^no source of endpoints: give one of --endpoints-file .*file-discovery/);
  });

  it('the start fails on a configuration file with an unknown field', async () => {
    const path = await file('wrong.yaml', 'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\npluginz: []\n');
    expect(await failure(['serve', `--config-file=${path}`])).toMatch(/wrong\.yaml:3:1.*pluginz.*plugins/);
  });

  it('the start fails on a configuration text that is no YAML', async () => {
    expect(await failure(['serve', '--config-text={a: [}'])).toMatch(/--config-text|line|:1:/);
  });

  it('the start fails on a configuration file that is not there', async () => {
    expect(await failure(['serve', '--config-file=/nowhere/config.yaml'])).toContain('/nowhere/config.yaml');
  });

  it('the start fails on an endpoints file that is not there, or has an error', async () => {
    const config = (path: string) =>
      `--config-text=${JSON.stringify({
        apiVersion: 'llm-d.ai/v1alpha1',
        kind: 'EndpointPickerConfig',
        plugins: [{ type: 'file-discovery', parameters: { path } }],
        dataLayer: { discovery: { pluginRef: 'file-discovery' } },
      })}`;
    const ports = ['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0', '--metrics-endpoint-auth=false'];
    const missing = await failure(['serve', config('/nowhere/endpoints.yaml'), ...ports]);
    expect(missing).toBe('/nowhere/endpoints.yaml: does not exist: create it or correct the path');
    const path = await file('endpoints-wrong.yaml', 'endpoints:\n- {name: a, address: 10.0.0.1, port: "http"}\n');
    expect(await failure(['serve', config(path), ...ports])).toMatch(/endpoints-wrong\.yaml.*port/);
  });

  it.each(['grpc-port', 'grpc-health-port', 'metrics-port'])('the start fails on a busy --%s', async (flag) => {
    const port = await busyPort();
    const said = await serve(`--${flag}=${port}`);
    expect(said).toContain(`port ${port}`);
    expect(said).toContain(`choose another with --${flag}`);
  });

  it('the start fails on a busy port that several shards would share', async () => {
    const port = await busyPort();
    expect(await serve(`--grpc-port=${port}`, '--shards=2')).toMatch(
      new RegExp(`^port ${port} is in use .*choose another with --grpc-port`),
    );
  });

  it.each([
    ['bind-address', '--metrics-bind-address or --bind-address'],
    ['metrics-bind-address', '--metrics-bind-address or --bind-address'],
    ['grpc-bind-address', '--grpc-bind-address or --bind-address'],
    ['grpc-health-bind-address', '--grpc-health-bind-address or --bind-address'],
  ])('the start fails on a --%s that the machine does not have', async (flag, remedy) => {
    // TEST-NET-1 (RFC 5737), which no machine has.
    const said = await serve(`--${flag}=192.0.2.1`);
    expect(said).toContain('this machine has no address 192.0.2.1');
    expect(said.endsWith(`choose another with ${remedy}`)).toBe(true);
  });

  it('the start fails on a --grpc-socket in a folder that is not there', async () => {
    const folder = join(setting.folder, 'missing');
    expect(await serve(`--grpc-socket=${folder}/picker.sock`)).toBe(
      `--grpc-socket: ${folder}/picker.sock: there is no folder ${folder}: make it, or choose another path`,
    );
  });

  it.each(['state-dir', 'usage-dir'])('the start fails on a --%s that cannot be made or written', async (flag) => {
    // A file system in which nothing can be made: Node.js would try for ever.
    expect(await serve(`--${flag}=/proc/pointsman/state`)).toBe(
      `--${flag}: /proc/pointsman/state cannot be made there: name a folder of another file system`,
    );
    const path = await file('a-file', '');
    expect(await serve(`--${flag}=${path}`)).toBe(`--${flag}: ${path} is a file: name a folder`);
    expect(await serve(`--${flag}=${path}/below`)).toBe(`--${flag}: ${path}/below lies below a file: correct the path`);
  });

  it('the start fails on a certificate that cannot be read or used', async () => {
    const secure = (...flags: string[]) => serve('--secure-serving=true', ...flags);
    expect(await secure('--cert-path=/nowhere')).toMatch(/^--cert-path: \/nowhere\/tls\.crt does not exist: create it/);
    await file('tls.crt', 'no certificate');
    await file('tls.key', 'no key');
    expect(await secure(`--cert-path=${setting.folder}`)).toMatch(
      /^--cert-path: tls\.crt and tls\.key of .* are no PEM/,
    );
    expect(await serve(`--metrics-cert-dir=${setting.folder}`, '--metrics-endpoint-auth')).toMatch(
      /^--metrics-cert-dir: /,
    );
  });

  it('the start fails on a missing Wasm build', async () => {
    const copy = await mkdtemp(join(tmpdir(), 'pointsman-copy-'));
    cleanups.push(() => rm(copy, { recursive: true, force: true }));
    await mkdir(join(copy, 'bin'));
    await cp(join(ROOT, 'bin'), join(copy, 'bin'), { recursive: true });
    await cp(join(ROOT, 'dist'), join(copy, 'dist'), {
      recursive: true,
      filter: (path) => !path.endsWith('.wasm'),
    });
    await cp(join(ROOT, 'package.json'), join(copy, 'package.json'));
    await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    const line = await failure(['serve', ...setting.flags], join(copy, 'bin', 'pointsman.js'));
    expect(line).toMatch(/^the Wasm build is missing \(.*core(-debug)?\.wasm\): run "npm run build"$/);
  });
});
