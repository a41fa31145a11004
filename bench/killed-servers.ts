/**
 * Three engines behind a real Envoy and a picker, 20 callers, two engines killed: what callers lose. LLM_D_ROUTER=path
 * adds llm-d-router's picker, SMG=path that gateway alone; with LLM_D_INFERENCE_SIM=path that simulator is the engine,
 * else this package's own.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Report } from './bench.ts';
import { ownCommand, routerCommand } from './load/pinned-picker.ts';

const CALLERS = 20;
const ENGINES = 3;
/** @param destinations of each request: a list is for an Envoy that goes on to the next one */
const profile = (destinations: number) => `plugins:
- type: queue-scorer
- type: prefix-cache-scorer
- {type: max-score-picker, parameters: {maxNumOfEndpoints: ${destinations}}}
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: queue-scorer, weight: 2}
  - {pluginRef: prefix-cache-scorer, weight: 3}
  - {pluginRef: max-score-picker}
`;

/** Servers that can be killed. */
async function startEngines() {
  const { startServerProcesses } = await import('../test/envoy/server-process.ts');
  const path = process.env.LLM_D_INFERENCE_SIM;
  if (path === undefined || path === '') return startServerProcesses(ENGINES, 10);
  const { freePorts } = await import('../dist/src/serve/port.js');
  const ports = await freePorts(ENGINES);
  return Promise.all(ports.map((port, number) => startSimulator(path, `sim-${number}`, port)));
}

async function startSimulator(path: string, name: string, port: number) {
  const times = ['--time-to-first-token=40ms', '--inter-token-latency=10ms', '--max-num-seqs=64'];
  const kill = await startProgram(
    path,
    ['--model=m', `--port=${port}`, '--max-model-len=131072', ...times],
    async () => {
      const { ok } = await fetch(`http://127.0.0.1:${port}/metrics`);
      return ok;
    },
  );
  return { name, address: '127.0.0.1', port, kill, stop: kill };
}

/** @param isUp may reject while it is not */
async function startProgram(path: string, args: readonly string[], isUp: () => Promise<boolean>) {
  const { eventually } = await import('../test/tools/gateway/client.ts');
  const child = spawn(path, args, { stdio: 'ignore' });
  const ended = once(child, 'exit');
  const killed = () => child.kill('SIGKILL');
  process.once('exit', killed);
  await eventually(`${path} serves`, () => isUp().catch(() => false), 30_000);
  return async () => {
    killed();
    await ended;
    process.off('exit', killed);
  };
}

type Engines = Awaited<ReturnType<typeof startEngines>>;

/** Kills two of three engines, `timeMs` apart. @param port of the proxy before them */
async function loss(port: number, servers: Engines, timeMs: number) {
  const { Callers, killed: kill, pause } = await import('../test/tools/gateway/callers.ts');
  const { eventually } = await import('../test/tools/gateway/client.ts');
  const callers = new Callers(port, CALLERS);
  await eventually('the load runs', () => callers.answered > 200, 30_000);
  const first = await kill(() => servers[0]!.kill());
  await pause(timeMs);
  const second = await kill(() => servers[1]!.kill());
  await pause(timeMs);
  await callers.stop();
  const inFlight = callers.inFlightDuring(first) + callers.inFlightDuring(second);
  return { answered: callers.answered, failed: callers.failures.length, inFlight };
}

type Configuration = 'envoy.yaml' | 'envoy-fail-open.yaml';

async function killed(picker: string, command: readonly string[], configuration: Configuration, timeMs: number) {
  const { startTestBed } = await import('../test/envoy/test-bed.ts');
  const destinations = configuration === 'envoy.yaml' ? 1 : ENGINES;
  const servers = await startEngines();
  const bed = await startTestBed(servers, { configuration, profile: profile(destinations), picker: command });
  try {
    return { name: 'killed-servers', picker, configuration, ...(await loss(bed.envoy.port, servers, timeMs)) };
  } finally {
    await bed.stop();
  }
}

/** SMG is proxy and picker in one. */
async function killedBehindSmg(path: string, timeMs: number) {
  const { freePorts } = await import('../dist/src/serve/port.js');
  const servers = await startEngines();
  const [port, metricsPort] = await freePorts(2);
  const urls = servers.map(({ address, port: at }) => `http://${address}:${at}`);
  const args = ['--host=127.0.0.1', `--port=${port}`, `--prometheus-port=${metricsPort}`, '--backend=vllm'];
  const { ask, chatBody } = await import('../test/tools/gateway/client.ts');
  const isUp = async () => (await ask(port!, { body: chatBody('hello', { max_tokens: 1 }) })).status === 200;
  const stop = await startProgram(path, ['launch', ...args, '--worker-urls', ...urls], isUp);
  try {
    return { name: 'killed-servers', picker: 'smg', ...(await loss(port!, servers, timeMs)) };
  } finally {
    await stop();
    await Promise.all(servers.map((server) => server.stop()));
  }
}

export const reports: readonly Report[] = [
  {
    name: 'killed-servers',
    timeMs: 3_000,
    async *run(timeMs) {
      const router = routerCommand();
      if (router === undefined) console.error('llm-d-router is skipped: LLM_D_ROUTER names no program');
      const smg = process.env.SMG ?? '';
      if (smg === '') console.error('SMG is skipped: SMG names no program');
      for (const configuration of ['envoy.yaml', 'envoy-fail-open.yaml'] as const) {
        yield await killed('pointsman', ownCommand('--lame-duck=0s'), configuration, timeMs);
        if (router !== undefined) yield await killed('llm-d-router', router, configuration, timeMs);
      }
      if (smg !== '') yield await killedBehindSmg(smg, timeMs);
    },
  },
];
