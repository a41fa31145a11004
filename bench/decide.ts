// One whole decision: hash a 4 KB prompt, match, filter, score, pick, charge, and release it again.

import {
  attachCore,
  CostTable,
  createPoolMemory,
  Decider,
  DecisionTrail,
  defaultPoolSizes,
  EndpointTable,
  type PoolMemory,
  ProgramTable,
} from '../dist/src/core/index.js';
import type { Operation } from '../dist/src/core/operations.js';
import type { Prepared } from './bench.ts';
import { rounds } from './threads/rounds.ts';

const blockBytes = 256;
const promptBytes = 4096;
const prompts = 512;

const pickMax: Operation = { code: 'OP_PICK_MAX_SCORE', weight: 1, parameters: [1] };

const defaultProfile: readonly Operation[] = [
  { code: 'OP_SCORE_QUEUE', weight: 2, parameters: [] },
  { code: 'OP_SCORE_KV_USAGE', weight: 2, parameters: [] },
  { code: 'OP_SCORE_PREFIX', weight: 3, parameters: [0, 8192, 64] },
  pickMax,
];

/** The default profile while marginal cost looks on, and marginal cost in the place of its scorers. */
const shadowProfile: readonly Operation[] = [
  ...defaultProfile.slice(0, 3),
  { code: 'OP_WOULD_PICK', weight: 1, parameters: [] },
  pickMax,
];
const marginalProfile: readonly Operation[] = [{ code: 'OP_SCORE_MARGINAL_COST', weight: 1, parameters: [] }, pickMax];

const coefficients = {
  baseMs: 25,
  prefillMsPerKiloToken: 55,
  waitingMs: 5,
  stepMs: 13,
  growthMs: 4,
  missPrice: 1.5,
  outputTokens: 200,
  firstOutputTargetMs: 2000,
  perTokenTargetMs: 60,
  slots: 256,
  evictionPrice: 1,
};

/** Another configuration, which decides in shadow (`--candidate-config`). */
const candidateProfile: readonly Operation[] = [
  { code: 'OP_SCORE_QUEUE', weight: 1, parameters: [] },
  { code: 'OP_SCORE_PREFIX', weight: 5, parameters: [0, 8192, 64] },
  pickMax,
];

/** A pool with a profile, every endpoint live with its own signals. */
export function makePool(endpoints: number, profile = defaultProfile, candidate?: readonly Operation[]): PoolMemory {
  const pool = createPoolMemory({
    ...defaultPoolSizes,
    endpoints,
    threads: 10,
    decisions: 65_536,
    decisionColumnBytes: 16 << 20,
  });
  const control = attachCore(pool, 0);
  const table = new EndpointTable(control);
  const programs = new ProgramTable(control);
  programs.publish(0, profile, { inserts: true });
  if (candidate !== undefined) programs.publishShadow(0, candidate, { inserts: true });
  new CostTable(control).write(coefficients);
  for (let slot = 0; slot < endpoints; slot++) {
    table.open(slot, 1);
    table.setState(slot, 'live');
    table.publish(slot, { waiting: slot % 7, running: slot % 13, kvUsage: (slot % 10) / 20 }, 1);
  }
  return pool;
}

/** Prompts of 4 KB, one behind the other: 16 shared beginnings of 2 KB, then text of their own. */
function makePrompts(): Buffer {
  const bytes = Buffer.alloc(prompts * promptBytes);
  for (let i = 0; i < prompts; i++) {
    for (let k = 0; k < promptBytes; k++)
      bytes[i * promptBytes + k] = 97 + (((k < 2048 ? i % 16 : i) * 31 + k * 7) % 26);
  }
  return bytes;
}

/** Outcome of every request of the benchmark. */
const measures = {
  outcome: 'completed',
  firstOutputMs: 1,
  perTokenMs: 1,
  durationMs: 9,
  outputTokens: 7,
  promptTokens: 1024,
  cachedTokens: 512,
} as const;

/** Decisions of a log that goes round often, as in a picker; one in so many keeps its columns. */
const COLUMNS_EVERY = 64;

/**
 * The work of one decision on one thread.
 * @param logged with the request's id, its labels and its outcome in the decision log, as a shard writes them
 */
export function decisions(pool: PoolMemory, thread: number, logged = false): () => void {
  const { decide, release } = decisionSteps(pool, thread, logged);
  return () => {
    decide();
    release();
  };
}

/** The two steps of such a decision. */
export function decisionSteps(pool: PoolMemory, thread: number, logged = false) {
  const core = attachCore(pool, thread);
  const trail = logged ? new DecisionTrail(core, COLUMNS_EVERY) : undefined;
  const ids = Array.from({ length: prompts }, (_, i) => `6f1c2c1e-7f2b-4b52-9d6a-${String(i).padStart(12, '0')}`);
  const decider = new Decider(core, BigInt(thread));
  const texts = makePrompts();
  const input = core.call.inputAddress() >>> 0;
  // copy() of a part of a buffer is a plain memory copy; set() into shared memory is several times slower.
  const memory = Buffer.from(pool.memory.buffer);
  let next = thread * 17;
  const request = {
    profile: 0,
    blocks: promptBytes / blockBytes,
    tail: false,
    blockTokens: 64,
    promptTokens: promptBytes / 4,
    outputTokens: 0,
    priority: 0,
    adapter: 'model',
    nowMs: 1,
    subset: undefined,
    charged: true,
    explained: false,
  };
  let charge = { ticket: 0, ticketGeneration: 0 };
  const decide = () => {
    const text = (next++ % prompts) * promptBytes;
    texts.copy(memory, input, text, text + promptBytes);
    core.call.hashBlocks(promptBytes, blockBytes);
    const before = trail?.made ?? 0;
    trail?.begin(ids[next % prompts], false);
    const decision = decider.decide(request);
    trail?.decided(before, 4711, 0);
    if (decision.record !== undefined) trail?.ended(decision.record, measures);
    charge = decision;
  };
  return { decide, release: () => decider.release(charge.ticket, charge.ticketGeneration) };
}

export const benches = [
  ...Object.entries({ shadow: shadowProfile, 'marginal-cost': marginalProfile }).flatMap(([what, profile]) =>
    [64, 100].map((endpoints) => ({
      name: `decide/chat-4k/${endpoints}/${what}`,
      async setup() {
        return repeated(decisions(makePool(endpoints, profile), 1));
      },
    })),
  ),
  ...[8, 64, 512, 4096, 10_240].map((endpoints) => ({
    name: `decide/chat-4k/${endpoints}`,
    async setup() {
      return repeated(decisions(makePool(endpoints), 1));
    },
  })),
  ...[8, 64, 100, 512].map((endpoints) => ({
    name: `decide/candidate/${endpoints}`,
    async setup() {
      return repeated(decisions(makePool(endpoints, defaultProfile, candidateProfile), 1));
    },
  })),
  ...[8, 64, 100, 512].map((endpoints) => ({
    name: `decide/logged/${endpoints}`,
    async setup() {
      return repeated(decisions(makePool(endpoints), 1, true));
    },
  })),
  ...[1, 100].map((pools) => ({
    name: `decide/pools/${pools}`,
    setup: () => inRotation(pools),
  })),
  ...[1, 2].map((threads) => ({
    name: `threads/decide-${threads}`,
    setup: () => deciders(threads),
  })),
];

/** Decisions of one run: the timer takes as long as a twentieth of one. */
const REPEATED = 32;

function repeated(decide: () => void): Prepared {
  return {
    opsPerRun: REPEATED,
    run: () => {
      for (let i = 0; i < REPEATED; i++) decide();
    },
  };
}

/** Decisions of one run over several pools. */
const ROTATION = 100;

/** Decisions of one thread, each for the next of so many pools of 8 endpoints. */
async function inRotation(count: number) {
  const pools = Array.from({ length: count }, () => decisions(makePool(8), 1));
  return {
    opsPerRun: ROTATION,
    run: () => {
      for (let i = 0; i < ROTATION; i++) pools[i % count]!();
    },
  };
}

const roundDecisions = 20_000;

/** `threads` worker threads decide on one pool; a run is one round of all of them. */
function deciders(threads: number) {
  const pool = makePool(64);
  const file = new URL('./threads/decide-worker.ts', import.meta.url);
  return rounds(file, threads, roundDecisions, () => ({ pool, decisions: roundDecisions }));
}
