import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const softReflectiveCeilingPolicy = definePlugin({
  type: 'soft-reflective-ceiling-policy',
  kinds: ['usage-limit-policy'],
  stability: 'Alpha',
  doc:
    'Queues of flow control: limits of lower priorities that fall while the pool fills up; above its limit a priority is ' +
    'let through now and then, the more seldom the fuller the pool is.',
  parameters: z.strictObject({}),
});
