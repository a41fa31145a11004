import { execFile } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import type { DecisionRecord } from '../../dist/src/core/decision-log.js';
import { recentTraffic } from '../../dist/src/operations/why/recent-traffic.js';
import type { RecentTraffic } from '../../dist/src/operations/why/traffic-figures.js';
import type { Condition } from '../../dist/tools/doctor/condition.js';
import { trafficConditions } from '../../dist/tools/doctor/traffic-checks.js';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { firstReply } from '../ingress/proxy-client.ts';
import { answer, cleanUp, dial } from '../picker/queued-requests.ts';
import { ask, PROGRAM, Setting, startPicker } from '../picker/serving.ts';

const run = promisify(execFile);
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  await cleanUp();
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const ENDPOINTS = [0, 1, 2].map((i) => ({ name: `server-${i}`, port: 21_100 + i }));

const profile = (...scorers: readonly string[]) =>
  `plugins:\n${[...scorers, 'max-score-picker'].map((type) => `- type: ${type}\n`).join('')}` +
  ('schedulingProfiles: [{name: default, plugins: ' +
    `[${[...scorers, 'max-score-picker'].map((type) => `{pluginRef: ${type}}`).join(', ')}]}]\n`);

async function serve(configuration: string) {
  const setting = await Setting.create(ENDPOINTS, configuration);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, '--allow-experimental-plugins']);
  cleanups.push(() => picker.stop(0));
  return { client: dial(ports.grpcPort), url: `http://127.0.0.1:${ports.metricsPort}` };
}

/** A request that its endpoint answers. @returns the name of the endpoint */
async function answered(
  client: ReturnType<typeof dial>,
  prompt: string,
  headers: Readonly<Record<string, string>> = {},
  takes: (endpoint: string) => number = () => 0,
): Promise<string> {
  const call = ask(client, prompt, headers);
  const destination = decodeReply(await firstReply(call)).headers['x-gateway-destination-endpoint']!;
  const { name } = ENDPOINTS.find(({ port }) => destination.endsWith(String(port)))!;
  const ms = takes(name);
  if (ms > 0) await pause(ms);
  answer(call);
  return name;
}

/** Conditions about a part of the picker, as the built program finds them in one look. */
async function conditionsOf(url: string, about: string): Promise<readonly Condition[]> {
  const asked = run(process.execPath, [PROGRAM, 'doctor', '--json', '--seconds', '0', '--picker', url]);
  // It ends with 1 where there are warnings.
  const { stdout } = await asked.catch((error: { readonly stdout: string }) => error);
  const { conditions } = JSON.parse(stdout) as { readonly conditions: readonly Condition[] };
  return conditions.filter((condition) => condition.about === about);
}

/** What doctor says of a hot endpoint behind so many requests with one session header. */
async function hotByHeader(requests: number): Promise<Condition | undefined> {
  const { client, url } = await serve(profile('session-affinity-scorer', 'queue-scorer'));
  const token = Buffer.from('default/server-1').toString('base64');
  for (let i = 0; i < requests; i++) await answered(client, `prompt ${i}`, { 'x-session-token': token });
  const [hot] = await conditionsOf(url, 'hot endpoint');
  return hot;
}

describe('pointsman doctor about traffic', () => {
  it('one system prompt that sends all requests to one endpoint is named, with the scorer and the tokens', async () => {
    const { client, url } = await serve(profile('prefix-cache-scorer', 'queue-scorer'));
    for (let i = 0; i < 80; i++) await answered(client, `${'You are a helpful assistant. '.repeat(150)} ${i}`);
    const [hot, ...more] = await conditionsOf(url, 'hot endpoint');
    expect(more).toEqual([]);
    expect(hot!.text).toMatch(
      /^default\/server-\d had (79|80) of 80 requests of the last 60 s, and there are 3 endpoints/,
    );
    expect(hot!.text).toMatch(
      /prefix-cache-scorer sends them there, because their prompts begin alike: it holds \d+ of/,
    );
    expect(hot!.remedy).toContain('marginal-cost-scorer');
  });

  it('one session header that all requests carry is named, with the plugin that follows it', async () => {
    const hot = await hotByHeader(80);
    expect(hot!.text).toContain('default/server-1 had 80 of 80 requests');
    expect(hot!.text).toContain(
      'session-affinity-scorer sends them there, because they name sessions that are bound to it',
    );
    expect(hot!.remedy).toContain('differs between clients');
  });

  it('twenty requests are enough for the plugin that sends them to one endpoint to be named', async () => {
    const hot = await hotByHeader(20);
    expect(hot!.text).toContain('default/server-1 had 20 of 20 requests');
    expect(hot!.text).toContain('session-affinity-scorer sends them there');
  });

  it('requests that are spread have no hot endpoint', async () => {
    const { client, url } = await serve(profile('queue-scorer'));
    for (let i = 0; i < 80; i++) await answered(client, `prompt ${i}`);
    expect(await conditionsOf(url, 'hot endpoint')).toEqual([]);
  });

  it('an endpoint far slower than the others is named with both times', async () => {
    const { client, url } = await serve(profile('queue-scorer'));
    const slow = (endpoint: string) => (endpoint === 'server-2' ? 400 : 0);
    // In flight together, so that each endpoint gets its part.
    for (let round = 0; round < 8; round++) {
      await Promise.all(Array.from({ length: 6 }, (_, i) => answered(client, `prompt ${round} ${i}`, {}, slow)));
    }
    const [found, ...more] = await conditionsOf(url, 'slow endpoint');
    expect(more).toEqual([]);
    expect(found!.text).toMatch(/^default\/server-2 takes \d+ ms to answer where the others take \d+ ms$/);
  });

  it('errors of the last minute are a warning in one look, although none has come since', async () => {
    const { client, url } = await serve(profile('queue-scorer'));
    const call = ask(client, 'x', { 'x-gateway-destination-endpoint-subset': '10.9.9.9:1' });
    call.end();
    await firstReply(call);
    const bad = client.process();
    const { requestBody, requestHeaders } = await import('../ingress/envoy-messages.ts');
    bad.write(requestHeaders({ ':path': '/v1/chat/completions' }));
    bad.write(requestBody('{"model": 3}', true));
    await firstReply(bad);
    const [errors] = await conditionsOf(url, 'requests');
    expect(errors).toMatchObject({ severity: 'warning', text: expect.stringContaining('in the last minute') });
    const asked = run(process.execPath, [PROGRAM, 'doctor', '--seconds', '0', '--picker', url]);
    await expect(asked).rejects.toMatchObject({ code: expect.toSatisfy((code: number) => code >= 1) });
  });
});

describe('the judgement of traffic', () => {
  const traffic = (given: Partial<RecentTraffic>): RecentTraffic => ({
    ...{ windowSeconds: 60, decided: 100, refused: {}, endpoints: [], leaning: null, explained: 0 },
    ...given,
  });
  const loads = (...decided: readonly number[]) =>
    decided.map((each, i) => ({ endpoint: `e${i}`, decided: each, failed: 0, medianMs: null, isWhole: true }));
  const texts = (given: Partial<RecentTraffic>) =>
    trafficConditions({ health: { plugins: [], traffic: traffic(given) } } as never).map(({ text }) => text);

  it.each([
    [[84, 16], 0],
    [[86, 14], 1],
    [[60, 10, 10, 10, 10], 1],
    [[50, 20, 10, 10, 10], 0],
    [[31, ...Array(9).fill(7)], 1],
  ] as const)('the judgement of %j requests finds %i hot endpoints', (decided, hot) => {
    expect(texts({ endpoints: loads(...decided) })).toHaveLength(hot);
  });

  it('a handful of requests and a pool of one endpoint are not judged', () => {
    expect(texts({ decided: 19, endpoints: loads(19, 0) })).toEqual([]);
    expect(texts({ endpoints: loads(100) })).toEqual([]);
  });

  it('a hot endpoint that no plugin prefers is said to be that, and not that nothing was kept', () => {
    const hot = { endpoints: loads(95, 5) };
    expect(texts({ ...hot, explained: 0 })[0]).toContain('no decision has kept its scores');
    expect(texts({ ...hot, explained: 9 })[0]).toContain('no plugin prefers it');
  });

  it('whole answers of one endpoint are not compared with first tokens of the others', () => {
    const timed = (endpoint: string, medianMs: number, isWhole: boolean) => ({
      ...{ endpoint, decided: 30, failed: 0, medianMs, isWhole },
    });
    const slow = (isWhole: boolean) =>
      texts({ endpoints: [timed('e0', 30, false), timed('e1', 40, false), timed('e2', 3_000, isWhole)] });
    expect(slow(true)).toEqual([]);
    expect(slow(false)).toEqual(['e2 takes 3.0 s to answer where the others take 40 ms']);
  });
});

describe('the figures of traffic', () => {
  const record = (given: Partial<DecisionRecord>) =>
    ({
      ...{ status: 'decided', slot: 0, further: false, columns: 1, matchedBlocks: 0, blockTokens: 64, promptTokens: 9 },
      ...{ end: 'completed', durationMs: 1_000, firstOutputMs: undefined },
      ...given,
    }) as DecisionRecord;
  const figures = (records: readonly DecisionRecord[], prefers: (record: DecisionRecord) => boolean = () => false) =>
    recentTraffic({
      ...{ records, windowSeconds: 60, endpoints: new Map([[0, 'e0']]) },
      explain: (one) => {
        const shown = (rank: number, score: number) => ({
          ...{ rank, removedBy: null, scores: [{ scorer: 'mine', weight: 1, score }] },
        });
        return { endpoints: [shown(1, prefers(one) ? 1 : 0), shown(2, 0)] } as never;
      },
    });

  it('a scorer that prefers an endpoint in older decisions of the window is found behind newer ones without', () => {
    const records = Array.from({ length: 100 }, (_, i) => record({ promptTokens: i }));
    const { leaning, explained } = figures(records, ({ promptTokens }) => promptTokens >= 20);
    expect([leaning?.name, explained]).toEqual(['mine', 10]);
    expect(figures(records)).toMatchObject({ leaning: null, explained: 10 });
    expect(figures(records.map((one) => ({ ...one, columns: 0 })))).toMatchObject({ leaning: null, explained: 0 });
  });

  it('one stream among whole answers leaves the median to the whole answers', () => {
    const whole = Array.from({ length: 9 }, () => record({}));
    const streamed = record({ firstOutputMs: 20 });
    expect(figures([...whole, streamed]).endpoints).toMatchObject([{ medianMs: 1_000, isWhole: true }]);
    const streams = Array.from({ length: 5 }, () => streamed);
    expect(figures([...whole, ...streams]).endpoints).toMatchObject([{ medianMs: 20, isWhole: false }]);
  });
});
