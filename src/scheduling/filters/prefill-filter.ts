import { ignoredParameters } from '../ignored-parameters.js';
import { definePlugin } from '../plugin.js';
import { ROLE_LABEL } from './role-label.js';

const PREFILL_ROLES: ReadonlySet<string> = new Set([
  'prefill',
  'encode-prefill',
  'prefill-decode',
  'both',
  'encode-prefill-decode',
]);

export const prefillFilter = definePlugin({
  type: 'prefill-filter',
  kinds: ['filter'],
  stability: 'Beta',
  doc: `Keeps endpoints that are marked for prefill: label ${ROLE_LABEL} is one of ${[...PREFILL_ROLES].join(', ')}.`,
  ...ignoredParameters,
  operations: ['OP_FILTER_MASK'],
  compile: (_parameters, weight, { name, mask }) => {
    const index = mask('prefill-filter', (labels) => {
      const role = labels[ROLE_LABEL];
      return role !== undefined && PREFILL_ROLES.has(role);
    });
    return { code: 'OP_FILTER_MASK', name, weight, parameters: [index] };
  },
});
