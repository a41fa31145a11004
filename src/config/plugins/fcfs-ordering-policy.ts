import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const fcfsOrderingPolicy = definePlugin({
  type: 'fcfs-ordering-policy',
  kinds: ['ordering-policy'],
  stability: 'Beta',
  doc: 'Queues of flow control: the request that has waited longest first.',
  parameters: z.strictObject({}),
});
