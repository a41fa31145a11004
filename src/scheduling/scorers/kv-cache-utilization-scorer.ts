import { ignoredParameters } from '../ignored-parameters.js';
import { definePlugin } from '../plugin.js';

export const kvCacheUtilizationScorer = definePlugin({
  type: 'kv-cache-utilization-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc: 'Prefers endpoints with more free KV cache: 1 - usage.',
  signals: ['KV usage'],
  ...ignoredParameters,
  operations: ['OP_SCORE_KV_USAGE'],
  compile: (_parameters, weight, { name }) => ({ code: 'OP_SCORE_KV_USAGE', name, weight, parameters: [] }),
});
