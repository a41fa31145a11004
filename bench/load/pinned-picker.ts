// A picker as a process on one core, beside a load generator on another one, with the CPU time and memory of the
// picker.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ModelServer } from '../compat/model-servers.ts';
import { PickerProcess, writePickerFiles } from '../compat/picker-process.ts';
import type { Attack, AttackOptions } from './attacker.ts';
import { type LoadOptions, type LoadResult, PRACTISED } from './generator.ts';

const ENDPOINTS = 8;
const PICKER_CORE = '0';
const GENERATOR_CORE = '1';
/** For a picker that shares its second core with the generator. */
export const BOTH_CORES = `${PICKER_CORE},${GENERATOR_CORE}`;
const GENERATOR = fileURLToPath(new URL('generator.ts', import.meta.url));
const SINK = fileURLToPath(new URL('sink.ts', import.meta.url));
const ATTACKER = fileURLToPath(new URL('attacker.ts', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../../bin/pointsman.js', import.meta.url));

/** Whether processes can be kept to cores here. */
export const pins = (() => {
  try {
    execFileSync('taskset', ['-c', BOTH_CORES, 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

function onCore(core: string, command: readonly string[]): readonly string[] {
  return pins ? ['taskset', '-c', core, ...command] : command;
}

/** CPU seconds and memory of a process. */
export interface Usage {
  readonly cpuSeconds: number;
  readonly rssMb: number;
}

/** Command of llm-d-router's picker; undefined when the environment names none. */
export function routerCommand(): readonly string[] | undefined {
  const path = process.env.LLM_D_ROUTER;
  return path === undefined || path === '' ? undefined : [path];
}

export const ownCommand = (...flags: string[]): readonly string[] => [process.execPath, PROGRAM, 'serve', ...flags];

export interface PoolOptions {
  /** Default 8, at most 254. */
  readonly endpoints?: number;
  /** More flags; absent = those for comparing decisions. */
  readonly flags?: readonly string[];
}

export class PinnedPicker {
  readonly port: number;
  readonly #picker: PickerProcess;
  readonly #servers: readonly ModelServer[];
  readonly #folder: string;

  private constructor(picker: PickerProcess, servers: readonly ModelServer[], folder: string) {
    this.port = picker.port;
    this.#picker = picker;
    this.#servers = servers;
    this.#folder = folder;
  }

  /**
   * @param command of the picker, without the flags that both pickers know
   * @param cores as taskset names them; undefined = one that it has for itself
   */
  static async start(
    command: readonly string[],
    cores = PICKER_CORE,
    { endpoints: count = ENDPOINTS, flags }: PoolOptions = {},
  ): Promise<PinnedPicker> {
    const folder = mkdtempSync(join(tmpdir(), 'pointsman-load-'));
    const hosts = Array.from({ length: count }, (_, index) => `127.0.1.${index + 1}`);
    const servers = await Promise.all(hosts.map((host) => ModelServer.start(host)));
    const endpoints = servers.map(({ address }, index) => {
      return { name: `server-${index}`, address: hosts[index]!, port: address.port, labels: {} };
    });
    const text = readFileSync(new URL('../compat/default.yaml', import.meta.url), 'utf8');
    const configuration = writePickerFiles(folder, text, endpoints);
    const picker = await PickerProcess.start(onCore(cores, command), configuration, count, flags);
    return new PinnedPicker(picker, servers, folder);
  }

  get usage(): Usage | undefined {
    return this.#picker.usage;
  }

  /** Sends load from a process of its own. */
  async load(options: Omit<LoadOptions, 'port'>): Promise<LoadResult> {
    return new LoadProcess({ ...options, port: this.port }).result();
  }

  /**
   * A hostile client in a process of its own. It shares the core of the good load, which goes first: what is measured
   * are the answers. A process that is only nice keeps the core for milliseconds when the good load wakes up.
   * @param port another server to attack in the place of the picker
   */
  async attack(attack: Attack, seconds: number, port = this.port): Promise<void> {
    const options: AttackOptions = { port, attack, seconds };
    const command = onCore(GENERATOR_CORE, [process.execPath, ATTACKER, JSON.stringify(options)]);
    const [program, ...rest] = pins ? ['chrt', '--idle', '0', ...command] : ['nice', '-n', '19', ...command];
    await once(spawn(program!, rest, { stdio: ['ignore', 'ignore', 'inherit'] }), 'close');
  }

  stop(): void {
    this.#picker.stop();
    for (const server of this.#servers) server.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** A load generator in a process of its own. */
class LoadProcess {
  readonly #child;
  #text = '';

  constructor(options: LoadOptions) {
    const [program, ...rest] = onCore(GENERATOR_CORE, [process.execPath, GENERATOR, JSON.stringify(options)]);
    this.#child = spawn(program!, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdout.setEncoding('utf8').on('data', (piece: string) => (this.#text += piece));
  }

  /** @throws when the process ends before */
  async practised(): Promise<void> {
    const ended = once(this.#child, 'close').then(() => {
      throw new Error('the generator ended in its practice');
    });
    while (!this.#text.startsWith(PRACTISED)) await Promise.race([once(this.#child.stdout, 'data'), ended]);
    // Its end behind the practice is awaited by result().
    ended.catch(() => undefined);
    this.#text = '';
  }

  measure(port: number): void {
    this.#child.stdin.write(`${port}\n`);
  }

  async result(): Promise<LoadResult> {
    await once(this.#child, 'close');
    return JSON.parse(this.#text) as LoadResult;
  }

  stop(): void {
    this.#child.kill();
  }
}

/** A load generator whose own code is hot before the picker has had a request: what it measures is the picker's. */
export class PractisedGenerator {
  readonly #process: LoadProcess;

  private constructor(process: LoadProcess) {
    this.#process = process;
  }

  /** @param practice a picker that gets the load for so many seconds before */
  static async start(
    practice: PinnedPicker,
    seconds: number,
    options: Omit<LoadOptions, 'port'>,
  ): Promise<PractisedGenerator> {
    const { port } = practice;
    const process = new LoadProcess({ ...options, port, practice: { port, seconds } });
    await process.practised();
    return new PractisedGenerator(process);
  }

  async load({ port }: PinnedPicker): Promise<LoadResult> {
    this.#process.measure(port);
    return this.#process.result();
  }

  stop(): void {
    this.#process.stop();
  }
}

/** A process on the picker's core that reads and throws away. */
export class PinnedSink {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  static async start(): Promise<PinnedSink> {
    const [program, ...rest] = onCore(PICKER_CORE, [process.execPath, SINK]);
    const child = spawn(program!, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [text] = (await once(child.stdout, 'data')) as [Buffer];
    return new PinnedSink(child, Number(text.toString()));
  }

  stop(): void {
    this.#child.kill('SIGKILL');
  }
}
