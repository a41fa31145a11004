import { definePlugin } from '../plugin.js';
import { endpointCount, picks } from './endpoint-count.js';

export const randomPicker = definePlugin({
  type: 'random-picker',
  kinds: ['picker'],
  stability: 'Beta',
  doc: 'Picks among the candidates at random; scores do not count.',
  parameters: endpointCount,
  operations: ['OP_PICK_RANDOM'],
  compile: (parameters, weight, { name }) => ({
    code: 'OP_PICK_RANDOM',
    name,
    weight,
    parameters: [picks(parameters)],
  }),
});
