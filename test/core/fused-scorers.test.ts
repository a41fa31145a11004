// Scorers in one pass against the same scorers one by one: an explained decision runs them one by one.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Decider } from '../../dist/src/core/decider.js';
import { type Operation, PrefixIndex } from '../../dist/src/core/index.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.js';

const BLOCKS = 8;
const chain = BigUint64Array.from({ length: BLOCKS }, (_, block) => 0x9e3779b97f4a7c15n * BigInt(block + 1));

const weight = fc.constantFrom(0.1, 0.7, 1, 2, 3);
const fewest = weight.chain((w) => fc.constantFrom(scorer('OP_SCORE_QUEUE', w), scorer('OP_SCORE_RUNNING', w)));
const usage = weight.map((w) => scorer('OP_SCORE_KV_USAGE', w));
const prefix = fc
  .tuple(weight, fc.constantFrom(0, 0.3, 1))
  .map(([w, length]) => scorer('OP_SCORE_PREFIX', w, length, 256, 64));
/** Two or three of the terms, in any order. */
const group = fc
  .tuple(fewest, usage, prefix)
  .chain((terms) => fc.shuffledSubarray<Operation>(terms, { minLength: 2, maxLength: 3 }));

/** Few different values, so that there are ties. */
const endpoint: fc.Arbitrary<EndpointState> = fc.record({
  waiting: fc.constantFrom(0, 1, 7),
  running: fc.constantFrom(0, 3, 20),
  kvUsage: fc.constantFrom(0, 0.25, 0.6180339, 1.2, undefined),
  held: fc.integer({ min: 0, max: BLOCKS }),
  charged: fc.integer({ min: 0, max: 2 }),
  state: fc.constantFrom('live' as const, 'live' as const, 'live' as const, 'draining' as const),
});

interface Given {
  readonly operations: readonly Operation[];
  readonly endpoints: readonly EndpointState[];
  /** Endpoints whose signals are unknown. */
  readonly silent?: ReadonlySet<number>;
  readonly subset?: readonly number[] | undefined;
  readonly seed: bigint;
}

interface EndpointState {
  readonly waiting: number;
  readonly running: number;
  readonly kvUsage: number | undefined;
  /** Blocks of the prompt that it holds. */
  readonly held: number;
  /** Requests in flight. */
  readonly charged: number;
  readonly state: 'live' | 'draining';
}

/** Decides one request both ways over the same state with the same random numbers. */
function bothWays({ operations, endpoints, silent = new Set(), subset, seed }: Given) {
  const signals = endpoints.map(({ waiting, running, kvUsage }, slot) =>
    silent.has(slot) ? {} : { waiting, running, kvUsage },
  );
  const { table, programs, core } = makePool(operations, signals);
  const index = new PrefixIndex(core);
  index.writeHashes(chain);
  for (const [slot, { held, charged, state }] of endpoints.entries()) {
    if (held > 0) index.insert(slot, held);
    programs.publish(0, [scorer('OP_PICK_RANDOM', 1, 1)], { inserts: false });
    const decider = new Decider(core, 1n);
    for (let i = 0; i < charged; i++) decider.decide({ ...plainRequest, subset: [slot] });
    if (state !== 'live') table.setState(slot, state);
  }
  index.writeHashes(chain);
  programs.publish(0, operations, { inserts: false });
  const run = (explained: boolean) => {
    const decider = new Decider(core, seed);
    const request = { ...plainRequest, blocks: BLOCKS, promptTokens: 64 * BLOCKS, charged: false };
    const { status, slots, candidates, score } = decider.decide({ ...request, subset, explained });
    const scores = endpoints.map((_, slot) => (decider.isCandidate(slot) ? decider.scoreOf(slot) : undefined));
    return { status, slots: [...slots], candidates, score, scores };
  };
  return { fused: run(false), plain: run(true) };
}

describe('scorers in one pass', () => {
  const subset = fc.option(fc.uniqueArray(fc.integer({ min: 0, max: 40 }), { maxLength: 20 }), { nil: undefined });

  it('scorers in one pass give the scores and the pick of the scorers one by one, to the last bit', () => {
    fc.assert(
      fc.property(
        group,
        fc.array(endpoint, { minLength: 1, maxLength: 41 }),
        subset,
        fc.constantFrom(1, 3),
        fc.bigInt({ min: 0n, max: 1000n }),
        (terms, endpoints, slots, picks, seed) => {
          const operations = [...terms, scorer('OP_PICK_MAX_SCORE', 1, picks)];
          const { fused, plain } = bothWays({ operations, endpoints, subset: slots, seed });
          expect(fused).toEqual(plain);
        },
      ),
      { numRuns: 400 },
    );
  });

  it('scorers in one pass leave endpoints without a signal to the scorers one by one', () => {
    fc.assert(
      fc.property(
        group,
        fc.array(endpoint, { minLength: 2, maxLength: 20 }),
        fc.uniqueArray(fc.integer({ min: 0, max: 19 }), { minLength: 1 }),
        fc.bigInt({ min: 0n, max: 1000n }),
        (terms, endpoints, silent, seed) => {
          const operations = [...terms, pickMax];
          const { fused, plain } = bothWays({ operations, endpoints, silent: new Set(silent), seed });
          expect(fused).toEqual(plain);
        },
      ),
      { numRuns: 100 },
    );
  });

  it('scorers in one pass add to scorers behind them and give way to a filter behind them', () => {
    const state: EndpointState = { waiting: 1, running: 3, kvUsage: 0.25, held: 0, charged: 0, state: 'live' };
    const endpoints = [state, { ...state, waiting: 0 }, { ...state, kvUsage: 0 }, { ...state, charged: 2 }];
    const pair = [scorer('OP_SCORE_QUEUE', 2), scorer('OP_SCORE_KV_USAGE', 2)];
    for (const behind of [scorer('OP_SCORE_ACTIVE_REQUEST', 1, 0, 1), scorer('OP_FILTER_MASK', 1, 0)]) {
      const { fused, plain } = bothWays({ operations: [...pair, behind, pickMax], endpoints, seed: 3n });
      expect(fused).toEqual(plain);
    }
  });

  it('scorers in one pass draw among equal endpoints as the scorers one by one do', () => {
    const state: EndpointState = { waiting: 0, running: 0, kvUsage: 0, held: 0, charged: 0, state: 'live' };
    const endpoints = Array.from({ length: 30 }, () => state);
    const picks = new Set<number>();
    for (let seed = 0n; seed < 64n; seed++) {
      const operations = [scorer('OP_SCORE_QUEUE'), scorer('OP_SCORE_KV_USAGE'), pickMax];
      const { fused, plain } = bothWays({ operations, endpoints, seed });
      expect(fused).toEqual(plain);
      picks.add(fused.slots[0]!);
    }
    expect(picks.size).toBeGreaterThan(10);
  });
});
