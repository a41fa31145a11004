import { definePlugin } from '../plugin.js';
import { endpointCount, picksApart } from './endpoint-count.js';

export const maxScorePicker = definePlugin({
  type: 'max-score-picker',
  kinds: ['picker'],
  stability: 'Beta',
  doc:
    'Picks the endpoint with the highest score. Ties go to endpoints whose signals are known, then to the fewest ' +
    'requests in flight, then by lot.',
  parameters: endpointCount,
  operations: ['OP_PICK_MAX_SCORE'],
  compile: (parameters, weight, context) => ({
    code: 'OP_PICK_MAX_SCORE',
    name: context.name,
    weight,
    parameters: picksApart(parameters, context),
  }),
});
