import { z } from 'zod';
import { CORE } from '../../core/core-names.js';
import { VALUE_NAMES, valueSource } from '../endpoint-values.js';
import { definePlugin } from '../plugin.js';

const OPERATORS = {
  LessThan: CORE.COMPARE_LESS,
  LessThanOrEqual: CORE.COMPARE_LESS_OR_EQUAL,
  GreaterThan: CORE.COMPARE_GREATER,
  GreaterThanOrEqual: CORE.COMPARE_GREATER_OR_EQUAL,
  Equal: CORE.COMPARE_EQUAL,
  NotEqual: CORE.COMPARE_NOT_EQUAL,
} as const;
const operators = Object.keys(OPERATORS) as (keyof typeof OPERATORS)[];
const ends = z.enum(['lowest', 'highest']).default('lowest').describe('Which end of the values is kept.');

const algorithm = () =>
  z
    .strictObject({
      type: z.enum(['threshold', 'percentile', 'topK', 'range']).describe('How values are judged.'),
      threshold: z
        .strictObject({
          operator: z.enum(operators).describe('How the value is compared with the limit.'),
          value: z.number().default(0).describe('The limit.'),
        })
        .optional()
        .describe('For type threshold: keep values that compare with the limit.'),
      percentile: z
        .strictObject({
          percent: z.number().gt(0).max(100).describe('Share of the endpoints to keep, rounded up.'),
          keep: ends,
        })
        .optional()
        .describe('For type percentile: keep that share of the endpoints, and those equal to the last of them.'),
      topK: z
        .strictObject({ k: z.int().min(1).describe('How many endpoints to keep.'), keep: ends })
        .optional()
        .describe('For type topK: keep this number of endpoints, and those equal to the last of them.'),
      range: z
        .strictObject({
          min: z.number().optional().describe('Lowest value that is kept; absent = no bound.'),
          max: z.number().optional().describe('Highest value that is kept; absent = no bound.'),
        })
        .refine(({ min, max }) => min === undefined || max === undefined || min <= max, {
          error: 'min must not be above max',
        })
        .optional()
        .describe('For type range: keep values between min and max, both included.'),
    })
    .refine((given) => given[given.type] !== undefined, {
      error: 'needs a section that is named like its type',
    })
    .refine(
      (given) =>
        (['threshold', 'percentile', 'topK', 'range'] as const).every(
          (type) => type === given.type || given[type] === undefined,
        ),
      {
        error: 'may have no other section than the one that is named like its type',
      },
    );

const parameters = () =>
  z.strictObject({
    attribute: z
      .string()
      .min(1)
      .describe(`What is judged: a key of core-metrics-extractor's customMetrics, or one of ${VALUE_NAMES}.`),
    producer: z.string().optional().describe('Name of the plugin that writes the attribute; empty = whichever does.'),
    onMissing: z.enum(['Pass', 'Fail']).default('Pass').describe('Whether endpoints without the attribute are kept.'),
    fallbackOnEmpty: z.boolean().default(false).describe('Keep all endpoints when none would be left.'),
    algorithm: algorithm().describe('The rule.'),
  });

export const endpointAttributeFilter = definePlugin({
  type: 'endpoint-attribute-filter',
  kinds: ['filter'],
  stability: 'Alpha',
  doc: 'Keeps endpoints by one of their numbers: against a limit, in a range, or the lowest or highest of all.',
  parameters,
  operations: ['OP_FILTER_THRESHOLD', 'OP_FILTER_RANGE', 'OP_FILTER_LOWEST'],
  compile: ({ attribute, onMissing, fallbackOnEmpty, algorithm }, weight, context) => {
    const source = valueSource(attribute, context);
    const rest = [onMissing === 'Pass' ? 1 : 0, fallbackOnEmpty ? 1 : 0];
    const { name } = context;
    const { type, threshold, percentile, topK, range } = algorithm;
    if (type === 'threshold') {
      const compared = [source, OPERATORS[threshold!.operator], threshold!.value];
      return { code: 'OP_FILTER_THRESHOLD', name, weight, parameters: [...compared, ...rest] };
    }
    if (type === 'range') {
      const bounds = [range!.min ?? Number.NEGATIVE_INFINITY, range!.max ?? Number.POSITIVE_INFINITY];
      return { code: 'OP_FILTER_RANGE', name, weight, parameters: [source, ...bounds, ...rest] };
    }
    const keep = type === 'topK' ? topK!.keep : percentile!.keep;
    const count = [keep === 'lowest' ? 1 : -1, topK?.k ?? 0, (percentile?.percent ?? 0) / 100];
    return { code: 'OP_FILTER_LOWEST', name, weight, parameters: [source, ...count, ...rest] };
  },
});
