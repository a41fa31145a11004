import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { inFlightLoadProducerName } from '../producer-names.js';

const METRICS = ['active-requests', 'running-requests', 'waiting-queue', 'kv-cache-utilization'] as const;

const condition = () =>
  z
    .strictObject({
      metric: z.enum(METRICS).describe('What is looked at.'),
      maxValue: z.number().min(0).describe('Largest value of an endpoint that is kept.'),
    })
    .refine(({ metric, maxValue }) => metric !== 'kv-cache-utilization' || maxValue <= 1, {
      error: 'maxValue of kv-cache-utilization is a fraction: at most 1',
    });

const parameters = () =>
  z.strictObject({
    conditions: z.array(condition()).min(1).describe('Rules that must all hold; what is unknown counts as 0.'),
    fallbackOnEmpty: z.boolean().default(false).describe('Keep all endpoints when none would be left.'),
    inFlightLoadProducerName,
  });

type Parameters = z.output<ReturnType<typeof parameters>>;

function countsActive({ conditions }: Parameters): boolean {
  return conditions.some(({ metric }) => metric === 'active-requests');
}

function limit({ conditions }: Parameters, wanted: (typeof METRICS)[number]): number {
  return Math.min(...conditions.flatMap(({ metric, maxValue }) => (metric === wanted ? [maxValue] : [])));
}

export const utilizationFilter = definePlugin({
  type: 'utilization-filter',
  kinds: ['filter'],
  stability: 'Alpha',
  doc:
    'Keeps endpoints that are at most so busy: requests in flight from here, running, waiting, and share of the KV ' +
    'cache.',
  parameters,
  consumes: (given) =>
    countsActive(given) ? [{ key: 'in-flight-load', producer: given.inFlightLoadProducerName }] : [],
  operations: ['OP_FILTER_UTILIZATION'],
  compile: (given, weight, { name }) => ({
    code: 'OP_FILTER_UTILIZATION',
    name,
    weight,
    parameters: [...METRICS.map((metric) => limit(given, metric)), given.fallbackOnEmpty ? 1 : 0],
  }),
});
