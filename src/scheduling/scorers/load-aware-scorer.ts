import { z } from 'zod';
import { definePlugin } from '../plugin.js';

const DEFAULT_THRESHOLD = 128;

const parameters = () =>
  z.strictObject({
    threshold: z
      .int()
      .default(DEFAULT_THRESHOLD)
      .describe('Waiting requests from which on an endpoint scores 0; 0 or less means the default.'),
  });

export const loadAwareScorer = definePlugin({
  type: 'load-aware-scorer',
  kinds: ['scorer'],
  stability: 'Beta',
  doc: 'Prefers endpoints with a short queue, on an absolute scale: 0.5 × (1 - min(waiting, threshold) / threshold).',
  signals: ['waiting requests'],
  parameters,
  operations: ['OP_SCORE_LOAD_AWARE'],
  compile: ({ threshold }, weight, { name }) => ({
    code: 'OP_SCORE_LOAD_AWARE',
    name,
    weight,
    parameters: [threshold > 0 ? threshold : DEFAULT_THRESHOLD],
  }),
});
