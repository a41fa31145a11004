import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EndpointSignals } from '../../dist/src/core/index.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.js';

const signal = fc.record({
  waiting: fc.option(fc.integer({ min: 0, max: 200 }), { nil: undefined, freq: 6 }),
  running: fc.option(fc.integer({ min: 0, max: 200 }), { nil: undefined, freq: 6 }),
  kvUsage: fc.option(fc.float({ min: 0, max: Math.fround(1.5), noNaN: true }), { nil: undefined, freq: 6 }),
});
const pool = fc.array(signal, { minLength: 1, maxLength: 40 });

function scores(operation: ReturnType<typeof scorer>, signals: readonly EndpointSignals[], request = plainRequest) {
  const { decider } = makePool([operation, pickMax], signals);
  decider.decide(request);
  return signals.map((_, slot) => decider.scoreOf(slot));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** (max - value)/(max - min); all equal = 1; unknown = mean of the known scores. */
function fewest(values: readonly (number | undefined)[]): number[] {
  const known = values.filter((value) => value !== undefined);
  const top = Math.max(...known);
  const range = top - Math.min(...known);
  if (known.length === 0 || range === 0) return values.map(() => 1);
  const score = (value: number) => (top - value) / range;
  const neutral = mean(known.map(score));
  return values.map((value) => (value === undefined ? neutral : score(value)));
}

function expectClose(actual: readonly number[], expected: readonly number[]) {
  expect(actual.length).toBe(expected.length);
  for (const [i, value] of actual.entries()) expect(value).toBeCloseTo(expected[i]!, 4);
}

describe('scorers agree with a plain model of their formula', () => {
  it('queue-scorer: the fewest waiting scores 1, the most 0, unknown the mean', () => {
    fc.assert(
      fc.property(pool, (signals) => {
        expectClose(scores(scorer('OP_SCORE_QUEUE'), signals), fewest(signals.map((s) => s.waiting)));
      }),
      { numRuns: 60 },
    );
  });

  it('running-requests-size-scorer: the same over running requests', () => {
    fc.assert(
      fc.property(pool, (signals) => {
        expectClose(scores(scorer('OP_SCORE_RUNNING'), signals), fewest(signals.map((s) => s.running)));
      }),
      { numRuns: 60 },
    );
  });

  it('kv-cache-utilization-scorer: 1 - usage, clamped', () => {
    fc.assert(
      fc.property(pool, (signals) => {
        const free = signals.map((s) => (s.kvUsage === undefined ? undefined : Math.max(0, 1 - s.kvUsage)));
        const known = free.filter((value) => value !== undefined);
        const neutral = known.length === 0 ? 1 : mean(known);
        expectClose(
          scores(scorer('OP_SCORE_KV_USAGE'), signals),
          free.map((value) => value ?? neutral),
        );
      }),
      { numRuns: 60 },
    );
  });

  it('load-aware-scorer: half at an empty queue, nothing at the threshold', () => {
    const signals = [{ waiting: 0 }, { waiting: 64 }, { waiting: 128 }, { waiting: 500 }, {}];
    expectClose(scores(scorer('OP_SCORE_LOAD_AWARE', 1, 128), signals), [0.5, 0.25, 0, 0, 0.1875]);
  });

  it('weights multiply the clamped score and add up', () => {
    const { decider } = makePool(
      [scorer('OP_SCORE_QUEUE', 2), scorer('OP_SCORE_KV_USAGE', 0.5), scorer('OP_SCORE_RUNNING'), pickMax],
      [
        { waiting: 0, kvUsage: 0.2, running: 4 },
        { waiting: 10, kvUsage: 0.6, running: 0 },
        { waiting: 5, kvUsage: 0, running: 2 },
      ],
    );
    const { slots } = decider.decide(plainRequest);
    expect(slots).toEqual([0]);
    expectClose(
      [0, 1, 2].map((slot) => decider.scoreOf(slot)),
      [2.4, 1.2, 2],
    );
  });

  it('active-request-scorer counts what is in flight here', () => {
    const { decider } = makePool([scorer('OP_SCORE_ACTIVE_REQUEST', 1, 0, 1), pickMax], [{}, {}, {}]);
    for (const slot of [0, 0, 0, 0, 1]) decider.decide({ ...plainRequest, subset: [slot] });
    decider.decide({ ...plainRequest, charged: false });
    expectClose(
      [0, 1, 2].map((slot) => decider.scoreOf(slot)),
      [0, 0.75, 1],
    );
  });

  it('active-request-scorer: at most idleThreshold counts as idle, busy ones are scaled', () => {
    const { decider } = makePool([scorer('OP_SCORE_ACTIVE_REQUEST', 1, 1, 0.5), pickMax], [{}, {}, {}]);
    for (const slot of [0, 0, 0, 0, 1, 1, 2]) decider.decide({ ...plainRequest, subset: [slot] });
    decider.decide({ ...plainRequest, charged: false });
    expectClose(
      [0, 1, 2].map((slot) => decider.scoreOf(slot)),
      [0, 0.25, 1],
    );
  });

  it('token-load-scorer: tokens in flight and the own uncached ones against the threshold', () => {
    const { decider } = makePool([scorer('OP_SCORE_TOKEN_LOAD', 1, 1000), pickMax], [{}, {}]);
    decider.decide({ ...plainRequest, promptTokens: 500, subset: [0] });
    decider.decide({ ...plainRequest, promptTokens: 100, charged: false });
    expectClose(
      [0, 1].map((slot) => decider.scoreOf(slot)),
      [0.4, 0.9],
    );
  });

  it('lora-affinity-scorer: running 1, room 0.8, waiting 0.6, else 0', () => {
    const adapters = (running: string[], waiting: string[], max: number) => ({ adapters: { running, waiting, max } });
    const signals = [adapters(['a'], [], 1), adapters(['b'], [], 2), adapters(['b'], ['a'], 2), adapters(['b'], [], 1)];
    expectClose(scores(scorer('OP_SCORE_ADAPTER'), signals, { ...plainRequest, adapter: 'a' }), [1, 0.8, 0.6, 0]);
    expectClose(scores(scorer('OP_SCORE_ADAPTER'), signals, { ...plainRequest, adapter: 'base' }), [0, 0.8, 0, 0]);
  });

  it('predicted waiting: with a queue at the scrape everything dispatched since waits too', () => {
    const { decider } = makePool([scorer('OP_SCORE_QUEUE'), pickMax], [{ waiting: 4 }, { waiting: 8 }]);
    for (let i = 0; i < 8; i++) decider.decide({ ...plainRequest, subset: [0] });
    expect(decider.decide({ ...plainRequest, charged: false }).slots).toEqual([1]);
  });
});
