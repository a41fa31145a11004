import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const edfOrderingPolicy = definePlugin({
  type: 'edf-ordering-policy',
  kinds: ['ordering-policy'],
  stability: 'Beta',
  doc:
    'Queues of flow control: the request whose wait must end first goes first. The end is arrival + time to live, or what the ' +
    'request says in x-pointsman-deadline-ms, whichever comes first.',
  parameters: z.strictObject({}),
});
