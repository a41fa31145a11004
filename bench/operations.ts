// Every operation of a program by itself: what it adds to a decision, for each endpoint. A run decides once without
// charging; the figure is divided by the endpoints and holds the frame (marking candidates, clearing the score, a pick
// by the highest score) as well, which `operations/frame` shows alone.

import {
  attachCore,
  createPoolMemory,
  Decider,
  defaultPoolSizes,
  EndpointTable,
  type Operation,
  ProgramTable,
} from '../dist/src/core/index.js';
import { CoefficientTable } from '../dist/src/core/latency-predictions.js';
import type { OperationName } from '../dist/src/core/operations.js';
import type { Bench } from './bench.ts';

const decisionsPerRun = 32;
const promptBlocks = 16;
const never = Number.POSITIVE_INFINITY;
const pickHighest: Operation = { code: 'OP_PICK_MAX_SCORE', weight: 1, parameters: [1] };

/** One set of parameters for each operation of the core, such that filters keep some of the endpoints. */
const operations: Readonly<Partial<Record<OperationName, readonly number[]>>> = {
  OP_FILTER_MASK: [0],
  OP_FILTER_THRESHOLD: [3, 0, 5, 1, 0],
  OP_FILTER_RANGE: [5, 0.1, 0.3, 1, 0],
  OP_FILTER_LOWEST: [4, 1, 0, 0.5, 1, 0],
  OP_FILTER_UTILIZATION: [never, 10, 5, 0.4, 0],
  OP_FILTER_PREFIX_AFFINITY: [0.8, 0, 18_000, 15_928],
  OP_FILTER_CONTEXT_LENGTH: [0],
  OP_FILTER_UNSATURATED: [5, 0.8, 200],
  OP_FILTER_CONCURRENCY: [100, never],
  OP_FILTER_STICKY: [0.8, 286_720],
  OP_FILTER_SERVED_MODEL: [0, 1, 0],
  OP_SCORE_QUEUE: [],
  OP_SCORE_RUNNING: [],
  OP_SCORE_KV_USAGE: [],
  OP_SCORE_PREFIX: [0, 8192, 64],
  OP_SCORE_ACTIVE_REQUEST: [0, 1],
  OP_SCORE_TOKEN_LOAD: [4_194_304],
  OP_SCORE_ACTIVE_BLOCKS: [1, 0, 1, 0.5, 1],
  OP_SCORE_LOAD_AWARE: [128],
  OP_SCORE_ADAPTER: [1],
  OP_SCORE_HOST: [0],
  OP_SCORE_HEADER_LABEL: [0, 1],
  OP_SCORE_ATTRIBUTE: [3, 1, 1, 0, 0],
  OP_SCORE_NO_HIT_LRU: [1024],
  OP_SCORE_CONTEXT_LENGTH: [0],
  OP_SCORE_RENDEZVOUS: [0, 1, 1.25],
  OP_SCORE_CONSISTENT_HASH: [0, 1, 1.25, 32],
  OP_SCORE_LMETRIC: [],
  OP_SCORE_CACHE_AWARE: [0.3, 64, 1.5],
  OP_PREDICT: [0, 1, 1, 0],
  OP_FILTER_TIER: [0.01],
  OP_SCORE_LATENCY: [0.8, 0.2, 0, 1, 1, 1],
  OP_PICK_RANDOM: [1],
  OP_PICK_WEIGHTED_RANDOM: [1],
  OP_PICK_BEST_OF: [1, 2],
  OP_PICK_LEAST_REQUEST: [1],
  OP_PICK_ROUND_ROBIN: [1],
};
const names = Object.keys(operations) as OperationName[];

/** They look at what OP_PREDICT has filled: its time is in theirs. */
const afterPrediction: ReadonlySet<OperationName> = new Set(['OP_FILTER_TIER', 'OP_SCORE_LATENCY'] as const);

function program(code: OperationName | 'frame'): Operation[] {
  if (code === 'frame') return [pickHighest];
  const operation: Operation = { code, weight: 1, parameters: operations[code]! };
  const predict: Operation = { code: 'OP_PREDICT', weight: 1, parameters: operations.OP_PREDICT! };
  if (afterPrediction.has(code)) return [predict, operation, pickHighest];
  return code.startsWith('OP_PICK') ? [operation] : [operation, pickHighest];
}

/** A pool of live endpoints, each with its own signals and labels, and a decision over it. */
function decisions(endpoints: number, code: OperationName | 'frame'): () => void {
  const pool = createPoolMemory({ ...defaultPoolSizes, endpoints, indexBlocks: 65_536, threads: 4 });
  const control = attachCore(pool, 0);
  const table = new EndpointTable(control);
  new ProgramTable(control).publish(0, program(code), { inserts: false });
  new CoefficientTable(control).setUnknown({ ttft: [25, 60, 60, 5, 1, 10, 1], tpot: [13, 0, 1, 0, 0.1, 5, 0] });
  for (let slot = 0; slot < endpoints; slot++) {
    table.open(slot, 1);
    table.setState(slot, 'live');
    table.setLabelRange(0, slot, { min: slot % 800, max: 1000 + slot });
    table.setLabelText(1, slot, `10.0.${slot >> 8}.${slot & 255}:8000`);
    const adapters = { running: [`adapter-${slot % 50}`], waiting: [], max: 4 };
    table.publish(slot, { waiting: slot % 7, running: slot % 13, kvUsage: (slot % 10) / 20, adapters }, 1);
  }
  table.setMask(
    0,
    Array.from({ length: endpoints >> 1 }, (_, i) => i * 2),
  );
  const decider = new Decider(attachCore(pool, 1), 1n);
  const request = {
    profile: 0,
    blocks: promptBlocks,
    tail: false,
    blockTokens: 64,
    promptTokens: promptBlocks * 64,
    outputTokens: 0,
    priority: 0,
    adapter: 'adapter-1',
    nowMs: 1,
    subset: undefined,
    charged: false,
    explained: false,
    keys: ['a session'],
  };
  return () => {
    for (let i = 0; i < decisionsPerRun; i++) decider.decide(request);
  };
}

/** Numbers of endpoints: the largest pool too for masks, which every pool with filters of labels has. */
const sizesOf = (code: OperationName | 'frame'): readonly number[] =>
  code === 'frame' || code === 'OP_FILTER_MASK' ? [64, 512, 4096, 10_240] : [64, 512, 4096];

export const benches: readonly Bench[] = (['frame', ...names] as const).flatMap((code) =>
  sizesOf(code).map((endpoints) => ({
    name: `operations/${code.replace('OP_', '').toLowerCase().replaceAll('_', '-')}/${endpoints}`,
    async setup() {
      return { run: decisions(endpoints, code), opsPerRun: decisionsPerRun * endpoints };
    },
  })),
);
