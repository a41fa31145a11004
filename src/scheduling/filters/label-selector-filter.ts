import { definePlugin } from '../plugin.js';
import { selectorAccepts } from './label-selector.js';
import { labelSelector } from './label-selector-schema.js';

export const labelSelectorFilter = definePlugin({
  type: 'label-selector-filter',
  kinds: ['filter'],
  stability: 'Beta',
  doc: 'Keeps endpoints whose labels match a Kubernetes label selector, which stands directly in the parameters.',
  parameters: labelSelector,
  compile: (selector, weight, { name, mask }) => {
    const index = mask(`selector ${JSON.stringify(selector)}`, (labels) => selectorAccepts(selector, labels));
    return { code: 'OP_FILTER_MASK', name, weight, parameters: [index] };
  },
});
