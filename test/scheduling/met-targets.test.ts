import { describe, expect, it } from 'vitest';
import type { Measures } from '../../dist/src/core/index.js';
import { metTargets } from '../../dist/src/scheduling/wanted-times.js';

const stream: Measures = {
  outcome: 'completed',
  firstOutputMs: 200,
  perTokenMs: 50,
  durationMs: 700,
  outputTokens: 11,
  promptTokens: 100,
  cachedTokens: 0,
};
const whole: Measures = { ...stream, firstOutputMs: undefined, perTokenMs: undefined };

describe('the latency objectives of a request', () => {
  it.each([
    ['stream', stream, { ttftMs: 200, tpotMs: 50 }, true],
    ['stream', stream, { ttftMs: 199, tpotMs: 50 }, false],
    ['stream', stream, { ttftMs: 0, tpotMs: 49 }, false],
    ['stream', stream, { ttftMs: 0, tpotMs: 0 }, undefined],
    ['stream of one token', { ...stream, perTokenMs: undefined }, { ttftMs: 0, tpotMs: 1 }, true],
    ['answer in one piece', whole, { ttftMs: 150, tpotMs: 50 }, true],
    ['answer in one piece', whole, { ttftMs: 149, tpotMs: 50 }, false],
    ['answer in one piece', whole, { ttftMs: 150, tpotMs: 0 }, undefined],
    ['answer of unknown length', { ...whole, outputTokens: undefined }, { ttftMs: 150, tpotMs: 50 }, undefined],
    ['failed answer', { ...stream, outcome: 'failed' }, { ttftMs: 200, tpotMs: 50 }, false],
    ['cancelled answer', { ...stream, outcome: 'aborted' }, { ttftMs: 200, tpotMs: 50 }, undefined],
  ] as const)('the latency objectives of a request are met by a %s: %j with %j: %s', (_, measures, wanted, met) => {
    expect(metTargets(wanted, measures)).toBe(met);
  });
});
