import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { attachCore, createPoolMemory, defaultPoolSizes } from '../../dist/src/core/memory.js';
import { MetricsExposition } from '../../dist/src/operations/telemetry/exposition.js';
import {
  type MetricsServer,
  type MetricsServerOptions,
  startMetricsServer,
} from '../../dist/src/operations/telemetry/metrics-server.js';
import { ShardRecorder } from '../../dist/src/operations/telemetry/shard-recorder.js';

const pool = createPoolMemory({ ...defaultPoolSizes, endpoints: 64, indexBlocks: 1024, requests: 64, threads: 2 });
const exposition = new MetricsExposition({
  core: attachCore(pool, 0),
  poolName: 'epp',
  endpointOf: () => undefined,
  streamMetrics: true,
  build: { version: '0', commit: '', buildRef: '' },
});
const problems: string[] = [];
const routes = new Map([
  ['/debug/state', (_request: unknown, response: { end(text: string): void }) => response.end('{}')],
  [
    '/debug/broken',
    () => {
      throw new Error('no state');
    },
  ],
]);
let server: MetricsServer;

const refused: (string | undefined)[] = [];
const actions = new Map([
  ['/debug/action', (_request: unknown, response: { end(text: string): void }) => response.end('done')],
]);

const start = (port = 0, headersTimeoutMs?: number, more: Partial<MetricsServerOptions> = {}) =>
  startMetricsServer({
    host: '127.0.0.1',
    port,
    exposition: async () => exposition,
    routes,
    actions,
    headersTimeoutMs,
    report: (problem) => problems.push(problem),
    refused: ({ host }) => refused.push(host),
    ...more,
  });

beforeEach(async () => {
  problems.length = 0;
  server = await start();
});
afterEach(() => server.close());

const get = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${server.port}${path}`, init);

test('GET /metrics refuses names that it does not know, and names those that it knows', async () => {
  const answer = await get('/metrics?names=promtheus');
  expect(answer.status).toBe(400);
  expect(await answer.text()).toBe('names: expected "prometheus" or nothing, got "promtheus"\n');
});

test('GET /metrics has whole lines under names for Prometheus, wherever its pieces were cut', async () => {
  const page = '# TYPE llm_d_a gauge\nllm_d_a{b="llm_d_b"} 1\n# TYPE nodejs_active_handles_total gauge\n';
  const pieces = async function* () {
    yield* `${page}nodejs_active_handles_total 2\nnodejs_active_handles{type="x"} 2\n`;
  };
  const cut = await start(0, undefined, { exposition: async () => ({ pieces }) });
  const answer = await fetch(`http://127.0.0.1:${cut.port}/metrics?names=prometheus`);
  expect(await answer.text()).toBe(
    '# TYPE pointsman_a gauge\npointsman_a{b="llm_d_b"} 1\nnodejs_active_handles{type="x"} 2\n',
  );
  await cut.close();
});

test('GET /metrics answers in the Prometheus text format, process metrics included', async () => {
  const response = await get('/metrics');
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const text = await response.text();
  expect(text).toContain('llm_d_epp_ready_endpoints{name="epp"} 0\n');
  expect(text).toMatch(/^process_cpu_seconds_total [\d.e-]+$/m);
});

test('a page right behind another one has no sample without a value', async () => {
  await (await get('/metrics')).text();
  expect(await (await get('/metrics')).text()).not.toMatch(/ nan$/im);
});

test('other paths are 404, other methods 405, extra routes are served', async () => {
  expect((await get('/')).status).toBe(404);
  expect((await get('/metrics', { method: 'POST' })).status).toBe(405);
  expect(await (await get('/debug/state?x=1')).text()).toBe('{}');
});

test('a request that a proxy of this machine has forwarded reads /metrics and no other page', async () => {
  for (const header of ['x-forwarded-for', 'forwarded']) {
    const headers = { [header]: 'for=10.0.0.1' };
    expect((await get('/metrics', { headers })).status).toBe(200);
    expect((await get('/debug/state', { headers })).status).toBe(403);
    expect((await get('/none', { headers })).status).toBe(403);
  }
});

test('a method other than GET and HEAD is 405 on every path, and Allow names the two', async () => {
  for (const path of ['/metrics', '/debug/state', '/none']) {
    const response = await get(path, { method: 'DELETE' });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  }
});

/** Status of a request whose headers `fetch` would set itself. */
const status = (headers: Record<string, string>, path = '/debug/state', method = 'GET') =>
  new Promise<number | undefined>((resolve, reject) => {
    const asked = request({ port: server.port, host: '127.0.0.1', path, method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asked.on('error', reject).end();
  });

test('a page that has its own name point to this machine reads nothing, and the host is reported', async () => {
  refused.length = 0;
  for (const path of ['/metrics', '/debug/state', '/none']) {
    expect([path, await status({ host: 'evil.example.com:9090' }, path)]).toEqual([path, 403]);
  }
  expect(await status({ host: 'evil.example.com', authorization: 'Bearer guessed' })).toBe(403);
  expect(refused).toEqual(Array(4).fill(expect.stringContaining('evil.example.com')));
  expect(await status({ host: `localhost:${server.port}` })).toBe(200);
});

test('readers with a token of their own use any name, and a page of another site none', async () => {
  await server.close();
  const mayRead = ({ token }: { token: string | undefined }) => ({ status: token === 'mine' ? 200 : 401, reason: '' });
  server = await start(0, undefined, { mayRead });
  expect(await status({ host: 'picker.example.org' })).toBe(401);
  expect(await status({ host: 'picker.example.org', authorization: 'Bearer mine' })).toBe(200);
  expect(await status({ authorization: 'Bearer mine', 'sec-fetch-site': 'cross-site' })).toBe(403);
});

test('a host that is named for the port reads it', async () => {
  await server.close();
  server = await start(0, undefined, { hosts: ['picker.example.org'] });
  expect(await status({ host: 'picker.example.org:9090' })).toBe(200);
});

test('an action answers to POST of its own site, and to no link', async () => {
  const navigation = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
  expect(await status({}, '/debug/action', 'POST')).toBe(200);
  expect(await status({}, '/debug/action')).toBe(405);
  expect(await status(navigation, '/debug/action')).toBe(405);
  expect(await status({ origin: 'http://evil.example.com' }, '/debug/action', 'POST')).toBe(403);
  expect(await status(navigation, '/debug/action', 'POST')).toBe(403);
});

test('silent connections that take every place lose them to the header timeout', async () => {
  await server.close();
  server = await start(0, 200);
  const silent = Array.from({ length: 64 }, () => connect(server.port, '127.0.0.1'));
  await Promise.all(silent.map((socket) => once(socket, 'connect')));
  await Promise.all(silent.map((socket) => once(socket.resume(), 'close')));
  expect((await get('/metrics')).status).toBe(200);
});

test('a route that fails is a 500 and is reported, and the server goes on', async () => {
  expect((await get('/debug/broken')).status).toBe(500);
  expect(problems).toEqual(['/debug/broken failed: no state']);
  expect((await get('/metrics')).status).toBe(200);
});

test('a page of many series arrives whole, and a client that leaves in the middle does no harm', async () => {
  const recorder = new ShardRecorder(attachCore(pool, 1), { endpointOf: () => undefined });
  const models = new Set(Array.from({ length: 900 }, (_, model) => `model-${model}`));
  recorder.vouch({ models, fairnessIds: new Set(['f']) });
  for (let model = 0; model < 900; model++) {
    const series = recorder.series({ model: `model-${model}`, target: '', fairness: 'f', priority: 0 });
    recorder.routed(series, 1000);
    recorder.firstToken(series, true, 0.1);
  }
  await new Promise<void>((resolve) => {
    const leaving = request({ port: server.port, host: '127.0.0.1', path: '/metrics' }, (response) => {
      response.once('data', () => {
        leaving.destroy();
        resolve();
      });
    });
    leaving.end();
  });
  const text = await (await get('/metrics')).text();
  expect(text.match(/^llm_d_epp_request_total\{/gm)).toHaveLength(900);
  expect(text.endsWith('\n')).toBe(true);
  expect(text).toContain('pointsman_info{version="0"} 1\n');
});

test('a busy port is one clear error that names the flag', async () => {
  await expect(start(server.port)).rejects.toThrow(
    `cannot serve metrics on port ${server.port}: the port is already in use (address already in use); choose ` +
      'another with --metrics-port',
  );
});

/** Asks for a page of these pieces. @returns how many turns the event loop took while it was made */
async function turnsOfPage(count: number, work: () => void): Promise<number> {
  let turns = 0;
  let [first, last] = [0, 0];
  let ended = false;
  const turn = () => {
    turns++;
    if (!ended) setImmediate(turn);
  };
  const exposition = async () => ({
    async *pieces() {
      first = turns;
      for (let piece = 0; piece < count; piece++) {
        work();
        last = turns;
        yield `${piece}\n`;
      }
    },
  });
  await server.close();
  server = await start(0, undefined, { exposition });
  turn();
  expect((await (await get('/metrics')).text()).split('\n')).toHaveLength(count + 1);
  ended = true;
  return last - first;
}

test('a page of many small pieces does not wait for a turn of the event loop with each', async () => {
  expect(await turnsOfPage(500, () => {})).toBeLessThan(100);
});

test('a page whose pieces take long leaves turns of the event loop to other work', async () => {
  const busy = () => {
    for (const until = performance.now() + 20; performance.now() < until; );
  };
  expect(await turnsOfPage(6, busy)).toBeGreaterThanOrEqual(5);
});
