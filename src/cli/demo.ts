import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { type Gateway, startGateway } from '../gateway/gateway.js';
import { type Fleet, startFleet } from '../simulator/server/fleet.js';
import { L40S_8B } from '../simulator/server/speed.js';
import { runLoad } from './demo/load.js';
import { runOverload } from './demo/overload.js';
import { type PickerProcess, startPickerProcess } from './demo/picker-process.js';
import { OverloadTable, TurnTable } from './demo/report.js';
import { waitingRequests } from './demo/waiting-requests.js';
import { freePorts, listenFailure, portNumber } from './port.js';

interface DemoFlags {
  readonly port: number;
  readonly servers: number;
  readonly conversations: number;
  readonly turns: number;
  readonly speedup: number;
  readonly grpcPort: number;
  readonly metricsPort: number;
  readonly once: boolean;
  readonly overload: boolean;
  readonly seconds: number;
  readonly picker?: string;
}

const MODEL = 'demo-model';
const SYSTEM_PROMPTS = 4;

/**
 * A flood of some six times what four servers can take: at the speed of an L40S a prompt of 4,000 tokens keeps one of them
 * busy for a third of a second.
 */
const OVERLOAD = {
  interactivePerSecond: 3,
  batchPerSecond: 60,
  promptBytes: 16_000,
  answerTokens: 8,
};

/** Interactive requests go first; a batch request that would wait longer than a few seconds is told so at once. */
const OVERLOAD_SETTINGS = `featureGates: [flowControl]
flowControl:
  defaultRequestTTL: 10s
  maxExpectedWait: 5s
  priorityBands:
  - {priority: 10, fairnessPolicyRef: start-time-fairness-policy}
  - {priority: -10, fairnessPolicyRef: start-time-fairness-policy}
`;
const OVERLOAD_PLUGINS = '- type: start-time-fairness-policy\n';
const OBJECTIVES = `objectives:
- {name: interactive, priority: 10}
- {name: batch, priority: -10}
`;

/**
 * `pointsman demo`: simulated model servers, the picker, the embedded gateway and a short load of conversations.
 * Resolves to the exit code: after the load with `--once`, otherwise after Ctrl-C.
 */
export async function runDemo(argv: readonly string[]): Promise<number> {
  const command = demoCommand();
  command.parse([...argv], { from: 'user' });
  const flags = command.opts<DemoFlags>();
  const stops: (() => Promise<unknown>)[] = [];
  const interrupted = new Promise<string>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal));
  });
  try {
    const { gateway, picker, fleet } = await startHouse(flags, stops);
    const url = `http://${gateway.address}:${gateway.port}`;
    console.log(
      `\n  model servers  ${fleet.servers.length} simulated, on ${fleet.servers.map((s) => s.port).join(', ')}`,
    );
    console.log(`  picker         ext_proc on 127.0.0.1:${picker.grpcPort}, metrics ${picker.metricsUrl}`);
    console.log(`  gateway        ${url}\n`);
    const died = picker.ended.then((line) => Promise.reject(new Error(line)));
    const show = flags.overload ? showOverload(url, flags, fleet, picker) : showLoad(url, flags, fleet);
    const failed = await Promise.race([show, interrupted, died]);
    if (typeof failed === 'string') return 0;
    if (flags.once) return failed > 0 ? 1 : 0;
    if (!flags.overload) console.log(whatToLookAt(url, picker.metricsUrl));
    else console.log('\n  Ctrl-C ends everything.');
    await Promise.race([interrupted, died]);
    return 0;
  } catch (error) {
    console.error(`demo: ${listenFailure(error, flags.port)}`);
    return 1;
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

/** Start everything; what was started is in `stops`, also when a later part fails. */
async function startHouse(
  flags: DemoFlags,
  stops: (() => Promise<unknown>)[],
): Promise<{ fleet: Fleet; picker: PickerProcess; gateway: Gateway }> {
  const fleet = await startFleet(flags.servers, { model: MODEL, engine: { speed: L40S_8B, speedup: flags.speedup } });
  stops.push(() => fleet.stop());
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-demo-'));
  stops.push(() => rm(folder, { recursive: true, force: true }));
  const configFile = await writeConfiguration(folder, fleet, flags.overload);
  const [grpcPort, healthPort, metricsPort] = await freePorts(3);
  const picker = await startPickerProcess({
    command: flags.picker?.split(/\s+/),
    configFile,
    grpcPort: flags.grpcPort || grpcPort!,
    healthPort: healthPort!,
    metricsPort: flags.metricsPort || metricsPort!,
    endpoints: flags.servers,
  });
  stops.push(() => picker.stop());
  const gateway = await startGateway({ port: flags.port, picker: { host: '127.0.0.1', port: picker.grpcPort } });
  stops.push(() => gateway.stop());
  return { fleet, picker, gateway };
}

/** The default profile, with discovery from a file, and with queues for an overload; returns the path of the configuration. */
async function writeConfiguration(folder: string, fleet: Fleet, overload: boolean): Promise<string> {
  const endpointsFile = join(folder, 'endpoints.yaml');
  const configFile = join(folder, 'configuration.yaml');
  await writeFile(endpointsFile, `${fleet.endpointsYaml()}${OBJECTIVES}`);
  await writeFile(
    configFile,
    `apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
${overload ? OVERLOAD_SETTINGS : ''}plugins:
${overload ? OVERLOAD_PLUGINS : ''}- type: file-discovery
  parameters: {path: ${JSON.stringify(endpointsFile)}, watchFile: true}
- type: queue-scorer
- type: kv-cache-utilization-scorer
- type: prefix-cache-scorer
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: queue-scorer, weight: 2}
  - {pluginRef: kv-cache-utilization-scorer, weight: 2}
  - {pluginRef: prefix-cache-scorer, weight: 3}
dataLayer:
  discovery: {pluginRef: file-discovery}
`,
  );
  return configFile;
}

/** Run the load and print its table; resolves to the number of failed requests. */
async function showLoad(url: string, flags: DemoFlags, fleet: Fleet): Promise<number> {
  const table = new TurnTable(fleet.servers.map((server) => server.name));
  console.log(
    `  ${flags.conversations} conversations, ${SYSTEM_PROMPTS} shared system prompts, ${flags.turns} turns\n`,
  );
  console.log(table.head());
  const errors: string[] = [];
  const load = { conversations: flags.conversations, turns: flags.turns, systemPrompts: SYSTEM_PROMPTS };
  await runLoad({ url, model: MODEL, ...load, answerTokens: 24 }, (turn) => {
    console.log(table.row(turn));
    errors.push(...turn.errors);
  });
  for (const error of new Set(errors)) console.error(`  failed: ${error}`);
  return errors.length;
}

/** Run the overload and print its table; resolves to the number of interactive requests that failed. */
async function showOverload(url: string, flags: DemoFlags, fleet: Fleet, picker: PickerProcess): Promise<number> {
  const table = new OverloadTable();
  const { batchPerSecond, interactivePerSecond } = OVERLOAD;
  const { seconds } = flags;
  const [floodFrom, floodTo] = [1 + Math.floor(seconds / 4), 1 + Math.floor(0.6 * seconds)];
  console.log(
    `  ${interactivePerSecond} interactive requests a second; from second ${floodFrom} to ${floodTo} (*) ` +
      `${batchPerSecond} batch requests a second, far more than the servers can take\n`,
  );
  console.log(table.head());
  const totals = await runOverload({ url, model: MODEL, seconds, floodFrom, floodTo, ...OVERLOAD }, async (second) => {
    const inServers = fleet.servers.reduce((sum, server) => sum + server.stats().waiting, 0);
    console.log(table.row(second, [await waitingRequests(picker.metricsUrl), inServers]));
  });
  const { interactive, interactiveFailed, batchAnswered, batchRefused } = totals;
  console.log(`\n  ${interactive} interactive requests answered, ${interactiveFailed.length} failed`);
  console.log(`  ${batchAnswered} batch requests answered, ${batchRefused} told to come again later`);
  for (const error of new Set(interactiveFailed)) console.error(`  failed: ${error}`);
  return interactiveFailed.length;
}

function whatToLookAt(url: string, metricsUrl: string): string {
  return `
  Later turns find their prompt cached: the picker sends a conversation back to the server that has it.

  Try it (one token at a time; the header x-inference-pod names the server):
    curl -Ni ${url}/v1/chat/completions -H 'content-type: application/json' \\
      -d '{"model":"${MODEL}","stream":true,"messages":[{"role":"user","content":"Hello"}]}'

  Look at the picker's metrics:
    curl -s ${metricsUrl} | grep llm_d_epp

  Ctrl-C ends everything.`;
}

function demoCommand(): Command {
  return new Command('pointsman demo')
    .description('Simulated model servers, the picker, a gateway and a short load, all on this machine.')
    .option('--port <port>', 'port of the gateway', portNumber, 8081)
    .option('--servers <count>', 'simulated model servers', atLeastOne, 4)
    .option('--conversations <count>', 'conversations of the load', atLeastOne, 24)
    .option('--turns <count>', 'turns of each conversation', atLeastOne, 3)
    .option('--speedup <factor>', 'how much faster than an L40S the servers compute', positive, 1)
    .option('--grpc-port <port>', "port of the picker's ext_proc; 0 = a free one", portNumber, 0)
    .option('--metrics-port <port>', "port of the picker's metrics; 0 = a free one", portNumber, 0)
    .option('--overload', 'a flood of batch requests beside interactive ones, with flow control on', false)
    .option('--seconds <count>', 'length of the overload', atLeastOne, 16)
    .option('--once', 'end after the load', false)
    .option('--picker <command>', 'another picker to start instead, given the flags that llm-d understands');
}

function atLeastOne(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1 || count > 10_000)
    throw new InvalidArgumentError('a number from 1 to 10000');
  return count;
}

function positive(text: string): number {
  const factor = Number(text);
  if (!(factor > 0 && factor <= 1_000)) throw new InvalidArgumentError('a number above 0, at most 1000');
  return factor;
}
