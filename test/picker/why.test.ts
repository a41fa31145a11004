import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import type { RequestStory } from '../../dist/src/operations/why/request-story.js';
import { decodeReply, requestHeaders, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, PROGRAM, Setting, startPicker } from './serving.ts';

const run = promisify(execFile);
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const ENDPOINTS = [
  { name: 'a', port: 21_011 },
  { name: 'b', port: 21_012 },
  { name: 'old', port: 21_013, labels: { tier: 'old' } },
];

const FILTERED = `plugins:
- {type: label-selector-filter, name: not-old, parameters: {matchExpressions: [{key: tier, operator: \
NotIn, values: [old]}]}}
- {type: queue-scorer}
- {type: prefix-cache-scorer}
- {type: max-score-picker}
schedulingProfiles:
- name: default
  plugins: [{pluginRef: not-old}, {pluginRef: queue-scorer, weight: 2}, {pluginRef: prefix-cache-scorer, weight: \
3}, {pluginRef: max-score-picker}]
`;

const PROMPT = 'a prompt that must not be told '.repeat(100);

async function serve(...flags: string[]) {
  const setting = await Setting.create(ENDPOINTS, FILTERED);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, '--decision-columns-every=0', ...flags]);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  const url = `http://127.0.0.1:${ports.metricsPort}`;
  const page = (id: string) => fetch(`${url}/debug/requests/${id}`);
  const story = async (id: string) => (await (await page(id)).json()) as RequestStory;
  return { client, url, page, story };
}

/** A request that is answered with a streamed answer of 2 tokens. */
async function answered(client: ReturnType<typeof dialPicker>, headers: Readonly<Record<string, string>>) {
  const call = ask(client, PROMPT, headers);
  const reply = decodeReply(await firstReply(call));
  call.write(responseHeaders({ ':status': '200', 'content-type': 'text/event-stream' }));
  const usage =
    '{"prompt_tokens":800,"completion_tokens":2,"total_tokens":802,"prompt_tokens_details":{"cached_tokens":64}}';
  call.write(responseBody('data: {"choices":[]}\n\n', false));
  call.write(responseBody(`data: {"choices":[],"usage":${usage}}\n\ndata: [DONE]\n\n`, true));
  call.end();
  return reply;
}

describe.each([1, 2])('GET /debug/requests/{x-request-id} of a picker with %i shards', (shards) => {
  it('the page tells the decision, its columns and the end of a request that asks to be explained', async () => {
    const { client, story } = await serve(`--shards=${shards}`, '--allow-explain-header');
    const reply = await answered(client, { 'x-request-id': 'req-1', 'x-pointsman-explain': '1' });
    await eventually('the answer is over', async () => (await story('req-1')).end !== null);
    const told = await story('req-1');
    const destination = reply.headers['x-gateway-destination-endpoint']!;
    const picked = ENDPOINTS.find(({ port }) => destination.endsWith(String(port)))!;
    expect(told).toMatchObject({
      requestId: 'req-1',
      model: 'm',
      end: { end: 'completed', outputTokens: 2, outputEstimated: false, promptTokens: 800, cachedTokens: 64 },
      decisions: [{ status: 'decided', profile: 'default', endpoint: `default/${picked.name}`, candidates: 2 }],
    });
    const [decision] = told.decisions;
    const by = new Map(decision!.endpoints!.map((endpoint) => [endpoint.endpoint, endpoint]));
    expect(by.get('default/old')).toMatchObject({ removedBy: 'not-old', rank: null, score: null });
    expect(by.get(`default/${picked.name}`)).toMatchObject({
      rank: 1,
      scores: [
        {
          scorer: 'queue-scorer',
          weight: 2,
          signal: { name: 'predicted waiting requests', value: null, scraped: null },
        },
        { scorer: 'prefix-cache-scorer', weight: 3, signal: { name: 'cached tokens', value: 0 } },
      ],
    });
    expect(JSON.stringify(told)).not.toContain('must not be told');
  });
});

describe('GET /debug/requests/{x-request-id}', () => {
  it('the page keeps no columns of a request that asks for them while the operator does not allow it', async () => {
    const { client, story } = await serve();
    await answered(client, { 'x-request-id': 'req-2', 'x-pointsman-explain': '1' });
    expect((await story('req-2')).decisions).toMatchObject([{ endpoints: null }]);
  });

  it('the page finds a request that came without an id by the id that it was given, and by the number of its decision', async () => {
    const { client, story } = await serve();
    const reply = await answered(client, {});
    const id = reply.headers['x-request-id']!;
    const told = await story(id);
    expect(told.requestId).toBe(id);
    expect((await story(told.decisions[0]!.id)).requestId).toBe(id);
  });

  it('the page tells of a request that was refused without a decision', async () => {
    const { client, story } = await serve();
    const call = client.process();
    call.write(requestHeaders({ ':path': '/v1/chat/completions', 'x-request-id': 'req-3' }));
    const { requestBody } = await import('../ingress/envoy-messages.ts');
    call.write(requestBody('{"model": 3}', true));
    expect(decodeReply(await firstReply(call)).status).toBe(400);
    expect(await story('req-3')).toMatchObject({
      requestId: 'req-3',
      end: { end: 'rejected', httpStatus: 400 },
      decisions: [],
    });
  });

  it('the page answers 404 with the remedy for an unknown request, and 400 without one', async () => {
    const { page } = await serve();
    const unknown = await page('nobody');
    expect([unknown.status, await unknown.text()]).toEqual([
      404,
      'no decision about request nobody is kept: --decision-log-size says how many are\n',
    ]);
    expect((await page('')).status).toBe(400);
    expect((await page('%ff')).status).toBe(400);
  });
});

describe('pointsman why', () => {
  it('the command tells the same as text, and ends with 1 for a request that the picker does not know', async () => {
    const { client, url, story } = await serve('--allow-explain-header');
    await answered(client, { 'x-request-id': 'req-4', 'x-pointsman-explain': '1' });
    await eventually('the answer is over', async () => (await story('req-4')).end !== null);
    const { stdout } = await run(process.execPath, [PROGRAM, 'why', 'req-4', '--picker', url]);
    expect(stdout).toContain('request   req-4');
    expect(stdout).toMatch(/result +completed: first token after .*, 2 tokens, 64 of 800 prompt tokens cached/);
    expect(stdout).toContain('out: not-old');
    expect(stdout).toMatch(/queue-scorer ×2 \(predicted waiting requests\)/);
    await expect(run(process.execPath, [PROGRAM, 'why', 'unknown', '--picker', url])).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('404: no decision about request unknown is kept'),
    });
  });
});
