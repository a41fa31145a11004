import { describe, expect, it } from 'vitest';
import { saturation, saturationReads } from '../../dist/src/admission/shedding.js';
import type { SaturationSettings } from '../../dist/src/contract/saturation-settings.js';
import { CORE } from '../../dist/src/core/core-names.js';
import { isScorer, type Operation, type OperationName, readsOf } from '../../dist/src/core/operations.js';
import { inputsOf, PoisonedPool } from './operation-inputs.ts';
import { scorer } from './pool.ts';

const INF = Number.POSITIVE_INFINITY;
const { VALUE_ACTIVE_REQUESTS, VALUE_ACTIVE_TOKENS, VALUE_WAITING, VALUE_RUNNING, VALUE_KV_USAGE, VALUE_ATTRIBUTE } =
  CORE;
const VALUES = [
  VALUE_ACTIVE_REQUESTS,
  VALUE_ACTIVE_TOKENS,
  VALUE_WAITING,
  VALUE_RUNNING,
  VALUE_KV_USAGE,
  VALUE_ATTRIBUTE,
];
/** A limit in the middle of the values that the pool is given. */
const limitOf = (value: number) =>
  value === VALUE_ACTIVE_TOKENS
    ? 2500
    : value === VALUE_WAITING
      ? 4
      : value === VALUE_RUNNING
        ? 8
        : value >= VALUE_KV_USAGE
          ? 0.5
          : 2;

/** Parameters of every operation with which it is looked at. */
const PARAMETERS: Readonly<Record<OperationName, readonly (readonly number[])[]>> = {
  OP_FILTER_MASK: [[0]],
  OP_FILTER_HOST: [[0, 0]],
  OP_FILTER_THRESHOLD: VALUES.map((value) => [value, CORE.COMPARE_LESS, limitOf(value), 0, 0]),
  OP_FILTER_RANGE: VALUES.map((value) => [value, 0, limitOf(value), 0, 0]),
  OP_FILTER_LOWEST: VALUES.map((value) => [value, 1, 2, 0, 0, 0]),
  OP_FILTER_UTILIZATION: [
    [2, INF, INF, INF, 0],
    [INF, 8, INF, INF, 0],
    [INF, INF, 4, INF, 0],
    [INF, INF, INF, 0.5, 0],
    [2, 12, 6, 0.9, 0],
  ],
  OP_FILTER_PREFIX_AFFINITY: [
    [0.5, 0, 0, 10_000],
    [0.5, 0, 50, 10_000],
    [0.5, 0, 30, 10_000, 1],
  ],
  OP_FILTER_CONTEXT_LENGTH: [[4]],
  OP_FILTER_UNSATURATED: [[4, 0.7, 200]],
  OP_FILTER_CONCURRENCY: [
    [2, INF],
    [INF, 2500],
    [3, 4000],
  ],
  OP_FILTER_STICKY: [[0.5, 2500]],
  OP_FILTER_SERVED_MODEL: [[0, 1, 1]],
  OP_FILTER_WARM_UP: [[0.5, 8, 512]],
  OP_FILTER_OVERLOAD: [
    [4, INF, 1, 0],
    [-1, INF, 1, 0],
    [INF, 0.5, 1, 0],
    [INF, -1, 1, 0],
    [-1, -1, 2, 1],
  ],
  OP_FILTER_TOPOLOGY: [[3, 0, 1, 2, 3]],
  OP_FILTER_TIER: [[0]],
  OP_SCORE_QUEUE: [[]],
  OP_SCORE_RUNNING: [[]],
  OP_SCORE_KV_USAGE: [[]],
  OP_SCORE_PREFIX: [
    [0, 8192, 64],
    [0.5, 8192, 64],
  ],
  OP_SCORE_ACTIVE_REQUEST: [[0, 1]],
  OP_SCORE_TOKEN_LOAD: [[50_000]],
  OP_SCORE_ACTIVE_BLOCKS: [
    [1, 0, 1, 0, 0],
    [1, 0, 1, 0.5, 0],
    [1, 0, 1, 0, 1],
  ],
  OP_SCORE_LOAD_AWARE: [[10]],
  OP_SCORE_ADAPTER: [[0], [1]],
  OP_SCORE_HOST: [[0]],
  OP_SCORE_HEADER_LABEL: [[0, 0]],
  OP_SCORE_ATTRIBUTE: VALUES.map((value) => [value, 1, 1, 0, 0]),
  OP_SCORE_NO_HIT_LRU: [[64]],
  OP_SCORE_CONTEXT_LENGTH: [[4]],
  OP_SCORE_RENDEZVOUS: [
    [0, 0, 0],
    [0, 0, 1.2],
  ],
  OP_SCORE_CONSISTENT_HASH: [
    [0, 0, 0, 8],
    [0, 0, 1.2, 8],
  ],
  OP_SCORE_LMETRIC: [[]],
  OP_SCORE_CACHE_AWARE: [[0.5, 1, 1.1]],
  OP_SCORE_SESSION_HOME: [[]],
  OP_SCORE_TOPOLOGY: [[0, 1, 2, 3]],
  OP_SCORE_MARGINAL_COST: [[]],
  OP_SCORE_LATENCY: [[0.8, 0.2, 0, 1, 1, 1]],
  OP_SCORE_PREFIX_BALANCE: [[1, 1]],
  OP_SCORE_EXPLOIT_EXPLORE: [[100]],
  OP_PICK_MAX_SCORE: [[1], [3, 1]],
  OP_PICK_RANDOM: [[1], [3, 1]],
  OP_PICK_WEIGHTED_RANDOM: [[1], [3, 1]],
  OP_PICK_BEST_OF: [
    [1, 2],
    [3, 2, 1],
  ],
  OP_PICK_LEAST_REQUEST: [[1], [3, 1]],
  OP_PICK_ROUND_ROBIN: [[1], [3, 1]],
  OP_PREDICT: [[CORE.PREDICT_ON_HOST_OR_BY_MODEL, 1, 1, 1]],
  OP_ADMIT_LATENCY: [[]],
  OP_WOULD_PICK: [[0]],
};

const ANY = scorer('OP_PICK_RANDOM', 1, 1);
/** The same score for every endpoint, of a signal that some do not have. */
const ALIKE = scorer('OP_SCORE_LOAD_AWARE', 1, 1e9);

/** A program in which what it shows follows from the operation alone. */
function programOf(operation: Operation): readonly Operation[] {
  if (operation.code.startsWith('OP_PICK_')) return [ALIKE, operation];
  return [operation, ANY];
}

/** Operations that show no more than one pick or refusal: an input changes it in few states. */
const RARE: ReadonlySet<OperationName> = new Set(['OP_ADMIT_LATENCY', 'OP_WOULD_PICK']);

const cases = (Object.keys(PARAMETERS) as OperationName[]).flatMap((code) =>
  PARAMETERS[code].map((parameters) => ({ code, parameters, weight: 1 })),
);

describe('the table of operations', () => {
  const pool = new PoisonedPool();

  it.each(cases)('the table of operations names what $code $parameters reads, and nothing else', (operation) => {
    const program = programOf(operation);
    pool.run(program);
    const scores = isScorer(operation.code) ? 1 : 0;
    const seen = inputsOf(pool, RARE.has(operation.code) ? 800 : 200, () =>
      pool.decide(scores, operation.code === 'OP_PREDICT'),
    );
    expect(seen).toEqual([...new Set(readsOf(operation))].sort());
  });
});

describe('a saturation detector', () => {
  const limits = {
    type: 'concurrency-detector',
    maxConcurrency: 4,
    maxTokenConcurrency: 5000,
    headroom: 0,
    failOpen: false,
  } as const;
  const detectors: readonly SaturationSettings[] = [
    { ...limits, mode: 'requests' },
    { ...limits, mode: 'tokens' },
    { ...limits, mode: 'hybrid' },
    {
      type: 'utilization-detector',
      ...{ queueDepthThreshold: 4, kvCacheUtilThreshold: 0.8, metricsStalenessMs: 200, headroom: 0 },
    },
  ];

  it.each(detectors)(
    'a saturation detector with $type $mode reads what it is said to, with queues or without',
    (settings) => {
      const pool = new PoisonedPool();
      const seen = inputsOf(pool, 80, () => [
        saturation(pool.table, [0, 1, 2, 3], settings, pool.nowMs),
        ...(settings.type === 'utilization-detector' ? [pool.gateSaturation(settings)] : []),
      ]);
      expect(seen).toEqual([...saturationReads(settings)].sort());
    },
  );
});
