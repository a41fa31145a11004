// How well the high band is protected, in milliseconds: run by `npm run test:stress` only, on a machine with nothing
// else to do.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type OverloadOptions, type OverloadSecond, runOverload } from '../../dist/tools/demo/overload.js';
import { engineOf } from '../../dist/tools/simulator/server/engine.js';
import { type Fleet, startFleet } from '../../dist/tools/simulator/server/fleet.js';
import { skipReason } from './envoy.ts';
import { pickerMetric, startTestBed, type TestBed } from './test-bed.ts';

const SECONDS = 60 * Number(process.env.POINTSMAN_STRESS ?? 0);
const SERVERS = 4;
/** Calm seconds after the flood. */
const AFTER = 10;
/** The low band may be waiting for so long after it: design ρ of 0.2 and `maxExpectedWait` of 2 s give 2.5 s. */
const BACK_SECONDS = 4;
const BATCH_PER_SECOND = 240;

const SCHEDULING = `plugins:
- type: queue-scorer
- type: kv-cache-utilization-scorer
- type: prefix-cache-scorer
schedulingProfiles:
- name: default
  plugins: [{pluginRef: queue-scorer, weight: 2}, {pluginRef: prefix-cache-scorer, weight: 3}]
`;
const GATED = `featureGates: [flowControl]\n${SCHEDULING}flowControl: { maxExpectedWait: 2s }\n`;
const OBJECTIVES = 'objectives:\n- {name: interactive, priority: 10}\n- {name: batch, priority: -10}\n';

/**
 * A step at full batch and the largest prompt of the load, in milliseconds: 22 + 0.071 × 2,000 prompt tokens
 * (docs/simulated-servers.md). A request that arrives at a busy engine waits for the running step and shares its own.
 */
const STEP_MS = 22 + 0.071 * 2_000;
/**
 * A step without a prompt: a prompt larger than the window leaves one between it and the next, since the gate lets in
 * one at a time.
 */
const GAP_MS = 22;

function percentile(values: readonly number[], share: number): number {
  return [...values].sort((a, b) => a - b)[Math.floor(share * (values.length - 1))]!;
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Requests in the queues of the engines themselves. */
async function queued(fleet: Fleet): Promise<number> {
  const pages = fleet.servers.map(async ({ address, port }) =>
    (await fetch(`http://${address}:${port}/metrics`)).text(),
  );
  const waiting = (await Promise.all(pages)).map(
    (page) => /^vllm:num_requests_waiting(?:\{.*?\})? (\S+)$/m.exec(page)![1],
  );
  return waiting.reduce((sum, value) => sum + Number(value), 0);
}

const skip = skipReason !== '' || SECONDS === 0;

describe.skipIf(skip)(`ten times the load that the pool can take, for ${SECONDS} s`, () => {
  let bed: TestBed<Fleet['servers'][number]>;
  let alone: readonly number[];
  let flood: readonly OverloadSecond[];
  let totals: Awaited<ReturnType<typeof runOverload>>;
  let engineQueues: readonly number[];
  /** Seconds after the flood until nothing waited in the picker. */
  let back: number;
  /** Answers a second of engines that are never idle. */
  let capacity: number;

  const load = (seconds: number, batchPerSecond: number): OverloadOptions => ({
    url: `http://127.0.0.1:${bed.envoy.port}`,
    model: 'm',
    seconds,
    floodFrom: 1,
    floodTo: SECONDS + 1,
    interactivePerSecond: 4,
    batchPerSecond,
    promptBytes: 8_000,
    answerTokens: 8,
  });

  /** Without a gate everything stands in the engines, and how fast they answer is what they can do. */
  async function measureCapacity(): Promise<number> {
    const fleet = await startFleet(SERVERS, { engine: engineOf('llama-8b-l40s') });
    bed = await startTestBed(fleet.servers, { profile: SCHEDULING, objectives: OBJECTIVES });
    try {
      const begin = performance.now();
      const { batchAnswered, interactive } = await runOverload({ ...load(4, 150), floodTo: 5 }, async () => undefined);
      return (batchAnswered + interactive) / ((performance.now() - begin) / 1_000);
    } finally {
      await bed.stop();
    }
  }

  beforeAll(
    async () => {
      capacity = await measureCapacity();
      const fleet = await startFleet(SERVERS, { engine: engineOf('llama-8b-l40s') });
      bed = await startTestBed(fleet.servers, { profile: GATED, objectives: OBJECTIVES });
      const before: number[] = [];
      await runOverload(load(SECONDS, 0), async ({ firstTokensMs }) => {
        before.push(...firstTokensMs);
      });
      alone = before;
      const seconds: OverloadSecond[] = [];
      const queues: number[] = [];
      back = Number.POSITIVE_INFINITY;
      totals = await runOverload(load(SECONDS + AFTER, BATCH_PER_SECOND), async (second) => {
        seconds.push(second);
        queues.push(await queued(fleet));
        const waits = await pickerMetric(bed.picker, 'llm_d_epp_flow_control_queue_size');
        if (!second.flood && waits === 0) back = Math.min(back, second.second - SECONDS);
      });
      [flood, engineQueues] = [seconds, queues];
      const [p99Alone, p99Flood] = [percentile(alone, 0.99), percentile(firstTokens(true), 0.99)];
      console.log(
        `first tokens of the high band, p99: alone ${p99Alone.toFixed(0)} ms, ` +
          `in the flood ${p99Flood.toFixed(0)} ms, ` +
          (`after it ${percentile(firstTokens(false), 0.99).toFixed(0)} ms; answers a second: ` +
            `${answered().toFixed(1)} of `) +
          (`${capacity.toFixed(1)}; engine queue per server, mean ` +
            `${(mean(engineQueues.slice(0, SECONDS)) / SERVERS).toFixed(1)}; `) +
          `the queues were empty ${back} s after the flood`,
      );
    },
    SECONDS * 10_000 + 240_000,
  );
  afterAll(() => bed?.stop());

  const firstTokens = (during: boolean) =>
    flood.filter((each) => each.flood === during).flatMap(({ firstTokensMs }) => firstTokensMs);

  /** Answers a second within the flood, without its first seconds. */
  const answered = () =>
    mean(
      flood
        .filter((each) => each.flood)
        .slice(5)
        .map((each) => each.batchAnswered + each.firstTokensMs.length),
    );

  test('ten times the load that the pool can take keeps the first tokens of the high band as early as alone, and two steps', () => {
    expect(percentile(firstTokens(true), 0.99)).toBeLessThan(1.2 * percentile(alone, 0.99) + 2 * STEP_MS);
  });

  test('ten times the load that the pool can take fails none of the high band, and tells the others only to come again', () => {
    expect([totals.interactiveFailed, totals.batchFailed]).toEqual([[], []]);
  });

  test('ten times the load that the pool can take keeps the engines as busy as without a gate, but for steps between prompts', () => {
    expect(answered()).toBeGreaterThan((0.95 * capacity * STEP_MS) / (STEP_MS + GAP_MS));
  });

  test('ten times the load that the pool can take is over at once for the engines and the high band, and soon for the low one', () => {
    expect(engineQueues[SECONDS]! / SERVERS).toBeLessThan(2);
    expect(percentile(firstTokens(false), 0.99)).toBeLessThan(1.2 * percentile(alone, 0.99) + 2 * STEP_MS);
    expect(back).toBeLessThanOrEqual(BACK_SECONDS);
  });
});

describe.skipIf(skip)('a pool that has no endpoint for 20 s', () => {
  let bed: TestBed<Fleet['servers'][number]> | undefined;
  let fleet: Fleet;
  afterAll(async () => {
    await bed?.stop();
    await Promise.all(fleet.servers.map((server) => server.stop()));
  });

  test('a pool that has no endpoint for 20 s serves everyone who came meanwhile, a few at a time', async () => {
    fleet = await startFleet(SERVERS, { engine: engineOf('llama-8b-l40s') });
    bed = await startTestBed([], { profile: `featureGates: [flowControl]\n${SCHEDULING}`, objectives: OBJECTIVES });
    const queues: number[] = [];
    let watching: NodeJS.Timeout | undefined;
    let cameMs = 0;
    const { interactive, interactiveFailed, batchAnswered, batchRefused } = await runOverload(
      {
        url: `http://127.0.0.1:${bed.envoy.port}`,
        model: 'm',
        seconds: 20,
        floodFrom: 1,
        floodTo: 21,
        interactivePerSecond: 2,
        batchPerSecond: 8,
        promptBytes: 8_000,
        answerTokens: 8,
      },
      async ({ second }) => {
        if (second < 20) return;
        await bed!.setPool(fleet.servers);
        cameMs = performance.now();
        watching = setInterval(() => void queued(fleet).then((requests) => queues.push(requests)), 250);
      },
    );
    clearInterval(watching);
    const seconds = (performance.now() - cameMs) / 1_000;
    console.log(
      `200 were served ${seconds.toFixed(1)} s after the servers had come; most in an engine's queue: ` +
        `${(Math.max(...queues) / SERVERS).toFixed(1)}`,
    );
    expect([interactive, interactiveFailed, batchAnswered, batchRefused]).toEqual([40, [], 160, 0]);
    expect(Math.max(...queues)).toBeLessThanOrEqual(2 * SERVERS);
  }, 120_000);
});
