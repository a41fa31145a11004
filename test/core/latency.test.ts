import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import type { DecisionRequest, EndpointSignals, Operation } from '../../dist/src/core/index.js';
import { predictedColumns } from '../../dist/src/core/latency-predictions.js';
import { type LatencyRules, latencyScores, type Predicted } from './latency-reference.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.js';
import { prompt } from './pool-history.js';

const ON_HOST = 1;
const STREAMED = 1;
const LEAST = 0;
const MOST = 1;

const onHost = scorer('OP_PREDICT', 1, ON_HOST, STREAMED, 1, 0);
const tier = (exploration = 0) => scorer('OP_FILTER_TIER', 1, exploration);
const latency = (first = 0.8, strategy = LEAST, second = 1 - first) =>
  scorer('OP_SCORE_LATENCY', 1, first, second, strategy, 1, 1, 1);

type Pair = readonly [ttft: number, tpot: number] | undefined;

/** A pool whose predictions the host has written, one pair for each endpoint. */
function predicted(operations: readonly Operation[], pairs: readonly Pair[], signals?: readonly EndpointSignals[]) {
  const pool = makePool(
    [onHost, ...operations, pickMax],
    pairs.map((_, slot) => signals?.[slot] ?? {}),
  );
  const columns = predictedColumns(pool.core);
  for (const [slot, pair] of pairs.entries()) {
    columns.ttft[slot] = pair?.[0] ?? Number.NaN;
    columns.tpot[slot] = pair?.[1] ?? Number.NaN;
  }
  return pool;
}

const looking: DecisionRequest = { ...plainRequest, charged: false };
const wants = (wantedTtftMs: number, wantedTpotMs: number): DecisionRequest => ({
  ...looking,
  wantedTtftMs,
  wantedTpotMs,
});

function left({ decider }: ReturnType<typeof makePool>, slots: number, request: DecisionRequest) {
  decider.decide(request);
  return Array.from({ length: slots }, (_, slot) => slot).filter((slot) => decider.isCandidate(slot));
}

function scores({ decider }: ReturnType<typeof makePool>, slots: number, request: DecisionRequest) {
  decider.decide(request);
  return Array.from({ length: slots }, (_, slot) => decider.scoreOf(slot));
}

function hold(pool: ReturnType<typeof makePool>, slot: number, wantedTpotMs = 0) {
  const { ticket, ticketGeneration } = pool.decider.decide({ ...plainRequest, subset: [slot], wantedTpotMs });
  return () => pool.decider.release(ticket, ticketGeneration);
}

describe('slo-headroom-tier-filter', () => {
  it('slo-headroom-tier-filter keeps the endpoints that keep both wishes', () => {
    const pool = predicted([tier()], [[90, 9], [110, 9], [90, 11], undefined]);
    expect(left(pool, 4, wants(100, 10))).toEqual([0]);
  });

  it('slo-headroom-tier-filter counts a wish that is just kept as kept', () => {
    expect(
      left(
        predicted(
          [tier()],
          [
            [100, 10],
            [101, 10],
          ],
        ),
        2,
        wants(100, 10),
      ),
    ).toEqual([0]);
  });

  it('slo-headroom-tier-filter keeps the others when it explores', () => {
    const pool = predicted([tier(1)], [[90, 9], [110, 9], undefined]);
    expect(left(pool, 3, wants(100, 10))).toEqual([1, 2]);
  });

  it('slo-headroom-tier-filter explores as often as it is told', () => {
    const pool = predicted(
      [tier(0.25)],
      [
        [90, 9],
        [110, 9],
      ],
    );
    const explored = Array.from({ length: 2000 }, () => left(pool, 2, wants(100, 10))[0]).filter((slot) => slot === 1);
    expect(explored.length / 2000).toBeCloseTo(0.25, 1);
  });

  it.each<[string, Pair[]]>([
    ['nothing is predicted', [undefined, undefined]],
    [
      'all keep them',
      [
        [1, 1],
        [2, 2],
      ],
    ],
    [
      'none keeps them',
      [
        [500, 1],
        [1, 500],
      ],
    ],
    ['there is one endpoint', [[500, 500]]],
  ])('slo-headroom-tier-filter keeps all when %s', (_, pairs) => {
    expect(left(predicted([tier()], pairs), pairs.length, wants(100, 10))).toEqual([...pairs.keys()]);
  });

  it('slo-headroom-tier-filter looks at candidates alone', () => {
    const pool = predicted(
      [tier()],
      [
        [90, 9],
        [110, 9],
        [120, 9],
      ],
    );
    expect(left(pool, 3, { ...wants(100, 10), subset: [1, 2] })).toEqual([1, 2]);
  });
});

describe('latency-scorer', () => {
  it('latency-scorer prefers the tightest fit, or the loosest when it is told to', () => {
    const pairs: Pair[] = [
      [90, 5],
      [50, 5],
      [10, 5],
    ];
    expect(scores(predicted([latency()], pairs), 3, wants(100, 10))).toEqual([1, 0.51, 0.01].map(Math.fround));
    expect(scores(predicted([latency(0.8, MOST)], pairs), 3, wants(100, 10))).toEqual([0.01, 0.51, 1].map(Math.fround));
  });

  it('latency-scorer scores no endpoint that breaks a wish while another keeps both', () => {
    const got = scores(
      predicted(
        [latency()],
        [
          [90, 5],
          [150, 5],
          [10, 11],
        ],
      ),
      3,
      wants(100, 10),
    );
    expect(got[0]).toBeGreaterThan(0);
    expect(got.slice(1)).toEqual([0, 0]);
  });

  it('latency-scorer scores only the idle ones when all break a wish', () => {
    const pool = predicted(
      [latency()],
      [
        [150, 5],
        [400, 5],
        [300, 5],
      ],
    );
    hold(pool, 0);
    expect(scores(pool, 3, wants(100, 10))).toEqual([0, 0.01, 1].map(Math.fround));
  });

  it('latency-scorer scores the mildest failures: late tokens, then a late beginning, then both', () => {
    const pairs: Pair[] = [
      [150, 15],
      [150, 5],
      [50, 15],
      [50, 25],
    ];
    const pool = predicted([latency()], pairs);
    for (const slot of pairs.keys()) hold(pool, slot);
    expect(scores(pool, 4, wants(100, 10))).toEqual([0, 0, 1, 0.01].map(Math.fround));
    expect(scores(pool, 2, { ...wants(100, 10), subset: [0, 1] })).toEqual([0, 0.51].map(Math.fround));
    expect(scores(pool, 1, { ...wants(100, 10), subset: [0] })).toEqual([0.51].map(Math.fround));
  });

  it('latency-scorer prefers the smallest failure even when it is to prefer much headroom', () => {
    const pool = predicted(
      [latency(1, MOST)],
      [
        [150, 0],
        [300, 0],
      ],
    );
    expect(scores(pool, 2, wants(100, 10))).toEqual([1, 0.01].map(Math.fround));
  });

  it('latency-scorer gives an endpoint without a prediction the mean of the others', () => {
    expect(scores(predicted([latency()], [[90, 5], undefined, [10, 5]]), 3, wants(100, 10))[1]).toBeCloseTo(0.505, 6);
  });

  it('latency-scorer takes a request without wishes as one that wants everything at once', () => {
    expect(
      scores(
        predicted(
          [latency(1)],
          [
            [50, 1],
            [100, 1],
          ],
        ),
        2,
        looking,
      ),
    ).toEqual([1, 0.01].map(Math.fround));
  });

  it('latency-scorer scores one endpoint alone by halves', () => {
    expect(scores(predicted([latency()], [[50, 1]]), 1, wants(100, 10))).toEqual([0.51].map(Math.fround));
  });

  it('latency-scorer without predictions adds free cache, relative queue and prefix in whole hundredths', () => {
    const signals = [{ kvUsage: 0.1, waiting: 0, running: 0 }, { kvUsage: 0.9, waiting: 10, running: 1 }, {}];
    const got = scores(predicted([latency()], [undefined, undefined, undefined], signals), 3, looking);
    // The third, of which nothing is known, counts as the mean of the others.
    expect(got).toEqual([0.63, 0.03, 0.33].map(Math.fround));
  });

  it('latency-scorer counts the part of the prompt that is held when nothing is predicted', () => {
    const pool = predicted([scorer('OP_SCORE_LATENCY', 1, 0.8, 0.2, LEAST, 0, 0, 1)], [undefined, undefined]);
    pool.programs.publish(0, [onHost, scorer('OP_SCORE_LATENCY', 1, 0.8, 0.2, LEAST, 0, 0, 1), pickMax], {
      inserts: true,
    });
    pool.decider.decide({ ...plainRequest, ...prompt(pool.core, 1, 3), subset: [1] });
    expect(scores(pool, 2, { ...looking, ...prompt(pool.core, 1, 3) })).toEqual([0, 1]);
  });

  // Exact in 32 bits, and so are their differences.
  const eighths = (count: number) => count / 8;
  const time = fc.option(fc.nat(3200).map(eighths), { nil: undefined, freq: 4 });
  const endpoint = fc.record({
    ttft: time,
    tpot: fc.nat(320).map(eighths),
    inflight: fc.nat(2),
  });
  const wish = fc.constantFrom(0, 5, 20, 100, 250, 500);

  it('latency-scorer agrees with the plain description for any predictions, loads, wishes and weights', () => {
    fc.assert(
      fc.property(
        fc.array(endpoint, { minLength: 1, maxLength: 20 }),
        wish,
        wish,
        fc.constantFrom([0.8, 0.2], [1, 0], [0, 1], [3, 1], [0, 0]),
        fc.constantFrom('least' as const, 'most' as const),
        (given, wantedTtft, wantedTpot, [ttftWeight, tpotWeight], strategy) => {
          const endpoints: Predicted[] = given.map((each) => ({
            ...each,
            tpot: each.ttft === undefined ? undefined : each.tpot,
          }));
          const rules: LatencyRules = {
            ttftWeight: ttftWeight!,
            tpotWeight: tpotWeight!,
            strategy,
            wantedTtft,
            wantedTpot,
          };
          const expected = latencyScores(endpoints, rules);
          const pool = predicted(
            [latency(ttftWeight!, strategy === 'most' ? MOST : LEAST, tpotWeight!)],
            endpoints.map(({ ttft, tpot }) => (ttft === undefined || tpot === undefined ? undefined : [ttft, tpot])),
          );
          for (const [slot, { inflight }] of endpoints.entries()) for (let i = 0; i < inflight; i++) hold(pool, slot);
          if (expected === undefined) return;
          const got = scores(pool, endpoints.length, wants(wantedTtft, wantedTpot));
          for (const [slot, score] of expected.entries()) expect(got[slot]).toBeCloseTo(score, 5);
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe('the remaining time per output token', () => {
  const pairs: Pair[] = [
    [1, 10],
    [1, 10],
  ];

  it('the remaining time per output token is that of the strictest request on the endpoint, until it ends', () => {
    const pool = predicted([tier()], pairs);
    const release = [hold(pool, 0, 30), hold(pool, 0, 8), hold(pool, 0, 50), hold(pool, 1)];
    expect(left(pool, 2, wants(100, 40))).toEqual([1]);
    release[1]!();
    expect(left(pool, 2, wants(100, 40))).toEqual([0, 1]);
  });

  it('the remaining time per output token follows any order of requests that come and go', () => {
    const step = fc.record({ slot: fc.nat(2), wish: fc.constantFrom(0, 5, 5, 12, 20, 80), end: fc.nat() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const pool = predicted(
          [tier()],
          [
            [1, 1],
            [1, 1],
            [1, 1],
          ],
        );
        let held: { slot: number; wish: number; release: () => void }[] = [];
        const column = (number: number, slot: number) =>
          (pool.core.call.regionAddress(CORE.REGION_ENDPOINTS) >>> 0) / 4 + number * pool.core.sizes.endpoints + slot;
        for (const { slot, wish: wanted, end } of steps) {
          if (end % 3 === 0 && held.length > 0) {
            const gone = held[end % held.length]!;
            gone.release();
            held = held.filter((other) => other !== gone);
          } else held.push({ slot, wish: wanted, release: hold(pool, slot, wanted) });
          for (const at of [0, 1, 2]) {
            const wishes = held.filter((other) => other.slot === at && other.wish > 0).map((other) => other.wish);
            const strictest = wishes.length === 0 ? 0 : Math.min(...wishes);
            expect(pool.core.f32[column(CORE.COLUMN_STRICTEST_TPOT, at)]).toBe(strictest);
          }
        }
        expect(pool.core.call.ledgerCheck()).toBe(0);
      }),
      { numRuns: 60 },
    );
  });

  it('the remaining time per output token is multiplied by the buffer', () => {
    const pool = predicted([], pairs);
    const half = scorer('OP_PREDICT', 1, ON_HOST, STREAMED, 0.5, 0);
    pool.programs.publish(0, [half, tier(), pickMax], { inserts: false });
    predictedColumns(pool.core).tpot[1] = 11;
    expect(left(pool, 2, wants(100, 20))).toEqual([0]);
  });

  it('the remaining time per output token is neutral when tokens are not streamed, and for endpoints that only prefill', () => {
    const pool = predicted(
      [],
      [
        [1, 99],
        [1, 99],
      ],
    );
    pool.programs.publish(0, [scorer('OP_PREDICT', 1, ON_HOST, 0, 1, 0), tier(), pickMax], { inserts: false });
    expect(left(pool, 2, wants(100, 20))).toEqual([0, 1]);
    pool.table.setMask(3, [1]);
    pool.programs.publish(0, [scorer('OP_PREDICT', 1, ON_HOST, STREAMED, 1, 4), tier(), pickMax], { inserts: false });
    expect(left(pool, 2, wants(100, 20))).toEqual([1]);
  });
});

describe('latency-slo-admitter', () => {
  const busy: EndpointSignals[] = [
    { running: 2, kvUsage: 0.5, waiting: 0 },
    { running: 1, kvUsage: 0.5, waiting: 0 },
  ];
  const sheddable = { ...wants(100, 10), priority: -1 };
  const admit = (pairs: Pair[], request: DecisionRequest = sheddable, signals = busy) =>
    predicted([scorer('OP_ADMIT_LATENCY')], pairs, signals).decider.decide(request).status;

  it('latency-slo-admitter turns away a sheddable request whose wishes no endpoint keeps', () => {
    expect(
      admit([
        [150, 5],
        [90, 50],
      ]),
    ).toBe('denied');
  });

  it('latency-slo-admitter admits it when one endpoint keeps both', () => {
    expect(
      admit([
        [150, 5],
        [90, 5],
      ]),
    ).toBe('decided');
  });

  it('latency-slo-admitter admits requests that are not sheddable, and those without wishes', () => {
    expect(
      admit(
        [
          [150, 50],
          [150, 50],
        ],
        wants(100, 10),
      ),
    ).toBe('decided');
    expect(
      admit(
        [
          [150, 50],
          [150, 50],
        ],
        { ...looking, priority: -1 },
      ),
    ).toBe('decided');
  });

  it('latency-slo-admitter does not hold a wish against a request that did not make it', () => {
    expect(
      admit(
        [
          [150, 5],
          [150, 5],
        ],
        { ...wants(0, 10), priority: -1 },
      ),
    ).toBe('decided');
    expect(
      admit(
        [
          [150, 500],
          [150, 500],
        ],
        { ...wants(100, 0), priority: -1 },
      ),
    ).toBe('denied');
  });

  it('latency-slo-admitter admits when nothing is predicted, when an endpoint is idle, and when one is cold', () => {
    expect(admit([undefined, undefined])).toBe('decided');
    expect(
      admit(
        [
          [150, 50],
          [150, 50],
        ],
        sheddable,
        [busy[0]!, { ...busy[1]!, running: 0 }],
      ),
    ).toBe('decided');
    expect(
      admit(
        [
          [150, 50],
          [150, 50],
        ],
        sheddable,
        [busy[0]!, { ...busy[1]!, kvUsage: 0.01 }],
      ),
    ).toBe('decided');
    expect(
      admit(
        [
          [150, 50],
          [150, 50],
        ],
        sheddable,
        [busy[0]!, {}],
      ),
    ).toBe('decided');
  });

  it('latency-slo-admitter does not count an endpoint as idle that was sent a request since its last scrape', () => {
    const pool = predicted([scorer('OP_ADMIT_LATENCY')], [[150, 50]], [{ running: 0, kvUsage: 0.5, waiting: 0 }]);
    hold(pool, 0);
    expect(pool.decider.decide(sheddable).status).toBe('denied');
  });

  it('latency-slo-admitter charges nothing for a request that it turns away', () => {
    const pool = predicted([scorer('OP_ADMIT_LATENCY')], [[150, 50]], busy);
    expect(pool.decider.decide({ ...sheddable, charged: true })).toMatchObject({
      status: 'denied',
      ticket: 0,
      slots: [],
    });
    expect(pool.table.read(0).inflight).toBe(0);
  });
});
