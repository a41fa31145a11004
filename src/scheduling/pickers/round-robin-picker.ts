import { definePlugin } from '../plugin.js';
import { endpointCount, picksApart } from './endpoint-count.js';

export const roundRobinPicker = definePlugin({
  type: 'round-robin-picker',
  kinds: ['picker'],
  stability: 'Beta',
  doc: 'Picks the candidates one after the other, all shards in one common turn; scores do not count.',
  source: 'round robin (Envoy ROUND_ROBIN, SGLang Model Gateway round_robin)',
  parameters: endpointCount,
  operations: ['OP_PICK_ROUND_ROBIN'],
  compile: (parameters, weight, context) => ({
    code: 'OP_PICK_ROUND_ROBIN',
    name: context.name,
    weight,
    parameters: picksApart(parameters, context),
  }),
});
