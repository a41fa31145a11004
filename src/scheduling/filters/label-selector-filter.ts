import { z } from 'zod';
import { selectorAccepts, takesValues } from '../../contract/label-selector.js';
import { definePlugin } from '../plugin.js';

const requirement = () =>
  z
    .strictObject({
      key: z.string().min(1).describe('Label that the rule is about.'),
      operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('How the label is compared.'),
      values: z.array(z.string()).default([]).describe('Values for In and NotIn; must be empty otherwise.'),
    })
    .refine((rule) => takesValues(rule.operator) === rule.values.length > 0, {
      error: 'In and NotIn need at least one entry in values, Exists and DoesNotExist take none',
    });

/** A Kubernetes LabelSelector. Empty = every endpoint. */
export const labelSelector = () =>
  z.strictObject({
    matchLabels: z.record(z.string(), z.string()).default({}).describe('Labels that must have exactly these values.'),
    matchExpressions: z.array(requirement()).default([]).describe('Rules that must all hold.'),
  });

export const labelSelectorFilter = definePlugin({
  type: 'label-selector-filter',
  kinds: ['filter'],
  stability: 'Beta',
  doc: 'Keeps endpoints whose labels match a Kubernetes label selector, which stands directly in the parameters.',
  parameters: labelSelector,
  operations: ['OP_FILTER_MASK'],
  compile: (selector, weight, { name, mask }) => {
    const index = mask(`selector ${JSON.stringify(selector)}`, (labels) => selectorAccepts(selector, labels));
    return { code: 'OP_FILTER_MASK', name, weight, parameters: [index] };
  },
});
