// Health report of a picker whose decision log is full: `pointsman doctor` asks the control thread for it.
import {
  attachCore,
  createPoolMemory,
  Decider,
  DecisionLog,
  DecisionTrail,
  defaultPoolSizes,
  EndpointTable,
  type Operation,
  ProgramTable,
} from '../dist/src/core/index.js';
import { RequestStories } from '../dist/src/operations/why/request-story.js';
import { SeriesLabels } from '../dist/src/operations/why/series-labels.js';
import { readScorers } from '../dist/src/picker/control/health-reports.js';
import type { Bench } from './bench.ts';

const ENDPOINTS = 100;
const SHARDS = 2;
/** Default of `--decision-log-size`, and of `--decision-columns-every`. */
const DECISIONS = 65_536;
const COLUMNS_EVERY = 64;
const COLUMN_BYTES = 4_194_304;

const PROGRAM: readonly Operation[] = [
  { code: 'OP_SCORE_QUEUE', weight: 2, parameters: [] },
  { code: 'OP_SCORE_KV_USAGE', weight: 2, parameters: [] },
  { code: 'OP_SCORE_PREFIX', weight: 3, parameters: [0, 8192, 64] },
  { code: 'OP_PICK_MAX_SCORE', weight: 1, parameters: [1] },
];

const REQUEST = {
  ...{ profile: 0, blocks: 0, tail: false, blockTokens: 64, promptTokens: 1_000, outputTokens: 0, priority: 0 },
  ...{ adapter: '', nowMs: 0, subset: undefined, charged: false, explained: false },
};

/** A full decision log of each shard. */
function logged() {
  const threads = SHARDS + 1;
  const log = { decisions: DECISIONS, decisionThreads: threads, decisionColumnBytes: COLUMN_BYTES };
  const pool = createPoolMemory({ ...defaultPoolSizes, endpoints: ENDPOINTS, indexBlocks: 65_536, threads, ...log });
  const control = attachCore(pool, 0);
  const table = new EndpointTable(control);
  new ProgramTable(control).publish(0, PROGRAM, { inserts: false });
  for (let slot = 0; slot < ENDPOINTS; slot++) {
    table.open(slot, 1);
    table.setState(slot, 'live');
    table.publish(slot, { waiting: slot % 7, running: 2, kvUsage: (slot % 10) / 10 }, 1);
  }
  for (let thread = 1; thread <= SHARDS; thread++) {
    const core = attachCore(pool, thread);
    const decider = new Decider(core, 42n);
    const trail = new DecisionTrail(core, COLUMNS_EVERY);
    for (let i = 0; i < DECISIONS; i++) {
      trail.begin(`0b7f3c52-6a1c-4e0f-${thread}-${String(i).padStart(12, '0')}`, false);
      decider.decide(REQUEST);
    }
  }
  return control;
}

function sources() {
  const control = logged();
  const log = new DecisionLog(control);
  const stories = new RequestStories({
    log,
    labels: new SeriesLabels(control),
    endpointOf: (slot) => `server-${slot}`,
    profiles: () => [
      { name: 'default', operations: PROGRAM.map((operation) => ({ ...operation, name: operation.code })) },
    ],
    room: () => ({ detector: 'utilization-detector', learns: false, saturation: () => 0 }),
    wallMs: (ms) => ms,
  });
  return { log, stories };
}

export const benches: readonly Bench[] = [
  {
    name: 'health/scorers-of-a-full-log',
    async setup() {
      const read = sources();
      return { run: async () => void (await readScorers(read)) };
    },
  },
  {
    name: 'health/request-of-a-full-log',
    async setup() {
      const { stories } = sources();
      return { run: () => void stories.tell(`0b7f3c52-6a1c-4e0f-1-${'0'.repeat(11)}9`) };
    },
  },
];
