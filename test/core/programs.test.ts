import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.ts';

const scorers = (count: number) => Array.from({ length: count }, () => scorer('OP_SCORE_QUEUE'));
const idle = [{ waiting: 0 }, { waiting: 3 }];

describe('the program of a profile', () => {
  it('the program of a profile has at most 63 operations, and runs with all of them', () => {
    const { programs, decider } = makePool([pickMax], idle);
    expect(CORE.PROGRAM_OPS).toBe(63);
    programs.publish(0, [...scorers(62), pickMax], { inserts: false });
    expect(decider.decide(plainRequest)).toMatchObject({ status: 'decided', slots: [0] });
    expect(() => programs.publish(0, [...scorers(63), pickMax], { inserts: false })).toThrow(
      'a profile may have at most 63 plugins',
    );
  });

  it.each([-1, CORE.PROFILES_MAX])('the program of a profile has a profile of the pool, not %i', (profile) => {
    const { programs } = makePool([pickMax], idle);
    expect(() => programs.publish(profile, [pickMax], { inserts: false })).toThrow(
      `at most ${CORE.PROFILES_MAX} profiles`,
    );
  });
});

describe('the masks of a pool', () => {
  it('the masks of a pool can be changed slot by slot, the last one too', () => {
    const last = CORE.MASK_COUNT - 1;
    const { table, decider } = makePool([scorer('OP_FILTER_MASK', 1, last), pickMax], idle);
    table.setMask(last, [0]);
    expect(decider.decide(plainRequest).slots).toEqual([0]);
    table.markMask(last, 1, true);
    table.markMask(last, 0, false);
    expect(decider.decide(plainRequest).slots).toEqual([1]);
  });

  it('the masks of a pool are refused beyond the last one', () => {
    const { table } = makePool([pickMax], idle);
    const refused = `at most ${CORE.MASK_COUNT} label filters`;
    expect(() => table.setMask(CORE.MASK_COUNT, [0])).toThrow(refused);
    expect(() => table.markMask(CORE.MASK_COUNT, 0, true)).toThrow(refused);
  });
});
