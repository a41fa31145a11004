import { describe, expect, it } from 'vitest';
import { FitHistory } from '../../dist/src/adaptation/fit-history.js';

const MINUTE = 60_000;

describe('the history of predicted and observed times', () => {
  it('a point has the means over the requests that were decided in its ten seconds', () => {
    const history = new FitHistory();
    history.note(20_000, 100, 120);
    history.note(31_000, 50, 40);
    history.note(29_999, 200, 160);
    expect(history.points(MINUTE)).toEqual([
      { timeMs: 20_000, predictedMs: 150, observedMs: 140 },
      { timeMs: 30_000, predictedMs: 50, observedMs: 40 },
    ]);
  });

  it('a history goes back five minutes, also while no request ends', () => {
    const history = new FitHistory();
    history.note(0, 1, 1);
    history.note(MINUTE, 2, 2);
    expect(history.points(5 * MINUTE).map(({ timeMs }) => timeMs)).toEqual([MINUTE]);
    expect(history.points(7 * MINUTE)).toEqual([]);
  });

  it('a request that took longer than five minutes changes no later point', () => {
    const history = new FitHistory();
    history.note(5 * MINUTE, 2, 2);
    history.note(0, 900, 900);
    expect(history.points(5 * MINUTE)).toEqual([{ timeMs: 5 * MINUTE, predictedMs: 2, observedMs: 2 }]);
  });
});
