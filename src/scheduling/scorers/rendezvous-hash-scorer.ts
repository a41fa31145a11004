import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { hashedPair, hashKeyParameters } from './hash-key.js';

export const rendezvousHashScorer = definePlugin({
  type: 'rendezvous-hash-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Sends requests with the same header value to the same endpoint, on every replica of the picker: a random ' +
    'number for ' +
    ('each pair of key and endpoint, the highest wins. Endpoints above loadFactor × mean requests score 0. Without ' +
      'the ') +
    'header 0.5 for all.',
  source:
    'highest random weight (Thaler and Ravishankar 1998; AIBrix session-affinity), bounded loads (Mirrokni, ' +
    'Thorup, Zadimoghaddam 2016)',
  parameters: () => z.strictObject(hashKeyParameters()),
  consumes: () => [{ key: 'in-flight-load' }],
  operations: ['OP_SCORE_RENDEZVOUS'],
  compile: ({ headerName, loadFactor }, weight, context) => ({
    code: 'OP_SCORE_RENDEZVOUS',
    name: context.name,
    weight,
    parameters: [...hashedPair(headerName, context), loadFactor],
  }),
});
