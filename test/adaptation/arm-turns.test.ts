import { describe, expect, it } from 'vitest';
import { ArmTurns } from '../../dist/src/adaptation/arm-turns.js';
import { LossBudget } from '../../dist/src/adaptation/loss-budget.js';
import { row } from './samples.ts';

/** Turns of a canary whose probe is over. */
function behindTheProbe(seed = 1): ArmTurns {
  const turns = new ArmTurns(row(seed));
  expect(turns.ofCanary(true)).toBe('learned');
  turns.beginProbe();
  expect(turns.ofCanary(true)).toBe('static');
  turns.endProbe();
  return turns;
}

describe('turns of the arms', () => {
  it('turns of a canary begin with learned costs, because the configured weights had the wait for the probe', () => {
    for (const seed of [1, 2, 3, 4, 5, 6]) {
      const turns = behindTheProbe(seed);
      expect([turns.ofCanary(true), turns.ofCanary(true)]).toEqual(['learned', 'static']);
    }
  });

  it('turns of a canary come in pairs, in either order', () => {
    const turns = behindTheProbe();
    const pairs = Array.from({ length: 60 }, () => [turns.ofCanary(true), turns.ofCanary(true)].join(' '));
    expect(new Set(pairs)).toEqual(new Set(['learned static', 'static learned']));
  });

  it('a turn of learned costs without room waits for it, and is neither lost nor doubled', () => {
    const turns = behindTheProbe();
    expect([false, false, false, true, true].map((hasRoom) => turns.ofCanary(hasRoom))).toEqual([
      'static',
      'static',
      'static',
      'learned',
      'static',
    ]);
  });

  it('a probe without room waits for it', () => {
    const turns = new ArmTurns(row(1));
    expect([turns.ofCanary(false), turns.ofCanary(true)]).toEqual(['static', 'learned']);
  });

  it('turns of an active model without room leave no claim on a later turn', () => {
    const turns = behindTheProbe();
    for (let i = 0; i < 20; i++) expect(turns.ofActive(i, false)).toBe('static');
    expect([turns.ofPair(true), turns.ofPair(true)]).toEqual(['learned', 'static']);
    const later = Array.from({ length: 40 }, () => turns.ofPair(true));
    expect(later.filter((arm) => arm === 'learned')).toHaveLength(20);
  });
});

describe('the loss budget', () => {
  /** What is believed of learned costs before their first epoch (comparison.ts). */
  const unknown = { mean: 0, halfWidth: 0.31 };

  it('the loss budget has room for the first epoch of learned costs, and for no second one without a result', () => {
    const budget = new LossBudget(0.05);
    budget.begin('static');
    expect(budget.hasRoom(unknown)).toBe(true);
    budget.begin('learned');
    expect(budget.hasRoom(unknown)).toBe(false);
    expect(budget.hasRoom({ mean: -0.1, halfWidth: 0.2 })).toBe(true);
  });

  it('the loss budget counts a try that was ended with what it has lost', () => {
    const budget = new LossBudget(0.05);
    for (let i = 0; i < 20; i++) budget.begin('static');
    budget.begin('learned');
    budget.endTry({ mean: 0.3, halfWidth: 0.1 }, 0.5);
    // e^(0.3 + 0.065) - 1 = 0.44 of an epoch, and half of one that nothing was judged of: of 5 % of 21 + 5 epochs.
    expect(budget.risked({ mean: 0, halfWidth: 0 })).toBeGreaterThan(0.72);
    expect(budget.hasRoom({ mean: 0.35, halfWidth: 0.1 })).toBe(false);
  });
});
