import { ignoredParameters } from '../ignored-parameters.js';
import { definePlugin } from '../plugin.js';
import { ROLE_LABEL } from './role-label.js';

const DECODING_ROLES: ReadonlySet<string> = new Set(['decode', 'prefill-decode', 'both', 'encode-prefill-decode']);

export const decodeFilter = definePlugin({
  type: 'decode-filter',
  kinds: ['filter'],
  stability: 'Beta',
  doc: `Keeps endpoints that can decode: label ${ROLE_LABEL} is absent or one of ${[...DECODING_ROLES].join(', ')}.`,
  ...ignoredParameters,
  operations: ['OP_FILTER_MASK'],
  compile: (_parameters, weight, { name, mask }) => {
    const index = mask('decode-filter', (labels) => {
      const role = labels[ROLE_LABEL];
      return role === undefined || DECODING_ROLES.has(role);
    });
    return { code: 'OP_FILTER_MASK', name, weight, parameters: [index] };
  },
});
