import { z } from 'zod';
import { definePlugin } from '../plugin.js';

const parameters = z.strictObject({
  rememberSent: z
    .boolean()
    .default(true)
    .describe(
      'Also remember which adapters were sent where: an engine keeps them while it has room, though its metrics stop naming ' +
        'them. false = the metrics alone, as llm-d-router.',
    ),
  baseModels: z
    .array(z.string().min(1))
    .default([])
    .describe('Names of base models: a request for one scores 0.5 everywhere. Any other name is taken for an adapter.'),
});

export const loraAffinityScorer = definePlugin({
  type: 'lora-affinity-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Prefers endpoints that have the LoRA adapter of the request: running 1, loaded as far as we remember 0.9, room for ' +
    'one more 0.8, waiting 0.6, else 0.',
  signals: ['LoRA adapters'],
  parameters,
  baseModels: ({ baseModels }) => baseModels,
  compile: ({ rememberSent }, weight, { name }) => ({
    code: 'OP_SCORE_ADAPTER',
    name,
    weight,
    parameters: [rememberSent ? 1 : 0],
  }),
});
