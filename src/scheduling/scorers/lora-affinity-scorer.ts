import { z } from 'zod';
import { definePlugin } from '../plugin.js';

const parameters = () =>
  z.strictObject({
    rememberSent: z
      .boolean()
      .default(true)
      .describe(
        'Also remember which adapters were sent where: an engine keeps them while it has room, though its metrics ' +
          'stop naming ' +
          'them. false = the metrics alone, as llm-d-router.',
      ),
    baseModels: z
      .array(z.string().min(1))
      .default([])
      .describe(
        'Names of base models that score 0.5 everywhere, whatever the endpoints have room for. Not needed to keep ' +
          'requests ' +
          ('for base models apart from where they were sent: only a name that an engine has shown as an adapter, in ' +
            'its metrics or its ') +
          'list of models, is remembered.',
      ),
  });

export const loraAffinityScorer = definePlugin({
  type: 'lora-affinity-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc:
    'Prefers endpoints that have the LoRA adapter of the request: running 1, loaded as far as we remember 0.9, ' +
    'room for ' +
    'one more 0.8, waiting 0.6, else 0. Nothing is remembered of a model that no engine has shown as an adapter.',
  signals: ['LoRA adapters'],
  parameters,
  baseModels: ({ baseModels }) => baseModels,
  operations: ['OP_SCORE_ADAPTER'],
  compile: ({ rememberSent }, weight, { name }) => ({
    code: 'OP_SCORE_ADAPTER',
    name,
    weight,
    parameters: [rememberSent ? 1 : 0],
  }),
});
