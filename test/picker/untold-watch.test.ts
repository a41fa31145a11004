import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import type { SlotAssignment } from '../../dist/src/contract/endpoint.js';
import type { TrainingSample } from '../../dist/src/core/training-sample.js';
import { eventsAdvice } from '../../dist/src/picker/control/kv-events.js';
import { UntoldWatch } from '../../dist/src/picker/control/untold-watch.js';
import { eventually } from '../tools/gateway/client.ts';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const assignment = (slot: number, generation = 1): SlotAssignment => ({
  slot,
  generation,
  endpoint: {
    id: `default/pod-${slot}`,
    name: `pod-${slot}`,
    namespace: 'default',
    address: '127.0.0.1',
    port: 1,
    labels: {},
  },
});

/** A watch over two endpoints that tell nothing; blocks have 16 tokens. */
function watch() {
  const judged: string[] = [];
  const reports: string[] = [];
  const pool = { silent: [assignment(0), assignment(1)], nowMs: 1_000, samples: [] as Partial<TrainingSample>[] };
  const made = new UntoldWatch({
    feed: {
      silent: () => pool.silent,
      judgeByPlacements: ({ slot, generation }) => judged.push(`${slot}/${generation}`),
    },
    samples: {
      drain: (visit) => {
        const taken = pool.samples.splice(0);
        for (const sample of taken) visit(sample as TrainingSample);
        return taken.length;
      },
    },
    blockTokens: 16,
    now: () => pool.nowMs,
    advice: async () => 'set this',
    report: (problem) => reports.push(problem),
  });
  stops.push(() => made.stop());
  const ends = (count: number, sample: Partial<TrainingSample> = {}) => {
    const whole = { slot: 0, slotGeneration: 1, outcome: 'completed', promptTokens: 100, ...sample } as const;
    pool.samples.push(...Array.from({ length: count }, () => whole));
    made.look();
  };
  const later = (ms: number) => {
    pool.nowMs += ms;
    made.look();
  };
  return { pool, judged, reports, ends, later };
}

it('an endpoint that has served three prompts of new blocks and told nothing for ten seconds is judged by placements', async () => {
  const { judged, reports, ends, later } = watch();
  ends(3);
  later(9_999);
  expect(judged).toEqual([]);
  later(1);
  expect(judged).toEqual(['0/1']);
  await eventually('the report', () => reports.length === 1);
  expect(reports[0]).toBe(
    'default/pod-0: 3 requests in 10 s and no KV event; until one comes it counts as holding what is ' +
      'sent to it: set this',
  );
});

it.each([
  ['fewer than three prompts', 2, {}],
  ['failed requests', 9, { outcome: 'failed' }],
  ['prompts shorter than two blocks', 9, { promptTokens: 31 }],
  ['prompts that the engine says it held', 9, { reportedPromptTokens: 100, cachedTokens: 80 }],
  ['requests of an earlier endpoint of the slot', 9, { slotGeneration: 2 }],
] as const)('an endpoint that has served %s may have nothing to tell', (_what, count, sample) => {
  const { judged, ends, later } = watch();
  ends(count, sample);
  later(60_000);
  expect(judged).toEqual([]);
});

it('an endpoint that tells before the time is over is not judged, and its requests count for nothing later', () => {
  const { pool, judged, ends, later } = watch();
  ends(3);
  pool.silent = [assignment(1)];
  later(10_000);
  pool.silent = [assignment(0), assignment(1)];
  later(10_000);
  expect(judged).toEqual([]);
});

/** A server that takes connections on a port of its own, and answers with the sources of a rank when it is asked. */
async function listener(answer: (port: number) => string = () => '') {
  const server = createServer((_request, response) => response.end(answer(port))).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  stops.push(() => server.close());
  return { server, port };
}

const followed = (port: number) => ({
  ...{ bind: undefined, connect: { port, replayPort: undefined }, topicFilter: 'kv@' },
});

it('the advice for an endpoint that tells nothing names the address of its events when that takes no connections', async () => {
  const { endpoint } = assignment(0);
  const { server, port } = await listener();
  expect(await eventsAdvice(endpoint, followed(port))).toMatch(/^\/kv_event_sources does not tell why/);
  server.close();
  await once(server, 'close');
  expect(await eventsAdvice(endpoint, followed(port))).toMatch(
    new RegExp(`^no connection to tcp://127\\.0\\.0\\.1:${port}: .*ECONNREFUSED.*; /kv_event_sources does not`),
  );
});

it('the advice for a further data-parallel rank is about the port of that rank', async () => {
  const { port } = await listener((own) =>
    JSON.stringify({ 2: { endpoint: `tcp://*:${own}`, topic: 'kv@pod@m', publisher: 'zmq' } }),
  );
  const endpoint = { ...assignment(0).endpoint, name: 'pod-rank-2', port };
  expect(await eventsAdvice(endpoint, followed(port - 2))).toBe(
    `it publishes on port ${port} as configured: see that the network lets the picker connect to it`,
  );
});
