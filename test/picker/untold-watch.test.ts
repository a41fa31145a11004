import { afterEach, expect, it } from 'vitest';
import type { SlotAssignment } from '../../dist/src/contract/endpoint.js';
import type { TrainingSample } from '../../dist/src/core/training-sample.js';
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
