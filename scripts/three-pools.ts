import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { DEFAULT_PLUGINS, DEFAULT_PROFILES } from '../dist/src/config/default-configuration.js';
import { freePorts } from '../dist/src/serve/port.js';
import { chat, type Message } from '../dist/tools/demo/chat-client.js';
import { prose } from '../dist/tools/demo/prose.js';
import { startGateway } from '../dist/tools/gateway/gateway.js';
import { engineOf } from '../dist/tools/simulator/server/engine.js';
import { startFleet } from '../dist/tools/simulator/server/fleet.js';
import type { WrittenSpan } from './trace-picture.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
/** The program, for `node`. */
export const PROGRAM = join(root, 'bin/pointsman.js');
const READY_MS = 20_000;
const POLL_MS = 100;
const SYSTEM_BYTES = 3_000;
const DOCUMENT_BYTES = 8_000;
const QUESTION_BYTES = 300;
const TURNS = 5;
const ANSWER_TOKENS = 40;
/** Requests at once that four servers do not take at once. */
const BURST = 80;

/** One pool, its servers, and the conversations that each of its tenants holds at once. */
interface PoolTraffic {
  readonly name: string;
  readonly model: string;
  readonly servers: number;
  readonly tenants: Readonly<Record<string, number>>;
}

const POOLS: readonly PoolTraffic[] = [
  { name: 'chat', model: 'llama-70b', servers: 4, tenants: { 'team-search': 5, 'team-support': 3, 'team-docs': 1 } },
  { name: 'code', model: 'qwen-coder-32b', servers: 3, tenants: { 'team-ide': 3 } },
  { name: 'batch', model: 'llama-8b', servers: 2, tenants: { nightly: 2 } },
];

/** A picker that serves three pools of simulated servers, with conversations in each. */
export interface ThreePools {
  /** Of the metrics port. */
  readonly url: string;
  /** Sends a request whose client samples its trace. @returns the spans of the trace */
  trace(): Promise<readonly WrittenSpan[]>;
  /** Ends everything. @returns the usage of the pool `chat`, as its file has it */
  stop(): Promise<{ readonly file: string; readonly text: string }>;
}

/** Starts the servers, the picker, the embedded gateway and the conversations. One endpoint of `batch` is not there. */
export async function startThreePools(): Promise<ThreePools> {
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-pictures-'));
  const [nobody] = await freePorts(1);
  const fleets = await Promise.all(POOLS.map((pool) => writePool(folder, pool, nobody!)));
  await writeFile(join(folder, 'pools.yaml'), poolsYaml());
  const usage = join(folder, 'usage');
  await mkdir(usage);
  const files = ['--pools', join(folder, 'pools.yaml'), '--usage-dir', usage, '--decision-columns-every=1'];
  // Spans of the requests that a client samples, and of no other.
  const tracing = { OTEL_TRACES_EXPORTER: 'console', OTEL_TRACES_SAMPLER: 'parentbased_always_off' };
  const picker = await startServing(files, tracing);
  const spans: WrittenSpan[] = [];
  createInterface(picker.output).on('line', (line) => spans.push(JSON.parse(line) as WrittenSpan));
  const gateway = await startGateway({ port: 0, picker: { host: '127.0.0.1', port: picker.grpcPort } });
  const entry = `http://127.0.0.1:${gateway.port}`;
  await until(() =>
    ask(entry, 'first request').then(
      () => true,
      () => false,
    ),
  );
  const ending = new AbortController();
  const talks = Promise.all(POOLS.flatMap((pool) => conversations(entry, pool, ending.signal)));
  return {
    url: picker.url,
    trace: () => trace(entry, spans),
    stop: async () => {
      ending.abort();
      await talks;
      await picker.stop();
      await gateway.stop();
      await Promise.all(fleets.map((fleet) => fleet.stop()));
      const [file] = await readdir(join(usage, 'chat'));
      const text = await readFile(join(usage, 'chat', file!), 'utf8');
      await rm(folder, { recursive: true, force: true });
      return { file: `usage/chat/${file}`, text };
    },
  };
}

/** A picker in a process of its own. */
export interface ServingPicker {
  readonly grpcPort: number;
  /** Of the metrics port. */
  readonly url: string;
  readonly output: Readable;
  stop(): Promise<void>;
}

/** Starts `pointsman serve` on free ports and waits until it answers. It ends with this process, stopped or not. */
export async function startServing(
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ServingPicker> {
  const [grpcPort, healthPort, metricsPort] = await freePorts(3);
  const ports = ['--grpc-port', grpcPort, '--grpc-health-port', healthPort, '--metrics-port', metricsPort].map(String);
  const open = ['--metrics-endpoint-auth=false', '--secure-serving=false', '--lame-duck=0s'];
  const child = spawn(process.execPath, [PROGRAM, 'serve', ...ports, ...open, ...argv], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: { ...process.env, ...env, POINTSMAN_PARENT: '1' },
  });
  const ended = once(child, 'exit');
  const url = `http://127.0.0.1:${metricsPort}`;
  await until(async () => (await fetch(`${url}/metrics`).catch(() => undefined))?.ok === true);
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
    if (child.connected) child.disconnect();
  };
  return { grpcPort: grpcPort!, url, output: child.stdout!, stop };
}

async function writePool(folder: string, { name, model, servers }: PoolTraffic, nobody: number) {
  const fleet = await startFleet(servers, { model, engine: { ...engineOf('llama-8b-l40s') } });
  const missing = name === 'batch' ? `- {name: server-${servers}, address: 127.0.0.1, port: "${nobody}"}\n` : '';
  await writeFile(join(folder, `${name}-endpoints.yaml`), fleet.endpointsYaml() + missing);
  const flowControl = name === 'chat' ? 'featureGates: [flowControl]\n' : '';
  const head = `apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n${flowControl}plugins:\n`;
  await writeFile(join(folder, `${name}.yaml`), `${head}${DEFAULT_PLUGINS}${DEFAULT_PROFILES}`);
  return fleet;
}

function poolsYaml(): string {
  const entries = POOLS.map(({ name, model }) => {
    const candidate =
      name === 'chat' ? `, candidateFile: ${JSON.stringify(join(root, 'examples/active-blocks.yaml'))}` : '';
    return (
      `- {name: ${name}, models: [${model}], configFile: ${name}.yaml, endpointsFile: ` +
      `${name}-endpoints.yaml${candidate}}\n`
    );
  });
  return `pools:\n${entries.join('')}`;
}

/** Conversations of all tenants of a pool, each followed by another one until the signal comes. */
function conversations(url: string, { model, tenants }: PoolTraffic, signal: AbortSignal): Promise<void>[] {
  return Object.entries(tenants).flatMap(([tenant, count]) =>
    Array.from({ length: count }, async (_, index) => {
      await pause(index * 700);
      for (let number = 0; !signal.aborted; number++) {
        await conversation(url, model, tenant, `${index}-${number}`, signal);
      }
    }),
  );
}

async function conversation(url: string, model: string, tenant: string, name: string, signal: AbortSignal) {
  const messages: Message[] = [
    { role: 'system', content: prose(`system prompt of ${tenant}`, SYSTEM_BYTES) },
    { role: 'user', content: prose(`document ${name} of ${tenant}`, DOCUMENT_BYTES) },
  ];
  for (let turn = 0; turn < TURNS && !signal.aborted; turn++) {
    const headers = { 'x-llm-d-inference-fairness-id': tenant };
    const { text } = await chat(url, model, messages, ANSWER_TOKENS, headers);
    const question = prose(`question ${turn} of conversation ${name}`, QUESTION_BYTES);
    messages.push({ role: 'assistant', content: text }, { role: 'user', content: question });
  }
}

async function ask(url: string, name: string, headers: Readonly<Record<string, string>> = {}): Promise<void> {
  await chat(url, 'llama-70b', [{ role: 'user', content: prose(name, DOCUMENT_BYTES) }], ANSWER_TOKENS, headers);
}

/** The spans of the last request of a burst, so that flow control lets it wait. */
async function trace(url: string, spans: readonly WrittenSpan[]): Promise<readonly WrittenSpan[]> {
  const id = '4bf92f3577b34da6a3ce929d0e0e4736';
  const burst = Array.from({ length: BURST }, (_, index) => ask(url, `request ${index} of a burst`));
  await ask(url, 'last request of a burst', { traceparent: `00-${id}-00f067aa0ba902b7-01` });
  await Promise.all(burst);
  const own = () => spans.filter(({ trace_id: trace }) => trace === id);
  await until(async () => own().some(({ span }) => span === 'gateway.request'));
  return own();
}

/** Waits for a state. @throws when it does not come */
export async function until(reached: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + READY_MS;
  while (!(await reached())) {
    if (performance.now() > deadline) throw new Error('what the pictures need is not ready in time');
    await pause(POLL_MS);
  }
}
