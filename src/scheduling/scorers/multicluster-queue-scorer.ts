import { valueSource } from '../endpoint-values.js';
import { ignoredParameters } from '../ignored-parameters.js';
import { definePlugin } from '../plugin.js';

export const multiclusterQueueScorer = definePlugin({
  type: 'multicluster-queue-scorer',
  kinds: ['scorer'],
  stability: 'Alpha',
  doc:
    'Prefers clusters whose model servers have fewer waiting requests on average: (max - waiting) / (max - min) ' +
    'over the ' +
    'candidates, 1 when all are equal, 0 for a cluster that does not tell.',
  ...ignoredParameters,
  consumes: () => [{ key: 'multicluster-load' }],
  operations: ['OP_SCORE_ATTRIBUTE'],
  compile: (_parameters, weight, context) => {
    const source = valueSource('llm-d.ai/multicluster-queue-size', context);
    return { code: 'OP_SCORE_ATTRIBUTE', name: context.name, weight, parameters: [source, 1, 1, 0, 0] };
  },
});
