import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { cellWord, HOST_STATE, PREDICTED_STATE, stateCells } from '../../dist/src/core/recorded-state.js';
import { makePool, pickMax } from './pool.ts';

const { core } = makePool([pickMax], []);
const { endpoints } = core.sizes;
const wordOf = (address: number) => (address >>> 0) >>> 2;

describe('the state that a recording keeps of a decision', () => {
  it.each([
    ['what the core captured', 0, HOST_STATE, core.call.explainAddress()],
    ['what hook plugins said', HOST_STATE, PREDICTED_STATE, core.call.hostAddress()],
    ['the predicted times', PREDICTED_STATE, stateCells(1), core.call.predictedAddress()],
  ])(
    'the state that a recording keeps of a decision finds %s from its first cell to its last',
    (_what, from, to, at) => {
      const last = (to - from) * endpoints - 1;
      expect(cellWord(core, from * endpoints)).toBe(wordOf(at));
      expect(cellWord(core, to * endpoints - 1)).toBe(wordOf(at) + last);
    },
  );

  it('the state that a recording keeps of a decision has a column for each hook column, and two for times', () => {
    expect([PREDICTED_STATE - HOST_STATE, stateCells(10)]).toEqual([CORE.HOST_COLUMNS, 10 * (PREDICTED_STATE + 2)]);
  });
});
