import { z } from 'zod';
import { duration, parseDuration } from '../../scheduling/duration.js';
import { definePlugin } from '../../scheduling/plugin.js';

export const shortestFirstParameters = z.strictObject({
  msPerToken: z
    .number()
    .min(0)
    .default(15)
    .describe('Milliseconds that each prompt token which is not cached puts a request back.'),
  ageBound: duration
    .refine((text) => (parseDuration(text) ?? 0) >= 0, { error: 'must not be negative' })
    .default('30s')
    .describe('No request is overtaken by one that came so much later.'),
});

export const shortestFirstOrderingPolicy = definePlugin({
  type: 'shortest-first-ordering-policy',
  kinds: ['ordering-policy'],
  stability: 'Beta',
  doc:
    'Queues of flow control: short prompts before long ones, as if each token had cost waiting time already, with a bound ' +
    'on how far a request can be put back. Lowers the mean wait in a deep queue; the longest requests wait a little longer.',
  source: 'Pointsman: weighted shortest processing time (Smith 1956) with an age bound',
  parameters: shortestFirstParameters,
});
