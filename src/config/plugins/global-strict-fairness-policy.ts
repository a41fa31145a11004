import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const globalStrictFairnessPolicy = definePlugin({
  type: 'global-strict-fairness-policy',
  kinds: ['fairness-policy'],
  stability: 'Beta',
  doc: 'Queues of flow control: the best request over all flows, whichever flow it is in.',
  parameters: z.strictObject({}),
});
