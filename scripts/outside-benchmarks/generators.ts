// Load generators that others wrote, and what they say of a run.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface GeneratorRun {
  readonly url: string;
  readonly model: string;
  /** Folder of a tokenizer, by which prompts get their lengths. */
  readonly tokenizer: string;
  readonly seed: number;
  /** Empty folder for what the generator writes. */
  readonly folder: string;
}

/** Milliseconds to the first token, and requests that failed. */
export interface GeneratorResult {
  readonly ttftMean: number;
  readonly ttftP99: number;
  readonly requests: number;
  readonly failed: number;
}

export interface Generator {
  readonly name: string;
  /** One sentence. */
  readonly traffic: string;
  /** @throws Error with the program's last lines when it fails */
  readonly run: (programs: string, run: GeneratorRun) => Promise<GeneratorResult>;
}

/** Longest time of one run. */
const RUN_MS_MAX = 240_000;

/** Both must not look for models on the network. */
const OFFLINE = { HF_HUB_OFFLINE: '1', TRANSFORMERS_OFFLINE: '1' };

/** Runs a program to its end. @throws Error with its last lines when it fails */
function finished(program: string, args: readonly string[], folder: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, ...OFFLINE, HF_HOME: join(folder, 'models') };
    const child = spawn(program, args, { cwd: folder, env, timeout: RUN_MS_MAX, stdio: ['ignore', 'pipe', 'pipe'] });
    let tail = '';
    const keep = (text: Buffer) => {
      tail = (tail + text.toString()).slice(-2_000);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`${program} ended with ${signal ?? code}:\n${tail}`));
    });
  });
}

/** The one file below a folder whose name ends so. @throws Error when there is none */
function written(folder: string, end: string): unknown {
  const name = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((each) => each.endsWith(end));
  if (name === undefined) throw new Error(`${folder} has no file …${end}: the generator wrote no result`);
  return JSON.parse(readFileSync(join(folder, name), 'utf8'));
}

/** A name of a tokenizer in the cache of models below a run's folder: aiperf takes no path while offline. */
function cachedTokenizer({ tokenizer, folder }: GeneratorRun): string {
  const cached = join(folder, 'models/hub/models--local--tokenizer');
  mkdirSync(join(cached, 'refs'), { recursive: true });
  writeFileSync(join(cached, 'refs/main'), 'local');
  cpSync(tokenizer, join(cached, 'snapshots/local'), { recursive: true });
  return 'local/tokenizer';
}

interface AiperfResult {
  readonly time_to_first_token: { readonly avg: number; readonly p99: number };
  readonly request_count: { readonly avg: number };
  readonly error_request_count?: { readonly avg: number };
}

/** What aiperf's summary says. */
export function aiperfResult(summary: unknown): GeneratorResult {
  const { time_to_first_token: ttft, request_count, error_request_count } = summary as AiperfResult;
  return {
    ttftMean: ttft.avg,
    ttftP99: ttft.p99,
    requests: request_count.avg,
    failed: error_request_count?.avg ?? 0,
  };
}

interface InferencePerfResult {
  readonly successes: {
    readonly count: number;
    readonly latency: { readonly time_to_first_token: { readonly mean: number; readonly p99: number } };
  };
  readonly failures: { readonly count: number };
}

/** What inference-perf's summary says. */
export function inferencePerfResult(summary: unknown): GeneratorResult {
  const { successes, failures } = summary as InferencePerfResult;
  const { mean, p99 } = successes.latency.time_to_first_token;
  return { ttftMean: 1e3 * mean, ttftP99: 1e3 * p99, requests: successes.count, failed: failures.count };
}

const aiperfMultiTurn: Generator = {
  name: 'aiperf, multi-turn',
  traffic: '12 callers at a time, 48 sessions of five turns with half a second between them, 800 tokens a turn.',
  run: async (programs, run) => {
    const args = [
      ...['profile', '--model', run.model, '--url', run.url, '--endpoint-type', 'chat', '--streaming'],
      ...['--tokenizer', cachedTokenizer(run), '--concurrency', '12', '--num-sessions', '48'],
      ...['--session-turns-mean', '5', '--session-turns-stddev', '1', '--session-turn-delay-mean', '500'],
      ...['--synthetic-input-tokens-mean', '800', '--synthetic-input-tokens-stddev', '200'],
      ...['--output-tokens-mean', '60', '--output-tokens-stddev', '10'],
      ...['--random-seed', String(run.seed), '--artifact-dir', run.folder, '--ui-type', 'none'],
    ];
    await finished(join(programs, 'aiperf/bin/aiperf'), args, run.folder);
    return aiperfResult(written(run.folder, 'profile_export_aiperf.json'));
  },
};

interface InferencePerfTraffic {
  readonly type: string;
  readonly traffic: string;
  readonly api: 'chat' | 'completion';
  readonly load: Readonly<Record<string, unknown>>;
  readonly data: (seed: number) => Readonly<Record<string, unknown>>;
}

/** inference-perf with one kind of data and the load that goes with it. */
function inferencePerf({ type, traffic, api, load, data }: InferencePerfTraffic): Generator {
  return {
    name: `inference-perf, ${type}`,
    traffic,
    run: async (programs, { url, model, tokenizer, seed, folder }) => {
      const configuration = {
        load: { ...load, base_seed: seed, num_workers: 1 },
        api: { type: api, streaming: true },
        server: { type: 'vllm', model_name: model, base_url: url, ignore_eos: true },
        tokenizer: { pretrained_model_name_or_path: tokenizer },
        data: { type, [type]: data(seed) },
        storage: { local_storage: { path: join(folder, 'reports') } },
        report: { request_lifecycle: { summary: true, per_stage: false, per_request: false } },
      };
      const file = join(folder, 'configuration.json');
      writeFileSync(file, JSON.stringify(configuration));
      await finished(join(programs, 'inference-perf/bin/inference-perf'), ['--config_file', file], folder);
      return inferencePerfResult(written(folder, 'summary_lifecycle_metrics.json'));
    },
  };
}

const fixed = (mean: number) => ({ type: 'fixed', min: mean, max: mean, mean, std_dev: 0 });
const normal = (mean: number, deviation: number) => ({
  type: 'normal',
  min: 1,
  max: 4 * mean,
  mean,
  std_dev: deviation,
});

export const GENERATORS: readonly Generator[] = [
  inferencePerf({
    type: 'shared_prefix',
    traffic:
      'Six requests a second for 30 s: 12 system prompts of 1,500 tokens, 8 users each, questions of 300 tokens.',
    api: 'chat',
    load: { type: 'poisson', stages: [{ rate: 6, duration: 30 }] },
    data: (seed) => ({
      num_unique_system_prompts: 12,
      num_users_per_system_prompt: 8,
      system_prompt_len: 1500,
      question_len: 300,
      output_len: 60,
      seed,
    }),
  }),
  inferencePerf({
    type: 'conversation_replay',
    traffic: '200 requests of 40 conversations, 12 at a time: 800 tokens that all share, 700 of their own, 300 a turn.',
    api: 'completion',
    load: { type: 'concurrent', stages: [{ num_requests: 200, concurrency_level: 12 }] },
    data: (seed) => ({
      num_conversations: 40,
      shared_system_prompt_len: 800,
      dynamic_system_prompt_len: normal(700, 200),
      turns_per_conversation: fixed(5),
      input_tokens_per_turn: normal(300, 80),
      output_tokens_per_turn: normal(60, 15),
      seed,
    }),
  }),
  inferencePerf({
    type: 'synthetic_agentic',
    traffic: 'Twelve sessions of agents at a time with tool calls and sub-agents, as the generator draws them.',
    api: 'chat',
    load: { type: 'trace_session_replay', stages: [{ concurrent_sessions: 12, num_sessions: 12 }] },
    data: (seed) => ({
      num_sessions: 12,
      turns_per_session: fixed(3),
      input_tokens_per_turn: normal(400, 100),
      output_tokens_per_turn: normal(60, 15),
      use_static_model: true,
      static_model_name: 'demo-model',
      seed,
    }),
  }),
  aiperfMultiTurn,
];
