import { describe, expect, it } from 'vitest';
import { RuleChoice } from '../../dist/src/adaptation/rule-choice.js';
import { row } from './samples.ts';

/** Epochs whose results are known at once; how often each rule was played in the last `counted` of them. */
function played(choice: RuleChoice, epochs: number, costs: readonly number[], counted: number, noise = 0.1): number[] {
  const random = row(7);
  const counts = costs.map(() => 0);
  for (let i = 0; i < epochs; i++) {
    const rule = choice.choose();
    if (i >= epochs - counted) counts[rule]!++;
    choice.note(rule, costs[rule]! + noise * (random() + random() - 1));
  }
  return counts;
}

describe('the choice of a rule', () => {
  it('the choice of a rule tries each once first, also before any result has come in', () => {
    const choice = new RuleChoice(4);
    expect([1, 2, 3, 4].map(() => choice.choose())).toEqual([0, 1, 2, 3]);
    expect(choice.choose()).toBe(0);
  });

  it('the choice of a rule plays the rule that costs least more often than any other', () => {
    const counts = played(new RuleChoice(4), 400, [0.5, 0.4, 0, 0.3], 200);
    expect(counts.indexOf(Math.max(...counts))).toBe(2);
    expect(counts[2]).toBeGreaterThan(100);
  });

  it('the choice of a rule follows when another rule becomes the best', () => {
    const choice = new RuleChoice(4);
    played(choice, 200, [0, 0.5, 0.5, 0.5], 1);
    const counts = played(choice, 200, [0.5, 0.5, 0.5, 0], 50);
    expect(counts.indexOf(Math.max(...counts))).toBe(3);
  });

  it('the choice of a rule bounds what one epoch can say, and ignores what is no number', () => {
    const choice = new RuleChoice(2);
    choice.note(0, 0);
    choice.note(1, 100);
    expect(choice.records[1]).toEqual({ epochs: 1, reward: -1 });
    choice.note(1, Number.NaN);
    choice.note(7, 0);
    expect(choice.records.map(({ epochs }) => epochs)).toEqual([0.97, 1]);
  });
});
