import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';
import { flowWeights } from './flow-weights.js';

export const deficitRoundRobinParameters = z.strictObject({
  weights: flowWeights,
  quantumTokens: z.int().min(1).default(2048).describe('Tokens that a flow of weight 1 gets in a round.'),
});

export const deficitRoundRobinFairnessPolicy = definePlugin({
  type: 'deficit-round-robin-fairness-policy',
  kinds: ['fairness-policy'],
  stability: 'Beta',
  doc:
    'Queues of flow control: flows in turn, each until a quantum of tokens is used up; what was used beyond it is paid back in ' +
    'the next rounds. Tokens as in start-time-fairness-policy.',
  source: 'Pointsman: deficit round robin (Shreedhar, Varghese 1995) in tokens',
  parameters: deficitRoundRobinParameters,
});
