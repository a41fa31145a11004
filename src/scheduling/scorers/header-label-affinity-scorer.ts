import { z } from 'zod';
import { definePlugin } from '../plugin.js';

const parameters = () =>
  z.strictObject({
    headerName: z.string().min(1).describe('Request header to look at.'),
    labelKey: z.string().min(1).describe('Label of the endpoints that is compared with it.'),
  });

export const headerLabelAffinityScorer = definePlugin({
  type: 'header-label-affinity-scorer',
  kinds: ['scorer'],
  stability: 'Alpha',
  doc: 'Prefers endpoints whose label has exactly the value of a request header: 1, else 0.',
  parameters,
  operations: ['OP_SCORE_HEADER_LABEL'],
  compile: ({ headerName, labelKey }, weight, { name, requestKey, label }) => ({
    code: 'OP_SCORE_HEADER_LABEL',
    name,
    weight,
    parameters: [
      requestKey(headerName),
      label(`text ${labelKey}`, ({ labels }) => ({ kind: 'text', text: labels[labelKey] })),
    ],
  }),
});
