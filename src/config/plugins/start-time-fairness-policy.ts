import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';
import { flowWeights } from './flow-weights.js';

export const startTimeFairnessParameters = z.strictObject({ weights: flowWeights });

export const startTimeFairnessPolicy = definePlugin({
  type: 'start-time-fairness-policy',
  kinds: ['fairness-policy'],
  stability: 'Beta',
  doc:
    'Queues of flow control: every flow gets the same tokens, or its share of them: prompt that is not cached, and output, ' +
    'paid as it is estimated and corrected while it streams. The policy of pools whose configuration has no flowControl section.',
  source: 'Pointsman: start-time fair queueing (Goyal, Vin, Cheng 1996) of attained service',
  parameters: startTimeFairnessParameters,
});
