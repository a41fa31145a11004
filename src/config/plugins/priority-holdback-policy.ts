import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const priorityHoldbackParameters = z
  .strictObject({
    shape: z.enum(['linear']).default('linear').describe('How limits lie between the two.'),
    domain: z
      .enum(['rank', 'value'])
      .default('rank')
      .describe('What they are spread over: the order of the priorities, or their values.'),
    minCeiling: z.number().min(0).lt(1).describe('Limit of saturation for the lowest priority. Required.'),
    maxCeiling: z.number().gt(0).max(1).default(1).describe('Limit of saturation for the highest priority.'),
  })
  .refine(({ minCeiling, maxCeiling }) => minCeiling <= maxCeiling, {
    error: 'must not be above maxCeiling',
    path: ['minCeiling'],
  });

export const priorityHoldbackPolicy = definePlugin({
  type: 'priority-holdback-policy',
  kinds: ['usage-limit-policy'],
  stability: 'Alpha',
  doc: 'Queues of flow control: the lower the priority, the less of the pool it may fill.',
  parameters: priorityHoldbackParameters,
});
