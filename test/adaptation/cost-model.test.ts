import { describe, expect, it } from 'vitest';
import { CostModel } from '../../dist/src/adaptation/cost-model.js';
import { measured, row, sample, usual, type World } from './samples.ts';

const world: World = { baseMs: 40, prefillMs: 30, stepMs: 20, growthMs: 6, noise: 0.15 };

function taught(truth: World, count: number, seed = 1, model = new CostModel(usual.model)): CostModel {
  const random = row(seed);
  for (let i = 0; i < count; i++) model.learn(measured(truth, random, { timeMs: i * 100 }));
  return model;
}

const off = (actual: number, expected: number) => Math.abs(actual / expected - 1);

describe('the cost model', () => {
  it('the cost model assumes what is configured until it has learned', () => {
    expect(new CostModel(usual.model).coefficients).toMatchObject({
      baseMs: 25,
      prefillMsPerKiloToken: 55,
      waitingMs: 5,
      stepMs: 13,
      growthMs: 4,
      outputTokens: 200,
      firstOutputTargetMs: 2000,
      perTokenTargetMs: 60,
    });
  });

  it('the cost model learns from 300 streamed answers what a token of prefill and a step cost', () => {
    const { coefficients } = taught(world, 300);
    expect(off(coefficients.prefillMsPerKiloToken, 30)).toBeLessThan(0.1);
    expect(off(coefficients.stepMs, 20)).toBeLessThan(0.15);
  });

  it('the cost model learns from answers in one piece how long the whole takes', () => {
    const model = taught({ ...world, streamed: false }, 2000);
    const random = row(5);
    const errors = Array.from({ length: 200 }, () => {
      const asked = measured({ ...world, noise: 0 }, random);
      const { firstOutputMs, perTokenMs } = model.predict(asked);
      return off(firstOutputMs + asked.outputTokens! * perTokenMs, asked.durationMs);
    });
    expect(errors.sort((a, b) => a - b)[100]).toBeLessThan(0.1);
  });

  it.each([14, 220])(
    'the cost model comes to the same from a prior of %i ms, four times off',
    (prefillMsPerKiloToken) => {
      const prior = { ...usual.model.prior, prefillMsPerKiloToken };
      const model = taught({ ...world, prefillMs: 55 }, 1000, 1, new CostModel({ ...usual.model, prior }));
      expect(off(model.coefficients.prefillMsPerKiloToken, 55)).toBeLessThan(0.1);
    },
  );

  it('the cost model finds the slow endpoint by its time per output token, and leaves the others at 1', () => {
    const model = taught({ ...world, speeds: { 2: 2 } }, 1500);
    const speeds = [0, 1, 2, 3].map((slot) => model.speedOf(slot));
    expect(speeds[2]! / speeds[0]!).toBeGreaterThan(1.6);
    expect(Math.max(speeds[0]!, speeds[1]!, speeds[3]!)).toBeLessThanOrEqual(1);
  });

  it('the cost model keeps the price of prefill through traffic with little of it, which costs next to nothing', () => {
    const model = taught(world, 1000);
    const random = row(2);
    const little = { promptTokens: 300, uncachedTokens: 200, prefillTokens: 0 };
    const free = { ...world, prefillMs: 5 };
    for (let i = 0; i < 5000; i++) model.learn(measured(free, random, { ...little, timeMs: 100_000 + i * 100 }));
    expect(off(model.coefficients.prefillMsPerKiloToken, 30)).toBeLessThan(0.1);
    expect(off(model.coefficients.baseMs, 35)).toBeLessThan(0.1);
  });

  it('the cost model finds an endpoint that is slow in prefill alone', () => {
    const random = row(4);
    const model = new CostModel(usual.model);
    const truth = { ...world, firstOutputSpeeds: { 2: 3 } };
    for (let i = 0; i < 1500; i++) {
      const asked = measured(truth, random, { timeMs: i * 100 });
      const cachedTokens = asked.promptTokens - asked.uncachedTokens;
      model.learn({ ...asked, cachedTokens, reportedPromptTokens: asked.promptTokens });
    }
    const prefill = (slot: number) =>
      (model.costsOf(slot).own ?? model.coefficients).prefillMsPerKiloToken * model.costsOf(slot).speed;
    expect([0, 1, 2, 3].map((slot) => model.speedOf(slot))).toEqual([1, 1, 1, 1]);
    expect(prefill(2) / prefill(0)).toBeGreaterThan(1.6);
    expect(prefill(3)).toBe(prefill(0));
  });

  it('the cost model takes no endpoint for slow in prefill by what it believes of its cache', () => {
    const random = row(4);
    const model = new CostModel(usual.model);
    const truth = { ...world, firstOutputSpeeds: { 2: 3 } };
    for (let i = 0; i < 1500; i++) {
      const asked = measured(truth, random, { timeMs: i * 100 });
      model.learn({ ...asked, uncachedTokens: Math.min(asked.uncachedTokens, asked.promptTokens - 16) });
    }
    expect(model.costsOf(2)).toEqual({ speed: 1, own: undefined });
  });

  it('the cost model sees no difference among equal endpoints', () => {
    const model = taught(world, 2000);
    expect([0, 1, 2, 3].map((slot) => model.speedOf(slot))).toEqual([1, 1, 1, 1]);
  });

  it('the cost model begins anew with an endpoint that takes over a slot, and ignores late samples of the one before', () => {
    const model = taught({ ...world, speeds: { 2: 2 } }, 1500);
    expect(model.learn(sample({ slot: 2, slotGeneration: 2 }))).toBe(true);
    expect(model.speedOf(2)).toBeLessThan(1.3);
    expect(model.learn(sample({ slot: 2, slotGeneration: 1 }))).toBe(false);
  });

  it('the cost model learns nothing from requests that did not end well', () => {
    const model = new CostModel(usual.model);
    for (const outcome of ['failed', 'refused', 'aborted', 'diverted'] as const) {
      expect(model.learn(sample({ outcome }))).toBe(false);
    }
    expect(model.fit.samples).toBe(0);
    expect(model.endpoints.size).toBe(0);
  });

  it('the cost model learns only the output of requests that other endpoints worked for before', () => {
    const random = row(3);
    const model = new CostModel(usual.model);
    for (let i = 0; i < 500; i++) {
      const made = measured({ ...world, prefillMs: 500 }, random, { staged: true });
      expect(model.learn(made)).toBe(true);
    }
    expect(model.coefficients.prefillMsPerKiloToken).toBe(55);
    expect(off(model.coefficients.stepMs, 20)).toBeLessThan(0.15);
    expect(model.fit.correlation).toBeUndefined();
    expect(model.learn(measured({ ...world, streamed: false }, random, { staged: true }))).toBe(false);
  });

  it('the cost model learns no price of prefill from requests that waited for memory', () => {
    const learned = (state: { readonly waiting: number; readonly kvUsage: number }) => {
      const random = row(3);
      const model = new CostModel(usual.model);
      for (let i = 0; i < 500; i++) model.learn(measured({ ...world, prefillMs: 400 }, random, state));
      return model;
    };
    const waited = learned({ waiting: 9, kvUsage: 0.97 });
    expect(waited.coefficients).toMatchObject({ baseMs: 25, prefillMsPerKiloToken: 55, waitingMs: 5 });
    expect(off(waited.coefficients.stepMs, 20)).toBeLessThan(0.15);
    expect(waited.fit.bias).toBeUndefined();
    expect(off(learned({ waiting: 0, kvUsage: 0.97 }).coefficients.prefillMsPerKiloToken, 400)).toBeLessThan(0.1);
    expect(off(learned({ waiting: 9, kvUsage: 0.6 }).coefficients.prefillMsPerKiloToken, 400)).toBeLessThan(0.1);
  });

  it('the cost model learns nothing from answers in one piece that waited for memory', () => {
    const random = row(3);
    const model = new CostModel(usual.model);
    const full = { waiting: 9, kvUsage: 0.97, slot: 2 };
    for (let i = 0; i < 500; i++) {
      const made = measured({ ...world, prefillMs: 400, streamed: false }, random, full);
      expect(model.learn(made)).toBe(false);
    }
    const { baseMs, prefillMsPerKiloToken, waitingMs, stepMs, growthMs } = usual.model.prior;
    expect(model.coefficients).toMatchObject({ baseMs, prefillMsPerKiloToken, waitingMs, stepMs, growthMs });
    expect(model.speedOf(2)).toBe(1);
    expect(model.fit.bias).toBeUndefined();
  });

  it('the cost model believes the prefix index as far as the engine confirms it', () => {
    const model = new CostModel(usual.model);
    for (let i = 0; i < 200; i++) {
      model.learn(sample({ promptTokens: 1000, uncachedTokens: 200, reportedPromptTokens: 2000, cachedTokens: 1200 }));
    }
    expect(model.endpoints.get(0)!.reliability).toBeCloseTo(0.75, 5);
  });

  it('the cost model believes it at least by half and at most by a tenth too much', () => {
    const model = new CostModel(usual.model);
    const cached = (slot: number, cachedTokens: number) =>
      sample({ slot, promptTokens: 1000, uncachedTokens: 500, reportedPromptTokens: 1000, cachedTokens });
    for (let i = 0; i < 100; i++) {
      model.learn(cached(0, 0));
      model.learn(cached(1, 1000));
    }
    expect(model.endpoints.get(0)!.reliability).toBe(0.5);
    expect(model.endpoints.get(1)!.reliability).toBe(1.1);
  });

  it('the cost model tells how well its predictions rank what is observed', () => {
    expect(taught(world, 1000).fit.correlation).toBeGreaterThan(0.9);
    const random = row(9);
    const model = new CostModel(usual.model);
    for (let i = 0; i < 1000; i++) {
      model.learn({ ...measured(world, random), firstOutputMs: 50 + 1000 * random() });
    }
    expect(model.fit.correlation).toBeLessThan(0.3);
  });

  it('the cost model notices when everything takes twice as long, and has learned it 300 requests later', () => {
    const model = taught(world, 2000);
    const slow = { ...world, baseMs: 80, prefillMs: 60, stepMs: 40, growthMs: 12 };
    taught(slow, 300, 2, model);
    expect(model.alarms).toBeGreaterThan(0);
    expect(off(model.coefficients.prefillMsPerKiloToken, 60)).toBeLessThan(0.15);
  });

  it('the cost model does not cry out over the noise of a steady pool', () => {
    expect(taught({ ...world, noise: 0.5 }, 5000).alarms).toBe(0);
  });

  it('the cost model goes on from a saved state', () => {
    const before = taught(world, 1000);
    const after = new CostModel(usual.model);
    expect(after.restore(structuredClone(before.save()), 1)).toBe(true);
    expect(off(after.coefficients.prefillMsPerKiloToken, before.coefficients.prefillMsPerKiloToken)).toBeLessThan(0.01);
    expect(off(after.coefficients.stepMs, before.coefficients.stepMs)).toBeLessThan(0.01);
  });

  it('the cost model forgets a saved state of which nothing is believed any more', () => {
    const after = new CostModel(usual.model);
    after.restore(taught(world, 300).save(), 0);
    expect(after.coefficients.prefillMsPerKiloToken).toBeCloseTo(55, 3);
  });
});
