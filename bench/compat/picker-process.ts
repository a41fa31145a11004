// One picker as a process of its own: llm-d-router's or this project's, with the same flags.
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePorts } from '../../dist/src/serve/port.js';

const READY_WITHIN_MS = 60_000;

export interface Endpoint {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly labels: Readonly<Record<string, string>>;
}

/** The files that both pickers are started with. `text` is a configuration that names `file-discovery` nowhere. */
export function writePickerFiles(folder: string, text: string, endpoints: readonly Endpoint[]): string {
  const entries = endpoints.map((each) => JSON.stringify({ ...each, port: String(each.port) }));
  const file = join(folder, 'endpoints.yaml');
  writeFileSync(file, `endpoints:\n${entries.map((entry) => `- ${entry}\n`).join('')}`);
  const parameters = `{path: ${JSON.stringify(file)}}`;
  const discovery = `plugins:\n- {type: file-discovery, name: discovery, parameters: ${parameters}}\n`;
  const configuration = join(folder, 'configuration.yaml');
  const tail = 'dataLayer:\n  discovery: {pluginRef: discovery}\n';
  writeFileSync(configuration, text.replace(/^plugins:\n/m, discovery) + tail);
  return configuration;
}

/** Flags for comparing decisions. */
const COMPARED = [
  '--emit-endpoint-scores',
  '--allow-experimental-plugins',
  '--refresh-prometheus-metrics-interval=100ms',
];

export interface ProcessUsage {
  readonly cpuSeconds: number;
  readonly rssMb: number;
}

/** CPU time and memory of a process, where the system tells them. */
export function usageOf(pid: number): ProcessUsage | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [, rss] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!;
    // Fields 14 and 15 of proc_pid_stat(5): ticks of 10 ms in user and system mode.
    return { cpuSeconds: (Number(fields[11]) + Number(fields[12])) / 100, rssMb: Math.round(Number(rss) / 1_024) };
  } catch {
    return undefined;
  }
}

export class PickerProcess {
  readonly port: number;
  /** Time of `performance.now()` at which the process was started. */
  readonly startedAt = performance.now();
  readonly #child: ChildProcess;
  readonly #metricsPort: number;
  #words = '';

  private constructor(child: ChildProcess, port: number, metricsPort: number) {
    this.#child = child;
    this.port = port;
    this.#metricsPort = metricsPort;
    const listen = (piece: Buffer) => {
      this.#words = (this.#words + piece.toString()).slice(-4000);
    };
    child.stdout!.on('data', listen);
    child.stderr!.on('data', listen);
  }

  /** @throws with the last words of a picker that does not start. */
  static async start(
    command: readonly string[],
    configuration: string,
    endpoints: number,
    more: readonly string[] = COMPARED,
  ): Promise<PickerProcess> {
    const picker = await PickerProcess.launch(command, configuration, more);
    await picker.#ready(endpoints);
    return picker;
  }

  /** A picker that may not be ready yet. */
  static async launch(
    command: readonly string[],
    configuration: string,
    more: readonly string[],
  ): Promise<PickerProcess> {
    const [port, health, metrics] = await freePorts(3);
    const [program, ...before] = command;
    const flags = [
      `--config-file=${configuration}`,
      `--grpc-port=${port}`,
      `--grpc-health-port=${health}`,
      `--metrics-port=${metrics}`,
      '--pool-name=compat',
      '--secure-serving=false',
      '--metrics-endpoint-auth=false',
      '--tracing=false',
      ...more,
    ];
    const child = spawn(program!, [...before, ...flags], { stdio: ['ignore', 'pipe', 'pipe'] });
    return new PickerProcess(child, port!, metrics!);
  }

  /** @throws with the last words of a picker that has ended or is not ready in time */
  checkStart(): void {
    if (this.#child.exitCode === null && performance.now() < this.startedAt + READY_WITHIN_MS) return;
    this.stop();
    const problem = this.#child.exitCode === null ? `not ready in ${READY_WITHIN_MS / 1000} s` : 'ended';
    throw new Error(`${problem}: ${this.#lastWords()}`);
  }

  async #ready(endpoints: number): Promise<void> {
    while ((await this.#endpoints()) !== endpoints) {
      this.checkStart();
      await pause(50);
    }
  }

  async #endpoints(): Promise<number | undefined> {
    try {
      const page = await (await fetch(`http://127.0.0.1:${this.#metricsPort}/metrics`)).text();
      const value = /^llm_d_epp_ready_endpoints(?:\{[^}]*\})? (\S+)$/m.exec(page)?.[1];
      return value === undefined ? undefined : Number(value);
    } catch {
      return undefined;
    }
  }

  #lastWords(): string {
    const lines = this.#words.split('\n').filter((line) => line.trim() !== '');
    const complaint = lines.findLast((line) => /error|fail/i.test(line)) ?? lines.at(-1) ?? 'it said nothing';
    return complaint.slice(0, 400);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** CPU time and memory, where the system tells them. */
  get usage(): ProcessUsage | undefined {
    return usageOf(this.pid);
  }

  stop(): void {
    this.#child.kill('SIGKILL');
  }
}
