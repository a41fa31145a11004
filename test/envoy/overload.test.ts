import { afterEach, describe, expect, test } from 'vitest';
import { type Backend, type Behaviour, startBackend } from '../tools/gateway/backend.ts';
import { type Answer, ask, begin, chatBody, eventually, manyConnections, nextPiece } from '../tools/gateway/client.ts';
import { skipReason } from './envoy.ts';
import { type HouseOptions, pickerMetric, startTestBed, type TestBed } from './test-bed.ts';

/** POINTSMAN_STRESS=10 sends ten times as many. */
const STRESS = Number(process.env.POINTSMAN_STRESS ?? 1);

const OBJECTIVES = 'objectives:\n- {name: interactive, priority: 10}\n- {name: batch, priority: -10}\n';

/** Endpoints that take `places` requests each; what is more waits. */
function queued(places: number): string {
  return `featureGates: [flowControl]
plugins:
- {type: concurrency-detector, parameters: {maxConcurrency: ${places}}}
- type: active-request-scorer
- type: start-time-fairness-policy
schedulingProfiles:
- {name: default, plugins: [{pluginRef: active-request-scorer}]}
flowControl:
  saturationDetector: {pluginRef: concurrency-detector}
  priorityBands:
  - {priority: 10, fairnessPolicyRef: start-time-fairness-policy}
  - {priority: -10, fairnessPolicyRef: start-time-fairness-policy}
`;
}

/** Model servers whose requests wait until the test answers them, and how many each had at most at a time. */
class HeldServers {
  readonly names: string[] = [];
  servers: Backend[] = [];
  most = 0;
  readonly #held: { name: string; prompt: string; answer: () => void }[] = [];
  readonly #running = new Map<string, number>();

  /** @param delayMs answer by itself after so long; undefined = when the test says so */
  static async start(count: number, delayMs?: number): Promise<HeldServers> {
    const held = new HeldServers();
    const behaviour: Behaviour = (received, response, { name }) => {
      const running = (held.#running.get(name) ?? 0) + 1;
      held.#running.set(name, running);
      held.most = Math.max(held.most, running);
      const answer = () => {
        held.#running.set(name, held.#running.get(name)! - 1);
        response.end('{}');
      };
      const { messages } = JSON.parse(received.body.toString()) as { messages: { content: string }[] };
      if (delayMs === undefined) held.#held.push({ name, prompt: messages[0]!.content, answer });
      else setTimeout(answer, delayMs);
    };
    for (let i = 0; i < count; i++) held.servers.push(await startBackend(`s${i}`, behaviour));
    return held;
  }

  /** Prompts that are being served, in the order in which they came. */
  get prompts(): readonly string[] {
    return this.#held.map(({ prompt }) => prompt);
  }

  /** Answers the requests that have run longest. */
  answer(count: number): void {
    for (const { answer } of this.#held.splice(0, count)) answer();
  }

  /** Forgets the requests of a killed server. */
  forget(name: string): void {
    for (const each of this.#held.filter((one) => one.name === name)) this.#held.splice(this.#held.indexOf(each), 1);
  }
}

describe.skipIf(skipReason !== '')(`an overload through Envoy${skipReason}`, () => {
  const agent = manyConnections();
  let bed: TestBed<Backend> | undefined;
  let others: readonly Backend[] = [];
  afterEach(async () => {
    await bed?.stop();
    await Promise.all(others.map((server) => server.stop()));
    bed = undefined;
    others = [];
  });

  async function start(servers: readonly Backend[], options: HouseOptions): Promise<TestBed<Backend>> {
    bed = await startTestBed(servers, { objectives: OBJECTIVES, ...options });
    return bed;
  }

  function send(prompt: string, objective = 'batch'): Promise<Answer> {
    const headers = { 'x-llm-d-inference-objective': objective };
    const answer = ask(bed!.envoy.port, { body: chatBody(prompt), headers }, agent);
    // A test that fails before it awaits its answers leaves them to be cut off.
    answer.catch(() => undefined);
    return answer;
  }

  const waiting = () => pickerMetric(bed!.picker, 'llm_d_epp_flow_control_queue_size');
  const statuses = async (answers: readonly Promise<Answer>[]) =>
    (await Promise.all(answers)).map(({ status }) => status);

  test('a burst into four places is served to the last request, never more than four at a time', async () => {
    const held = await HeldServers.start(4, 1);
    await start(held.servers, { profile: queued(1) });
    const answers = Array.from({ length: Math.ceil(100 * STRESS) }, (_, i) => send(`prompt ${i}`));
    expect(new Set(await statuses(answers))).toEqual(new Set([200]));
    expect(held.most).toBe(1);
    expect(await waiting()).toBe(0);
  });

  test('a request of high priority takes the next free place, however many wait below it', async () => {
    const held = await HeldServers.start(2);
    await start(held.servers, { profile: queued(2) });
    const low = Array.from({ length: 40 }, (_, i) => send(`batch ${i}`));
    await eventually('the places are taken, the rest waits', async () => {
      return held.prompts.length === 4 && (await waiting()) === 36;
    });
    const high = Array.from({ length: 3 }, (_, i) => send(`interactive ${i}`, 'interactive'));
    await eventually('they wait too', async () => (await waiting()) === 39);
    held.answer(3);
    await eventually('the places are taken again', () => held.prompts.length === 4);
    expect(held.prompts.filter((prompt) => prompt.startsWith('interactive'))).toHaveLength(3);
    let done = false;
    const all = statuses([...low, ...high]).finally(() => {
      done = true;
    });
    await eventually('everyone is served', () => {
      held.answer(4);
      return done;
    });
    expect(new Set(await all)).toEqual(new Set([200]));
  });

  test('an overload through Envoy with eviction takes the place of a batch request and tells its client', async () => {
    const held = await HeldServers.start(1);
    await start(held.servers, { profile: queued(1).replace('flowControl:', 'flowControl:\n  enableEviction: true') });
    const batch = send('batch');
    await eventually('it is served', () => held.prompts.length === 1);
    const interactive = send('interactive', 'interactive');
    const { status, headers, body } = await batch;
    expect([status, body.toString()]).toEqual([429, 'request evicted by flow control']);
    expect(headers['x-llm-d-request-dropped-reason']).toBe('evicted');
    await eventually('the other one is served', () => held.prompts.includes('interactive'));
    held.answer(2);
    expect((await interactive).status).toBe(200);
    const confirmed = 'llm_d_epp_flow_control_revocations_total';
    await eventually('it is counted', async () => (await pickerMetric(bed!.picker, confirmed)) === 1);
  });

  test('an answer that has begun cannot be taken back: it is cut off, and its place is free', async () => {
    const server = await startBackend('s0', (received, response) => {
      const { messages } = JSON.parse(received.body.toString()) as { messages: { content: string }[] };
      if (messages[0]!.content === 'interactive') return void response.end('{}');
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: {"choices":[{"delta":{"content":"a"}}]}\n\n');
    });
    await start([server], { profile: queued(1).replace('flowControl:', 'flowControl:\n  enableEviction: true') });
    const asked = { body: chatBody('batch', { stream: true }), headers: { 'x-llm-d-inference-objective': 'batch' } };
    const { answer } = await begin(bed!.envoy.port, asked, agent);
    expect(await nextPiece(answer)).toContain('data:');
    const cut = new Promise((resolve) => {
      answer.on('error', () => resolve('cut off'));
      answer.on('end', () => resolve('complete'));
      answer.resume();
    });
    expect((await send('interactive', 'interactive')).status).toBe(200);
    expect(await cut).toBe('cut off');
  });

  test('an endpoint that is killed takes only what it was serving along; what waits goes to the others', async () => {
    const held = await HeldServers.start(3);
    const { setPool } = await start(held.servers, { profile: queued(2) });
    const answers = Array.from({ length: 30 }, (_, i) => send(`prompt ${i}`));
    await eventually('six are served', async () => held.prompts.length === 6 && (await waiting()) === 24);
    const [killed, ...left] = held.servers;
    await setPool(left);
    await eventually('it has left the pool', async () => {
      return (await pickerMetric(bed!.picker, 'llm_d_epp_ready_endpoints')) === 2;
    });
    held.forget(killed!.name);
    await killed!.stop();
    let done = false;
    const all = statuses(answers).finally(() => {
      done = true;
    });
    await eventually('the others are served', () => {
      held.answer(4);
      return done;
    });
    const codes = await all;
    expect(codes.filter((status) => status === 200)).toHaveLength(28);
    expect(codes.filter((status) => status !== 200).every((status) => status === 503)).toBe(true);
    expect(await waiting()).toBe(0);
  });

  test('a pool without endpoints holds requests, and serves them in order when the first endpoint comes', async () => {
    const held = await HeldServers.start(1);
    others = held.servers;
    const { setPool } = await start([], { profile: queued(1) });
    const answers: Promise<Answer>[] = [];
    for (let i = 0; i < 12; i++) {
      answers.push(send(`prompt ${i}`));
      await eventually('it waits', async () => (await waiting()) === i + 1);
    }
    await setPool(held.servers);
    for (let i = 0; i < 12; i++) {
      await eventually('the next one is served', () => held.prompts.length === 1);
      expect(held.prompts).toEqual([`prompt ${i}`]);
      held.answer(1);
    }
    expect(new Set(await statuses(answers))).toEqual(new Set([200]));
  });
});
