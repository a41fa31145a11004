import { describe, expect, it } from 'vitest';
import type { PredictionSettings } from '../../dist/src/contract/prediction-settings.js';
import type { Operation } from '../../dist/src/core/index.js';
import { predictedColumns } from '../../dist/src/core/latency-predictions.js';
import { LatencyTrainer } from '../../dist/src/prediction/latency-trainer.js';
import { ServedPredictions } from '../../dist/src/scheduling/served-predictions.js';
import { makePool, pickMax, plainRequest, scorer } from '../core/pool.ts';
import { prompt } from '../core/pool-history.ts';

const BY_MODEL = 0;
const predict: Operation = scorer('OP_PREDICT', 1, BY_MODEL, 1, 1, 0);
const known = { waiting: 0, running: 1, kvUsage: 0.5 };

const settings: PredictionSettings = {
  predicts: true,
  streaming: true,
  bufferFactor: 1,
  roleLabel: '',
  servers: undefined,
  waitMs: 400,
  modelWhenServersFail: false,
  prior: { prefillTokensPerSecond: 20_000, tpotMs: 10 },
};

function bed(count = 3, given: Partial<PredictionSettings> = {}) {
  const pool = makePool(
    [predict, pickMax],
    Array.from({ length: count }, () => known),
  );
  const trainer = new LatencyTrainer({ core: pool.control, settings: { ...settings, ...given } });
  const decide = (slot: number, promptTokens = 1000) =>
    pool.decider.decide({ ...plainRequest, promptTokens, subset: [slot], charged: false });
  /** A request that a slot answers in these times. */
  const answer = (slot: number, firstOutputMs: number | undefined, perTokenMs = 10, promptTokens = 1000) => {
    const { ticket, ticketGeneration } = pool.decider.decide({ ...plainRequest, promptTokens, subset: [slot] });
    pool.decider.noteSample(ticket, ticketGeneration, {
      outcome: 'completed',
      firstOutputMs,
      perTokenMs,
      durationMs: (firstOutputMs ?? 0) + 9 * perTokenMs,
      outputTokens: 10,
      promptTokens: undefined,
      cachedTokens: undefined,
    });
    pool.decider.release(ticket, ticketGeneration);
  };
  return { ...pool, trainer, decide, answer };
}

describe('the trainer', () => {
  it('the trainer lets decisions predict from the prior before the first request', () => {
    const { decide } = bed();
    // 25 ms, and 1,000 tokens of 50 ms; 10 ms per token.
    expect(decide(0)).toMatchObject({ predictedTtftMs: 75, predictedTpotMs: 10 });
  });

  it('the trainer fills what prediction servers left open, when it is to help them out', () => {
    const { programs, core, decide } = bed(2);
    const ON_HOST_OR_BY_MODEL = 2;
    programs.publish(0, [scorer('OP_PREDICT', 1, ON_HOST_OR_BY_MODEL, 1, 1, 0), pickMax], { inserts: false });
    const served = new ServedPredictions(predictedColumns(core));
    served.write({ slots: [1], ttftMs: Float64Array.of(7), tpotMs: Float64Array.of(3) });
    expect(decide(1)).toMatchObject({ predictedTtftMs: 7, predictedTpotMs: 3 });
    served.write({ slots: [1], ttftMs: Float64Array.of(7), tpotMs: Float64Array.of(3) });
    expect(decide(0)).toMatchObject({ predictedTtftMs: 75, predictedTpotMs: 10 });
    served.write(undefined);
    expect(decide(1)).toMatchObject({ predictedTtftMs: 75, predictedTpotMs: 10 });
  });

  it('the trainer predicts nothing without written coefficients', () => {
    const pool = makePool([predict, pickMax], [known]);
    expect(pool.decider.decide({ ...plainRequest, charged: false })).toMatchObject({
      predictedTtftMs: Number.NaN,
      predictedTpotMs: Number.NaN,
    });
  });

  it('the trainer counts what the endpoint does not hold, what is in flight and how long the prompt is', () => {
    const { decider, core, programs, decide } = bed(2);
    programs.publish(0, [predict, pickMax], { inserts: true });
    decider.decide({ ...plainRequest, ...prompt(core, 1, 4), promptTokens: 256, subset: [1] });
    const held = { ...plainRequest, ...prompt(core, 1, 4), promptTokens: 256, charged: false };
    // 256 tokens are in flight on slot 1, which holds all of the prompt; slot 0 would have to compute them.
    const there = decider.decide({ ...held, subset: [1] }).predictedTtftMs;
    const elsewhere = decider.decide({ ...held, subset: [0] }).predictedTtftMs;
    expect(there).toBeCloseTo(25 + 0.256 * 50, 3);
    expect(elsewhere).toBeCloseTo(25 + 0.256 * 50, 3);
    expect(decide(1).predictedTtftMs).toBeGreaterThan(decide(0).predictedTtftMs);
  });

  it('the trainer learns a slow endpoint apart from the others', () => {
    const { answer, decide, trainer } = bed();
    for (let i = 0; i < 60; i++) {
      answer(0, 60);
      answer(1, 60);
      answer(2, 600, 40);
    }
    expect(trainer.learn()).toBe(180);
    expect(decide(0).predictedTtftMs).toBeLessThan(150);
    expect(decide(2).predictedTtftMs).toBeGreaterThan(400);
    expect(decide(2).predictedTpotMs).toBeGreaterThan(2 * decide(0).predictedTpotMs);
    expect(trainer.observations).toEqual({ ttft: 180, tpot: 180 });
  });

  it('the trainer predicts an endpoint that it has not seen as the pool', () => {
    const { answer, decide, trainer, table } = bed(2);
    for (let i = 0; i < 200; i++) answer(0, 900);
    trainer.learn();
    expect(decide(1).predictedTtftMs).toBeGreaterThan(500);
    table.open(9, 1);
    table.setState(9, 'live');
    table.publish(9, known, 1);
    expect(decide(9).predictedTtftMs).toBeCloseTo(decide(1).predictedTtftMs, 3);
  });

  it('the trainer forgets an endpoint whose slot changes hands', () => {
    const { answer, decide, trainer, table } = bed(2);
    for (let i = 0; i < 100; i++) {
      answer(0, 60);
      answer(1, 900);
    }
    trainer.learn();
    const slow = decide(1).predictedTtftMs;
    table.setState(1, 'free');
    table.open(1, 2);
    table.setState(1, 'live');
    expect(decide(1).predictedTtftMs).toBeLessThan(slow);
    trainer.learn();
    expect(decide(1).predictedTtftMs).toBeLessThan(slow);
  });

  it('the trainer takes the whole duration for the first token when answers are not streamed', () => {
    const { answer, decide, trainer } = bed(1, { streaming: false });
    for (let i = 0; i < 200; i++) answer(0, undefined, 50);
    trainer.learn();
    expect(decide(0).predictedTtftMs).toBeGreaterThan(350);
    expect(trainer.observations).toEqual({ ttft: 200, tpot: 0 });
  });

  it('the trainer learns nothing from failures', () => {
    const { decider, trainer } = bed(1);
    const { ticket, ticketGeneration } = decider.decide({ ...plainRequest, promptTokens: 10 });
    decider.noteSample(ticket, ticketGeneration, {
      outcome: 'failed',
      firstOutputMs: 5,
      perTokenMs: 1,
      durationMs: 5,
      outputTokens: 10,
      promptTokens: undefined,
      cachedTokens: undefined,
    });
    expect(trainer.learn()).toBe(1);
    expect(trainer.observations).toEqual({ ttft: 0, tpot: 0 });
  });

  it('the trainer takes an unknown signal of a candidate for the mean of the known ones', () => {
    const { programs, table, decide, decider } = bed(3);
    table.publish(0, { ...known, waiting: 4 }, 2);
    table.publish(1, { ...known, waiting: 8 }, 2);
    table.markStale(2);
    programs.publish(0, [predict, scorer('OP_SCORE_QUEUE'), pickMax], { inserts: false });
    expect(decide(0, 0).predictedTtftMs).toBe(25 + 4 * 5);
    decider.decide({ ...plainRequest, subset: [2], charged: false });
    // Alone it has nobody to be compared with.
    expect(decide(2, 0).predictedTtftMs).toBe(25);
  });
});
