import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { credentials, makeClientConstructor } from '@grpc/grpc-js';
import { container, find, type Manifest, RELEASE } from './helm.ts';
import type { GrpcProbe } from './llm-d-router.ts';

const PROGRAM = fileURLToPath(new URL('../../bin/pointsman.js', import.meta.url));
const PROBE_MS_MAX = 1000;
const POLL_MS = 50;

/** A container of the picker: what a chart renders, ours or llm-d-router's. */
export interface PickerContainer {
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly livenessProbe: GrpcProbe;
  readonly readinessProbe: GrpcProbe;
}

export interface ContainerProcessOptions {
  readonly container: PickerContainer;
  /** Files of the ConfigMap that is mounted at /config. */
  readonly configuration: Readonly<Record<string, string>>;
  readonly namespace?: string;
  /** In the place of what a cluster gives every container: the API server and the token. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Ports that are free here, where a pod has a network of its own. */
  readonly ports?: { readonly grpc: number; readonly health: number; readonly metrics: number };
}

type Probe = 'livenessProbe' | 'readinessProbe';

/** A container of the picker as a process: its arguments, its environment, its mounted configuration. */
export class ContainerProcess {
  readonly #folder = mkdtempSync(join(tmpdir(), 'pointsman-container-'));
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  readonly #options: ContainerProcessOptions;
  #log = '';

  constructor(options: ContainerProcessOptions) {
    const { container, ports, environment } = options;
    this.#options = options;
    this.#mountConfiguration();
    const args = container.args.map((argument) => argument.replace('/config/', `${this.#folder}/config/`));
    if (ports !== undefined) {
      args.push(`--grpc-port=${ports.grpc}`, `--grpc-health-port=${ports.health}`, `--metrics-port=${ports.metrics}`);
    }
    const env = { PATH: process.env.PATH, ...variables(options), ...environment };
    this.#child = spawn(process.execPath, [PROGRAM, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#log = (this.#log + text).slice(-20_000);
    });
    this.#ended = new Promise((resolve) => this.#child.once('exit', () => resolve()));
    process.once('exit', this.#kill);
  }

  /** What it has written to its standard error. */
  get log(): string {
    return this.#log;
  }

  /** Asks as kubelet does. */
  async probe(name: Probe): Promise<boolean> {
    const { port, service } = this.#options.container[name].grpc;
    return (await healthStatus(this.#options.ports?.health ?? port, service)) === SERVING;
  }

  /** Resolves when the probe has succeeded. @throws when the process ends before, or after the time */
  async succeeds(name: Probe, timeoutMs = 20_000): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (performance.now() < deadline) {
      if (await this.probe(name)) return;
      if (this.#child.exitCode !== null)
        throw new Error(`the container ended with ${this.#child.exitCode}:\n${this.#log}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    throw new Error(`the ${name} did not succeed:\n${this.#log}`);
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.#child.kill(signal);
    await this.#ended;
    process.off('exit', this.#kill);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  readonly #kill = () => this.#child.kill('SIGKILL');

  #mountConfiguration(): void {
    const folder = join(this.#folder, 'config');
    mkdirSync(folder);
    for (const [file, text] of Object.entries(this.#options.configuration)) writeFileSync(join(folder, file), text);
  }
}

/** The environment as kubelet fills it in. */
function variables({ container, namespace = 'default' }: ContainerProcessOptions): Record<string, string> {
  const fields: Record<string, string> = { NAMESPACE: namespace, POD_NAME: `${RELEASE}-epp-5d8f7c9b4-x2zvn` };
  const filled = container.env.map(({ name, value }) => [name, value ?? fields[name] ?? 'node-0'] as const);
  return Object.fromEntries(filled);
}

/** The picker of a release: its container and its mounted configuration. */
export function pickerOf(manifests: readonly Manifest[]): Pick<ContainerProcessOptions, 'container' | 'configuration'> {
  const { data } = find(manifests, 'ConfigMap', `${RELEASE}-epp`);
  return { container: container(manifests) as unknown as PickerContainer, configuration: data };
}

/** Value of the status SERVING in grpc.health.v1. */
const SERVING = 1;

const method = {
  path: '/grpc.health.v1.Health/Check',
  requestStream: false,
  responseStream: false,
  requestSerialize: (message: Buffer) => message,
  requestDeserialize: (message: Buffer) => message,
  responseSerialize: (message: Buffer) => message,
  responseDeserialize: (message: Buffer) => message,
} as const;
const Health = makeClientConstructor({ check: method }, 'grpc.health.v1.Health');

/** Status of a service; undefined when there is no answer. HealthCheckResponse has it in its only field. */
function healthStatus(port: number, service: string): Promise<number | undefined> {
  const client = new Health(`127.0.0.1:${port}`, credentials.createInsecure());
  const name = Buffer.from(service);
  const request = name.length === 0 ? name : Buffer.concat([Buffer.from([0x0a, name.length]), name]);
  const deadline = Date.now() + PROBE_MS_MAX;
  return new Promise((resolve) => {
    const check = client.check as (...args: unknown[]) => void;
    check.call(client, request, { deadline }, (error: Error | null, answer?: Buffer) => {
      client.close();
      resolve(error === null ? answer?.[1] : undefined);
    });
  });
}
