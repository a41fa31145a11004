import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import type { Snapshot } from '../../dist/src/operations/page/snapshot.js';
import type { RequestStory } from '../../dist/src/operations/why/request-story.js';
import { eventually } from '../tools/gateway/client.ts';
import { answer, cleanUp, dial, ENDPOINTS, type QueuedSetting, request, start, waiting } from './queued-requests.ts';
import { PROGRAM, Setting, startPicker } from './serving.ts';

const run = promisify(execFile);

afterEach(cleanUp);

/** A picker whose two endpoints are taken and whose queue holds one request: three more are refused. */
async function saturated() {
  const { ports } = await start({ section: '  priorityBands: [{priority: 0, maxRequests: 1}]\n' });
  const client = dial(ports.grpcPort);
  const first = [request(client, 'a'), request(client, 'b')];
  await eventually('both are placed', () => first.every(({ reply }) => reply !== undefined));
  request(client, 'c');
  await eventually('one waits', async () => (await waiting(ports)) === 1);
  const refused = ['d', 'e', 'f'].map((prompt) => request(client, prompt, { 'x-request-id': `refused-${prompt}` }));
  await eventually('all others are answered', () => refused.every(({ reply }) => reply !== undefined));
  expect(refused.map(({ reply }) => reply!.status)).toEqual([429, 429, 429]);
  return `http://127.0.0.1:${ports.metricsPort}`;
}

/** The first snapshot that the page is sent. */
async function snapshotOf(url: string): Promise<Snapshot> {
  const { body } = await fetch(`${url}/ui/events`);
  let text = '';
  for await (const piece of body!.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (text.includes('\n\n')) break;
  }
  return JSON.parse(text.slice('data: '.length, text.indexOf('\n\n'))) as Snapshot;
}

describe('requests that the queues refuse', () => {
  it('pointsman top counts them and lists them as refused', async () => {
    const url = await saturated();
    const { stdout } = await run(process.execPath, [PROGRAM, 'top', '--once', '--picker', url]);
    expect(stdout).toContain('refused 3 in 60 s');
    expect(stdout).toMatch(/refused-d +– .*refused with 429/);
  });

  it('the page counts them beside those that were decided', async () => {
    const { priorities } = await snapshotOf(await saturated());
    expect(priorities).toMatchObject([{ priority: 0, decided: 2, refused: 3 }]);
  });
});

/** What `pointsman why` says about a request, and the same as data. */
async function whyOf(url: string, id: string): Promise<{ readonly text: string; readonly story: RequestStory }> {
  const told = (...flags: string[]) => run(process.execPath, [PROGRAM, 'why', id, '--picker', url, ...flags]);
  const [{ stdout: text }, { stdout: json }] = [await told(), await told('--json')];
  return { text, story: JSON.parse(json) as RequestStory };
}

/** A picker whose two endpoints are taken. */
async function full(given: QueuedSetting) {
  const { ports } = await start(given);
  const client = dial(ports.grpcPort);
  const first = [request(client, 'a'), request(client, 'b')];
  await eventually('both are placed', () => first.every(({ reply }) => reply !== undefined));
  return { ports, client, first, url: `http://127.0.0.1:${ports.metricsPort}` };
}

describe('pointsman why about a refused request', () => {
  it('the text names the bound of the band with its figures, and the room that each endpoint had', async () => {
    const { text, story } = await whyOf(await saturated(), 'refused-d');
    expect(text).toContain('result      refused with 429\n');
    expect(text).toContain(
      'refused by  the queue of priority 0 would hold 2 requests, and may hold 1 (maxRequests of its band)\n',
    );
    expect(text).toContain('pick   none: other requests waited before it, and it was refused\n');
    expect(text).toMatch(/default\/server-0 +100 % full +1 +unknown +unknown +out: others waited before it/);
    expect(text).not.toMatch(/it had to wait|--decision-columns-every/);
    expect(story.end!.refusal).toMatchObject({ by: 'band-requests', used: 2, limit: 1 });
  });

  it('the text of a request that waited to its deadline names the deadline, and the endpoints without room', async () => {
    const { url, client } = await full({ section: '  defaultRequestTTL: 100ms\n' });
    const late = request(client, 'c', { 'x-request-id': 'late' });
    await eventually('it is answered', () => late.reply !== undefined);
    const { text, story } = await whyOf(url, 'late');
    expect(text).toMatch(/refused by +no endpoint had room for it in \d+ ms, and it may wait 100 ms \(default/);
    expect(text).toMatch(/pick +none: 2 of its endpoints had no room; it waited \d+ ms and was refused/);
    expect(text.match(/100 % full .*out: no room/g)).toHaveLength(2);
    expect(story.end!.refusal).toMatchObject({ by: 'queue-deadline', limit: 100 });
  });

  it('the text of a request whose prompt is larger than its queue names tokens', async () => {
    const { url, client } = await full({ section: '  priorityBands: [{priority: 0, maxTokens: 300}]\n' });
    const large = request(client, 'many words and more '.repeat(100), { 'x-request-id': 'large' });
    await eventually('it is answered', () => large.reply !== undefined);
    const { text, story } = await whyOf(url, 'large');
    expect(text).toMatch(/refused by +the queue of priority 0 would hold [\d,]+ tokens, and may hold 300 \(maxTokens/);
    expect(story.end!.refusal!.used).toBeGreaterThan(300);
    expect(story.decisions[0]!.endpoints!.map(({ removedBy }) => removedBy)).toEqual(['no room', 'no room']);
  });

  it('the text of a request that a detector shed names the detector, and how full each endpoint was', async () => {
    const setting = await Setting.create(
      ENDPOINTS,
      'plugins:\n- {type: concurrency-detector, parameters: {maxConcurrency: 1}}\n- type: queue-scorer\n' +
        '- type: max-score-picker\n' +
        'schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}, {pluginRef: max-score-picker}]}]\n' +
        'flowControl: {saturationDetector: {pluginRef: concurrency-detector}}\n',
    );
    await setting.writeEndpoints(ENDPOINTS, 'objectives:\n- {name: batch, priority: -5}\n');
    const { picker, ports } = await startPicker(setting.flags);
    try {
      const client = dial(ports.grpcPort);
      const first = [request(client, 'a'), request(client, 'b')];
      await eventually('both are placed', () => first.every(({ reply }) => reply !== undefined));
      const shed = request(client, 'c', { 'x-request-id': 'shed', 'x-llm-d-inference-objective': 'batch' });
      await eventually('it is answered', () => shed.reply !== undefined);
      const { text, story } = await whyOf(`http://127.0.0.1:${ports.metricsPort}`, 'shed');
      expect(text).toContain('priority    -5');
      expect(text).toMatch(/refused by +the pool was 100 % full by concurrency-detector, and priority -5 is shed/);
      expect(text.match(/default\/server-\d +100 % full +1 /g)).toHaveLength(2);
      expect(story.end!.refusal).toMatchObject({ by: 'pool-saturation', used: 1, limit: 1 });
    } finally {
      await picker.stop(0);
      await setting.remove();
    }
  });

  it('the text of a request that waited and was served says that it waited, and not that it was refused', async () => {
    const { url, client, first, ports } = await full({});
    const third = request(client, 'c', { 'x-request-id': 'served' });
    await eventually('it waits', async () => (await waiting(ports)) === 1);
    answer(first[0]!.call);
    await eventually('it goes on', () => third.reply !== undefined);
    const { text } = await whyOf(url, 'served');
    expect(text).toMatch(/pick +none: it had to wait: 2 of its endpoints had no room/);
    expect(text).toMatch(/pick +default\/server-\d of 1 candidate,/);
    expect(text).not.toContain('refused');
  });
});
