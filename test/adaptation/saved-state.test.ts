import { describe, expect, it } from 'vitest';
import { CostModel } from '../../dist/src/adaptation/cost-model.js';
import { believed, decodeState, encodeState } from '../../dist/src/adaptation/saved-state.js';
import { measured, row, usual } from './samples.ts';

function taught(): CostModel {
  const model = new CostModel(usual.model);
  const random = row(1);
  for (let i = 0; i < 500; i++) {
    model.learn(measured({ baseMs: 40, prefillMs: 30, stepMs: 20, growthMs: 6, noise: 0.1 }, random));
  }
  return model;
}

const text = encodeState(taught().save(), usual.model, 1000);

describe('a saved state', () => {
  it('a saved state is read as it was written', () => {
    const { savedAtMs, model } = decodeState(text, usual.model);
    expect(savedAtMs).toBe(1000);
    const next = new CostModel(usual.model);
    expect(next.restore(model, 1)).toBe(true);
    const learned = taught().coefficients.prefillMsPerKiloToken;
    expect(Math.abs(next.coefficients.prefillMsPerKiloToken / learned - 1)).toBeLessThan(0.01);
  });

  it.each([
    ['is no JSON', 'it is no JSON', 'coefficients'],
    ['is of another version', 'it has version 3, and 1 or 2 is expected', text.replace('"version":1', '"version":3')],
    ['is something else', 'it has version undefined', '{"prior":{}}'],
    ['lacks a part', 'model is not what it should be', text.replace('"model":', '"modell":')],
    [
      'has an output that no model gives',
      'model.outputTokens is not',
      text.replace(/"outputTokens":[\d.]+\}\}/, '"outputTokens":1e308}}'),
    ],
    ['has a text for a number', 'savedAtMs is not', text.replace('"savedAtMs":1000', '"savedAtMs":"now"')],
  ])('a saved state is refused in words when it %s', (_what, message, changed) => {
    expect(() => decodeState(changed, usual.model)).toThrow(message);
  });

  it('a saved state is refused when it was learned from other assumptions', () => {
    const prior = { ...usual.model.prior, stepMs: 14 };
    expect(() => decodeState(text, { ...usual.model, prior })).toThrow('stepMs differs');
  });

  it('a saved state is believed by half for every six hours of its age', () => {
    const saved = decodeState(text, usual.model);
    expect(believed(saved, 1000)).toBe(1);
    expect(believed(saved, 1000 + 6 * 3_600_000)).toBe(0.5);
    expect(believed(saved, 1000 + 12 * 3_600_000)).toBe(0.25);
    // A clock that was set back makes it no younger than new.
    expect(believed(saved, 0)).toBe(1);
  });
});
