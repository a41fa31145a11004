import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OperationName } from '../../dist/src/core/operations.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.js';
import { prompt } from './pool-history.js';

const idle = (count: number) => Array.from({ length: count }, () => ({}));

function scoresOf(pool: ReturnType<typeof makePool>, slots: number, request: object = {}) {
  pool.decider.decide({ ...plainRequest, charged: false, ...request });
  return Array.from({ length: slots }, (_, slot) => pool.decider.scoreOf(slot));
}

function expectClose(actual: readonly number[], expected: readonly number[]) {
  expect(actual.length).toBe(expected.length);
  for (const [i, value] of actual.entries()) expect(value).toBeCloseTo(expected[i]!, 4);
}

describe('header-label-affinity-scorer', () => {
  const zones = () => {
    const pool = makePool([scorer('OP_SCORE_HEADER_LABEL', 1, 1, 3), pickMax], idle(3));
    for (const [slot, zone] of ['a', 'B', ''].entries()) pool.table.setLabelText(3, slot, zone);
    return pool;
  };

  it('header-label-affinity-scorer scores 1 where the label has exactly the value of the header', () => {
    expect(scoresOf(zones(), 3, { keys: ['x', 'B'] })).toEqual([0, 1, 0]);
    expect(scoresOf(zones(), 3, { keys: ['B', 'b'] })).toEqual([0, 0, 0]);
  });

  it('header-label-affinity-scorer scores 0 everywhere without the header, with an empty one, and where the label is absent', () => {
    expect(scoresOf(zones(), 3, { keys: ['a', undefined] })).toEqual([0, 0, 0]);
    expect(scoresOf(zones(), 3, { keys: ['a', ''] })).toEqual([0, 0, 0]);
    expect(scoresOf(zones(), 3)).toEqual([0, 0, 0]);
  });

  it('header-label-affinity-scorer forgets the header of the request before', () => {
    const pool = zones();
    expect(scoresOf(pool, 3, { keys: [undefined, 'a'] })).toEqual([1, 0, 0]);
    expect(scoresOf(pool, 3, { keys: [undefined, undefined] })).toEqual([0, 0, 0]);
  });
});

describe('endpoint-attribute-scorer', () => {
  const WAITING = 3;
  const signals = [{ waiting: 3 }, { waiting: 9 }, { waiting: 0 }, { waiting: 30 }, {}];
  const scored = (...parameters: number[]) =>
    scoresOf(makePool([scorer('OP_SCORE_ATTRIBUTE', 1, WAITING, ...parameters), pickMax], signals), 5);

  it('endpoint-attribute-scorer puts values on a fixed scale; beyond its ends the end counts, and what is unknown scores 0', () => {
    expectClose(scored(1, 0, 0, 10), [0.7, 0.1, 1, 0, 0]);
    expectClose(scored(0, 0, 0, 10), [0.3, 0.9, 0, 1, 0]);
  });

  it('endpoint-attribute-scorer puts values on the scale of the candidates', () => {
    expectClose(scored(1, 1, 0, 0), [0.9, 0.7, 1, 0, 0]);
    expectClose(scored(0, 1, 0, 0), [0.1, 0.3, 0, 1, 0]);
  });

  it('endpoint-attribute-scorer scores 1 for all that are equal, and 0 for all when no endpoint has it', () => {
    const adaptive = [scorer('OP_SCORE_ATTRIBUTE', 1, WAITING, 1, 1, 0, 0), pickMax];
    expectClose(scoresOf(makePool(adaptive, [{ waiting: 4 }, { waiting: 4 }, {}]), 3), [1, 1, 0]);
    expectClose(scoresOf(makePool(adaptive, [{ waiting: 4 }]), 1), [1]);
    expectClose(scoresOf(makePool(adaptive, idle(3)), 3), [0, 0, 0]);
  });
});

describe('context-length-aware as a scorer', () => {
  const range = fc.oneof(
    fc.constant(undefined),
    fc.constant('bad' as const),
    fc
      .tuple(fc.integer({ min: 0, max: 30_000 }), fc.integer({ min: 0, max: 30_000 }))
      .map(([min, width]) => ({ min, max: min + width })),
  );

  function expected(given: { min: number; max: number } | 'bad' | undefined, length: number): number {
    if (given === undefined) return 0.5;
    if (given === 'bad') return 0;
    const { min, max } = given;
    const distance = Math.max(min - length, length - max);
    if (distance > 0) return 0.3 / (1 + distance / 1000);
    const width = max - min;
    return width === 0 ? 1 : 0.3 + 0.7 * (0.7 / (1 + width / 10_000) + (0.3 * (max - length)) / width);
  }

  it('context-length-aware as a scorer agrees with its formula for any ranges and prompt', () => {
    fc.assert(
      fc.property(fc.array(range, { minLength: 1, maxLength: 30 }), fc.nat(40_000), (ranges, promptTokens) => {
        const pool = makePool([scorer('OP_SCORE_CONTEXT_LENGTH', 1, 0), pickMax], idle(ranges.length));
        for (const [slot, given] of ranges.entries()) pool.table.setLabelRange(0, slot, given);
        expectClose(
          scoresOf(pool, ranges.length, { promptTokens }),
          ranges.map((given) => expected(given, promptTokens)),
        );
      }),
      { numRuns: 60 },
    );
  });
});

describe.each([
  ['rendezvous-hash-scorer', (factor: number) => scorer('OP_SCORE_RENDEZVOUS', 1, 0, 0, factor)],
  ['consistent-hash-scorer', (factor: number) => scorer('OP_SCORE_CONSISTENT_HASH', 1, 0, 0, factor, 64)],
])('%s', (_name, operation) => {
  function ring(slots: number, factor = 0, from = 0) {
    const pool = makePool([operation(factor), pickMax], idle(slots));
    for (let slot = 0; slot < slots; slot++) pool.table.setLabelText(0, slot, `10.0.0.${from + slot}:8000`);
    const pick = (key: string, charged = false) =>
      pool.decider.decide({ ...plainRequest, keys: [key], charged }).slots[0]!;
    return { ...pool, pick };
  }

  it('a hash scorer sends a key to the same endpoint every time, in every process', () => {
    const [one, other] = [ring(20), ring(20)];
    for (let i = 0; i < 100; i++) expect(one.pick(`key-${i}`)).toBe(other.pick(`key-${i}`));
  });

  it('a hash scorer spreads keys over all endpoints', () => {
    const { pick } = ring(8);
    const counts = new Array<number>(8).fill(0);
    for (let i = 0; i < 4000; i++) counts[pick(`key-${i}`)]!++;
    expect(Math.min(...counts)).toBeGreaterThan(250);
    expect(Math.max(...counts)).toBeLessThan(850);
  });

  it('a hash scorer moves only the keys of an endpoint that leaves', () => {
    const { pick, table } = ring(10);
    const keys = Array.from({ length: 500 }, (_, i) => `key-${i}`);
    const before = keys.map((key) => pick(key));
    table.setState(3, 'free');
    const moved = keys.filter((key, i) => pick(key) !== before[i]);
    expect(moved).toEqual(keys.filter((_, i) => before[i] === 3));
  });

  it('a hash scorer passes over an endpoint that is at its bound, and comes back when it is not', () => {
    const { pick, decider, table } = ring(4, 1.25);
    const home = pick('hot');
    const seen = new Set<number>();
    for (let i = 0; i < 40; i++) seen.add(pick('hot', true));
    const loads = [0, 1, 2, 3].map((slot) => table.read(slot).inflight);
    expect(Math.max(...loads)).toBeLessThanOrEqual(Math.ceil((1.25 * 41) / 4));
    expect(seen.size).toBeGreaterThan(1);
    expect(decider.scoreOf(home)).toBeLessThanOrEqual(1);
    expect(ring(4, 1.25).pick('hot')).toBe(home);
  });

  it('a hash scorer is neutral for a request without the header', () => {
    expect(scoresOf(ring(3), 3, { keys: [undefined] })).toEqual([0.5, 0.5, 0.5]);
  });

  it('a hash scorer scores every endpoint that is not full above 0', () => {
    for (const score of scoresOf(ring(30), 30, { keys: ['a'] })) {
      expect(score).toBeGreaterThan(0);
      expect(score).toBeLessThanOrEqual(1);
    }
  });

  it('a hash scorer scores the first endpoint behind the key by a distance in the order of one place', () => {
    for (const key of ['a', 'b', 'c', 'd']) {
      expect(Math.max(...scoresOf(ring(30), 30, { keys: [key] }))).toBeGreaterThan(0.1);
    }
  });

  it('a hash scorer takes one endpoint alone', () => {
    expect(ring(1, 1.25).pick('a')).toBe(0);
  });
});

/** A pool of three whose endpoints 0 and 1 hold the first 10 blocks of a prompt, and its loads. */
function shared(...operation: [OperationName, number, ...number[]]) {
  const pool = makePool([pickMax], idle(3));
  pool.programs.publish(0, [pickMax], { inserts: true });
  for (const slot of [0, 1]) {
    const placed = pool.decider.decide({ ...plainRequest, ...prompt(pool.core, 1, 10), subset: [slot] });
    pool.decider.release(placed.ticket, placed.ticketGeneration);
  }
  pool.programs.publish(1, [scorer(...operation), pickMax], { inserts: false });
  pool.programs.publish(2, [pickMax], { inserts: false });
  const load = (slot: number, count: number, promptTokens = 0) => {
    for (let i = 0; i < count; i++) {
      pool.decider.decide({ ...plainRequest, profile: 2, promptTokens, subset: [slot] });
    }
  };
  const score = (own = 0, name = 1) => scoresOf(pool, 3, { ...prompt(pool.core, name, 10, own), profile: 1 });
  return { ...pool, load, score };
}

describe('cache-aware-scorer', () => {
  const pool = () => shared('OP_SCORE_CACHE_AWARE', 1, 0.3, 4, 1.5);

  it('cache-aware-scorer puts the holders of the longest match above all others, the less busy first', () => {
    const { load, score } = pool();
    load(0, 2);
    load(1, 3);
    expectClose(score(), [1 - 0.5 * (2 / 4), 1 - 0.5 * (3 / 4), 0.5]);
  });

  it('cache-aware-scorer counts a holder as any other when it is overloaded by both thresholds', () => {
    const { load, score } = pool();
    load(0, 9);
    expectClose(score(), [0.5 - 0.5 * (9 / 10), 1, 0.5]);
  });

  it('cache-aware-scorer sends a prompt whose match is not above the threshold to the least busy', () => {
    const { load, score } = pool();
    load(1, 1);
    expectClose(score(30), [0.5, 0.25, 0.5]);
    expectClose(score(0, 2), [0.5, 0.25, 0.5]);
  });
});

describe('lmetric-scorer', () => {
  const pool = () => shared('OP_SCORE_LMETRIC', 1);

  it('lmetric-scorer multiplies the tokens to compute by the requests in flight and scores the product from lowest to highest', () => {
    const { load, score } = pool();
    load(0, 2, 640);
    load(1, 1, 64);
    // Costs: (1280 + 128) × 3, (64 + 128) × 2, (0 + 768) × 1, of a prompt of 12 blocks of which 10 are held.
    const [most, least] = [1408 * 3, 192 * 2];
    expectClose(score(2), [0, 1, (most - 768) / (most - least)]);
  });

  it('lmetric-scorer scores 1 everywhere when all cost the same', () => {
    expectClose(pool().score(0, 2), [1, 1, 1]);
    const one = makePool([scorer('OP_SCORE_LMETRIC'), pickMax], [{}]);
    expectClose(scoresOf(one, 1, { promptTokens: 10 }), [1]);
  });
});

describe("active-blocks-scorer with Dynamo's extensions", () => {
  const scored = (parameters: readonly number[], loads: readonly number[], own = 2) => {
    const { load, score } = shared('OP_SCORE_ACTIVE_BLOCKS', 1, ...parameters);
    for (const [slot, tokens] of loads.entries()) if (tokens > 0) load(slot, 1, tokens);
    return score(own);
  };
  /** (max - cost) / (max - min) */
  const normal = (costs: readonly number[]) => {
    const [most, least] = [Math.max(...costs), Math.min(...costs)];
    return costs.map((cost) => (most - cost) / (most - least));
  };

  it("active-blocks-scorer with Dynamo's extensions saves `credit` blocks of prefill for each block held, never below none", () => {
    expectClose(scored([1, 0, 0.5, 0, 0], [0, 0, 0]), normal([12 - 5 + 12, 12 - 5 + 12, 24]));
    expectClose(scored([1, 0, 2, 0, 0], [0, 0, 0]), normal([12, 12, 24]));
  });

  it("active-blocks-scorer with Dynamo's extensions counts the prefill in flight when told to", () => {
    expectClose(scored([1, 0, 1, 0, 1], [640, 0, 0]), normal([12 + 10 - 10 + 12, 12 - 10 + 12, 24]));
  });

  it("active-blocks-scorer with Dynamo's extensions lets the credit fade with the prefill backlog beyond the least busy", () => {
    // 12 blocks of backlog are one prompt: credit / (1 + decay × 1).
    expectClose(scored([1, 0, 1, 1, 0], [768, 0, 0]), normal([12 - 10 / 2 + 12, 12 - 10 + 12, 24]));
  });
});
