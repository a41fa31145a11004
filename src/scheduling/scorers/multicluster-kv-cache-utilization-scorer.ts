import { valueSource } from '../endpoint-values.js';
import { ignoredParameters } from '../ignored-parameters.js';
import { definePlugin } from '../plugin.js';

export const multiclusterKvCacheUtilizationScorer = definePlugin({
  type: 'multicluster-kv-cache-utilization-scorer',
  kinds: ['scorer'],
  stability: 'Alpha',
  doc: 'Prefers clusters with more free KV cache: 1 - average share in use; 0 for a cluster that does not tell.',
  ...ignoredParameters,
  consumes: () => [{ key: 'multicluster-load' }],
  operations: ['OP_SCORE_ATTRIBUTE'],
  compile: (_parameters, weight, context) => {
    const source = valueSource('llm-d.ai/multicluster-kv-cache-utilization', context);
    return { code: 'OP_SCORE_ATTRIBUTE', name: context.name, weight, parameters: [source, 1, 0, 0, 1] };
  },
});
