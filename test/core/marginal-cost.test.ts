import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultAdaptation } from '../../dist/src/config/adaptation.js';
import { CORE } from '../../dist/src/core/core-names.js';
import { type Coefficients, CostTable, EndpointTable } from '../../dist/src/core/index.js';
import { type CostInput, marginalCosts } from './marginal-cost-model.ts';
import { makePool, pickMax, plainRequest, scorer, smallSizes } from './pool.js';

const usual: Coefficients = {
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

const BLOCK = 64;
const scoring = [scorer('OP_SCORE_MARGINAL_COST'), pickMax];

/** Prompts of `inflight` requests, the first of which waits for its first output if `prefillTokens` says so. */
function promptsOf({ inflight, prefillTokens, promptTokens }: CostInput): number[] {
  const prompts = new Array<number>(inflight).fill(0);
  if (prefillTokens > 0) prompts[0] = prefillTokens;
  const others = promptTokens - prefillTokens;
  if (others > 0) prompts[prefillTokens > 0 ? 1 : 0] = others;
  if (prompts.length !== inflight || others < 0) throw new Error('no requests make this state');
  return prompts;
}

/** Charges the requests of a state to its endpoint. */
function charge({ decider }: ReturnType<typeof makePool>, slot: number, given: CostInput): void {
  for (const [i, promptTokens] of promptsOf(given).entries()) {
    const { ticket, ticketGeneration } = decider.decide({ ...plainRequest, promptTokens, subset: [slot] });
    if (i > 0 || given.prefillTokens === 0) decider.prefillDone(ticket, ticketGeneration, 0);
  }
}

/** Writes what only scrapes and the time make of an endpoint otherwise, under the lock that guards it. */
function setState({ control }: ReturnType<typeof makePool>, slot: number, given: CostInput, nowMs: number): void {
  const { call, view, sizes } = control;
  const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
  const columns = call.regionAddress(CORE.REGION_ENDPOINTS) >>> 0;
  const at = (column: number) => columns + (column * sizes.endpoints + slot) * 4;
  expect(call.lockAcquire(lock, 20)).toBe(1);
  view.setFloat32(at(CORE.COLUMN_PREFILL_RATE), given.prefillRate, true);
  view.setFloat32(at(CORE.COLUMN_PREFILL_RATE_PEAK), given.prefillPeak, true);
  view.setFloat32(at(CORE.COLUMN_SLOTS_SEEN), given.slotsSeen, true);
  const times = columns + CORE.COLUMN_PREFILL_RATE_TIME * sizes.endpoints * 4 + slot * 8;
  view.setFloat64(times, nowMs, true);
  call.lockRelease(lock);
  new CostTable(control).writeEndpoint(slot, 1, given.speed, given.reliability, given.own);
}

/** A pool in this state; `cachedTokens` is what the prefix index says of a prompt of `blocks` blocks. */
function poolOf(endpoints: readonly CostInput[], coefficients = usual, operations = scoring) {
  const signals = endpoints.map((e) => ({
    waiting: e.waiting,
    running: e.running,
    kvUsage: e.kvUsage,
    blockTokens: 16,
    blockCount: e.kvTokens / 16,
  }));
  // A program without scorers makes the state, so that no decision before those of the test is sampled.
  const pool = makePool([pickMax], signals, { ...smallSizes, requests: 1024 });
  pool.programs.publish(0, [pickMax], { inserts: true });
  new CostTable(pool.control).write(coefficients);
  const hashes = (pool.core.call.hashesAddress() >>> 0) >>> 3;
  const chain = new BigUint64Array(pool.memory.memory.buffer);
  for (let i = 0; i < 64; i++) chain[hashes + i] = BigInt(i + 1) * 0x9e3779b97f4a7c15n;
  for (const [slot, { cachedTokens }] of endpoints.entries()) {
    const blocks = cachedTokens / BLOCK;
    if (blocks === 0) continue;
    const { ticket, ticketGeneration } = pool.decider.decide({ ...plainRequest, blocks, subset: [slot] });
    pool.decider.release(ticket, ticketGeneration);
  }
  for (const [slot, endpoint] of endpoints.entries()) {
    charge(pool, slot, endpoint);
    setState(pool, slot, endpoint, 1000);
  }
  pool.programs.publish(0, operations, { inserts: true });
  return pool;
}

const idle: CostInput = {
  cachedTokens: 0,
  inflight: 0,
  prefillTokens: 0,
  promptTokens: 0,
  prefillRate: 0,
  prefillPeak: 0,
  waiting: 0,
  running: 0,
  kvUsage: 0,
  kvTokens: 320_000,
  activeTokens: 0,
  sharedTokens: 0,
  slotsSeen: 0,
  speed: 1,
  reliability: 1,
};

const ratio = (min: number, max: number) =>
  fc.float({ min: Math.fround(min), max: Math.fround(max), noNaN: true, noDefaultInfinity: true });
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 6 });
/** Requests in flight, up to 40 because each is charged, and their tokens. */
const load = fc
  .record({ inflight: fc.integer({ min: 0, max: 40 }), pending: fc.nat(200_000), others: fc.nat(500_000) })
  .map(({ inflight, pending, others }) => ({
    inflight,
    prefillTokens: inflight === 0 ? 0 : pending,
    promptTokens: inflight === 0 ? 0 : pending + (inflight === 1 && pending > 0 ? 0 : others),
  }));
const figures = fc.record({
  cachedTokens: fc.integer({ min: 0, max: 64 }).map((blocks) => blocks * BLOCK),
  prefillRate: ratio(0, 40),
  prefillPeak: fc.oneof(fc.constant(0), ratio(1, 40)),
  waiting: optional(fc.integer({ min: 0, max: 100 })),
  running: optional(fc.integer({ min: 0, max: 300 })),
  kvUsage: optional(ratio(0, 1)),
  kvTokens: fc.oneof(
    fc.constant(0),
    fc.integer({ min: 100, max: 20_000 }).map((blocks) => 16 * blocks),
  ),
  activeTokens: fc.constant(0),
  sharedTokens: fc.constant(0),
  slotsSeen: fc.integer({ min: 0, max: 50 }),
  speed: ratio(0.3, 3.3),
  reliability: ratio(0.5, 1.1),
});
const ofHardware = {
  baseMs: ratio(0, 500),
  prefillMsPerKiloToken: ratio(5, 500),
  waitingMs: ratio(0, 30),
  stepMs: ratio(3, 60),
  growthMs: ratio(0.5, 32),
};
const own = fc.record({ own: fc.option(fc.record(ofHardware), { nil: undefined }) });
const state: fc.Arbitrary<CostInput> = fc
  .tuple(load, figures, own)
  .map(([first, second, third]) => ({ ...first, ...second, ...third }));
const coefficients: fc.Arbitrary<Coefficients> = fc.record({
  ...ofHardware,
  missPrice: ratio(0.5, 3),
  outputTokens: fc.integer({ min: 1, max: 5000 }),
  firstOutputTargetMs: ratio(50, 60_000),
  perTokenTargetMs: ratio(5, 1000),
  slots: fc.integer({ min: 1, max: 64 }),
  evictionPrice: ratio(1, 2),
});

/** (most - cost)/(most - least), all equal = 1. */
function scoresOf(costs: readonly number[]): number[] {
  const most = Math.max(...costs);
  const range = most - Math.min(...costs);
  return costs.map((cost) => (range === 0 ? 1 : (most - cost) / range));
}

describe('marginal-cost-scorer', () => {
  it('marginal-cost-scorer agrees with the formula in plain TypeScript over random states and coefficients', () => {
    fc.assert(
      fc.property(
        fc.array(state, { minLength: 2, maxLength: 24 }),
        coefficients,
        fc.integer({ min: 1, max: 64 }),
        (endpoints, given, blocks) => {
          const { decider } = poolOf(endpoints, given);
          const promptTokens = blocks * BLOCK;
          decider.decide({ ...plainRequest, blocks, promptTokens, nowMs: 1000, charged: false });
          const matched = endpoints.map((e) => ({ ...e, cachedTokens: Math.min(e.cachedTokens, promptTokens) }));
          const expected = scoresOf(marginalCosts(given, promptTokens, matched));
          for (const [slot, score] of expected.entries()) expect(decider.scoreOf(slot)).toBeCloseTo(score, 3);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('marginal-cost-scorer assumes the defaults of the configuration until coefficients are written', () => {
    const { control } = makePool(scoring, []);
    const at = (control.call.coefficientsAddress() >>> 0) >>> 2;
    const { prior, ...model } = defaultAdaptation().model;
    expect([...control.f32.subarray(at, at + 11)]).toEqual([
      ...[prior.baseMs, prior.prefillMsPerKiloToken, prior.waitingMs, prior.stepMs, prior.growthMs],
      ...[model.missPrice, prior.outputTokens, model.firstOutputTargetMs, model.perTokenTargetMs, model.slots, 1],
    ]);
  });

  it('marginal-cost-scorer lets the prefill rate decay while nothing is sent', () => {
    const { decider } = poolOf([
      { ...idle, prefillRate: 10, prefillPeak: 10 },
      { ...idle, inflight: 1 },
    ]);
    const pick = (nowMs: number) =>
      decider.decide({ ...plainRequest, promptTokens: 2000, nowMs, charged: false }).slots[0];
    expect(pick(1000)).toBe(1);
    expect(pick(500_000)).toBe(0);
  });

  it('marginal-cost-scorer prices a miss by the share of the largest prefill rate seen, at most twice as dear', () => {
    const request = { ...plainRequest, promptTokens: 2000, nowMs: 1000, charged: false };
    const scores = (rates: readonly number[], prefillMsPerKiloToken: number) => {
      const endpoints = rates.map((prefillRate) => ({ ...idle, prefillRate, prefillPeak: 10 }));
      const { decider } = poolOf(endpoints, { ...usual, prefillMsPerKiloToken });
      decider.decide(request);
      return rates.map((_, slot) => decider.scoreOf(slot));
    };
    // Prices of a miss: 1, 1/(1 - 0.25) and twice 2; of the last two the one that was sent less is a little cheaper.
    const expected = [1, (2 - 4 / 3) / (2 - 1), 0.002, 0].map((score) => expect.closeTo(score, 2));
    expect(scores([0, 2.5, 5, 10], 55)).toEqual(expected);
    expect(scores([0, 2.5, 5, 10], 550)).toEqual(expected);
  });

  it('marginal-cost-scorer sends no further prompt where prefill has gathered because outputs ended there', () => {
    const request = { ...plainRequest, promptTokens: 7200, nowMs: 1000, charged: false };
    const pick = (prefillTokens: number) => {
      const usualLoad = { ...idle, inflight: 40, promptTokens: 288_000, kvUsage: 0.5, kvTokens: 600_000 };
      const emptied = { ...usualLoad, inflight: 25, prefillTokens, promptTokens: 180_000 };
      return poolOf([usualLoad, emptied]).decider.decide(request).slots[0];
    };
    expect([0, 7200, 14_400].map(pick)).toEqual([1, 0, 0]);
  });

  it('marginal-cost-scorer keeps a session at its home while memory is as scarce elsewhere', () => {
    const home = { ...idle, cachedTokens: 48 * BLOCK, kvUsage: 0.99, inflight: 4, promptTokens: 40_000 };
    const elsewhere = { ...idle, kvUsage: 0.9 };
    const request = { ...plainRequest, blocks: 64, promptTokens: 64 * BLOCK, nowMs: 1000, charged: false };
    expect(poolOf([elsewhere, home]).decider.decide(request).slots).toEqual([1]);
  });

  it('marginal-cost-scorer leaves an endpoint with a full KV cache, when little of the prompt is cached there', () => {
    const request = { ...plainRequest, blocks: 64, promptTokens: 64 * BLOCK, nowMs: 1000, charged: false };
    const pick = (kvUsage: number, cachedBlocks: number) => {
      const running = { ...idle, inflight: 30, promptTokens: 90_000, kvUsage: 0.6, kvTokens: 160_000 };
      const home = { ...running, cachedTokens: cachedBlocks * BLOCK, kvUsage };
      return poolOf([running, home]).decider.decide(request).slots[0];
    };
    expect([pick(0.6, 16), pick(0.95, 16), pick(0.75, 60)]).toEqual([1, 0, 1]);
  });

  it('marginal-cost-scorer takes the memory of a miss for as dear on a slow endpoint as on a fast one', () => {
    const request = { ...plainRequest, blocks: 64, promptTokens: 64 * BLOCK, nowMs: 1000, charged: false };
    const pick = (kvUsage: number) => {
      const fast = { ...idle, speed: 0.75, inflight: 30, promptTokens: 90_000, kvTokens: 160_000, kvUsage };
      const slow = { ...fast, speed: 2, inflight: 10, promptTokens: 30_000, kvUsage: 0.5 };
      return poolOf([fast, slow]).decider.decide(request).slots[0];
    };
    expect([0.5, 0.98].map(pick)).toEqual([0, 1]);
  });

  /** Two endpoints that hold a prompt of 4,096 tokens: one request of endpoint 0 runs with it, endpoint 1 has more. */
  const running = (kvTokens: number, usages: readonly [number, number]) => {
    const held = { ...idle, cachedTokens: 64 * BLOCK, kvTokens, kvUsage: usages[0] };
    const other = { ...held, kvUsage: usages[1], inflight: 2, promptTokens: 128 * BLOCK };
    const pool = poolOf([held, other]);
    const prompt = { ...plainRequest, blocks: 64, promptTokens: 64 * BLOCK, nowMs: 1000 };
    const { ticket, ticketGeneration } = pool.decider.decide({ ...prompt, subset: [0] });
    pool.decider.prefillDone(ticket, ticketGeneration, 1000);
    const costs = (sharedTokens: number) =>
      marginalCosts(usual, 64 * BLOCK, [
        { ...held, inflight: 1, promptTokens: 64 * BLOCK, activeTokens: 64 * BLOCK, sharedTokens },
        other,
      ]);
    const pick = (blocks: number) => pool.decider.decide({ ...prompt, blocks, charged: false }).slots[0];
    return { costs, pick };
  };
  const cheapest = (costs: readonly number[]) => costs.indexOf(Math.min(...costs));

  it('marginal-cost-scorer counts the blocks of running prompts before a scrape tells of them', () => {
    // Without blocks the prompt is another one. Full by the ledger, empty by the scrape: 6 × 0.3² turns of 200 tokens.
    const { pick } = running(8192, [0, 0]);
    const [full, empty] = [8192, 80_000].map((kvTokens) => {
      const own = { ...idle, inflight: 1, promptTokens: 64 * BLOCK, activeTokens: 64 * BLOCK, kvTokens };
      return marginalCosts(usual, 64 * BLOCK, [own, { ...idle, inflight: 2, promptTokens: 128 * BLOCK, kvTokens }]);
    });
    expect(full![0]! - empty![0]!).toBeGreaterThan(0.4);
    expect([pick(0), running(80_000, [0, 0]).pick(0)]).toEqual([full, empty].map((costs) => cheapest(costs!)));
    expect([full, empty].map((costs) => cheapest(costs!))).toEqual([1, 0]);
  });

  it('marginal-cost-scorer takes no further memory for what running requests use of the prompt', () => {
    const { costs, pick } = running(8192, [0.7, 0.5]);
    expect(pick(64)).toBe(0);
    expect([64 * BLOCK, 0].map((shared) => cheapest(costs(shared)))).toEqual([0, 1]);
  });

  it('marginal-cost-scorer sends no burst to the emptiest of nearly full caches while no scrape tells of it', () => {
    const request = { ...plainRequest, promptTokens: 400, nowMs: 1000, charged: false };
    const pick = (prefillTokens: number) => {
      const running = { ...idle, inflight: 40, promptTokens: 16_000, kvTokens: 304_000, kvUsage: 0.8 };
      const emptiest = { ...running, prefillTokens, kvUsage: 0.78 };
      return poolOf([running, emptiest], { ...usual, outputTokens: 2000 }).decider.decide(request).slots[0];
    };
    expect([0, 400, 4000].map(pick)).toEqual([1, 1, 0]);
  });

  it('marginal-cost-scorer lets a queue count as a wait for memory where the KV cache is full', () => {
    const request = { ...plainRequest, promptTokens: 1000, nowMs: 1000, charged: false };
    const pick = (kvUsage: number) => {
      const loaded = { ...idle, inflight: 20, promptTokens: 20_000, kvTokens: 96_000, kvUsage };
      return poolOf([
        { ...loaded, waiting: 40 },
        { ...loaded, inflight: 24, prefillTokens: 3000, waiting: 0 },
      ]).decider.decide(request).slots[0];
    };
    expect([0.5, 0.99].map(pick)).toEqual([0, 1]);
  });

  it('marginal-cost-scorer makes every miss dearer the fuller the caches of all candidates are', () => {
    const request = { ...plainRequest, blocks: 64, promptTokens: 64 * BLOCK, nowMs: 1000, charged: false };
    const pick = (kvUsage: number) => {
      const home = {
        ...idle,
        cachedTokens: 64 * BLOCK,
        prefillTokens: 20_000,
        promptTokens: 20_000,
        inflight: 1,
        kvUsage,
      };
      return poolOf([{ ...idle, kvUsage }, home]).decider.decide(request).slots[0];
    };
    expect([0.1, 0.95].map(pick)).toEqual([0, 1]);
  });

  it('marginal-cost-scorer gives every endpoint the best score when all are alike, and one endpoint alone', () => {
    for (const count of [1, 5]) {
      const { decider } = poolOf(Array.from({ length: count }, () => idle));
      decider.decide({ ...plainRequest, promptTokens: 100, charged: false });
      for (let slot = 0; slot < count; slot++) expect(decider.scoreOf(slot)).toBe(1);
    }
  });

  it('marginal-cost-scorer takes an endpoint without signals for one as the mean of the others', () => {
    const silent = { ...idle, waiting: undefined, running: undefined, kvUsage: undefined };
    const { decider } = poolOf([silent, { ...idle, waiting: 10 }, { ...idle, waiting: 0 }]);
    decider.decide({ ...plainRequest, promptTokens: 100, charged: false });
    expect([0, 1, 2].map((slot) => decider.scoreOf(slot))).toEqual([expect.closeTo(0.5, 3), 0, 1]);
  });

  it('marginal-cost-scorer sends a prompt to whom it is cached, until too much is ahead of it there', () => {
    const cached = { ...idle, cachedTokens: 64 * BLOCK };
    const request = { ...plainRequest, blocks: 64, promptTokens: 64 * BLOCK, charged: false };
    expect(poolOf([idle, cached]).decider.decide(request).slots).toEqual([1]);
    const busy = { ...cached, inflight: 3, prefillTokens: 20_000, promptTokens: 20_000 };
    expect(poolOf([idle, busy]).decider.decide(request).slots).toEqual([0]);
  });

  it('marginal-cost-scorer avoids an endpoint that is known to be slow', () => {
    const { decider } = poolOf([{ ...idle, speed: 2 }, idle]);
    for (let i = 0; i < 5; i++) {
      expect(decider.decide({ ...plainRequest, promptTokens: 500, charged: false }).slots).toEqual([1]);
    }
  });

  it('marginal-cost-scorer weighs first output against output by the targets of the request', () => {
    // Much to prefill first on the one, many running requests on the other.
    const endpoints = [
      { ...idle, prefillTokens: 10_000, promptTokens: 10_000, inflight: 1 },
      { ...idle, inflight: 60, promptTokens: 200_000 },
    ];
    const pick = (wantedTtftMs: number, wantedTpotMs: number) =>
      poolOf(endpoints).decider.decide({
        ...plainRequest,
        promptTokens: 500,
        nowMs: 1000,
        charged: false,
        wantedTtftMs,
        wantedTpotMs,
      }).slots[0];
    expect(pick(200, 1000)).toBe(1);
    expect(pick(60_000, 10)).toBe(0);
  });

  it('marginal-cost-scorer spreads 1,000 prompts with 16 beginnings over 8 idle endpoints to within 15 %', () => {
    const pool = makePool(
      scoring,
      Array.from({ length: 8 }, () => ({ waiting: 0, running: 0, kvUsage: 0 })),
      {
        endpoints: 64,
        indexBlocks: 65_536,
        requests: 2048,
        chainBlocks: 256,
        threads: 2,
        scans: 16,
        telemetryBytes: 65_536,
      },
    );
    pool.programs.publish(0, scoring, { inserts: true });
    new CostTable(pool.control).write(usual);
    const hashes = (pool.core.call.hashesAddress() >>> 0) >>> 3;
    const chain = new BigUint64Array(pool.memory.memory.buffer);
    for (let i = 0; i < 1000; i++) {
      for (let block = 0; block < 20; block++) {
        const owner = block < 16 ? i % 16 : 1000 + i;
        chain[hashes + block] = BigInt.asUintN(64, BigInt(owner * 100 + block + 1) * 0x9e3779b97f4a7c15n);
      }
      pool.decider.decide({ ...plainRequest, blocks: 20, promptTokens: 20 * BLOCK, nowMs: 1000 + i / 10 });
    }
    const table = new EndpointTable(pool.control);
    const counts = Array.from({ length: 8 }, (_, slot) => table.read(slot).inflight);
    expect(Math.max(...counts) / Math.min(...counts)).toBeLessThanOrEqual(1.15);
  });

  it('marginal-cost-scorer tells how much each term told the candidates apart', () => {
    const pool = poolOf([{ ...idle, waiting: 10 }, idle]);
    for (let i = 0; i < 64; i++) pool.decider.decide({ ...plainRequest, promptTokens: 100, charged: false });
    const { samples, sums } = new CostTable(pool.control).shares();
    expect(samples).toBe(4);
    expect(sums).toMatchObject({ context: 0, queue: 0, decode: 0, capacity: 0 });
    expect(sums.waiting).toBeCloseTo(4, 6);
  });

  it('marginal-cost-scorer is not evaluated with weight 0, unless the decision is explained', () => {
    const evaluated = (weight: number, explained: boolean) => {
      const pool = poolOf([{ ...idle, waiting: 10 }, idle], usual, [scorer('OP_SCORE_MARGINAL_COST', weight), pickMax]);
      for (let i = 0; i < 64; i++)
        pool.decider.decide({ ...plainRequest, promptTokens: 100, charged: false, explained });
      return new CostTable(pool.control).shares().samples;
    };
    expect([evaluated(1, false), evaluated(0, false), evaluated(0, true)]).toEqual([4, 0, 4]);
  });

  it('marginal-cost-scorer takes the coefficients of a hardware class until they are taken away', () => {
    const { baseMs, prefillMsPerKiloToken, waitingMs, stepMs, growthMs } = usual;
    const slow = { baseMs, prefillMsPerKiloToken: 3 * prefillMsPerKiloToken, waitingMs, stepMs, growthMs };
    const pool = poolOf([{ ...idle, own: slow }, idle]);
    const scores = () => {
      pool.decider.decide({ ...plainRequest, promptTokens: 1000, charged: false });
      return [0, 1].map((slot) => pool.decider.scoreOf(slot));
    };
    expect(scores().map(Math.round)).toEqual([0, 1]);
    new CostTable(pool.control).writeEndpoint(0, 1, 1, 1, undefined);
    expect(scores()).toEqual([1, 1]);
  });

  it('marginal-cost-scorer forgets the hardware class of a slot that changes hands', () => {
    const pool = poolOf([{ ...idle, own: { ...usual, stepMs: 50 } }, idle]);
    const table = new EndpointTable(pool.control);
    table.setState(0, 'free');
    table.open(0, 2);
    table.setState(0, 'live');
    pool.decider.decide({ ...plainRequest, promptTokens: 1000, charged: false });
    expect([0, 1].map((slot) => pool.decider.scoreOf(slot))).toEqual([1, 1]);
  });

  it('marginal-cost-scorer leaves the numbers of a slot that has changed hands alone', () => {
    const pool = poolOf([idle, idle]);
    const table = new CostTable(pool.control);
    table.writeEndpoint(0, 2, 3, 1, undefined);
    pool.decider.decide({ ...plainRequest, promptTokens: 100, charged: false });
    expect([0, 1].map((slot) => pool.decider.scoreOf(slot))).toEqual([1, 1]);
  });
});

describe('the pick of marginal cost', () => {
  const classical = [scorer('OP_SCORE_QUEUE', 2), scorer('OP_SCORE_KV_USAGE', 2), pickMax];
  const shadowed = [classical[0]!, classical[1]!, scorer('OP_WOULD_PICK'), pickMax];

  it('the pick of marginal cost is told without changing a single pick', () => {
    fc.assert(
      fc.property(fc.array(state, { minLength: 2, maxLength: 12 }), coefficients, (endpoints, given) => {
        const run = (operations: typeof classical) => {
          const { decider } = poolOf(endpoints, given, operations);
          return Array.from({ length: 30 }, (_, i) => {
            const { slots, score } = decider.decide({ ...plainRequest, promptTokens: i * 50, nowMs: 1000 + i });
            return [...slots, score];
          });
        };
        expect(run(shadowed)).toEqual(run(classical));
      }),
      { numRuns: 10 },
    );
  });

  it('the pick of marginal cost leaves the explanation of the longest program alone, in sampled decisions too', () => {
    const queues = Array.from({ length: 57 }, () => scorer('OP_SCORE_QUEUE', 1));
    const { decider } = poolOf([{ ...idle, waiting: 8 }, idle], usual, [...queues, scorer('OP_WOULD_PICK'), pickMax]);
    for (let i = 0; i < 16; i++) {
      decider.decide({ ...plainRequest, promptTokens: 100, charged: false, explained: true });
      expect(queues.map((_, operation) => decider.explainedOf(operation, 0))).toEqual(queues.map(() => 0));
      expect(queues.map((_, operation) => decider.explainedOf(operation, 1))).toEqual(queues.map(() => 1));
    }
  });

  it('the pick of marginal cost is the slot that the scorer would have picked', () => {
    const { decider } = poolOf([{ ...idle, speed: 2 }, idle, { ...idle, speed: 3 }], usual, shadowed);
    expect(decider.decide({ ...plainRequest, promptTokens: 100, charged: false }).wouldPick).toBe(1);
  });

  it('the pick of marginal cost sums up in samples how scorers go together with cost, and changes no pick', () => {
    const noting = scorer('OP_WOULD_PICK', 1, 2, 0, 1);
    const projecting = [classical[0]!, classical[1]!, noting, pickMax];
    const endpoints = [0, 1, 2, 3].map((i) => ({ ...idle, waiting: i, kvUsage: (3 - i) / 10, inflight: i * 3 }));
    const run = (operations: typeof classical) => {
      const { decider, control } = poolOf(endpoints, { ...usual, missPrice: 1 }, operations);
      const picks = Array.from({ length: 32 }, () => {
        const { slots, score } = decider.decide({ ...plainRequest, promptTokens: 500, charged: false });
        return [...slots, score];
      });
      return { picks, sums: new CostTable(control).projection() };
    };
    const { picks, sums } = run(projecting);
    expect(picks).toEqual(run(classical).picks);
    expect(sums.samples).toBe(2);
    // Scores of the queue: 1, 2/3, 1/3, 0; of the cache: 0.7, 0.8, 0.9, 1.
    const centred = [0.5, 1 / 6, -1 / 6, -0.5];
    const squares = centred.reduce((sum, value) => sum + value * value, 0);
    expect(sums.products[0]![0]! / sums.products[1]![1]!).toBeCloseTo(squares / (squares * 0.09), 2);
    expect(sums.products[0]![1]! / sums.products[0]![0]!).toBeCloseTo(-0.3, 3);
    // The cost falls with the score of the queue.
    expect(sums.costs[0]!).toBeLessThan(0);
    expect(sums.products[2]).toEqual([0, 0, 0, 0, 0, 0, 0]);
  });

  it('the pick of marginal cost is unknown when the program does not ask', () => {
    const { decider } = poolOf([idle], usual, classical);
    expect(decider.decide({ ...plainRequest, charged: false }).wouldPick).toBeUndefined();
  });
});
