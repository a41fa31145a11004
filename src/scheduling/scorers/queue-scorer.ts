import { ignoredParameters } from '../ignored-parameters.js';
import { definePlugin } from '../plugin.js';

export const queueScorer = definePlugin({
  type: 'queue-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Prefers endpoints with fewer waiting requests: (max - waiting) / (max - min) over the candidates; 1 for all ' +
    'when they are equal.',
  signals: ['waiting requests'],
  ...ignoredParameters,
  operations: ['OP_SCORE_QUEUE'],
  compile: (_parameters, weight, { name }) => ({ code: 'OP_SCORE_QUEUE', name, weight, parameters: [] }),
});
