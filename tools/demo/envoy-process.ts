import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { errorMessage } from '../../src/runtime/error-message.js';
import { freePorts } from '../../src/serve/port.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const READY_TIMEOUT_MS = 15_000;
const POLL_MS = 20;

/** The configurations that are shipped in deploy/envoy. */
export type EnvoyConfiguration =
  | 'envoy.yaml'
  | 'envoy-fail-open.yaml'
  | 'envoy-socket.yaml'
  | 'envoy-answer-heads.yaml'
  | 'envoy-answer-share.yaml'
  | 'envoy-headers-only.yaml';

/** An Envoy in a process of its own. */
export interface EnvoyProcess {
  readonly port: number;
  /** Port of its admin page. */
  readonly adminPort: number;
  readonly pid: number;
  stop(): Promise<void>;
}

export interface EnvoyProcessOptions {
  /** Path of the program (`findEnvoy`). */
  readonly binary: string;
  readonly configuration: EnvoyConfiguration;
  /** 0 = a free one. */
  readonly port: number;
  readonly pickerPort: number;
  /** Unix domain socket of the picker, in the place of its port; only one of the configurations has such a place. */
  readonly pickerSocket?: string | undefined;
  /** Destinations of requests without a picker; only the configuration that fails open has such. */
  readonly serverPorts?: readonly number[];
}

/**
 * The Envoy to run: ENVOY_BIN, what scripts/install-envoy.sh installed, or one from PATH; undefined when there is none.
 */
export function findEnvoy(): string | undefined {
  const inPath = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'envoy'));
  // A binary that is named and not there is an error of the caller's, not a reason to look further.
  return process.env.ENVOY_BIN ?? [join(ROOT, '.tools/envoy/envoy/_bin/envoy'), ...inPath].find(executable);
}

function executable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Path of a configuration as it is shipped. */
export function shippedEnvoyConfiguration(configuration: EnvoyConfiguration): string {
  return join(ROOT, 'deploy/envoy', configuration);
}

/**
 * Starts Envoy with a shipped configuration on other ports, and waits for its word that it is ready.
 * @throws {Error} one line, when it ends or is not ready in time.
 */
export async function startEnvoyProcess(options: EnvoyProcessOptions): Promise<EnvoyProcess> {
  const [free, adminPort] = await freePorts(2);
  const port = options.port || free!;
  const text = await render({ ...options, port }, adminPort!);
  return runEnvoy(options.binary, text, { port, adminPort: adminPort! });
}

/**
 * Starts Envoy with the text of a configuration, and waits until it says that it is ready.
 * @throws {Error} one line, when it ends or is not ready in time.
 */
export async function runEnvoy(
  binary: string,
  text: string,
  { port, adminPort }: { readonly port: number; readonly adminPort: number },
): Promise<EnvoyProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-envoy-'));
  const file = join(folder, 'envoy.yaml');
  await writeFile(file, text);
  // One thread is enough for a demonstration. Without a restart in mind, several can run on one machine.
  const flags = ['-c', file, '--concurrency', '1', '--disable-hot-restart', '--log-level', 'warning'];
  const child = spawn(binary, flags, { stdio: ['ignore', 'ignore', 'pipe'] });
  // The child ends with this process, stopped or not.
  const killed = () => child.kill('SIGKILL');
  process.once('exit', killed);
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
    killed();
    await exited;
    process.off('exit', killed);
    await rm(folder, { recursive: true, force: true });
  };
  await Promise.race([ready(adminPort), exited.then(() => Promise.reject(new Error('it ended')))]).catch(
    async (error: unknown) => {
      await stop();
      throw new Error(`Envoy did not get ready: ${errorMessage(error)}: ${log}`);
    },
  );
  return { port, adminPort, pid: child.pid!, stop };
}

interface SocketAddress {
  address: { socket_address: { address: string; port_value: number } };
}

interface PipeAddress {
  address: { pipe: { path: string } };
}

interface Cluster {
  name: string;
  load_assignment?: { endpoints: [{ lb_endpoints: { endpoint: SocketAddress | PipeAddress }[] }] };
}

/** The shipped file with other ports; nothing else differs from what users run. */
async function render(
  { configuration, port, pickerPort, pickerSocket, serverPorts = [] }: EnvoyProcessOptions,
  adminPort: number,
): Promise<string> {
  const document = parse(await readFile(shippedEnvoyConfiguration(configuration), 'utf8'), { merge: true }) as {
    admin: SocketAddress;
    static_resources: { listeners: [SocketAddress]; clusters: Cluster[] };
  };
  document.admin.address.socket_address.port_value = adminPort;
  document.static_resources.listeners[0].address.socket_address = { address: '127.0.0.1', port_value: port };
  const members: Record<string, readonly number[]> = { ext_proc: [pickerPort], model_servers: serverPorts };
  for (const cluster of document.static_resources.clusters) {
    if (cluster.load_assignment === undefined) continue;
    if (cluster.name === 'ext_proc' && pickerSocket !== undefined) {
      cluster.load_assignment.endpoints[0].lb_endpoints = [{ endpoint: { address: { pipe: { path: pickerSocket } } } }];
      continue;
    }
    cluster.load_assignment.endpoints[0].lb_endpoints = members[cluster.name]!.map((member) => ({
      endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: member } } },
    }));
  }
  return stringify(document, { aliasDuplicateObjects: false });
}

async function ready(adminPort: number): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  while (performance.now() < deadline) {
    const status = await fetch(`http://127.0.0.1:${adminPort}/ready`).then(
      (response) => response.status,
      () => 0,
    );
    if (status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error('not in time');
}
