import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { freePorts } from '../../dist/cli/port.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The Envoy to test with: ENVOY_BIN, what scripts/install-envoy.sh installed, or one from PATH. */
export const envoyBinary = findEnvoy();

/** Why the Envoy tests are skipped; the empty string when they run. With POINTSMAN_REQUIRE_ENVOY=1 they never are. */
export const skipReason =
  envoyBinary === undefined && process.env.POINTSMAN_REQUIRE_ENVOY !== '1'
    ? ' (skipped: no Envoy found; run scripts/install-envoy.sh or set ENVOY_BIN)'
    : '';

export type Configuration = 'envoy.yaml' | 'envoy-fail-open.yaml';

export interface Envoy {
  readonly port: number;
  stop(): Promise<void>;
}

/** Path of a configuration as it is shipped. */
export function shipped(configuration: Configuration): string {
  return join(ROOT, 'deploy/envoy', configuration);
}

/** What `envoy --mode validate` says. */
export function validate(configuration: Configuration): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(envoy(), ['--mode', 'validate', '-c', shipped(configuration)], {
    encoding: 'utf8',
  });
  return { status, output: stdout + stderr };
}

/** Start the shipped configuration on free ports, in front of this picker and (failing open) these servers. */
export async function startEnvoy(
  configuration: Configuration,
  pickerPort: number,
  serverPorts: readonly number[] = [],
): Promise<Envoy> {
  const [port, adminPort] = await freePorts(2);
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-envoy-'));
  const file = join(folder, 'envoy.yaml');
  await writeFile(file, render(configuration, { port: port!, adminPort: adminPort!, pickerPort, serverPorts }));
  const child = spawn(envoy(), ['-c', file, '--concurrency', '1', '--disable-hot-restart', '--log-level', 'warning'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-4_000);
  });
  const exited = new Promise<void>((resolve) => {
    child.on('exit', () => resolve());
    child.on('error', (error) => {
      log = error.message;
      resolve();
    });
  });
  const stop = async () => {
    child.kill('SIGKILL');
    await exited;
    await rm(folder, { recursive: true, force: true });
  };
  await Promise.race([ready(adminPort!), exited.then(() => Promise.reject(new Error('it ended')))]).catch(
    async (error: unknown) => {
      await stop();
      throw new Error(`Envoy did not get ready: ${error instanceof Error ? error.message : error}: ${log}`);
    },
  );
  return { port: port!, stop };
}

function envoy(): string {
  if (envoyBinary === undefined)
    throw new Error('POINTSMAN_REQUIRE_ENVOY=1, but no Envoy: run scripts/install-envoy.sh');
  return envoyBinary;
}

function findEnvoy(): string | undefined {
  const inPath = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'envoy'));
  const named = process.env.ENVOY_BIN;
  // A binary that is named and not there is an error of the caller's, not a reason to skip.
  return named ?? [join(ROOT, '.tools/envoy/envoy/_bin/envoy'), ...inPath].find(executable);
}

function executable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

interface Ports {
  readonly port: number;
  readonly adminPort: number;
  readonly pickerPort: number;
  readonly serverPorts: readonly number[];
}

interface SocketAddress {
  address: { socket_address: { address: string; port_value: number } };
}

interface Cluster {
  name: string;
  load_assignment?: { endpoints: [{ lb_endpoints: { endpoint: SocketAddress }[] }] };
}

/** The shipped file with other ports; nothing else differs from what users run. */
function render(configuration: Configuration, ports: Ports): string {
  const document = parse(readFileSync(shipped(configuration), 'utf8'), { merge: true }) as {
    admin: SocketAddress;
    static_resources: { listeners: [SocketAddress]; clusters: Cluster[] };
  };
  document.admin.address.socket_address.port_value = ports.adminPort;
  document.static_resources.listeners[0].address.socket_address = { address: '127.0.0.1', port_value: ports.port };
  const members: Record<string, readonly number[]> = { ext_proc: [ports.pickerPort], model_servers: ports.serverPorts };
  for (const cluster of document.static_resources.clusters) {
    if (cluster.load_assignment === undefined) continue;
    cluster.load_assignment.endpoints[0].lb_endpoints = members[cluster.name]!.map((port) => ({
      endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } },
    }));
  }
  return stringify(document, { aliasDuplicateObjects: false });
}

async function ready(adminPort: number): Promise<void> {
  const deadline = performance.now() + 15_000;
  while (performance.now() < deadline) {
    const status = await fetch(`http://127.0.0.1:${adminPort}/ready`).then(
      (response) => response.status,
      () => 0,
    );
    if (status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error('not in time');
}
