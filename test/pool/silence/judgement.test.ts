import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HeardRequest } from '../../../dist/src/core/silence-table.js';
import type { TrainingSample } from '../../../dist/src/core/training-sample.js';
import {
  type Evidence,
  isAbandoned,
  QUIET_BLIND_MS,
  QUIET_IDLE_MS,
  QUIET_MS,
  silenceOf,
} from '../../../dist/src/pool/silence/judgement.js';
import { PoolTimes, UsualTimes } from '../../../dist/src/pool/silence/usual-times.js';

const START = 1_000_000;

const answer = (given: Partial<TrainingSample> = {}) =>
  ({
    slot: 0,
    slotGeneration: 1,
    outcome: 'completed',
    firstOutputMs: 100,
    perTokenMs: 20,
    durationMs: 2_100,
    outputTokens: 100,
    uncachedTokens: 1_000,
    prefillTokens: 0,
    ...given,
  }) as TrainingSample;

/** Times after 20 equal answers. */
function times(given: Partial<TrainingSample> = {}): UsualTimes {
  const usual = new UsualTimes();
  for (let i = 0; i < 20; i++) usual.note(answer(given));
  return usual;
}

const request = (given: Partial<HeardRequest> = {}): HeardRequest => ({
  ticket: 1,
  slot: 0,
  chargedMs: START,
  heardMs: 0,
  expects: 'stream',
  outputLimit: 0,
  promptTokens: 500,
  uncachedTokens: 500,
  tokensAhead: 0,
  isProbe: false,
  ...given,
});

const evidence = (requests: readonly HeardRequest[], given: Partial<Evidence> = {}): Evidence => ({
  requests,
  heardMs: 0,
  idleSinceMs: undefined,
  works: false,
  times: times(),
  ...given,
});

const pair = (given: Partial<HeardRequest> = {}) => [request(given), request({ ...given, ticket: 2 })];

describe('an endpoint whose requests get no byte', () => {
  it('an endpoint is silent when two short prompts have had no byte for longer than the least quiet time', () => {
    const both = evidence(pair());
    expect(silenceOf(both, START + QUIET_MS)).toBeUndefined();
    expect(silenceOf(both, START + QUIET_MS + 2_000)).toMatchObject({ overdue: 2, idle: false });
  });

  it('an endpoint is silent after five times its usual first output where that takes long', () => {
    const slow = { times: times({ firstOutputMs: 8_000 }) };
    expect(silenceOf(evidence(pair(), slow), START + 39_000)).toBeUndefined();
    expect(silenceOf(evidence(pair(), slow), START + 41_000)).toBeDefined();
  });

  it('an endpoint with one overdue request is silent after three times as long only', () => {
    const one = evidence([request()]);
    expect(silenceOf(one, START + 2.9 * (QUIET_MS + 250))).toBeUndefined();
    expect(silenceOf(one, START + 3.1 * (QUIET_MS + 250))).toMatchObject({ overdue: 1 });
  });

  it('an endpoint is silent sooner when its engine says that it has nothing to do', () => {
    const idle = evidence(pair({ expects: 'end' }), { idleSinceMs: START });
    expect(silenceOf(idle, START + QUIET_IDLE_MS)).toBeUndefined();
    expect(silenceOf(idle, START + QUIET_IDLE_MS + 1_000)).toMatchObject({ idle: true });
  });

  it('an endpoint has its time from when its engine began to have nothing to do', () => {
    const idle = evidence(pair(), { idleSinceMs: START + 7_000 });
    expect(silenceOf(idle, START + 7_000 + QUIET_IDLE_MS)).toBeUndefined();
  });

  it('an endpoint that gets ever more requests is silent all the same', () => {
    const flood = Array.from({ length: 200 }, (_, i) =>
      request({ ticket: i + 1, chargedMs: START + i * 100, tokensAhead: i * 500 }),
    );
    expect(silenceOf(evidence(flood), START + 20_000)).toBeDefined();
  });
});

describe('clients that give up', () => {
  const abandoned = answer({ outcome: 'aborted', unheard: true, durationMs: 5_000, promptTokens: 500, staged: false });

  it('clients that give up show something when the first output of their stream was overdue', () => {
    expect(isAbandoned(abandoned, times())).toBe(true);
    expect(isAbandoned({ ...abandoned, durationMs: 900 }, times())).toBe(false);
    expect(isAbandoned({ ...abandoned, unheard: false }, times())).toBe(false);
    expect(isAbandoned({ ...abandoned, uncachedTokens: 100_000 }, times())).toBe(false);
    expect(isAbandoned({ ...abandoned, staged: true }, times())).toBe(false);
    expect(isAbandoned(abandoned, times({ firstOutputMs: 2_000 }))).toBe(false);
  });

  it('clients that give up, two of them, make an endpoint silent that has no byte for the least quiet time', () => {
    const twice = { abandoned: { count: 2, sinceMs: START } };
    expect(silenceOf(evidence([], twice), START + QUIET_MS)).toBeUndefined();
    expect(silenceOf(evidence([], twice), START + QUIET_MS + 1)).toMatchObject({ overdue: 2 });
    expect(silenceOf(evidence([], { ...twice, heardMs: START + 1 }), START + 60_000)).toBeUndefined();
    expect(silenceOf(evidence([], { abandoned: { count: 1, sinceMs: START } }), START + 60_000)).toBeUndefined();
  });
});

describe('a quiet endpoint that works', () => {
  it('a prompt of 100,000 tokens is no wedge for a minute, however short the prompts before it were', () => {
    const long = { promptTokens: 100_000, uncachedTokens: 100_000 };
    expect(silenceOf(evidence(pair(long)), START + 60_000)).toBeUndefined();
    expect(silenceOf(evidence(pair(long), { works: undefined }), START + 60_000)).toBeUndefined();
    expect(silenceOf(evidence(pair(long), { idleSinceMs: START }), START + 10_000)).toBeUndefined();
  });

  it('streams that stand still behind a prompt of 100,000 tokens are no wedge for a minute', () => {
    const streams = pair({ heardMs: START + 1_000 });
    const long = request({ ticket: 3, chargedMs: START + 1_100, promptTokens: 100_000, uncachedTokens: 100_000 });
    expect(silenceOf(evidence([...streams, long], { heardMs: START + 1_000 }), START + 60_000)).toBeUndefined();
  });

  it('an endpoint keeps well by one stream that goes on, whatever else hangs there', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ age: fc.nat(600_000), tokens: fc.nat(200_000) }), { maxLength: 20 }),
        fc.integer({ min: 0, max: QUIET_IDLE_MS }),
        (others, agoMs) => {
          const now = START + 600_000;
          const hanging = others.map(({ age, tokens }, i) =>
            request({ ticket: i + 2, chargedMs: now - age, promptTokens: tokens, uncachedTokens: tokens }),
          );
          const stream = request({ chargedMs: START, heardMs: now - agoMs });
          return silenceOf(evidence([stream, ...hanging], { heardMs: now - agoMs }), now) === undefined;
        },
      ),
    );
  });

  it('requests that were overdue when others got bytes are stuck by themselves and prove nothing', () => {
    const now = START + 600_000;
    const stuck = pair({ chargedMs: START });
    expect(silenceOf(evidence(stuck, { heardMs: START + 300_000 }), now)).toBeUndefined();
  });

  it('no endpoint is silent within the least quiet times after its last byte, whatever is in flight', () => {
    const sign = fc.constantFrom('stream' as const, 'end' as const, 'later' as const);
    const inFlight = fc.record({
      chargedMs: fc.integer({ min: START - 600_000, max: START }),
      heardMs: fc.constantFrom(0, START - 100),
      expects: sign,
      outputLimit: fc.nat(10_000),
      promptTokens: fc.nat(200_000),
      uncachedTokens: fc.nat(200_000),
      tokensAhead: fc.nat(1_000_000),
    });
    fc.assert(
      fc.property(fc.array(inFlight, { maxLength: 30 }), fc.nat(QUIET_IDLE_MS), fc.boolean(), (all, later, idle) => {
        const requests = all.map((one, i) => request({ ...one, ticket: i + 1 }));
        const given = { heardMs: START, idleSinceMs: idle ? START - 100_000 : undefined };
        return silenceOf(evidence(requests, given), START + later) === undefined;
      }),
    );
  });

  it('an endpoint whose KV cache changes has six times as long', () => {
    expect(silenceOf(evidence(pair(), { works: true }), START + 5.9 * QUIET_MS)).toBeUndefined();
    expect(silenceOf(evidence(pair(), { works: true }), START + 7 * QUIET_MS)).toBeDefined();
  });
});

describe('answers of which little is seen', () => {
  it('an answer in one piece has the time of the longest answers, and of 2,048 tokens at least', () => {
    const whole = evidence(pair({ expects: 'end' }));
    expect(silenceOf(whole, START + 2 * 2_048 * 20)).toBeUndefined();
    expect(silenceOf(whole, START + 2 * 2_048 * 20 + 1_000)).toBeDefined();
    const longer = evidence(pair({ expects: 'end' }), { times: times({ durationMs: 300_000, outputTokens: 15_000 }) });
    expect(silenceOf(longer, START + 600_000)).toBeUndefined();
  });

  it('an answer in one piece has no more time than its own bound on output needs', () => {
    const short = evidence(pair({ expects: 'end', outputLimit: 10 }));
    expect(silenceOf(short, START + QUIET_BLIND_MS)).toBeUndefined();
    expect(silenceOf(short, START + QUIET_BLIND_MS + 1_000)).toBeDefined();
  });

  it('an answer of which only the end is seen has twice the longest one where no stream was ever seen', () => {
    const ends = { times: times({ firstOutputMs: undefined, perTokenMs: undefined, durationMs: 90_000 }) };
    expect(silenceOf(evidence(pair({ expects: 'end' }), ends), START + 5 * 90_000)).toBeUndefined();
  });

  it('a prompt that the picker has not seen has the longer quiet time, also while the engine is idle', () => {
    const unseen = pair({ promptTokens: 0, uncachedTokens: 0 });
    for (const idleSinceMs of [undefined, START]) {
      expect(silenceOf(evidence(unseen, { idleSinceMs }), START + QUIET_BLIND_MS)).toBeUndefined();
      expect(silenceOf(evidence(unseen, { idleSinceMs }), START + QUIET_BLIND_MS + 1_000)).toBeDefined();
    }
  });

  it('an endpoint without fresh signals has the longer quiet time', () => {
    expect(silenceOf(evidence(pair(), { works: undefined }), START + QUIET_BLIND_MS)).toBeUndefined();
  });

  it('a decode endpoint is not judged before its first output, which other endpoints prepare', () => {
    expect(silenceOf(evidence(pair({ expects: 'later' })), START + 3_600_000)).toBeUndefined();
    const begun = pair({ expects: 'later', heardMs: START + 500 });
    expect(silenceOf(evidence(begun, { heardMs: START + 500 }), START + 20_000)).toBeDefined();
  });
});

describe('usual times', () => {
  it('the usual time of a long prompt grows with its tokens beyond the usual number', () => {
    const usual = times({ firstOutputMs: 100, uncachedTokens: 500 });
    expect(usual.firstMs(200)).toBeCloseTo(100);
    expect(usual.firstMs(50_000)).toBeCloseTo(10_000);
  });

  it('the usual times of an endpoint with few answers are those of the pool, and then its own', () => {
    const pool = new PoolTimes();
    for (let i = 0; i < 20; i++) pool.note(answer({ slot: 0 }));
    for (let i = 0; i < 7; i++) pool.note(answer({ slot: 1, firstOutputMs: 4_000 }));
    expect(pool.of(1, 1)!.firstMs(0)).toBeLessThan(2_000);
    pool.note(answer({ slot: 1, firstOutputMs: 4_000 }));
    expect(pool.of(1, 1)!.firstMs(0)).toBeCloseTo(4_000);
    expect(pool.of(1, 2)!.firstMs(0)).toBeLessThan(2_000);
  });

  it('the usual times are unknown where no answer was seen to its end', () => {
    const pool = new PoolTimes();
    for (const outcome of ['aborted', 'failed', 'diverted', 'refused'] as const) pool.note(answer({ outcome }));
    expect(pool.of(0, 1)).toBeUndefined();
  });
});
