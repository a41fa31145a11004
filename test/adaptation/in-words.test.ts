import { describe, expect, it } from 'vitest';
import { CostModel } from '../../dist/src/adaptation/cost-model.js';
import { adaptationInWords } from '../../dist/src/adaptation/explanation-text.js';
import { Guard } from '../../dist/src/adaptation/guard.js';
import type { Evidence } from '../../dist/src/adaptation/guard-rules.js';
import type { ShownAdaptation } from '../../dist/src/adaptation/shown-adaptation.js';
import { goodEvidence, measured, row, usual } from './samples.ts';

const shown = {
  mode: 'auto',
  state: 'active',
  arm: 'learned',
  why: undefined,
  arms: { static: { epochs: 8, mean: 0.5, halfWidth: 0.1 }, learned: { epochs: 5, mean: 0.45, halfWidth: 0.1 } },
  gap: { mean: Math.log(0.95), halfWidth: 0.02 },
  tailGap: { mean: Math.log(1.1), halfWidth: 0.2 },
  tokenTailGap: { mean: Math.log(0.97), halfWidth: 0.2 },
  fit: {
    samples: 3410,
    correlation: 0.8,
    bias: 0,
    firstOutput: { predictedMs: { p50: 120, p90: 800 }, observedMs: { p50: 131.2, p90: 850 } },
    perToken: { predictedMs: { p50: 22, p90: 30 }, observedMs: { p50: 23, p90: 31 } },
  },
  shares: { context: 0.61, queue: 0.37, waiting: 0, decode: 0.02, capacity: 0 },
  inactive: [{ term: 'waiting', scorers: ['queue-scorer', 'load-aware-scorer'] }],
  endpoints: [
    { endpoint: 'a', speed: 1, reliability: 1 },
    { endpoint: 'b', speed: 1.8, reliability: 1 },
  ],
} as unknown as ShownAdaptation;

describe('adaptation in words', () => {
  it('adaptation in words says who decides, how good the predictions are, what it gains, what matters and who is slow', () => {
    expect(adaptationInWords(shown)).toEqual([
      'Learned costs decide.',
      'Learned from 3410 requests. Of the last ones, time to first output 131 ms in the middle and ' +
        '850 ms at the 90th ' +
        'percentile, predicted 120 and 800 ms; per output token 23 ms in the middle and 31 ms at ' +
        'the 90th percentile, ' +
        'predicted 22 and 30 ms.',
      'By 5 epochs of learned costs and 8 of the configured weights, requests cost −5.0 % with learned costs (95 % ' +
        'interval −6.9 % to −3.1 %); the slowest hundredth waits +10.0 % for its first output and −3.0 % ' +
        'for an output token.',
      'Endpoints are told apart by context 61 %, queue 37 %, decode 2 %. Nothing has come of queue-scorer, ' +
        'load-aware-scorer for five minutes.',
      'Output takes longer on b (×1.80).',
    ]);
  });

  it('adaptation in words tells how many requests met their targets, where that decides', () => {
    const goodput = { static: 0.7, learned: 0.84 };
    const goodputGap = { mean: Math.log(0.7 / 0.84), halfWidth: 0.05 };
    expect(adaptationInWords({ ...shown, measure: 'goodput', goodput, goodputGap })[2]).toBe(
      'By 5 epochs of learned costs and 8 of the configured weights, 84.0 % of the requests met their latency ' +
        'targets with learned costs and 70.0 % with the configured weights (95 % interval of their ratio ' +
        '+14.1 % to +26.2 %); ' +
        'the slowest hundredth waits +10.0 % for its first output and −3.0 % for an output token.',
    );
  });

  it('adaptation in words names the rule that decides', () => {
    const rules = { current: 'sticky', records: [] };
    expect(adaptationInWords({ ...shown, rules })[0]).toBe('The rule "sticky" decides.');
  });

  it('adaptation in words says why the configured weights decide although learned costs may', () => {
    const turn = { ...shown, arm: 'static' as const, why: 'it is the turn of the configured weights, to compare with' };
    expect(adaptationInWords(turn)[0]).toBe(
      'The configured weights decide: it is the turn of the configured weights, to compare with.',
    );
  });

  it('adaptation in words claims nothing of what is not known yet', () => {
    const arms = { static: shown.arms.static, learned: { ...shown.arms.learned, epochs: 0 } };
    const fit = { ...shown.fit, samples: 0, firstOutput: undefined, perToken: undefined };
    const fresh = { ...shown, arms, fit, shares: undefined, inactive: [], endpoints: [] };
    expect(adaptationInWords(fresh)).toEqual(['Learned costs decide.', 'No request has been learned from yet.']);
    expect(adaptationInWords({ ...shown, mode: 'off' })).toEqual([
      'Adaptation is off: the configured weights decide and nothing is learned.',
    ]);
  });
});

describe('the reason why the configured weights decide', () => {
  const why = (evidence: Partial<Evidence>) => {
    const guard = new Guard('auto', usual.guard, row(1));
    guard.tick(0, () => ({ ...goodEvidence, ...evidence }));
    return guard.why(0);
  };

  it('the reason why the configured weights decide is what still keeps learned costs from being tried', () => {
    expect(why({ samples: 120 })).toContain(`120 of ${usual.guard.samples} requests`);
    expect(why({ correlation: 0.2 })).toContain('rank correlation 0.20, wanted above 0.3');
    expect(why({ correlation: undefined })).toContain('rank correlation unknown');
  });

  it('the reason why the configured weights decide is the mode where nothing is ever tried', () => {
    expect(new Guard('off', usual.guard, row(1)).why(0)).toBe('adaptation is off');
    expect(new Guard('shadow', usual.guard, row(1)).why(0)).toContain('only look on');
  });

  it('the reason why the configured weights decide is nothing while learned costs decide', () => {
    expect(new Guard('always', usual.guard, row(1)).why(0)).toBeUndefined();
  });

  it('the reason why the configured weights decide is, after a fallback, what happened and when the next try is', () => {
    const guard = new Guard('auto', usual.guard, row(1));
    let nowMs = 0;
    for (; nowMs < 60_000 && guard.state === 'shadow'; nowMs += 500) {
      guard.tick(nowMs, () => goodEvidence);
      for (let i = 0; i < 5; i++) guard.note(guard.epoch, nowMs, { cost: 1, reference: 1, promptTokens: 1000 });
    }
    guard.tick(nowMs, () => ({ ...goodEvidence, sound: false }));
    expect(guard.state).toBe('fallback');
    const pause = usual.guard.pauseMs / 60_000;
    expect(guard.why(nowMs)).toBe(
      'learned costs were taken back, because a coefficient is not a number or out of range; tried again in ' +
        `${pause.toFixed(1)} minutes`,
    );
    const later = nowMs + usual.guard.pauseMs;
    guard.tick(later, () => ({ ...goodEvidence, samples: 3 }));
    expect(guard.why(later)).toContain(`not tried again yet: 3 of ${usual.guard.samples}`);
  });
});

describe('predicted beside observed times', () => {
  it('predicted beside observed times come together as the model learns, and are forgotten with it', () => {
    const model = new CostModel(usual.model);
    model.meet([{ slot: 0, generation: 1, hardware: '' }]);
    expect(model.fit.firstOutput).toBeUndefined();
    const random = row(5);
    const world = { baseMs: 40, prefillMs: 30, stepMs: 20, growthMs: 6, noise: 0.05 };
    for (let i = 0; i < 3000; i++) model.learn(measured(world, random, { slot: 0, slotGeneration: 1 }));
    const { firstOutput, perToken } = model.fit;
    for (const { predictedMs, observedMs } of [firstOutput!, perToken!]) {
      expect(Math.abs(Math.log(predictedMs.p50 / observedMs.p50))).toBeLessThan(0.2);
      expect(Math.abs(Math.log(predictedMs.p90 / observedMs.p90))).toBeLessThan(0.2);
    }
    model.reset();
    expect([model.fit.firstOutput, model.fit.perToken]).toEqual([undefined, undefined]);
  });
});
