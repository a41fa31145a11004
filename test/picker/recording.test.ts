import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { DEFAULT_PLUGINS, DEFAULT_PROFILES } from '../../dist/src/config/default-configuration.js';
import { readRecording } from '../../dist/src/operations/recording/recording-reader.js';
import { decodeReply, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, PROGRAM, Setting, startPicker } from './serving.ts';

const run = promisify(execFile);
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const ENDPOINTS = Array.from({ length: 4 }, (_, i) => ({
  name: `server-${i}`,
  port: 21_031 + i,
  labels: { tier: i < 2 ? 'new' : 'old' },
}));
const HEAD = 'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n';
/** The default profile, on the endpoints of one tier. */
const OTHER = `${HEAD}plugins:
- {type: label-selector-filter, name: tier, parameters: {matchLabels: {tier: old}}}
- {type: queue-scorer}
- {type: max-score-picker}
schedulingProfiles:
- name: default
  plugins: [{pluginRef: tier}, {pluginRef: queue-scorer}, {pluginRef: max-score-picker}]
`;

const DEFAULT = `plugins:\n${DEFAULT_PLUGINS}${DEFAULT_PROFILES}`;

async function serve(flags: readonly string[] = [], profile = DEFAULT) {
  const setting = await Setting.create(ENDPOINTS, profile);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, ...flags]);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  const page = `http://127.0.0.1:${ports.metricsPort}/debug/recording`;
  return { client, page, folder: setting.folder };
}

/** A request that is answered with 3 tokens. */
async function answered(client: ReturnType<typeof dialPicker>, prompt: string): Promise<void> {
  const call = ask(client, prompt);
  decodeReply(await firstReply(call));
  call.write(responseHeaders({ ':status': '200', 'content-type': 'text/event-stream' }));
  const usage = '{"prompt_tokens":900,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":64}}';
  call.write(responseBody(`data: {"choices":[]}\n\ndata: {"choices":[],"usage":${usage}}\n\ndata: [DONE]\n\n`, true));
  call.end();
}

const SECRET = 'a prompt that must not be told ';

/** A test takes a recording of 6 s, and some start a program behind it. */
const TIMEOUT_MS = 90_000;

const post = (page: string, signal?: AbortSignal) => fetch(page, { method: 'POST', ...(signal && { signal }) });

/** A recording of some requests that share their beginning. */
async function record(flags: readonly string[], requests = 12, profile = DEFAULT) {
  const { client, page, folder } = await serve(flags, profile);
  await answered(client, 'the first request, which compiles the code of the others');
  // The head of the answer is there once the shards have been told.
  const recording = await post(`${page}?seconds=6`);
  for (let i = 0; i < requests; i++) await answered(client, `${SECRET.repeat(60)}${i % 3} ${'more '.repeat(80)}`);
  const file = join(folder, 'decisions.bin');
  await writeFile(file, Buffer.from(await recording.arrayBuffer()));
  const other = join(folder, 'other.yaml');
  await writeFile(other, OTHER);
  return { file, other, folder };
}

const replay = (...args: string[]) => run(process.execPath, [PROGRAM, 'replay', ...args]);

describe.each([1, 2])('POST /debug/recording of a picker with %i shards', { timeout: TIMEOUT_MS }, (shards) => {
  it('a recording holds every decision with its end, and nothing of a prompt', async () => {
    const { file } = await record([`--shards=${shards}`]);
    const bytes = await readFile(file);
    const { header, decisions, ends, trailer } = readRecording(bytes);
    expect([decisions.length, trailer!.decisions, trailer!.dropped, trailer!.missingShards]).toEqual([12, 12, 0, 0]);
    expect(header.endpoints.map(({ endpoint }) => endpoint.name)).toEqual(ENDPOINTS.map(({ name }) => name));
    expect(decisions.every(({ hashes, blocks }) => blocks > 5 && hashes.length >= 8 * blocks)).toBe(true);
    const [first] = decisions;
    expect(ends.get(`${first!.thread}.${first!.number}`)).toMatchObject({ outcome: 'completed', outputTokens: 3 });
    expect(bytes.includes('must not be told')).toBe(false);
  });

  it('a replay of the recorded configuration makes every pick again', async () => {
    const { file, folder } = await record([`--shards=${shards}`]);
    const same = join(folder, 'same.yaml');
    await writeFile(same, `${HEAD}plugins:\n${DEFAULT_PLUGINS}${DEFAULT_PROFILES}`);
    const { stdout } = await replay(file, '--config', same, '--json');
    expect(JSON.parse(stdout)).toMatchObject({ decisions: 12, reproduced: 1, total: { different: 0, unplaced: 0 } });
  });

  it('a replay of another configuration says what it would have picked, and its cost', async () => {
    const { file, other } = await record([`--shards=${shards}`]);
    const result = JSON.parse((await replay(file, '--config', other, '--json')).stdout);
    expect(result.total.cost.recorded).toBeGreaterThan(0);
    expect(result.total.cost.other).toBeGreaterThan(0);
    const old = result.endpoints.filter(({ endpoint }: { endpoint: string }) => /server-[23]/.test(endpoint));
    expect(old.reduce((sum: number, { other: share }: { other: number }) => sum + share, 0)).toBeCloseTo(1);
    const { stdout } = await replay(file, '--config', other);
    expect(stdout).toMatch(/^recording +pool \S+, from .*: 12 decisions$/m);
    expect(stdout).toMatch(/^again +100\.0 % of the recorded picks/m);
    expect(stdout).toMatch(/^worth +predicted cost of a request \d+\.\d{3} instead of \d+\.\d{3} targets/m);
  });
});

describe('POST /debug/recording', { timeout: TIMEOUT_MS }, () => {
  it('a recording under way refuses another one, and wrong numbers get the bounds', async () => {
    const { page } = await serve();
    const ending = new AbortController();
    const first = await post(`${page}?seconds=60`, ending.signal);
    expect((await post(page)).status).toBe(409);
    ending.abort();
    await expect(first.arrayBuffer()).rejects.toThrow();
    expect(await (await post(`${page}?seconds=0`)).text()).toBe('seconds: must be a whole number from 1 to 300\n');
    expect((await post(`${page}?mib=1000`)).status).toBe(400);
  });

  it('a recording that its reader leaves makes room for the next', async () => {
    const { page } = await serve();
    const leaving = new AbortController();
    const left = await post(`${page}?seconds=60`, leaving.signal);
    leaving.abort();
    await expect(left.arrayBuffer()).rejects.toThrow();
    await eventually('the next one begins', async () => (await post(`${page}?seconds=1`)).status === 200);
  });
});

const SAMPLES = fileURLToPath(new URL('sample-plugins.js', import.meta.url));
/** A hook plugin that prefers another endpoint for every request, beside a scorer of the core. */
const turns = (weight: number) => `plugins:
- {type: turn-scorer}
- {type: prefix-cache-scorer}
- {type: max-score-picker}
schedulingProfiles:
- name: default
  plugins: [{pluginRef: turn-scorer, weight: ${weight}}, {pluginRef: prefix-cache-scorer}, \
{pluginRef: max-score-picker}]
`;
const PREDICTING = `plugins:
- {type: predicted-latency-producer, parameters: {streamingMode: true}}
- {type: latency-scorer}
- {type: prefix-cache-scorer}
- {type: max-score-picker}
schedulingProfiles:
- name: default
  plugins: [{pluginRef: latency-scorer}, {pluginRef: prefix-cache-scorer}, {pluginRef: max-score-picker}]
`;

describe('a replay of what the core does not decide alone', { timeout: TIMEOUT_MS }, () => {
  /** Replays the recording with `profile`. */
  async function replayed(file: string, folder: string, profile: string, ...flags: string[]) {
    const path = join(folder, 'replayed.yaml');
    await writeFile(path, `${HEAD}${profile}`);
    return JSON.parse((await replay(file, '--config', path, '--json', ...flags)).stdout);
  }

  it('a replay uses the recorded scores of a hook plugin, also for another weight of it', async () => {
    const { file, folder } = await record([`--plugin=${SAMPLES}`, '--shards=1'], 12, turns(3));
    const same = await replayed(file, folder, turns(3), `--plugin=${SAMPLES}`);
    expect(same).toMatchObject({ decisions: 12, reproduced: 1, total: { different: 0 } });
    const other = await replayed(file, folder, turns(0.01), `--plugin=${SAMPLES}`);
    expect(other.reproduced).toBe(1);
    expect(other.total.different).toBeGreaterThan(3);
  });

  it('a replay uses the recorded predictions of latency', async () => {
    const { file, folder } = await record(['--shards=1'], 12, PREDICTING);
    const same = await replayed(file, folder, PREDICTING);
    expect(same).toMatchObject({ decisions: 12, reproduced: 1, total: { different: 0, unplaced: 0 } });
  });
});

describe('pointsman replay', { timeout: TIMEOUT_MS }, () => {
  it('the trace of a recording is one that pointsman simulate reads', async () => {
    const { file, folder } = await record([]);
    const trace = join(folder, 'trace.jsonl');
    await replay(file, '--trace', trace);
    const lines = (await readFile(trace, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toHaveLength(12);
    expect(lines[3]!.block_ids).toEqual(lines[0]!.block_ids);
    expect(lines[1]!.block_ids[0]).toBe(lines[0]!.block_ids[0]);
    expect(lines[0]).toMatchObject({ timestamp_ms: 0, output_tokens: 3 });
  });

  it('a file that is damaged, cut off or none is named with the reason', async () => {
    const { file, other, folder } = await record([], 4);
    const bytes = await readFile(file);
    const damaged = join(folder, 'damaged.bin');
    const flipped = Buffer.from(bytes);
    flipped[flipped.length - 200]! ^= 1;
    await writeFile(damaged, flipped);
    await expect(replay(damaged, '--config', other)).rejects.toMatchObject({
      stderr: expect.stringMatching(/damaged\.bin: it is damaged: the checksum of the frame at byte \d+ differs/),
    });
    await writeFile(damaged, 'no recording');
    await expect(replay(damaged, '--config', other)).rejects.toMatchObject({
      stderr: expect.stringContaining('damaged.bin: it is no recording'),
    });
    await writeFile(damaged, bytes.subarray(0, bytes.length - 5));
    expect((await replay(damaged, '--config', other)).stdout).toContain('the file was cut off');
  });
});
