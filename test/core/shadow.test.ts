import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE, type CoreInstance, CostTable, DecisionLog, type Operation } from '../../dist/src/core/index.js';
import { makePool, pickMax, plainRequest, scorer, smallSizes } from './pool.ts';

const QUEUE: readonly Operation[] = [scorer('OP_SCORE_QUEUE', 2), scorer('OP_SCORE_KV_USAGE', 1), pickMax];
const KV: readonly Operation[] = [scorer('OP_SCORE_KV_USAGE', 2), pickMax];
const SIGNALS = [
  { waiting: 0, running: 3, kvUsage: 0.9 },
  { waiting: 4, running: 1, kvUsage: 0.1 },
  { waiting: 9, running: 0, kvUsage: 0.5 },
];
const LOGGED = { ...smallSizes, decisions: 64, decisionColumnBytes: 65_536, decisionThreads: 6 };

/** A pool whose profile runs `operations`, with `shadow` beside them. */
function shadowed(operations: readonly Operation[], shadow: readonly Operation[], signals = SIGNALS, every = 1) {
  const pool = makePool(operations, signals, LOGGED);
  pool.programs.publishShadow(0, shadow, { inserts: false });
  pool.decider.shadowEvery(every);
  return pool;
}

const sampled = (core: CoreInstance) => new CostTable(core).shares().samples;

describe('the columns of a shadow program', () => {
  it('the columns of a shadow program and of a captured state fit the columns of explanations', () => {
    expect(CORE.STATE_COLUMNS + 4).toBeLessThanOrEqual(CORE.EXPLAIN_COLUMNS);
  });
});

describe('a shadow program', () => {
  it('a shadow program picks by its own operations in the state that the decision saw, before its charge', () => {
    const { decider } = shadowed(QUEUE, KV);
    const { slots, shadow } = decider.decide(plainRequest);
    expect([slots, shadow.state, shadow.slot]).toEqual([[0], 'picked', 1]);
    expect(shadow.cost).toBeGreaterThan(0);
    expect(shadow.pickCost).not.toBe(shadow.cost);
  });

  it('a shadow program that is the running program picks the same, ties and drawn picks too', () => {
    for (const picker of [
      'OP_PICK_MAX_SCORE',
      'OP_PICK_RANDOM',
      'OP_PICK_WEIGHTED_RANDOM',
      'OP_PICK_BEST_OF',
    ] as const) {
      const program = [scorer('OP_SCORE_QUEUE', 1), scorer(picker, 1, 1, 2)];
      const { decider } = shadowed(
        program,
        program,
        [{}, {}, {}, {}, {}].map(() => ({ waiting: 1, running: 1, kvUsage: 0 })),
      );
      for (let i = 0; i < 50; i++) {
        const { slots, shadow } = decider.decide({ ...plainRequest, nowMs: i });
        expect(shadow.slot).toBe(slots[0]);
        expect(shadow.cost).toBe(shadow.pickCost);
      }
    }
  });

  it('a shadow program has the costs of the learned coefficients', () => {
    const { decider, control } = shadowed(QUEUE, KV);
    const coefficients = {
      baseMs: 0,
      prefillMsPerKiloToken: 0,
      waitingMs: 100,
      stepMs: 0,
      growthMs: 0,
      missPrice: 1,
      outputTokens: 100,
      firstOutputTargetMs: 1000,
      perTokenTargetMs: 50,
      slots: 256,
      evictionPrice: 1,
    };
    new CostTable(control).write(coefficients);
    const { shadow } = decider.decide(plainRequest);
    expect([shadow.pickCost, shadow.cost].map((cost) => Math.round(cost * 1000))).toEqual([0, 400]);
  });

  it('a shadow program that leaves no endpoint says so, and costs nothing', () => {
    const pool = shadowed(QUEUE, [scorer('OP_FILTER_MASK', 1, 5), pickMax]);
    pool.table.setMask(5, []);
    const { status, shadow } = pool.decider.decide(plainRequest);
    expect([status, shadow.state, shadow.slot]).toEqual(['decided', 'none', -1]);
    expect(shadow.cost).toBeNaN();
  });

  it('a shadow program runs for one request in so many', () => {
    const { decider } = shadowed(QUEUE, KV, SIGNALS, 4);
    const states = Array.from({ length: 12 }, () => decider.decide(plainRequest).shadow.state);
    expect(states.filter((state) => state === 'picked')).toHaveLength(3);
    decider.shadowEvery(0);
    expect(decider.decide(plainRequest).shadow.state).toBe('unasked');
  });

  it('a shadow program keeps turns of its own', () => {
    const turns = [scorer('OP_PICK_ROUND_ROBIN', 1, 1)];
    const { decider } = shadowed(KV, turns);
    const picks = Array.from({ length: 6 }, () => decider.decide({ ...plainRequest, promptTokens: 0 }).shadow.slot);
    expect(picks).toEqual([0, 1, 2, 0, 1, 2]);
  });

  it('a shadow program that scores by marginal cost is no sample of what its terms decide', () => {
    const { decider, core } = shadowed(KV, [scorer('OP_SCORE_MARGINAL_COST', 1), pickMax]);
    for (let i = 0; i < 64; i++) expect(decider.decide(plainRequest).shadow.state).toBe('picked');
    expect(sampled(core)).toBe(0);
  });

  it('a shadow program is gone when it is cleared, and nothing is asked for', () => {
    const { decider, programs } = shadowed(QUEUE, KV);
    programs.clearShadows();
    expect(decider.decide(plainRequest).shadow.state).toBe('unasked');
  });

  it('a shadow program is logged with the decision', () => {
    const { decider, control } = shadowed(QUEUE, KV);
    const { shadow } = decider.decide(plainRequest);
    const [record] = new DecisionLog(control).recent(1);
    expect(record!.shadow).toEqual({ slot: 1, cost: shadow.cost, pickCost: shadow.pickCost });
  });

  it('a shadow program changes nothing of the decisions that it watches', () => {
    const signal = fc.record({
      waiting: fc.integer({ min: 0, max: 9 }),
      running: fc.integer({ min: 0, max: 9 }),
      kvUsage: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    const program = fc.constantFrom<readonly Operation[]>(
      QUEUE,
      [scorer('OP_SCORE_NO_HIT_LRU', 1, 8), scorer('OP_SCORE_QUEUE', 1), scorer('OP_PICK_WEIGHTED_RANDOM', 1, 2)],
      [
        scorer('OP_FILTER_LOWEST', 1, 0, 1, 2, 0.5, 1, 1),
        scorer('OP_SCORE_RUNNING', 1),
        scorer('OP_PICK_BEST_OF', 1, 1, 2),
      ],
      [scorer('OP_SCORE_MARGINAL_COST', 1), pickMax],
      [scorer('OP_PICK_ROUND_ROBIN', 1, 2)],
    );
    fc.assert(
      fc.property(fc.array(signal, { minLength: 2, maxLength: 9 }), program, program, (signals, running, candidate) => {
        const plain = makePool(running, signals, LOGGED);
        const watched = shadowed(running, candidate, signals);
        for (let i = 0; i < 40; i++) {
          const request = { ...plainRequest, promptTokens: i * 97, nowMs: i };
          const { shadow: _unasked, ...expected } = plain.decider.decide(request);
          const { shadow, ...made } = watched.decider.decide(request);
          expect(shadow.state).not.toBe('unasked');
          expect(made).toEqual(expected);
          expect(signals.map((_, slot) => watched.decider.scoreOf(slot))).toEqual(
            signals.map((_, slot) => plain.decider.scoreOf(slot)),
          );
        }
        const columns = ({ control }: typeof plain) =>
          new DecisionLog(control).recent(64).map(({ shadow: _, ...record }) => record);
        expect(columns(watched)).toEqual(columns(plain));
        expect(sampled(watched.core)).toBe(sampled(plain.core));
      }),
      { seed: 14, numRuns: 60 },
    );
  });
});
