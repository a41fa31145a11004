import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const roundRobinFairnessPolicy = definePlugin({
  type: 'round-robin-fairness-policy',
  kinds: ['fairness-policy'],
  stability: 'Beta',
  doc: 'Queues of flow control: flows in turn, one request each.',
  parameters: z.strictObject({}),
});
