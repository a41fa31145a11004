import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

const seconds = z.number().min(0);

export const programAwareParameters = z.strictObject({
  strategy: z.enum(['las']).default('las').describe('Least attained service, the only one there is.'),
  lasWeightService: z
    .number()
    .min(0)
    .default(0.8)
    .describe('Weight of the service that a flow has had: less is better.'),
  lasWeightHeadWait: z
    .number()
    .min(0)
    .default(0.2)
    .describe('Weight of the wait of its first request: longer is better.'),
  lasHalfLifeSeconds: seconds.default(60).describe('Time in which service counts for half; 0 = it never fades.'),
  evictionTtlSeconds: seconds.default(3600).describe('Without effect: an idle flow is forgotten after 5 minutes.'),
  evictionSweepSeconds: seconds.default(300).describe('Without effect.'),
});

export const programAwareFairness = definePlugin({
  type: 'program-aware-fairness',
  kinds: ['fairness-policy'],
  stability: 'Beta',
  doc:
    'Queues of flow control: the flow that has had the least service, prompt + 2 × output tokens, weighed against the wait of ' +
    'its first request. Service fades with time.',
  parameters: programAwareParameters,
});
