import { describe, expect, it } from 'vitest';
import type { Operation } from '../../dist/src/core/operations.js';
import { ruledProgram, rules } from '../../dist/src/scheduling/rules.js';

const own: readonly Operation[] = [
  { code: 'OP_FILTER_MASK', weight: 0, parameters: [0] },
  { code: 'OP_SCORE_QUEUE', weight: 2, parameters: [] },
  { code: 'OP_SCORE_ADAPTER', weight: 5, parameters: [] },
  { code: 'OP_SCORE_PREFIX', weight: 3, parameters: [0, 8192, 64] },
  { code: 'OP_PICK_MAX_SCORE', weight: 1, parameters: [1] },
];

describe('a program by a rule', () => {
  it('a program by a rule is the configured one, looked on, for the first rule and for one that there is not', () => {
    expect(rules[0]!.name).toBe('configured');
    for (const rule of [0, 99]) {
      expect(ruledProgram(own, rule).map(({ code }) => code)).toEqual([
        'OP_FILTER_MASK',
        'OP_SCORE_QUEUE',
        'OP_SCORE_ADAPTER',
        'OP_SCORE_PREFIX',
        'OP_WOULD_PICK',
        'OP_PICK_MAX_SCORE',
      ]);
    }
  });

  it.each([1, 2, 3])(
    'a program by a rule keeps filters, other scorers and the sum of the weights with rule %i',
    (rule) => {
      const program = ruledProgram(own, rule);
      const others = (operations: readonly { code: string }[]) =>
        operations.map(({ code }) => code).filter((code) => /FILTER|ADAPTER|PICK_MAX_SCORE/.test(code));
      expect(others(program)).toEqual(others(own));
      const scorers = program.filter(({ code }) => code.startsWith('OP_SCORE') && code !== 'OP_SCORE_ADAPTER');
      expect(scorers.reduce((sum, { weight }) => sum + weight, 0)).toBeCloseTo(5, 9);
      expect(scorers.map(({ code }) => code)).toEqual(rules[rule]!.scorers!(64).map(({ code }) => code));
    },
  );

  it('a program by a rule scores prefixes in the blocks of the index that the profile has', () => {
    const prefix = ruledProgram(own, 1).find(({ code }) => code === 'OP_SCORE_PREFIX');
    expect(prefix?.parameters).toEqual([0, 8192, 64]);
  });

  it('a program by a rule leaves a profile alone that scores neither load nor cache', () => {
    const plain = [own[2]!, own[4]!];
    expect(ruledProgram(plain, 2)).toEqual(plain);
  });
});
