import { z } from 'zod';
import { definePlugin } from './plugin.js';
import type { LabelValue } from './program.js';

const parameters = () =>
  z.strictObject({
    label: z
      .string()
      .min(1)
      .default('llm-d.ai/context-length-range')
      .describe('Label of the endpoints with the range of prompt lengths that they are for, like 0-8000.'),
    enableFiltering: z.boolean().default(false).describe('Also drop endpoints whose range does not hold the prompt.'),
  });

export const contextLengthAware = definePlugin({
  type: 'context-length-aware',
  kinds: ['filter', 'scorer'],
  stability: 'Beta',
  doc:
    'Sends prompts to endpoints that are meant for their length. In range: 0.3 + 0.7 × (0.7 / (1 + width / 10000) ' +
    '+ 0.3 × ' +
    '(max - length) / width); out of range: 0.3 / (1 + distance / 1000); no label 0.5; a label that is no range 0.',
  parameters,
  consumes: () => [{ key: 'prompt-tokens' }],
  operations: ['OP_FILTER_CONTEXT_LENGTH', 'OP_SCORE_CONTEXT_LENGTH'],
  compile: ({ label, enableFiltering }, weight, context) => {
    if (context.kind === 'filter' && !enableFiltering) return undefined;
    const column = context.label(`range ${label}`, ({ labels }) => contextLengthRange(labels[label]));
    const code = context.kind === 'filter' ? 'OP_FILTER_CONTEXT_LENGTH' : 'OP_SCORE_CONTEXT_LENGTH';
    return { code, name: context.name, weight, parameters: [column] };
  },
});

/**
 * The range of prompt lengths in an endpoint's label: `min-max` in tokens, both included. Any other text is bad, also
 * an empty one. An endpoint without the label takes any length.
 */
function contextLengthRange(label: string | undefined): LabelValue {
  if (label === undefined) return { kind: 'range', range: undefined };
  const parts = /^\s*(\d{1,15})\s*-\s*(\d{1,15})\s*$/.exec(label);
  if (parts === null) return { kind: 'range', range: 'bad' };
  const min = Number(parts[1]);
  const max = Number(parts[2]);
  return { kind: 'range', range: min > max ? 'bad' : { min, max } };
}
