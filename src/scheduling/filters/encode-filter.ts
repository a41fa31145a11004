import { ignoredParameters } from '../ignored-parameters.js';
import { definePlugin } from '../plugin.js';
import { ROLE_LABEL } from './role-label.js';

const ENCODING_ROLES: ReadonlySet<string> = new Set(['encode', 'encode-prefill', 'encode-prefill-decode']);

export const encodeFilter = definePlugin({
  type: 'encode-filter',
  kinds: ['filter'],
  stability: 'Beta',
  doc: `Keeps endpoints that are marked for encoding: label ${ROLE_LABEL} is one of ${[...ENCODING_ROLES].join(', ')}.`,
  ...ignoredParameters,
  operations: ['OP_FILTER_MASK'],
  compile: (_parameters, weight, { name, mask }) => {
    const index = mask('encode-filter', (labels) => {
      const role = labels[ROLE_LABEL];
      return role !== undefined && ENCODING_ROLES.has(role);
    });
    return { code: 'OP_FILTER_MASK', name, weight, parameters: [index] };
  },
});
