import { execFile } from 'node:child_process';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { DEFAULT_CONFIGURATION } from '../../dist/src/config/default-configuration.js';
import type { Picker } from '../../dist/src/picker/picker.js';
import { decodeReply, requestBody, requestHeaders, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { type Call, collect, dialPicker, firstReply, type ProxyClient } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { metric, metricsPage, type Ports, PROGRAM, startPicker, startServe } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Entry {
  readonly name: string;
  /** Port of the pool's only endpoint. */
  readonly endpoint: number;
  readonly [field: string]: unknown;
}

/** A pools file with one endpoint in each pool. */
class PoolsFile {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  get path(): string {
    return join(this.folder, 'pools.yaml');
  }

  async write(pools: readonly Entry[], rest: object = {}): Promise<void> {
    for (const { name, endpoint } of pools) {
      const endpoints = [{ name: `${name}-0`, address: '127.0.0.1', port: String(endpoint) }];
      await writeFile(join(this.folder, `${name}.yaml`), JSON.stringify({ endpoints }));
    }
    const entries = pools.map(({ endpoint: _, ...entry }) => ({ endpointsFile: `${entry.name}.yaml`, ...entry }));
    await writeFile(join(this.folder, 'next.yaml'), DEFAULT_CONFIGURATION);
    await writeFile(`${this.path}.next`, JSON.stringify({ pools: entries, ...rest }));
    await rename(`${this.path}.next`, this.path);
  }
}

const FLAGS = [
  ...['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0'],
  ...['--metrics-endpoint-auth=false', '--secure-serving=false', '--bind-address=127.0.0.1'],
];

interface Bed {
  readonly picker: Picker;
  readonly ports: Ports;
  readonly file: PoolsFile;
  readonly client: ProxyClient;
}

async function writePools(pools: readonly Entry[], rest: object = {}): Promise<PoolsFile> {
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-pools-'));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  const file = new PoolsFile(folder);
  await file.write(pools, rest);
  return file;
}

async function start(pools: readonly Entry[], rest: object = {}, ...flags: string[]): Promise<Bed> {
  const file = await writePools(pools, rest);
  const { picker, ports } = await startPicker([...FLAGS, `--pools=${file.path}`, ...flags]);
  cleanups.push(() => picker.stop(0));
  return { picker, ports, file, client: dial(ports.grpcPort) };
}

function dial(port: number): ProxyClient {
  const client = dialPicker(port);
  cleanups.push(() => client.close());
  return client;
}

interface Asked {
  readonly headers?: Readonly<Record<string, string>>;
  readonly model?: string;
}

/** Sends a request and leaves its stream open. The model stands behind the prompt, as OpenAI's library writes it. */
function ask(client: ProxyClient, { headers = {}, model = 'm' }: Asked, prompt = 'hello'): Call {
  const call = client.process();
  call.on('error', () => undefined);
  call.write(requestHeaders({ ':method': 'POST', ':path': '/v1/chat/completions', ...headers }));
  call.write(requestBody(JSON.stringify({ messages: [{ role: 'user', content: prompt }], model })));
  return call;
}

/** Destination, or status and text of a refusal. */
async function answerTo(client: ProxyClient, asked: Asked): Promise<string> {
  const call = ask(client, asked);
  const reply = decodeReply(await firstReply(call));
  call.end();
  if (reply.kind === 'immediate') return `${reply.status} ${reply.body.toString()}`;
  return reply.headers['x-gateway-destination-endpoint']!;
}

/** Exit code of doctor, and the first line of what it found. */
async function doctorOf(metricsPort: number): Promise<readonly [code: number, first: string | undefined]> {
  const url = `http://127.0.0.1:${metricsPort}`;
  const doctor = promisify(execFile)(process.execPath, [PROGRAM, 'doctor', '--seconds', '0', '--picker', url]);
  const { code, stdout } = await doctor.then(
    ({ stdout: text }) => ({ code: 0, stdout: text }),
    (error: { readonly code: number; readonly stdout: string }) => error,
  );
  return [code, stdout.split('\n')[1]];
}

const GAMMA: Entry = { name: 'gamma', endpoint: 20_003 };
const inPool = (pool: string): Asked => ({ headers: { 'x-pointsman-pool': pool } });
const TWO: readonly Entry[] = [
  { name: 'alpha', endpoint: 20_001, models: ['llama', 'qwen-*'] },
  { name: 'beta', endpoint: 20_002, models: ['mistral', 'qwen-big-*'] },
];

const LONG = 'A prompt of some blocks, so that a match of all of them says something. '.repeat(40);
const MESSAGES = [{ role: 'user', content: LONG }];
/** A body of each dialect whose requests name a model. */
const BODIES: readonly (readonly [path: string, fields: object])[] = [
  ['/v1/chat/completions', { messages: MESSAGES }],
  ['/v1/completions', { prompt: LONG }],
  ['/v1/embeddings', { input: LONG }],
  ['/v1/responses', { input: LONG }],
  ['/v1/conversations', { items: MESSAGES }],
  ['/v1/images/generations', { prompt: LONG }],
  ['/v1/messages', { max_tokens: 9, system: LONG, messages: MESSAGES }],
  ['/inference/v1/generate', { token_ids: Array.from({ length: 2_000 }, (_, i) => i), sampling_params: {} }],
];

describe.each(['lean', 'grpc-js'])('pools of one process (%s)', (transport) => {
  const flags = [`--transport=${transport}`];

  it('the header chooses the pool of a request', async () => {
    const { client } = await start(TWO, {}, ...flags);
    expect(await answerTo(client, inPool('alpha'))).toBe('127.0.0.1:20001');
    expect(await answerTo(client, inPool('beta'))).toBe('127.0.0.1:20002');
  });

  it('a pool that there is not is refused with a 404 that names it', async () => {
    const { client } = await start(TWO, {}, ...flags);
    expect(await answerTo(client, inPool('gamma'))).toContain('404 inference error: NotFound - pool "gamma"');
  });

  it('the model chooses the pool, also behind the prompt and by the longest beginning', async () => {
    const { client } = await start(TWO, {}, ...flags);
    expect(await answerTo(client, { model: 'llama' })).toBe('127.0.0.1:20001');
    expect(await answerTo(client, { model: 'mistral' })).toBe('127.0.0.1:20002');
    expect(await answerTo(client, { model: 'qwen-7b' })).toBe('127.0.0.1:20001');
    expect(await answerTo(client, { model: 'qwen-big-72b' })).toBe('127.0.0.1:20002');
    expect(await answerTo(client, { model: 'other' })).toContain('404 inference error: NotFound - no pool serves');
  });

  it('requests that nothing says the pool of go to the default pool', async () => {
    const { client } = await start(TWO, { default: 'beta' }, ...flags);
    expect(await answerTo(client, { model: 'other' })).toBe('127.0.0.1:20002');
  });
});

describe('pools of one process', () => {
  it('a pool has a candidate configuration of its own, which decides its requests only', async () => {
    const bed = await start([{ ...TWO[0]!, candidateFile: 'next.yaml' }, TWO[1]!], {}, '--shards=1');
    for (const pool of ['alpha', 'alpha', 'beta']) await answerTo(bed.client, inPool(pool));
    const decided = (pool: string) =>
      metric(bed.ports.metricsPort, 'pointsman_shadow_decisions_total', `pool="${pool}"`);
    expect(await decided('alpha')).toBe(2);
    expect(await decided('beta')).toBeUndefined();
  });

  it('a request without a pool is refused where no model says it and there is no default', async () => {
    const { client } = await start([{ name: 'alpha', endpoint: 20_001 }]);
    expect(await answerTo(client, {})).toContain('404 inference error: NotFound - the request names no pool');
  });

  it('charges stay in their pool, and metrics have its name', async () => {
    const { client, ports } = await start(TWO);
    const calls = [
      ask(client, inPool('alpha'), 'a'),
      ask(client, inPool('alpha'), 'b'),
      ask(client, inPool('beta'), 'c'),
    ];
    for (const call of calls) await firstReply(call);
    expect(await metric(ports.metricsPort, 'pointsman_ledger_entries', 'pool="alpha"')).toBe(2);
    expect(await metric(ports.metricsPort, 'pointsman_ledger_entries', 'pool="beta"')).toBe(1);
    for (const call of calls) {
      const { length } = [call.write(responseHeaders({ ':status': '200' })), call.write(responseBody('{}', true))];
      expect(length).toBe(2);
      call.end();
    }
    await eventually(
      'all charges are released',
      async () => (await metric(ports.metricsPort, 'pointsman_ledger_entries')) === 0,
    );
  });

  it('a metric stands on the page once, with the series of all pools behind it', async () => {
    const { ports } = await start(TWO);
    const types = (await metricsPage(ports.metricsPort)).split('\n').filter((line) => line.startsWith('# TYPE'));
    expect(new Set(types).size).toBe(types.length);
    const page = await metricsPage(ports.metricsPort);
    const at = page.split('\n').map((line) => line.startsWith('pointsman_ledger_entries'));
    expect(at.lastIndexOf(true) - at.indexOf(true) + 1).toBe(at.filter(Boolean).length);
  });

  it('prompts of one pool are not known in another', async () => {
    const { client, ports } = await start(TWO);
    for (const pool of ['alpha', 'alpha', 'beta']) {
      const call = ask(client, inPool(pool), 'x'.repeat(4_000));
      await firstReply(call);
      call.end();
    }
    const stored = (pool: string) => metric(ports.metricsPort, 'llm_d_epp_prefix_indexer_size', `pool="${pool}"`);
    expect(await stored('alpha')).toBe(await stored('beta'));
    const matched = await (await fetch(`http://127.0.0.1:${ports.metricsPort}/debug/decisions?pool=beta`)).json();
    expect((matched as { decisions: { matchedBlocks: number }[] }).decisions.map((d) => d.matchedBlocks)).toEqual([0]);
  });

  it.each(BODIES)('a prompt to %s that the model sends is the one that the header sent', async (path, fields) => {
    const { client, ports } = await start(TWO);
    for (const headers of [{ 'x-pointsman-pool': 'alpha' }, {}]) {
      const call = client.process();
      call.on('error', () => undefined);
      call.write(requestHeaders({ ':method': 'POST', ':path': path, ...headers }));
      const text = JSON.stringify({ ...fields, model: 'llama' });
      call.write(requestBody(text.slice(0, 700), false));
      call.write(requestBody(text.slice(700)));
      expect(decodeReply(await firstReply(call)).kind).not.toBe('immediate');
      call.end();
    }
    const page = await fetch(`http://127.0.0.1:${ports.metricsPort}/debug/decisions?pool=alpha`);
    const { decisions } = (await page.json()) as { decisions: { matchedBlocks: number; totalBlocks: number }[] };
    const matches = decisions.map(({ matchedBlocks, totalBlocks }) => [matchedBlocks, totalBlocks]);
    const blocks = matches[0]![1]!;
    expect(blocks).toBeGreaterThan(3);
    expect(matches.toSorted(([a], [b]) => a! - b!)).toEqual([
      [0, blocks],
      [blocks, blocks],
    ]);
  });

  it('a shard that dies releases its charges in every pool, and serves all of them again', async () => {
    const { client, picker, ports } = await start(TWO);
    for (const pool of ['alpha', 'beta']) await firstReply(ask(client, inPool(pool)));
    await picker.shards.workers.threads[0]!.terminate();
    await eventually('the shard is back', () => picker.shards.listening === 1);
    await eventually(
      'no charge is left',
      async () => (await metric(ports.metricsPort, 'pointsman_ledger_entries')) === 0,
    );
    const again = dial(ports.grpcPort);
    expect(await answerTo(again, inPool('alpha'))).toBe('127.0.0.1:20001');
    expect(await answerTo(again, inPool('beta'))).toBe('127.0.0.1:20002');
  });

  it('a port of a pool takes requests for it alone', async () => {
    const port = 21_000 + (process.pid % 9_000);
    await start([{ name: 'alpha', endpoint: 20_001, port }, TWO[1]!]);
    expect(await answerTo(dial(port), {})).toBe('127.0.0.1:20001');
    expect(await answerTo(dial(port), inPool('beta'))).toBe('127.0.0.1:20001');
  });

  it('a pool is added, replaced and removed without an end of the streams of the others', async () => {
    const { client, file, ports } = await start(TWO);
    const kept = ask(client, inPool('alpha'));
    await firstReply(kept);
    const over = collect(kept);
    await file.write([TWO[0]!, { name: 'beta', endpoint: 20_003 }, { name: 'gamma', endpoint: 20_004 }]);
    await eventually('gamma is served', async () => (await answerTo(client, inPool('gamma'))) === '127.0.0.1:20004');
    await file.write([TWO[0]!]);
    await eventually('beta is gone', async () => (await answerTo(client, inPool('beta'))).startsWith('404'));
    expect(await metricsPage(ports.metricsPort)).not.toContain('pool="beta"');
    kept.write(responseHeaders({ ':status': '200' }));
    kept.write(responseBody('{}', true));
    kept.end();
    expect((await over).code).toBe(0);
  });

  it('pools come and go under load, and no request of another pool fails', { timeout: 60_000 }, async () => {
    const { file, ports } = await start(TWO, {}, '--shards=2');
    let going = true;
    const load = Array.from({ length: 6 }, async () => {
      const client = dial(ports.grpcPort);
      const answers = new Set<string>();
      while (going) answers.add(await answerTo(client, inPool('alpha')));
      return answers;
    });
    for (let round = 0; round < 5; round++) {
      const comes = Array.from({ length: 3 }, (_, i) => ({ name: `pool-${round}-${i}`, endpoint: 20_010 + i }));
      await file.write([TWO[0]!, ...comes]);
      const last = comes.at(-1)!;
      const client = dial(ports.grpcPort);
      await eventually('the new pool is served', async () => {
        return (await answerTo(client, inPool(last.name))) === `127.0.0.1:${last.endpoint}`;
      });
    }
    going = false;
    const answers = new Set((await Promise.all(load)).flatMap((one) => [...one]));
    expect([...answers]).toEqual(['127.0.0.1:20001']);
    await eventually('no charge is left', async () => {
      return (await metric(ports.metricsPort, 'pointsman_ledger_entries')) === 0;
    });
  });

  it('metadata of the proxy choose the pool, before the header', async () => {
    const { client } = await start(TWO);
    const call = client.process();
    call.on('error', () => undefined);
    const headers = { ':path': '/v1/chat/completions', 'x-pointsman-pool': 'alpha' };
    call.write(requestHeaders(headers, false, { pointsman: { 'x-pointsman-pool': 'beta' } }));
    call.write(requestBody(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hello' }] })));
    const reply = decodeReply(await firstReply(call));
    call.end();
    expect(reply.headers['x-gateway-destination-endpoint']).toBe('127.0.0.1:20002');
  });

  it('more pools than --max-pools end the start with a line that says so', async () => {
    await expect(start(TWO, {}, '--max-pools=1')).rejects.toThrow('2 pools are above --max-pools=1: raise the flag');
  });

  it('requests of one pool that wait in its queues hold up no other pool', async () => {
    const configuration = {
      featureGates: ['flowControl'],
      plugins: [{ type: 'concurrency-detector', parameters: { maxConcurrency: 1 } }],
      flowControl: { saturationDetector: { pluginRef: 'concurrency-detector' } },
    };
    const { client, ports } = await start([{ ...TWO[0]!, configuration }, TWO[1]!]);
    await firstReply(ask(client, inPool('alpha')));
    ask(client, inPool('alpha'));
    await eventually('a request waits', async () => {
      return (await metric(ports.metricsPort, 'llm_d_epp_flow_control_queue_size', 'pool="alpha"')) === 1;
    });
    expect(await answerTo(client, inPool('beta'))).toBe('127.0.0.1:20002');
  });

  it('a pool that cannot be opened is told by log, metric and the first line of doctor until it can be', async () => {
    const file = await writePools(TWO);
    const serve = await startServe([...FLAGS, `--pools=${file.path}`]);
    cleanups.push(() => serve.kill());
    await file.write([...TWO, { ...GAMMA, configuration: { plugins: [{ type: 'no-such-scorer' }] } }]);
    await eventually('the pool is tried', () => serve.log().includes('pool cannot be opened: it is not served'));
    expect(await metric(serve.metricsPort, 'pointsman_pools_file_rejected')).toBe(1);
    expect(await doctorOf(serve.metricsPort)).toEqual([
      2,
      expect.stringMatching(/^error +pools file +.*pool "gamma" cannot be opened, it is not served: .*no-such-scorer/),
    ]);
    await file.write([...TWO, GAMMA]);
    const isOver = async () => (await metric(serve.metricsPort, 'pointsman_pools_file_rejected')) === 0;
    await eventually('no pool is rejected', isOver);
    const client = dial(serve.grpcPort);
    await eventually('the pool is served', async () => (await answerTo(client, inPool('gamma'))) === '127.0.0.1:20003');
  });

  it('a file that cannot be used leaves the pools as they are, and log, metric and the first line of doctor say so', async () => {
    const file = await writePools(TWO);
    const serve = await startServe([...FLAGS, `--pools=${file.path}`]);
    cleanups.push(() => serve.kill());
    await writeFile(file.path, 'pools: [{name: alpha, endpointsFile: 5}]');
    await eventually('the file is read', () => serve.log().includes('the pools stay as they were'));
    expect(await metric(serve.metricsPort, 'pointsman_pools_file_rejected')).toBe(1);
    expect(await doctorOf(serve.metricsPort)).toEqual([
      2,
      expect.stringMatching(/^error +pools file +the file of --pools.* the pools stay as they were/),
    ]);
    expect(await answerTo(dial(serve.grpcPort), inPool('beta'))).toBe('127.0.0.1:20002');
  });

  it('the pools are listed, and each has its debug pages', async () => {
    const { ports } = await start(TWO);
    const page = async (path: string) => fetch(`http://127.0.0.1:${ports.metricsPort}${path}`);
    const { pools } = (await (await page('/debug/pools')).json()) as { pools: { name: string; endpoints: number }[] };
    expect(pools.map(({ name, endpoints }) => [name, endpoints])).toEqual([
      ['alpha', 1],
      ['beta', 1],
    ]);
    expect((await page('/debug/adaptation?pool=alpha')).status).toBe(200);
    expect((await page('/debug/adaptation?pool=none')).status).toBe(404);
  });
});
