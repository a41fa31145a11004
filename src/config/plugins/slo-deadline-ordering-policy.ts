import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const sloDeadlineOrderingPolicy = definePlugin({
  type: 'slo-deadline-ordering-policy',
  kinds: ['ordering-policy'],
  stability: 'Beta',
  doc:
    'Queues of flow control: the request whose first token is due first goes first, by x-llm-d-slo-ttft-ms. Requests ' +
    'without that header go last.',
  parameters: z.strictObject({}),
});
