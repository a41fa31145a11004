import { describe, expect, it } from 'vitest';
import { type JudgedEpoch, OpenEpochs } from '../../dist/src/adaptation/epochs.js';

/** Result of an epoch of a second in which every request of `standsFor` is noted. */
function judged(standsFor: number) {
  const epochs = new OpenEpochs();
  epochs.begin(1, 'static', 0);
  for (let i = 0; i < 1_000; i += standsFor) {
    epochs.note(1, i, { cost: 2, reference: 1, promptTokens: 100, firstOutputMs: 50 }, standsFor);
  }
  epochs.end(1, 1_000);
  return epochs.judge(2_000);
}

describe('an epoch', () => {
  it('an epoch has the same result and the same load when some of its requests stand for the others', () => {
    const comparable = (of: readonly JudgedEpoch[]) => of.map(({ noted: _, ...each }) => each);
    expect(comparable(judged(5))).toEqual(comparable(judged(1)));
    expect(judged(5)).toMatchObject([{ requests: 1_000, promptTokens: 100_000, result: Math.log(2) }]);
  });

  it('an epoch of fewer than twenty noted requests has no result, however many they stand for', () => {
    expect(judged(100)).toEqual([]);
  });

  it.each([
    { aimed: 100, met: 80, shortfall: Math.log(100.5 / 80.5) },
    { aimed: 50, met: 0, shortfall: Math.log(50.5 / 0.5) },
    { aimed: 49, met: 49, shortfall: undefined },
  ])(
    'an epoch in which $met of $aimed requests with targets met theirs has a goodput if these are half of all',
    (given) => {
      const epochs = new OpenEpochs();
      epochs.begin(1, 'static', 0);
      for (let i = 0; i < 100; i++) {
        const targetsMet = i < given.aimed ? i < given.met : undefined;
        epochs.note(1, i, { cost: 1, reference: 1, promptTokens: 100, targetsMet });
      }
      epochs.end(1, 100);
      expect(epochs.judge(200)[0]!.shortfall).toEqual(given.shortfall);
    },
  );
});
