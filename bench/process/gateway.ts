// What a chat costs behind a gateway: Envoy without a picker, Envoy with one, and `pointsman gateway`. Client, gateway,
// picker and model server share the machine, so the rates are of all of them, and CPU times of one process each.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { freePorts } from '../../dist/src/serve/port.js';
import {
  type EnvoyConfiguration,
  type EnvoyProcess,
  findEnvoy,
  runEnvoy,
  shippedEnvoyConfiguration,
  startEnvoyProcess,
} from '../../dist/tools/demo/envoy-process.js';
import { PickerProcess, usageOf, writePickerFiles } from '../compat/picker-process.ts';
import type { ProcessFigure } from './figure.ts';
import { type Chat, closedLoop } from './http-client.ts';
import { OWN_COMMAND } from './load.ts';

const SERVER = fileURLToPath(new URL('answering-server.ts', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../../bin/pointsman.js', import.meta.url));
const ENDPOINTS = 8;
const CONCURRENCY = 32;
const PROMPT_BYTES = 4_096;
const FLAGS = ['--refresh-metrics-interval=1s'];
/** Time between readiness and the first chat, in which a picker compiles code. */
const READY_MS = 4_000;
const ANSWERS = [
  { words: 'JSON', stream: false },
  { words: '20 chunks', stream: true },
] as const;

/** Modes in which a picker reads less than every answer. */
const FEWER_BODIES = [
  ['envoy-answer-heads.yaml', 'Envoy and picker, no bodies of answers'],
  ['envoy-answer-share.yaml', 'Envoy and picker, bodies of one answer in ten'],
] as const;

type Note = (scenario: string, value: number, unit: ProcessFigure['unit']) => void;

/** Processes whose CPU time belongs to a chat, by their names in a row. */
type Counted = Readonly<Record<string, number>>;

/**
 * Every gateway in front of one picker. Without an Envoy its rows are left out.
 * @param seconds of each row, and half of that before it
 */
export async function gatewayFigures(command: readonly string[], seconds: number, note: Note): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-gateway-'));
  const server = spawn(process.execPath, [SERVER], { stdio: ['ignore', 'pipe', 'inherit'] });
  let picker: PickerProcess | undefined;
  try {
    const serverPort = Number(await firstWords(server, 'the model server'));
    const endpoints = Array.from({ length: ENDPOINTS }, (_, i) => ({
      ...{ name: `server-${i}`, address: `127.0.1.${i + 1}`, port: serverPort, labels: {} },
    }));
    const text = readFileSync(new URL('../compat/default.yaml', import.meta.url), 'utf8');
    picker = await PickerProcess.start(command, writePickerFiles(folder, text, endpoints), ENDPOINTS, FLAGS);
    await pause(READY_MS);
    const binary = findEnvoy();
    if (binary !== undefined) await envoyFigures(binary, picker, serverPort, command === OWN_COMMAND, seconds, note);
    if (command === OWN_COMMAND) await ownGatewayFigures(picker, seconds, note);
  } finally {
    picker?.stop();
    server.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What a process says first, when it is ready. @throws when it ends before */
async function firstWords(child: ChildProcess, name: string): Promise<string> {
  const ended = once(child, 'close').then(() => {
    throw new Error(`${name} ended before it was ready`);
  });
  const [words] = (await Promise.race([once(child.stdout!, 'data'), ended])) as [Buffer];
  return words.toString();
}

/** @param whole with the rows in which no picker takes part, and those of other modes */
async function envoyFigures(
  binary: string,
  picker: PickerProcess,
  serverPort: number,
  whole: boolean,
  seconds: number,
  note: Note,
): Promise<void> {
  const measure = async (title: string, envoy: EnvoyProcess, more: Counted) => {
    try {
      await chats(title, envoy.port, { Envoy: envoy.pid, ...more }, seconds, note);
    } finally {
      await envoy.stop();
    }
  };
  if (whole) await measure('Envoy alone', await envoyAlone(binary, serverPort), {});
  const configurations: readonly (readonly [EnvoyConfiguration, string])[] = [
    ['envoy.yaml', 'Envoy and picker'],
    ...(whole ? FEWER_BODIES : []),
  ];
  for (const [configuration, title] of configurations) {
    const envoy = await startEnvoyProcess({ binary, configuration, port: 0, pickerPort: picker.port });
    await measure(title, envoy, { picker: picker.pid });
  }
}

interface Named {
  name: string;
}
interface EnvoyDocument {
  admin: { address: unknown };
  static_resources: {
    listeners: [{ address: unknown; filter_chains: [{ filters: [{ typed_config: { http_filters: Named[] } }] }] }];
    clusters: (Named & Record<string, unknown>)[];
  };
}

/** Envoy with the shipped configuration, without the picker's filter, in front of one server. */
async function envoyAlone(binary: string, serverPort: number): Promise<EnvoyProcess> {
  const [port, adminPort] = await freePorts(2);
  const shipped = readFileSync(shippedEnvoyConfiguration('envoy.yaml'), 'utf8');
  const document = parse(shipped, { merge: true }) as EnvoyDocument;
  const address = (of: number) => ({ socket_address: { address: '127.0.0.1', port_value: of } });
  document.admin.address = address(adminPort!);
  const [listener] = document.static_resources.listeners;
  listener.address = address(port!);
  const { typed_config: manager } = listener.filter_chains[0].filters[0];
  manager.http_filters = manager.http_filters.filter(({ name }) => !name.endsWith('.ext_proc'));
  const servers = document.static_resources.clusters.find(({ name }) => name === 'model_servers')!;
  const { original_dst_lb_config: _destination, ...kept } = servers;
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: address(serverPort) } }] }];
  const assignment = { cluster_name: 'model_servers', endpoints };
  const alone = { ...kept, type: 'STATIC', lb_policy: 'ROUND_ROBIN', load_assignment: assignment };
  document.static_resources.clusters = [alone];
  return runEnvoy(binary, stringify(document, { aliasDuplicateObjects: false }), {
    port: port!,
    adminPort: adminPort!,
  });
}

async function ownGatewayFigures(picker: PickerProcess, seconds: number, note: Note): Promise<void> {
  const [port] = await freePorts(1);
  const flags = [`--port=${port}`, `--picker=127.0.0.1:${picker.port}`];
  const gateway = spawn(process.execPath, [PROGRAM, 'gateway', ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    await firstWords(gateway, 'the gateway');
    await chats('pointsman gateway and picker', port!, { gateway: pidOf(gateway), picker: picker.pid }, seconds, note);
  } finally {
    gateway.kill('SIGKILL');
  }
}

function pidOf({ pid }: ChildProcess): number {
  if (pid === undefined) throw new Error('a process did not start');
  return pid;
}

async function chats(title: string, port: number, counted: Counted, seconds: number, note: Note): Promise<void> {
  for (const { words, stream } of ANSWERS) {
    const chat: Chat = { promptBytes: PROMPT_BYTES, stream };
    await closedLoop(port, chat, CONCURRENCY, seconds * 500);
    const before = cpuSeconds(counted);
    const count = await closedLoop(port, chat, CONCURRENCY, seconds * 1_000);
    const after = cpuSeconds(counted);
    note(`${title}, ${words}: chats`, count / seconds, '/s');
    for (const name of Object.keys(counted)) {
      note(
        `the same: CPU of ${name} a chat (${title}, ${words})`,
        ((after[name]! - before[name]!) * 1e6) / count,
        'µs',
      );
    }
  }
}

function cpuSeconds(counted: Counted): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(counted).map(([name, pid]) => [name, secondsOf(pid)]));
}

function secondsOf(pid: number): number {
  const usage = usageOf(pid);
  if (usage === undefined) throw new Error('CPU time of a process is read from /proc: run it on Linux');
  return usage.cpuSeconds;
}
