import { describe, expect, it } from 'vitest';
import { defaultAdaptation } from '../../dist/src/config/adaptation.js';
import { type Coefficients, CostTable, type Operation } from '../../dist/src/core/index.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.ts';

const ENDPOINTS = 8;
const SYSTEM_PROMPTS = 16;
const ROUNDS = 50;
/** Of 64 tokens: a system prompt has 768 tokens and a question 256. */
const BLOCKS = { system: 12, question: 4 };
const SEEDS = [1, 2, 3, 4, 5];

const { prior, ...targets } = defaultAdaptation().model;
const assumed: Coefficients = { ...prior, ...targets, evictionPrice: 1 };
const learned = [scorer('OP_SCORE_MARGINAL_COST'), pickMax];
const configured = [scorer('OP_SCORE_QUEUE', 2), scorer('OP_SCORE_KV_USAGE', 2), scorer('OP_SCORE_PREFIX', 3), pickMax];

/** Hash of a block of a prompt; each owner has blocks of its own. */
function block(owner: number, at: number): bigint {
  return BigInt.asUintN(64, BigInt(owner * 1_000 + at) * 0x9e3779b97f4a7c15n);
}

/**
 * Requests of each endpoint when the prompts come in turn, each after the one before has ended.
 * @param further tokens of a request behind its last whole block
 */
function spread(operations: readonly Operation[], seed: number, further = (_request: number) => 0): number[] {
  const idle = Array.from({ length: ENDPOINTS }, () => ({ waiting: 0, running: 0, kvUsage: 0 }));
  const pool = makePool(operations, idle);
  pool.programs.publish(0, operations, { inserts: true });
  new CostTable(pool.control).write(assumed);
  // The seed is in the draws: so many are taken before the first prompt.
  for (let i = 0; i < seed; i++) pool.decider.decide({ ...plainRequest, charged: false });
  const chain = new BigUint64Array(pool.core.view.buffer);
  const at = (pool.core.call.hashesAddress() >>> 0) >>> 3;
  const counts = new Array<number>(ENDPOINTS).fill(0);
  for (let i = 0; i < ROUNDS * SYSTEM_PROMPTS; i++) {
    const system = i % SYSTEM_PROMPTS;
    const blocks = BLOCKS.system + BLOCKS.question;
    for (let k = 0; k < blocks; k++) chain[at + k] = k < BLOCKS.system ? block(1 + system, k) : block(10_000 + i, k);
    const promptTokens = 64 * blocks + further(i);
    const request = { ...plainRequest, blocks, promptTokens, nowMs: 1_000 + 2 * i };
    const { slots, ticket, ticketGeneration } = pool.decider.decide(request);
    counts[slots[0]!]!++;
    pool.decider.release(ticket, ticketGeneration);
  }
  return counts;
}

describe('requests with 16 system prompts that come one at a time to 8 idle endpoints', () => {
  it('learned costs lay 16 system prompts on 8 idle endpoints two by two', () => {
    for (const seed of SEEDS) expect(spread(learned, seed)).toEqual(new Array(ENDPOINTS).fill(2 * ROUNDS));
  });

  it('learned costs lay 16 system prompts on 8 idle endpoints two by two where questions differ in length', () => {
    const further = (request: number) => (7_919 * request) % 13;
    for (const seed of SEEDS) expect(spread(learned, seed, further)).toEqual(new Array(ENDPOINTS).fill(2 * ROUNDS));
  });

  it('the default weights lay 16 system prompts on idle endpoints where the lot puts them, 3 : 1 or worse', () => {
    for (const seed of SEEDS) {
      const counts = spread(configured, seed);
      expect(Math.max(...counts)).toBeGreaterThanOrEqual(3 * Math.min(...counts));
    }
  });
});
