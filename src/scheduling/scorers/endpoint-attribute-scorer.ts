import { z } from 'zod';
import { VALUE_NAMES, valueSource } from '../endpoint-values.js';
import { definePlugin } from '../plugin.js';

const fixedRange = () =>
  z
    .strictObject({
      min: z.number().default(0).describe('Value at one end of the scale.'),
      max: z.number().default(0).describe('Value at the other end.'),
    })
    .refine(({ min, max }) => min < max, { error: 'min must be below max' });

const normalization = () =>
  z
    .strictObject({
      fixedRange: fixedRange().optional().describe('A scale that does not change; values beyond it count as its ends.'),
      adaptiveRange: z.strictObject({}).optional().describe('The scale of the candidates: lowest to highest value.'),
    })
    .refine((given) => given.fixedRange === undefined || given.adaptiveRange === undefined, {
      error: 'takes fixedRange or adaptiveRange, not both',
    });

const parameters = () =>
  z.strictObject({
    attributeKey: z
      .string()
      .min(1)
      .describe(`What is scored: a key of core-metrics-extractor's customMetrics, or one of ${VALUE_NAMES}.`),
    producer: z.string().optional().describe('Name of the plugin that writes the attribute; empty = whichever does.'),
    algorithm: z
      .strictObject({
        type: z.enum(['linear_lower_is_better', 'linear_higher_is_better']).describe('Which values score high.'),
        normalization: normalization().default({}).describe('The scale; adaptiveRange when nothing is given.'),
      })
      .describe('The formula.'),
  });

export const endpointAttributeScorer = definePlugin({
  type: 'endpoint-attribute-scorer',
  kinds: ['scorer'],
  stability: 'Alpha',
  doc: 'Scores endpoints by one of their numbers on a linear scale; without it 0; all equal on an adaptive scale 1.',
  parameters,
  operations: ['OP_SCORE_ATTRIBUTE'],
  compile: ({ attributeKey, algorithm }, weight, context) => {
    const { fixedRange: range } = algorithm.normalization;
    return {
      code: 'OP_SCORE_ATTRIBUTE',
      name: context.name,
      weight,
      parameters: [
        valueSource(attributeKey, context),
        algorithm.type === 'linear_lower_is_better' ? 1 : 0,
        range === undefined ? 1 : 0,
        range?.min ?? 0,
        range?.max ?? 0,
      ],
    };
  },
});
