import { definePlugin } from '../plugin.js';
import { endpointCount, picksApart } from './endpoint-count.js';

export const weightedRandomPicker = definePlugin({
  type: 'weighted-random-picker',
  kinds: ['picker'],
  stability: 'Beta',
  doc: 'Picks at random, with chances in proportion to the scores. Score 0 is picked only when every score is 0.',
  parameters: endpointCount,
  operations: ['OP_PICK_WEIGHTED_RANDOM'],
  compile: (parameters, weight, context) => ({
    code: 'OP_PICK_WEIGHTED_RANDOM',
    name: context.name,
    weight,
    parameters: picksApart(parameters, context),
  }),
});
