// Scores that stand from one decision to the next against scores made anew: of two pools with one history, the
// decisions of the one are explained, and so run the scorers one by one over all endpoints.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { Decider } from '../../dist/src/core/decider.js';
import { type Operation, PrefixIndex } from '../../dist/src/core/index.js';
import { makePool, pickMax, plainRequest, scorer, smallSizes } from './pool.ts';

const SLOTS = 192;
const BLOCKS = 8;
const PROMPTS = 6;
const sizes = { ...smallSizes, endpoints: SLOTS };

/** Prompts in pairs that share their first half. */
function chainOf(prompt: number): BigUint64Array {
  const hashes = Array.from({ length: BLOCKS }, (_, block) => {
    const owner = block < BLOCKS / 2 ? prompt >> 1 : 100 + prompt;
    return (0x9e3779b97f4a7c15n * BigInt(owner * 1000 + block + 1)) & 0xffffffffffffffffn;
  });
  return BigUint64Array.from(hashes);
}

const usage = scorer('OP_SCORE_KV_USAGE', 0.7);
const PROGRAMS: readonly (readonly Operation[])[] = [
  [scorer('OP_SCORE_QUEUE', 2), scorer('OP_SCORE_KV_USAGE', 2), scorer('OP_SCORE_PREFIX', 3, 0, 256, 64), pickMax],
  [scorer('OP_SCORE_PREFIX', 3, 0.3, 256, 64), scorer('OP_SCORE_RUNNING', 1), usage, pickMax],
  [usage, scorer('OP_SCORE_PREFIX', 1, 1, 256, 64), scorer('OP_SCORE_QUEUE', 0.1), pickMax],
  [scorer('OP_SCORE_QUEUE', 1), usage, pickMax],
  [usage, scorer('OP_SCORE_PREFIX', 2, 0, 256, 64), pickMax],
];

interface Signals {
  readonly waiting: number;
  readonly running: number;
  readonly kvUsage: number | undefined;
}

type Step =
  | { readonly kind: 'decide'; readonly prompt: number; readonly blocks: number }
  | { readonly kind: 'release'; readonly charge: number }
  | { readonly kind: 'publish'; readonly slot: number; readonly signals: Signals }
  | { readonly kind: 'state'; readonly slot: number; readonly state: 'live' | 'draining' }
  | { readonly kind: 'stale'; readonly slot: number }
  | { readonly kind: 'program'; readonly program: number };

const slot = fc.nat({ max: SLOTS - 1 });
/** Few different values, so that there are ties and ranges that end at one endpoint. */
const signals: fc.Arbitrary<Signals> = fc.record({
  waiting: fc.constantFrom(0, 0, 1, 7),
  running: fc.constantFrom(0, 3, 20),
  kvUsage: fc.constantFrom(0, 0.25, 0.6180339, 1.2),
});
const program = fc.record({ kind: fc.constant('program' as const), program: fc.nat({ max: PROGRAMS.length - 1 }) });
const decide: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant('decide' as const),
  prompt: fc.nat({ max: PROMPTS - 1 }),
  blocks: fc.nat({ max: BLOCKS }),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: decide },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('release' as const), charge: fc.nat({ max: 999 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('publish' as const), slot, signals }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('state' as const),
      slot,
      state: fc.constantFrom('live' as const, 'draining' as const),
    }),
  },
  { weight: 1, arbitrary: program },
);

/** A pool of which every decision is explained, or none. */
class History {
  readonly #explained: boolean;
  readonly #pool;
  readonly #index: PrefixIndex;
  readonly #decider: Decider;
  readonly #charges: { readonly ticket: number; readonly generation: number }[] = [];
  readonly #endpoints: number;

  constructor(endpoints: readonly Signals[], explained: boolean) {
    this.#explained = explained;
    this.#endpoints = endpoints.length;
    this.#pool = makePool(PROGRAMS[0]!, endpoints, sizes);
    this.#pool.programs.publish(0, PROGRAMS[0]!, { inserts: true });
    this.#index = new PrefixIndex(this.#pool.core);
    this.#decider = new Decider(this.#pool.core, 5n);
  }

  /** @returns what the decision has found, undefined for other steps */
  take(at: Step) {
    const { table, programs } = this.#pool;
    if (at.kind === 'decide') return this.#decide(at.prompt, at.blocks);
    if (at.kind === 'release') {
      const [charge] = this.#charges.splice(at.charge % Math.max(1, this.#charges.length), 1);
      if (charge !== undefined) this.#decider.release(charge.ticket, charge.generation);
    } else if (at.kind === 'program') programs.publish(0, PROGRAMS[at.program]!, { inserts: true });
    else if (at.slot < this.#endpoints) {
      if (at.kind === 'publish') table.publish(at.slot, at.signals, 2);
      else if (at.kind === 'stale') table.markStale(at.slot);
      else table.setState(at.slot, at.state);
    }
    return undefined;
  }

  #decide(prompt: number, blocks: number) {
    this.#index.writeHashes(chainOf(prompt));
    const request = { ...plainRequest, blocks, promptTokens: 64 * blocks, explained: this.#explained };
    const { status, slots, candidates, score, ticket, ticketGeneration } = this.#decider.decide(request);
    if (status === 'decided') this.#charges.push({ ticket, generation: ticketGeneration });
    const all = Array.from({ length: this.#endpoints }, (_, slot) => slot);
    const taken = all.filter((slot) => this.#decider.isCandidate(slot));
    const scores = taken.map((slot) => this.#decider.scoreOf(slot));
    return { status, slots: [...slots], candidates, score, matched: this.#decider.matchedOf(slots[0] ?? 0), scores };
  }
}

function expectTwins(endpoints: readonly Signals[], steps: readonly Step[]): void {
  const standing = new History(endpoints, false);
  const anew = new History(endpoints, true);
  for (const [i, at] of steps.entries()) expect({ i, ...standing.take(at) }).toEqual({ i, ...anew.take(at) });
}

const idle: Signals = { waiting: 0, running: 0, kvUsage: 0 };
const decideAll: readonly Step[] = Array.from({ length: 4 }, (_, i) => ({
  kind: 'decide',
  prompt: i % 2,
  blocks: BLOCKS - i,
}));

describe('scores that stand from one decision to the next', () => {
  it('scores that stand are those made anew, to the last bit, whatever has happened between two decisions', () => {
    fc.assert(
      fc.property(
        fc.array(signals, { minLength: 65, maxLength: SLOTS }),
        fc.array(step, { minLength: 10, maxLength: 60 }),
        expectTwins,
      ),
      { numRuns: 60 },
    );
  });

  it('scores that stand follow a candidate that loses a signal, and one that has it again', () => {
    const endpoints = Array.from({ length: 130 }, (_, slot) => ({ ...idle, waiting: slot % 3 }));
    const stale: Step = { kind: 'stale', slot: 129 };
    const back: Step = { kind: 'publish', slot: 129, signals: { waiting: 0, running: 0, kvUsage: undefined } };
    const again: Step = { kind: 'publish', slot: 129, signals: { waiting: 9, running: 0, kvUsage: 0 } };
    expectTwins(
      endpoints,
      [stale, back, again].flatMap((at) => [...decideAll, at, ...decideAll]),
    );
  });

  it('scores that stand follow an end of the range of the queues that moves', () => {
    const endpoints = Array.from({ length: 192 }, (_, slot) => ({
      ...idle,
      waiting: slot === 100 ? 40 : 1 + (slot % 5),
    }));
    const moves = [20, 3, 60, 0].map(
      (waiting): Step => ({ kind: 'publish', slot: 100, signals: { ...idle, waiting } }),
    );
    expectTwins(
      endpoints,
      moves.flatMap((at) => [...decideAll, at, ...decideAll]),
    );
  });

  it('scores that stand are made anew after more changes than the load journal holds', () => {
    const endpoints = Array.from({ length: 192 }, () => ({ ...idle, kvUsage: 0.5 }));
    for (const changes of [254, 255, 256, 257, 300]) {
      const publish = (i: number): Step => ({ kind: 'publish', slot: i % 192, signals: { ...idle, kvUsage: i / 400 } });
      expectTwins(endpoints, [...decideAll, ...Array.from({ length: changes }, (_, i) => publish(i)), ...decideAll]);
    }
  });
});

/** Kills and rounds grow with POINTSMAN_STRESS (1 by default). */
const stress = Number(process.env.POINTSMAN_STRESS ?? 1);

/** A pool of three groups of endpoints, and threads that decide on it (decide-worker.ts). */
function startPool() {
  const waiting = Array.from({ length: SLOTS }, (_, slot) => ({ waiting: slot % 3, running: 0, kvUsage: 0 }));
  const pool = makePool(PROGRAMS[0]!, waiting, { ...sizes, threads: 6, requests: 1024 });
  pool.programs.publish(0, PROGRAMS[0]!, { inserts: true });
  const state = new SharedArrayBuffer(64);
  const flags = new Int32Array(state);
  const spawn = async (thread: number, rounds: number) => {
    const worker = new Worker(new URL('./decide-worker.ts', import.meta.url), {
      workerData: { pool: pool.memory, thread, request: plainRequest, rounds, state },
    });
    await once(worker, 'message');
    return worker;
  };
  const go = () => {
    Atomics.store(flags, 0, 1);
    Atomics.notify(flags, 0);
  };
  const publish = (turn: number) => {
    const signals = { waiting: turn % 5, running: turn % 7, kvUsage: (turn % 9) / 10 };
    pool.table.publish((turn * 7) % SLOTS, signals, turn);
  };
  const inflight = () => Array.from({ length: SLOTS }, (_, slot) => pool.table.read(slot).inflight);
  return { ...pool, flags, spawn, go, publish, inflight };
}

const pause = () => new Promise((resolve) => setImmediate(resolve));

describe('scores that stand while other threads decide', () => {
  it('scores that stand are those of the program under the lock while queues change and threads decide', async () => {
    // The debug core runs the program under the lock behind each judgement, and compares all scores.
    const pool = startPool();
    const workers = await Promise.all([1, 2, 3].map((thread) => pool.spawn(thread, 1_500 * stress)));
    const ended = workers.map((worker) => once(worker, 'exit'));
    pool.go();
    for (let turn = 0; Atomics.load(pool.flags, 2) < 4_500 * stress; turn++) {
      pool.publish(turn);
      await pause();
    }
    await Promise.all(ended);
    expect(pool.control.call.ledgerCheck()).toBe(0);
    expect(pool.inflight()).toEqual(new Array(SLOTS).fill(0));
  });

  it('scores that stand see the repair of shards that are killed at any moment', async () => {
    const pool = startPool();
    pool.go();
    const survivors = await Promise.all([1, 2].map((thread) => pool.spawn(thread, Number.MAX_SAFE_INTEGER)));
    for (let kill = 0; kill < 15 * stress; kill++) {
      const victim = await pool.spawn(3, Number.MAX_SAFE_INTEGER);
      const before = Atomics.load(pool.flags, 2);
      while (Atomics.load(pool.flags, 2) < before + (kill % 50)) {
        pool.publish(kill);
        await pause();
      }
      await victim.terminate();
      pool.control.call.reclaimThread(3);
    }
    Atomics.store(pool.flags, 1, 1);
    await Promise.all(survivors.map((worker) => once(worker, 'exit')));
    expect(pool.control.call.ledgerCheck()).toBe(0);
    expect(pool.control.call.lockOwner(CORE.HEADER + CORE.HEADER_COMMIT_LOCK)).toBe(0);
    expect(pool.inflight()).toEqual(new Array(SLOTS).fill(0));
  }, 120_000);
});
