import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ResourceLimits } from 'node:worker_threads';
import { DEFAULT_PLUGINS, DEFAULT_PROFILES } from '../../dist/src/config/default-configuration.js';
import type { Picker } from '../../dist/src/picker/picker.js';
import { startShardThreads } from '../../dist/src/picker/shards/shard-threads.js';
import { createPicker } from '../../dist/src/serve/create-picker.js';
import { parseServeFlags } from '../../dist/src/serve/flags.js';
import { requestBody, requestHeaders } from '../ingress/envoy-messages.ts';
import { type Call, collect, dialPicker, type ProxyClient } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';

export const PROGRAM = fileURLToPath(new URL('../../bin/pointsman.js', import.meta.url));

/** An entry of the endpoints file. */
export interface FileEndpoint {
  readonly name: string;
  readonly address?: string;
  readonly port: number;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Flags that choose the transport under test: POINTSMAN_TEST_TRANSPORT=lean or grpc-js; none = the default. */
export const TRANSPORT_FLAGS: readonly string[] = process.env.POINTSMAN_TEST_TRANSPORT
  ? [`--transport=${process.env.POINTSMAN_TEST_TRANSPORT}`]
  : [];

/** What a picker is started with: a folder with its configuration and its endpoints, gone with `remove`. */
export class Setting {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** @param profile `plugins` (the first line) and `schedulingProfiles` as YAML; left out = the default profile */
  static async create(
    endpoints: readonly FileEndpoint[],
    profile = `plugins:\n${DEFAULT_PLUGINS}${DEFAULT_PROFILES}`,
  ): Promise<Setting> {
    const setting = new Setting(await mkdtemp(join(tmpdir(), 'pointsman-serving-')));
    await setting.writeEndpoints(endpoints);
    await setting.configure(profile);
    return setting;
  }

  get configFile(): string {
    return join(this.folder, 'configuration.yaml');
  }

  /** The flags of a plain-text picker on free ports; it rehearses nothing, which would take the cores of the tests. */
  get flags(): readonly string[] {
    return [
      `--config-file=${this.configFile}`,
      ...['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0'],
      ...['--metrics-endpoint-auth=false', '--secure-serving=false', '--idle-warm-up=0s'],
      ...TRANSPORT_FLAGS,
    ];
  }

  /** Writes the configuration file in one step; discovery is by file. @param profile as for `create` */
  async configure(profile: string): Promise<void> {
    const path = JSON.stringify(join(this.folder, 'endpoints.yaml'));
    const discovery = `- type: file-discovery\n  parameters: {path: ${path}, watchFile: true}\n`;
    const head = 'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n';
    const tail = 'dataLayer:\n  discovery: {pluginRef: file-discovery}\n';
    const next = join(this.folder, 'configuration.next');
    await writeFile(next, head + profile.replace('plugins:\n', `plugins:\n${discovery}`) + tail);
    await rename(next, this.configFile);
  }

  /** Replaces the endpoints file in one step, as an editor does. @param rest further sections of it */
  async writeEndpoints(endpoints: readonly FileEndpoint[], rest = ''): Promise<void> {
    const next = join(this.folder, 'endpoints.next');
    const lines = endpoints.map(
      ({ address = '127.0.0.1', ...entry }) => `- ${JSON.stringify({ ...entry, address, port: String(entry.port) })}\n`,
    );
    await writeFile(next, `${lines.length === 0 ? 'endpoints: []\n' : `endpoints:\n${lines.join('')}`}${rest}`);
    await rename(next, join(this.folder, 'endpoints.yaml'));
  }

  remove(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }
}

export interface Ports {
  readonly grpcPort: number;
  readonly healthPort: number;
  readonly metricsPort: number;
}

/** A `pointsman serve` of its own process. */
export interface ServeProcess extends Ports {
  readonly child: ChildProcess;
  /** What it has written to its standard error. */
  log(): string;
  /** Resolves to its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
  /** Kills it; resolves when it has ended. */
  kill(): Promise<void>;
}

/** Start of a picker on a machine that does other things. */
const SERVES_WITHIN_MS = 25_000;

/**
 * Starts `pointsman serve`; resolves when it says that it serves. Rejects with its last words when it ends first.
 * @param env variables beside those of this process
 */
export async function startServe(
  flags: readonly string[],
  program = PROGRAM,
  env: Readonly<Record<string, string>> = {},
): Promise<ServeProcess> {
  const child = spawn(process.execPath, [program, 'serve', ...flags], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...env },
  });
  let text = '';
  child.stderr!.setEncoding('utf8').on('data', (piece: string) => (text += piece));
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals | null);
  let over = false;
  ended.then(() => (over = true));
  const line = () => text.split('\n').find((candidate) => candidate.includes('pointsman is serving'));
  await eventually('the picker serves', () => over || line() !== undefined, SERVES_WITHIN_MS);
  const serving = line();
  if (serving === undefined) throw new Error(text);
  const { grpcPort, healthPort, metricsPort } = JSON.parse(serving) as Ports;
  const kill = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  return { child, log: () => text, ended, kill, grpcPort, healthPort, metricsPort };
}

/** Runs `pointsman` with arguments that make it end. @returns its exit code and its standard error */
export async function runToEnd(
  args: readonly string[],
  program = PROGRAM,
): Promise<{ readonly code: number | null; readonly stderr: string }> {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (stderr += piece));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stderr };
}

/** Starts a picker in this process; the caller stops it. @param env its environment variables */
export async function startPicker(
  flags: readonly string[],
  resourceLimits?: ResourceLimits,
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly picker: Picker; readonly ports: Ports }> {
  const parsed = parseServeFlags([...flags, '--zap-log-level=panic'], env);
  if ('help' in parsed) throw new Error('asked for help');
  const failed = (error: Error) => {
    throw error;
  };
  const { picker } = await createPicker(parsed, failed, startShardThreads(parsed.shards, resourceLimits));
  return { picker, ports: await picker.start() };
}

export const chat = (prompt: string): string =>
  JSON.stringify({ model: 'm', messages: [{ role: 'user', content: prompt }] });

/** Sends a whole request on a new stream, and leaves the stream open. */
export function ask(client: ProxyClient, prompt: string, headers: Readonly<Record<string, string>> = {}): Call {
  const call = client.process();
  call.on('error', () => undefined);
  call.write(requestHeaders({ ':path': '/v1/chat/completions', ...headers }));
  call.write(requestBody(chat(prompt)));
  return call;
}

/** Asks, half-closes, and collects everything. */
export function askAndEnd(client: ProxyClient, prompt: string, headers: Readonly<Record<string, string>> = {}) {
  const call = ask(client, prompt, headers);
  const collected = collect(call);
  call.end();
  return collected;
}

export async function metricsPage(port: number): Promise<string> {
  return (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
}

/** Sum of a metric's series that carry `labels` (as text, `name="value"`); undefined when there is none. */
export async function metric(port: number, name: string, labels = ''): Promise<number | undefined> {
  const page = await metricsPage(port);
  const series = [...page.matchAll(new RegExp(`^${name}(\\{[^}]*\\})? (\\S+)$`, 'gm'))].filter(([line]) =>
    line.includes(labels),
  );
  return series.length === 0 ? undefined : series.reduce((sum, [, , value]) => sum + Number(value), 0);
}

/** Runs `use` over one connection to a picker. */
export async function overConnection<T>(port: number, use: (client: ProxyClient) => Promise<T>): Promise<T> {
  const client = dialPicker(port);
  try {
    return await use(client);
  } finally {
    client.close();
  }
}
