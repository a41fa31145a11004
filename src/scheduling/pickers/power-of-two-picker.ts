import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import { endpointCount, picksApart } from './endpoint-count.js';

export const powerOfTwoPicker = definePlugin({
  type: 'power-of-two-picker',
  kinds: ['picker'],
  stability: 'Beta',
  doc:
    'Draws two candidates by lot and picks the better one: by score, then by fewer requests in flight. Several ' +
    'pickers ' +
    'that know nothing of each other do not all run to the same endpoint.',
  source: 'the power of two choices (Mitzenmacher 2001; SGLang Model Gateway power_of_two, AIBrix power-of-two)',
  parameters: () =>
    z.strictObject({
      ...endpointCount().shape,
      choices: z.int().min(1).max(64).default(2).describe('How many candidates are drawn.'),
    }),
  operations: ['OP_PICK_BEST_OF'],
  compile: (parameters, weight, context) => {
    const [count, ...hosts] = picksApart(parameters, context);
    return {
      code: 'OP_PICK_BEST_OF',
      name: context.name,
      weight,
      parameters: [count!, parameters.choices, ...hosts],
    };
  },
});
