import { definePlugin } from '../plugin.js';
import { endpointCount, picks } from './endpoint-count.js';

export const roundRobinPicker = definePlugin({
  type: 'round-robin-picker',
  kinds: ['picker'],
  stability: 'Beta',
  doc: 'Picks the candidates one after the other, all shards in one common turn; scores do not count.',
  source: 'round robin (Envoy ROUND_ROBIN, SGLang Model Gateway round_robin)',
  parameters: endpointCount,
  operations: ['OP_PICK_ROUND_ROBIN'],
  compile: (parameters, weight, { name }) => ({
    code: 'OP_PICK_ROUND_ROBIN',
    name,
    weight,
    parameters: [picks(parameters)],
  }),
});
