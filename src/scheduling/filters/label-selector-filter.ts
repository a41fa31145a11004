import { z } from 'zod';
import { LABEL_KEY, LABEL_VALUE, selectorAccepts, takesValues } from '../../contract/label-selector.js';
import { definePlugin } from '../plugin.js';

const labelKey = () =>
  z.string().regex(LABEL_KEY, { error: 'expected a label of Kubernetes, such as example.org/zone' });
const labelValue = () =>
  z.string().regex(LABEL_VALUE, { error: 'expected a value of a label: at most 63 letters, digits, - _ and .' });

const requirement = () =>
  z
    .strictObject({
      key: labelKey().describe('Label that the rule is about.'),
      operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('How the label is compared.'),
      values: z.array(labelValue()).default([]).describe('Values for In and NotIn; must be empty otherwise.'),
    })
    .refine((rule) => takesValues(rule.operator) === rule.values.length > 0, {
      error: 'In and NotIn need at least one entry in values, Exists and DoesNotExist take none',
    });

/** A Kubernetes LabelSelector. Empty = every endpoint. */
export const labelSelector = () =>
  z.strictObject({
    matchLabels: z.record(labelKey(), labelValue()).default({}).describe('Labels that must have exactly these values.'),
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
