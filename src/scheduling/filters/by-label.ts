import { z } from 'zod';
import { definePlugin } from '../plugin.js';

const parameters = () =>
  z
    .strictObject({
      label: z.string().min(1).describe('Label to look at.'),
      validValues: z.array(z.string()).default([]).describe('Values of the label that an endpoint may have.'),
      allowsNoLabel: z.boolean().default(false).describe('Keep endpoints without the label.'),
    })
    .refine((given) => given.allowsNoLabel || given.validValues.length > 0, {
      error: 'needs at least one entry in validValues, or allowsNoLabel: true, otherwise no endpoint can pass',
    });

export const byLabel = definePlugin({
  type: 'by-label',
  kinds: ['filter'],
  stability: 'Beta',
  deprecated: { replacement: 'label-selector-filter' },
  doc: 'Keeps endpoints whose label has one of the valid values.',
  parameters,
  operations: ['OP_FILTER_MASK'],
  compile: ({ label, validValues, allowsNoLabel }, weight, { name, mask }) => {
    const index = mask(`by-label ${JSON.stringify([label, validValues, allowsNoLabel])}`, (labels) => {
      const value = labels[label];
      return value === undefined ? allowsNoLabel : validValues.includes(value);
    });
    return { code: 'OP_FILTER_MASK', name, weight, parameters: [index] };
  },
});
