// Scorers that cannot change a pick are skipped: a decision with them, one without them in its program, and an
// explained one, which evaluates all of them, agree to the last bit.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Decider } from '../../dist/src/core/decider.js';
import { type Operation, PrefixIndex } from '../../dist/src/core/index.js';
import { makePool, plainRequest, scorer } from './pool.js';

const BLOCKS = 8;
const chain = BigUint64Array.from({ length: BLOCKS }, (_, block) => 0x9e3779b97f4a7c15n * BigInt(block + 1));

/** Every scorer that needs no set-up of its own, with usual parameters. */
const kinds: readonly ((weight: number) => Operation)[] = [
  (weight) => scorer('OP_SCORE_QUEUE', weight),
  (weight) => scorer('OP_SCORE_RUNNING', weight),
  (weight) => scorer('OP_SCORE_KV_USAGE', weight),
  (weight) => scorer('OP_SCORE_PREFIX', weight, 0.3, 256, 64),
  (weight) => scorer('OP_SCORE_ACTIVE_REQUEST', weight, 1, 0.5),
  (weight) => scorer('OP_SCORE_TOKEN_LOAD', weight, 4_096),
  (weight) => scorer('OP_SCORE_LOAD_AWARE', weight, 128),
  (weight) => scorer('OP_SCORE_ADAPTER', weight, 1),
  (weight) => scorer('OP_SCORE_HEADER_LABEL', weight, 0, 0),
  (weight) => scorer('OP_SCORE_NO_HIT_LRU', weight, 64),
  (weight) => scorer('OP_SCORE_RENDEZVOUS', weight, 0, 0, 1.25),
  (weight) => scorer('OP_SCORE_LMETRIC', weight),
  (weight) => scorer('OP_SCORE_CACHE_AWARE', weight, 0.5, 64, 1.5),
  (weight) => scorer('OP_SCORE_PREFIX_BALANCE', weight, 8, 2),
  (weight) => scorer('OP_SCORE_EXPLOIT_EXPLORE', weight, 64),
  (weight) => scorer('OP_SCORE_MARGINAL_COST', weight),
];
const weight = fc.constantFrom(0.1, 0.7, 1, 2, 3);
const active = fc.tuple(fc.constantFrom(...kinds), weight).map(([kind, w]) => kind(w));
const weightless = fc.constantFrom(...kinds).map((kind) => kind(0));
/** Scorers without an effect on a request that has no prompt and no headers. */
const withoutInput = weight.chain((w) =>
  fc.constantFrom(scorer('OP_SCORE_PREFIX', w, 0.3, 256, 64), scorer('OP_SCORE_HEADER_LABEL', w, 0, 0)),
);

/** Few different values, so that there are ties. */
const endpoint = fc.record({
  waiting: fc.constantFrom(0, 1, 7),
  running: fc.constantFrom(0, 3, 20),
  kvUsage: fc.constantFrom(0, 0.25, 0.6180339, 1.2, undefined),
  held: fc.integer({ min: 0, max: BLOCKS }),
  charged: fc.integer({ min: 0, max: 2 }),
});

interface Given {
  /** Operations of the program, with those that are inactive. */
  readonly operations: readonly Operation[];
  readonly inactive: ReadonlySet<Operation>;
  readonly endpoints: readonly (typeof endpoint extends fc.Arbitrary<infer State> ? State : never)[];
  readonly blocks: number;
  readonly seed: bigint;
}

/** Decides one request with the inactive scorers, without them and explained, with the same random numbers. */
function threeWays({ operations, inactive, endpoints, blocks, seed }: Given) {
  const { programs, core } = makePool(operations, endpoints);
  const index = new PrefixIndex(core);
  index.writeHashes(chain);
  for (const [slot, { held, charged }] of endpoints.entries()) {
    if (held > 0) index.insert(slot, held);
    programs.publish(0, [scorer('OP_PICK_RANDOM', 1, 1)], { inserts: false });
    const decider = new Decider(core, 1n);
    for (let i = 0; i < charged; i++) decider.decide({ ...plainRequest, subset: [slot] });
  }
  const run = (program: readonly Operation[], explained: boolean) => {
    index.writeHashes(chain);
    programs.publish(0, program, { inserts: false });
    const decider = new Decider(core, seed);
    const request = { ...plainRequest, blocks, promptTokens: 64 * blocks, charged: false, explained };
    const { status, slots, candidates, score } = decider.decide(request);
    return { status, slots: [...slots], candidates, score, scores: endpoints.map((_, slot) => decider.scoreOf(slot)) };
  };
  const activeOnes = operations.filter((operation) => !inactive.has(operation));
  return { skipped: run(operations, false), without: run(activeOnes, false), evaluated: run(operations, true) };
}

/** Decisions whose program has inactive scorers anywhere among up to four active ones. */
function decisions(inactive: fc.Arbitrary<Operation>, blocks: number): fc.Arbitrary<Given> {
  const among = fc.tuple(
    fc.array(active, { maxLength: 4 }),
    fc.array(fc.tuple(inactive, fc.nat({ max: 4 })), { minLength: 1, maxLength: 3 }),
  );
  return fc
    .tuple(
      among,
      fc.array(endpoint, { minLength: 1, maxLength: 41 }),
      fc.constantFrom(1, 3),
      fc.bigInt({ min: 0n, max: 1000n }),
    )
    .map(([[ones, others], endpoints, picks, seed]) => {
      const operations = [...ones];
      for (const [operation, place] of others) operations.splice(Math.min(place, operations.length), 0, operation);
      return {
        operations: [...operations, scorer('OP_PICK_MAX_SCORE', 1, picks)],
        inactive: new Set(others.map(([operation]) => operation)),
        endpoints,
        blocks,
        seed,
      };
    });
}

describe('inactive scorers', () => {
  it('scorers of weight 0 are skipped without another pick or score, to the last bit', () => {
    fc.assert(
      fc.property(decisions(weightless, BLOCKS), (given) => {
        const { skipped, without, evaluated } = threeWays(given);
        expect(skipped).toEqual(without);
        expect(evaluated).toEqual(without);
      }),
      { numRuns: 150 },
    );
  });

  it('scorers of a prompt and of a header are skipped for requests that have none, without another pick or score', () => {
    fc.assert(
      fc.property(decisions(withoutInput, 0), (given) => {
        const { skipped, without, evaluated } = threeWays(given);
        expect(skipped).toEqual(without);
        expect(evaluated).toEqual(without);
      }),
      { numRuns: 80 },
    );
  });
});
