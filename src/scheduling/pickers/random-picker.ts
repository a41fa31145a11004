import { definePlugin } from '../plugin.js';
import { endpointCount, picksApart } from './endpoint-count.js';

export const randomPicker = definePlugin({
  type: 'random-picker',
  kinds: ['picker'],
  stability: 'Beta',
  doc: 'Picks among the candidates at random; scores do not count.',
  parameters: endpointCount,
  operations: ['OP_PICK_RANDOM'],
  compile: (parameters, weight, context) => ({
    code: 'OP_PICK_RANDOM',
    name: context.name,
    weight,
    parameters: picksApart(parameters, context),
  }),
});
