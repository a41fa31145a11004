import type { Coefficients, Operation } from '../../dist/src/core/index.js';
import { attachCore, CostTable, Decider, EndpointTable } from '../../dist/src/core/index.js';
import { makePool, plainRequest } from './pool.ts';

/** A burst over idle endpoints that hold conversations from before. */
export interface BurstOptions {
  readonly operations: readonly Operation[];
  /** What the cost model has learned; left out = the scenario does not decide by it. */
  readonly coefficients?: Coefficients;
  readonly seed: number;
  /** Shards that decide in turn over the same memory. */
  readonly shards: number;
  /** How the system prompts follow each other: one after the other, or each drawn for itself. */
  readonly order: 'in turn' | 'drawn';
}

export interface BurstResult {
  /** Requests of the burst on the fullest endpoint beside those on the emptiest. */
  readonly imbalance: number;
  /** Share of the conversations whose next turn, in the middle of the burst, went to the endpoint that holds them. */
  readonly kept: number;
}

const ENDPOINTS = 8;
const REQUESTS = 1_000;
const SYSTEM_PROMPTS = 16;
const CONVERSATIONS = 64;
/**
 * Of 64 tokens: a system prompt has 768 tokens and a question 256; a conversation 8,192, and its next turn 256 more.
 */
const BLOCK = 64;
const BLOCKS = { system: 12, question: 4, conversation: 128, turn: 4 };

/**
 * 1,000 requests that share 16 system prompts in the space of 100 ms, with the turns of 64 conversations among them.
 */
export function runBurst({ operations, coefficients, seed, shards, order }: BurstOptions): BurstResult {
  const signals = Array.from({ length: ENDPOINTS }, () => ({ waiting: 0, running: 0, kvUsage: 0 }));
  const sizes = { indexBlocks: 65_536, requests: 2_048, chainBlocks: 256, threads: 6, scans: 16 };
  const pool = makePool(operations, signals, { endpoints: 64, telemetryBytes: 65_536, ...sizes });
  pool.programs.publish(0, operations, { inserts: true });
  if (coefficients !== undefined) new CostTable(pool.control).write(coefficients);
  const random = seeded(seed);
  const deciders = Array.from({ length: shards }, (_, shard) =>
    decideOn(attachCore(pool.memory, shard + 1), BigInt(seed * 16 + shard)),
  );
  const homes = Array.from({ length: CONVERSATIONS }, (_, i) => hold(deciders[0]!, i));
  const counts = new Array<number>(ENDPOINTS).fill(0);
  let kept = 0;
  for (const [at, conversation] of mixed(random).entries()) {
    const decide = deciders[at % shards]!;
    const nowMs = 1_000 + (at * 100) / REQUESTS;
    if (conversation >= 0) {
      const slot = decide(prompt(SYSTEM_PROMPTS + conversation, BLOCKS.conversation, at, BLOCKS.turn), nowMs).slot;
      kept += Number(slot === homes[conversation]);
    } else {
      const system = order === 'drawn' ? Math.floor(random() * SYSTEM_PROMPTS) : at % SYSTEM_PROMPTS;
      counts[decide(prompt(system, BLOCKS.system, at, BLOCKS.question), nowMs).slot]!++;
    }
  }
  const inflight = signals.map((_, slot) => new EndpointTable(pool.control).read(slot).inflight);
  if (inflight.reduce((a, b) => a + b) !== REQUESTS + CONVERSATIONS)
    throw new Error(`charges are missing: ${inflight}`);
  return { imbalance: Math.max(...counts) / Math.min(...counts), kept: kept / CONVERSATIONS };
}

type Decide = (hashes: readonly bigint[], nowMs: number, subset?: number[]) => { slot: number; release: () => void };

function decideOn(core: ReturnType<typeof attachCore>, seed: bigint): Decide {
  const decider = new Decider(core, seed);
  const chain = new BigUint64Array(core.view.buffer);
  const at = (core.call.hashesAddress() >>> 0) >>> 3;
  return (hashes, nowMs, subset) => {
    for (const [i, hash] of hashes.entries()) chain[at + i] = hash;
    const promptTokens = hashes.length * BLOCK;
    const request = { ...plainRequest, blocks: hashes.length, promptTokens, nowMs, subset };
    const { slots, ticket, ticketGeneration } = decider.decide(request);
    return { slot: slots[0]!, release: () => decider.release(ticket, ticketGeneration) };
  };
}

/** A conversation that an endpoint has answered before; the endpoint. */
function hold(decide: Decide, conversation: number): number {
  const home = conversation % ENDPOINTS;
  decide(prompt(SYSTEM_PROMPTS + conversation, BLOCKS.conversation, 0, 0), 0, [home]).release();
  return home;
}

/** In which order they come: -1 for a request of the burst, otherwise the number of a conversation. */
function mixed(random: () => number): number[] {
  const all = Array.from({ length: REQUESTS + CONVERSATIONS }, (_, i) => (i < CONVERSATIONS ? i : -1));
  for (let i = all.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [all[i], all[j]] = [all[j]!, all[i]!];
  }
  return all;
}

/** Hashes of a prompt: blocks that it shares with others of its beginning, and blocks of its own. */
function prompt(beginning: number, shared: number, number: number, own: number): bigint[] {
  const hash = (owner: number, block: number) =>
    BigInt.asUintN(64, BigInt(owner * 1_000 + block) * 0x9e3779b97f4a7c15n);
  return [
    ...Array.from({ length: shared }, (_, block) => hash(1 + beginning, block)),
    ...Array.from({ length: own }, (_, block) => hash(10_000 + number, block)),
  ];
}

/** Numbers in [0, 1) with a seed (a linear congruential generator; Numerical Recipes). */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
