import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { prefixMatchProducerName } from '../producer-names.js';

export const prefixCacheScorerParameters = () =>
  z.strictObject({
    prefixMatchInfoProducerName: prefixMatchProducerName,
    matchLengthWeight: z
      .number()
      .min(0)
      .max(1)
      .default(0)
      .describe('Share of the score that comes from the length of the match rather than from its ratio.'),
    matchLengthScaleTokens: z
      .int()
      .min(0)
      .default(8192)
      .describe('Matched tokens at which the length part reaches 1; 0 only where its weight is 0.'),
  });

/** Whether the length part has a scale, or no weight; for zod's `refine`. */
export const lengthNeedsScale: [
  check: (given: { readonly matchLengthWeight: number; readonly matchLengthScaleTokens: number }) => boolean,
  failure: { path: string[]; error: string },
] = [
  ({ matchLengthWeight, matchLengthScaleTokens }) => matchLengthWeight === 0 || matchLengthScaleTokens > 0,
  { path: ['matchLengthScaleTokens'], error: 'must be above 0 while matchLengthWeight is' },
];

export const prefixCacheScorer = definePlugin({
  type: 'prefix-cache-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Prefers endpoints that hold a longer prefix of the prompt, with w = matchLengthWeight: ' +
    '(1 - w) × matched / total blocks + w × min(1, matched tokens / matchLengthScaleTokens)²; 0 without a prompt.',
  parameters: () => prefixCacheScorerParameters().refine(...lengthNeedsScale),
  consumes: ({ prefixMatchInfoProducerName }) => [{ key: 'prefix-match', producer: prefixMatchInfoProducerName }],
  operations: ['OP_SCORE_PREFIX', 'OP_SCORE_HOST'],
  compile: (given, weight, { name, prefix, matchColumn }) => {
    const { prefixMatchInfoProducerName, matchLengthWeight, matchLengthScaleTokens } = given;
    const formula = { lengthWeight: matchLengthWeight, scaleTokens: matchLengthScaleTokens };
    const column = matchColumn(prefixMatchInfoProducerName, formula);
    if (column !== undefined) return { code: 'OP_SCORE_HOST', name, weight, parameters: [column] };
    const parameters = [matchLengthWeight, matchLengthScaleTokens, prefix?.blockTokens ?? 0];
    return { code: 'OP_SCORE_PREFIX', name, weight, parameters };
  },
});
