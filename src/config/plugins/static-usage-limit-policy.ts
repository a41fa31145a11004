import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const staticUsageLimitParameters = z.strictObject({
  threshold: z.number().gt(0).max(1).default(1).describe('Saturation up to which requests are let through.'),
});

export const staticUsageLimitPolicy = definePlugin({
  type: 'static-usage-limit-policy',
  kinds: ['usage-limit-policy'],
  stability: 'Beta',
  doc: 'Queues of flow control: one limit of saturation for all priorities.',
  parameters: staticUsageLimitParameters,
});
