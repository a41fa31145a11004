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

  it('an epoch tells how much its result varies by chance from how much its slices of two seconds differ', () => {
    const deviation = (costAt: (i: number) => number) => {
      const epochs = new OpenEpochs();
      epochs.begin(1, 'static', 0);
      for (let i = 0; i < 200; i++) epochs.note(1, i * 100, { cost: costAt(i), reference: 1, promptTokens: 100 });
      epochs.end(1, 20_000);
      return epochs.judge(30_000)[0]!.deviation;
    };
    // Ten slices of twenty requests: those of the even ones cost 1, the others 3, a mean of 2 and a deviation of 1.
    expect(deviation((i) => (i % 40 < 20 ? 1 : 3))).toBeCloseTo(1 / 2 / Math.sqrt(9), 6);
    expect(deviation((i) => (i % 2 === 0 ? 1 : 3))).toBeCloseTo(0, 6);
  });

  it('an epoch of less than four slices does not tell how much its result varies', () => {
    expect(judged(1)[0]!.deviation).toBeUndefined();
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
