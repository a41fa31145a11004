import { definePlugin } from '../plugin.js';
import { endpointCount, picksApart } from './endpoint-count.js';

export const leastRequestPicker = definePlugin({
  type: 'least-request-picker',
  kinds: ['picker'],
  stability: 'Beta',
  doc: 'Picks the endpoint with the fewest requests in flight from here; of those the highest score, then by lot.',
  source: 'least request (Envoy LEAST_REQUEST, AIBrix least-request)',
  parameters: endpointCount,
  consumes: () => [{ key: 'in-flight-load' }],
  operations: ['OP_PICK_LEAST_REQUEST'],
  compile: (parameters, weight, context) => ({
    code: 'OP_PICK_LEAST_REQUEST',
    name: context.name,
    weight,
    parameters: picksApart(parameters, context),
  }),
});
