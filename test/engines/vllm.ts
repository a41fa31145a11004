import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { eventually } from '../tools/gateway/client.ts';

/** Installed by scripts/install-vllm.sh; POINTSMAN_VLLM names the folder of another version. */
const HOME = process.env.POINTSMAN_VLLM ?? fileURLToPath(new URL('../../.tools/vllm', import.meta.url));
export const PYTHON = `${HOME}/venv/bin/python`;
const MARK = `${HOME}/version`;

/** Version of the vLLM to test with; undefined = none is installed. */
export const vllmVersion = existsSync(MARK) ? readFileSync(MARK, 'utf8').split(' ')[0]! : undefined;

/**
 * Folder of the tiny model: weights by chance, and a tokenizer.json whose pre-tokeniser the engine's library replaces
 * by that of the model's class.
 */
export const TINY_MODEL = `${HOME}/tiny`;
export const MODEL_NAME = 'tiny';
/** Tokens of a block; the CPU build refuses 16. */
export const BLOCK_TOKENS = 32;

/** Why the tests are skipped; the empty string when they run. With POINTSMAN_REQUIRE_VLLM=1 they never are. */
export const skipReason =
  vllmVersion === undefined && process.env.POINTSMAN_REQUIRE_VLLM !== '1'
    ? ' (skipped: no vLLM found; run scripts/install-vllm.sh)'
    : '';

/** Start of an engine on a machine with two cores that does other things. */
const STARTS_WITHIN_MS = 240_000;

const ENVIRONMENT = {
  VLLM_CPU_KVCACHE_SPACE: '1',
  VLLM_CPU_OMP_THREADS_BIND: 'nobind',
  OMP_NUM_THREADS: '1',
  VLLM_NO_USAGE_STATS: '1',
  HF_HUB_OFFLINE: '1',
  VLLM_LOGGING_LEVEL: 'INFO',
  /** Opens /sleep, /pause and /reset_prefix_cache. */
  VLLM_SERVER_DEV_MODE: '1',
  VLLM_ALLOW_RUNTIME_LORA_UPDATING: '1',
} as const;

const SERVE = [
  ...['serve', './tiny', '--load-format', 'dummy', '--enforce-eager', '--max-model-len', '8192'],
  ...['--served-model-name', MODEL_NAME, '--block-size', String(BLOCK_TOKENS), '--max-num-seqs', '64'],
  ...['--distributed-executor-backend', 'uni', '--enable-prefix-caching', '--enable-prompt-tokens-details'],
  '--disable-uvicorn-access-log',
];

/** Sockets of an engine's KV events. vLLM binds an address with `*` and connects to any other. */
export interface EventSockets {
  readonly endpoint: string;
  readonly replay?: string;
  readonly topic: string;
}

export interface EngineOptions {
  /** Address of its own: 127.0.1.1, 127.0.1.2 … */
  readonly host: string;
  readonly port: number;
  /** Absent = it publishes nothing. */
  readonly events?: EventSockets;
  /** Blocks of its cache. Default: 1,000. */
  readonly blocks?: number;
  /** Further arguments of `vllm serve`. */
  readonly args?: readonly string[];
}

/** One vLLM process. Its children end with it: it leads a process group of its own. */
export class VllmProcess {
  static readonly #started = new Set<VllmProcess>();
  readonly url: string;
  readonly #child: ChildProcess;
  #log = '';
  #over = false;

  private constructor(args: readonly string[], url: string) {
    this.url = url;
    if (vllmVersion === undefined) throw new Error('no vLLM: run scripts/install-vllm.sh');
    this.#child = spawn(PYTHON, ['-m', 'vllm.entrypoints.cli.main', ...args], {
      cwd: HOME,
      detached: true,
      env: { ...process.env, ...ENVIRONMENT },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    VllmProcess.#started.add(this);
    // A killed test run must not leave engines behind.
    process.once('exit', this.#end);
    this.#child.once('close', () => {
      this.#over = true;
    });
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.setEncoding('utf8').on('data', (piece: string) => {
        this.#log = (this.#log + piece).slice(-200_000);
      });
    }
  }

  /** Starts an engine; resolves when it serves. Rejects with its last words when it ends first. */
  static engine({ host, port, events, blocks = 1_000, args = [] }: EngineOptions): Promise<VllmProcess> {
    const published = events && {
      ...{ enable_kv_cache_events: true, publisher: 'zmq', endpoint: events.endpoint, topic: events.topic },
      ...(events.replay === undefined ? {} : { replay_endpoint: events.replay }),
    };
    return VllmProcess.#start(
      [
        ...[...SERVE, '--host', host, '--port', String(port), '--num-gpu-blocks-override', String(blocks)],
        ...(published === undefined ? [] : ['--kv-events-config', JSON.stringify(published)]),
        ...args,
      ],
      `http://${host}:${port}`,
    );
  }

  /** Starts `vllm launch render`, which renders prompts and runs no model. */
  static render(host: string, port: number): Promise<VllmProcess> {
    const args = ['launch', 'render', './tiny', '--host', host, '--port', String(port)];
    return VllmProcess.#start(
      [...args, '--served-model-name', MODEL_NAME, '--max-model-len', '8192'],
      `http://${host}:${port}`,
    );
  }

  static async #start(args: readonly string[], url: string): Promise<VllmProcess> {
    // It would answer in the place of the new one.
    if (await isUp(url)) throw new Error(`a server that an earlier run has left is at ${url}: end it`);
    const started = new VllmProcess(args, url);
    await eventually(`vllm ${args[0]} serves`, () => started.#over || started.#isUp(), STARTS_WITHIN_MS);
    if (started.#over) throw new Error(`vllm ${args.join(' ')} ended:\n${started.#log.slice(-4_000)}`);
    return started;
  }

  async #isUp(): Promise<boolean> {
    await new Promise((resolve) => setTimeout(resolve, 250));
    return isUp(this.url);
  }

  /** Ends all that were started, also those beside one that failed. */
  static async killAll(): Promise<void> {
    await Promise.all([...VllmProcess.#started].map((one) => one.kill()));
  }

  /** Last 200,000 characters of its output. */
  get log(): string {
    return this.#log;
  }

  /** Ends it as a crash does: kill -9 of the whole group. */
  async kill(): Promise<void> {
    if (!this.#over) {
      this.#end();
      await once(this.#child, 'close');
    }
    process.off('exit', this.#end);
    VllmProcess.#started.delete(this);
  }

  readonly #end = () => {
    try {
      process.kill(-this.#child.pid!, 'SIGKILL');
    } catch {
      // It has ended.
    }
  };

  /** Asks the engine itself, without a picker. @param body absent = GET; null = POST without a body */
  async ask(path: string, body?: object | null): Promise<EngineAnswer> {
    const answer = await fetch(`${this.url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      ...(body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}),
    });
    return { status: answer.status, type: answer.headers.get('content-type') ?? '', text: await answer.text() };
  }
}

function isUp(url: string): Promise<boolean> {
  return fetch(`${url}/health`).then(
    ({ ok }) => ok,
    () => false,
  );
}

export interface EngineAnswer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

/** Writes a LoRA adapter of the tiny model into a folder. */
export function writeAdapter(folder: string): void {
  runPython('tiny-adapter.py', [folder]);
}

/** Writes the files of the tiny model's tokeniser into a folder, as the engine's library loads them. */
export function writeEngineTokeniser(folder: string): void {
  runPython('engine-tokeniser.py', [TINY_MODEL, folder]);
}

function runPython(script: string, args: readonly string[]): void {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const { status, stderr } = spawnSync(PYTHON, [path, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${path} failed:\n${stderr}`);
}
