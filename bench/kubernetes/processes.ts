import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePorts } from '../../dist/src/serve/port.js';
import { checkHealth, dialPicker } from '../../test/ingress/proxy-client.ts';
import type { Cluster, FirstState } from './first-state.ts';
import type { Usage } from './observed-picker.ts';
import type { Order } from './stand-in-process.ts';

const program = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** A stand-in API server as a process of its own. */
export async function startStandInProcess(pods: number) {
  const child = fork(program('stand-in-process.ts'), [String(pods)]);
  const [url] = (await once(child, 'message')) as [string];
  return {
    url,
    order: (order: Order) => void child.send(order),
    stop: () => end(child),
  };
}

/** Without scrapes, which would cost many times what discovery costs. */
const CONFIGURATION = `apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins: [{type: random-picker}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: random-picker}]}]
dataLayer: {injectDefaults: false}
`;

export const PICKER_FLAGS: readonly string[] = [
  ...['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0', '--metrics-endpoint-auth=false'],
  ...['--secure-serving=false', '--zap-log-level=panic', '--shards=2', `--config-text=${CONFIGURATION}`],
];

/** A picker as a process of its own, which tells what it uses. @param kubeconfig path; empty = none */
export async function startObservedPicker(kubeconfig: string, flags: readonly string[]) {
  const child = fork(program('observed-picker.ts'), [...PICKER_FLAGS, ...flags], {
    env: { ...process.env, KUBECONFIG: kubeconfig },
  });
  const [{ grpcPort, metricsPort }] = (await once(child, 'message')) as [{ grpcPort: number; metricsPort: number }];
  return {
    grpcPort,
    metricsPort,
    /** Since the last call, or the start. */
    async usage(): Promise<Usage> {
      child.send('usage');
      const [usage] = (await once(child, 'message')) as [Usage];
      return usage;
    },
    stop: () => end(child),
  };
}

/** Discovery alone, with its first state. */
export async function startFirstState(cluster: Cluster) {
  const child = fork(program('first-state.ts'), [JSON.stringify(cluster)]);
  const [state] = (await once(child, 'message')) as [FirstState];
  return { state, stop: () => end(child) };
}

const POLL_MS = 2;

/** Starts the program as it is shipped, and ends it. @returns the time until its readiness is SERVING */
export async function startToServingMs(kubeconfig: string, flags: readonly string[]): Promise<number> {
  const [port] = await freePorts(1);
  const began = performance.now();
  const child = spawn(
    process.execPath,
    [program('../../bin/pointsman.js'), 'serve', ...PICKER_FLAGS, `--grpc-health-port=${port}`, ...flags],
    { env: { ...process.env, KUBECONFIG: kubeconfig }, stdio: 'ignore' },
  );
  const client = dialPicker(port!);
  while ((await checkHealth(client)) !== 'SERVING') {
    if (child.exitCode !== null) throw new Error(`the picker has ended with ${child.exitCode}`);
    await pause(POLL_MS);
  }
  const tookMs = performance.now() - began;
  client.close();
  child.kill('SIGKILL');
  await once(child, 'exit');
  return tookMs;
}

/** Flags of a picker with these endpoints from a file, port 8000. */
export function endpointsFlags(addresses: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-bench-'));
  const file = join(folder, 'endpoints.yaml');
  const entries = addresses.map((address, i) => `- {name: vllm-${i}, address: ${address}, port: "8000"}\n`);
  writeFileSync(file, `endpoints:\n${entries.join('')}`);
  const discovery =
    `plugins:\n- {type: file-discovery, name: discovery, parameters: {path: ${JSON.stringify(file)}}}\n- {type: ` +
    'random-picker}';
  const configuration = CONFIGURATION.replace('plugins: [{type: random-picker}]', discovery).replace(
    '{injectDefaults: false}',
    '{injectDefaults: false, discovery: {pluginRef: discovery}}',
  );
  const flags = [`--config-text=${configuration}`];
  return { flags, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.disconnect();
  await exited;
}

/** A kubeconfig for a server without credentials. */
export function plainKubeconfig(server: string): { readonly file: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-bench-'));
  const file = join(folder, 'config');
  const context = { name: 'bench', context: { cluster: 'bench', user: 'bench' } };
  const clusters = [{ name: 'bench', cluster: { server } }];
  const users = [{ name: 'bench', user: { token: 'bench' } }];
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'bench',
    contexts: [context],
    clusters,
    users,
  };
  writeFileSync(file, JSON.stringify(content));
  return { file, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
