import { ignoredParameters } from '../ignored-parameters.js';
import { definePlugin } from '../plugin.js';

export const runningRequestsSizeScorer = definePlugin({
  type: 'running-requests-size-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Prefers endpoints with fewer running requests: (max - running) / (max - min) over the candidates; 1 for all ' +
    'when they are equal.',
  signals: ['running requests'],
  ...ignoredParameters,
  operations: ['OP_SCORE_RUNNING'],
  compile: (_parameters, weight, { name }) => ({ code: 'OP_SCORE_RUNNING', name, weight, parameters: [] }),
});
