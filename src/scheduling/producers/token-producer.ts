import { z } from 'zod';
import { definePlugin } from '../plugin.js';

const parameters = z.strictObject({
  modelName: z.string().optional().describe('Accepted for compatibility; an estimate needs no model.'),
  estimate: z.strictObject({}).default({}).describe('Count four bytes of prompt as one token. The only mode so far.'),
});

export const tokenProducer = definePlugin({
  type: 'token-producer',
  kinds: ['producer'],
  stability: 'Beta',
  doc: 'Says how many tokens a prompt has: an estimate of four bytes for a token, counted while the body arrives.',
  parameters,
  produces: ['prompt-tokens'],
  defaultProducerOf: ['prompt-tokens'],
});
