import { type ChildProcess, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';

/** A picker in a process of its own. */
export interface PickerProcess {
  readonly grpcPort: number;
  readonly metricsUrl: string;
  /** Resolves to one line when the process ends, for any reason. */
  readonly ended: Promise<string>;
  /** Ends the process and waits: by SIGTERM, so that it drains, or at once. */
  stop(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>;
}

export interface PickerProcessOptions {
  /** Program and leading arguments; the flags below are appended. Undefined = this package's `serve`. */
  readonly command?: readonly string[] | undefined;
  readonly configFile: string;
  readonly grpcPort: number;
  readonly healthPort: number;
  readonly metricsPort: number;
  /** Endpoints that it must report before it counts as ready. */
  readonly endpoints: number;
  readonly readyTimeoutMs?: number;
}

/** The program and the leading arguments that start this package's picker. */
export const OWN_PICKER: readonly string[] = [
  process.execPath,
  fileURLToPath(new URL('../../../bin/pointsman.js', import.meta.url)),
  'serve',
];
const POLL_MS = 20;
const STOP_TIMEOUT_MS = 5_000;

/**
 * Starts a picker with flags that llm-d's picker understands as well, and waits until its ext_proc port is open and its
 * gauge `llm_d_epp_ready_endpoints` shows every endpoint.
 * @throws {Error} one line, when it ends or is not ready in time.
 */
export async function startPickerProcess(options: PickerProcessOptions): Promise<PickerProcess> {
  const [program, ...leading] = options.command ?? OWN_PICKER;
  const child = spawn(program!, [...leading, ...flagsOf(options), ...ownFlags(options)], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // The IPC channel tells the picker when this process is gone, however it ended.
    env: { ...process.env, POINTSMAN_PARENT: '1' },
  });
  const ended = endOf(child);
  const metricsUrl = `http://127.0.0.1:${options.metricsPort}/metrics`;
  const stop = (signal: NodeJS.Signals = 'SIGTERM') => stopChild(child, ended, signal);
  try {
    await ready(metricsUrl, ended, options);
  } catch (error) {
    await stop();
    throw error;
  }
  return { grpcPort: options.grpcPort, metricsUrl, ended, stop };
}

function flagsOf(options: PickerProcessOptions): string[] {
  return [
    ...['--pool-name', 'demo', '--config-file', options.configFile],
    ...['--grpc-port', String(options.grpcPort), '--grpc-health-port', String(options.healthPort)],
    ...['--metrics-port', String(options.metricsPort), '--metrics-endpoint-auth=false'],
    '--secure-serving=false',
    // llm-d-router writes its spans to the standard output without an exporter.
    ...(options.command === undefined ? [] : ['--tracing=false']),
  ];
}

/** Flags that only this package's picker understands. */
function ownFlags({ command }: PickerProcessOptions): string[] {
  return command === undefined ? ['--decision-columns-every=1', '--lame-duck=0s'] : [];
}

/** Resolves to why the process ended, with the last lines that it wrote to its standard error. */
function endOf(child: ChildProcess): Promise<string> {
  let tail = '';
  child.stdout!.resume();
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    tail = (tail + text).slice(-1_000);
  });
  return new Promise((resolve) => {
    child.on('error', (error) => resolve(`the picker did not start: ${error.message}`));
    child.on('exit', (code, signal) => {
      const last = tail.trimEnd().split('\n').slice(-3).join('\n');
      resolve(`the picker ended with ${signal ?? `exit code ${code}`}${last === '' ? '' : `: ${last}`}`);
    });
  });
}

async function ready(metricsUrl: string, ended: Promise<string>, options: PickerProcessOptions): Promise<void> {
  const deadline = performance.now() + (options.readyTimeoutMs ?? 10_000);
  let end: string | undefined;
  ended.then((line) => {
    end = line;
  });
  while (performance.now() < deadline) {
    if (end !== undefined) throw new Error(end);
    if ((await readyEndpoints(metricsUrl)) >= options.endpoints && (await accepts(options.grpcPort))) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error(`the picker did not report ${options.endpoints} ready endpoints at ${metricsUrl} in time`);
}

/** The gauge's value; -1 while the page is not served. */
async function readyEndpoints(metricsUrl: string): Promise<number> {
  try {
    const page = await (await fetch(metricsUrl)).text();
    return Number(/^llm_d_epp_ready_endpoints(?:\{[^}]*\})? (\S+)/m.exec(page)?.[1] ?? 0);
  } catch {
    // Not listening yet; the caller asks again until its deadline.
    return -1;
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => resolve(true));
    socket.on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}

async function stopChild(child: ChildProcess, ended: Promise<string>, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await ended;
    clearTimeout(timer);
  }
  if (child.connected) child.disconnect();
}

/** Sum of the picker's gauge of requests that wait in its queues; 0 when it shows none. */
export async function waitingRequests(metricsUrl: string): Promise<number> {
  const page = await (await fetch(metricsUrl)).text();
  const series = page.matchAll(/^llm_d_epp_flow_control_queue_size(?:\{[^}]*\})? (\S+)$/gm);
  return [...series].reduce((sum, [, value]) => sum + Number(value), 0);
}
