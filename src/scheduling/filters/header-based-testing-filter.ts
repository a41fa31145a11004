import { PATIENT_BUDGET_MS } from '../hooks/plugin-guard.js';
import { ignoredParameters } from '../ignored-parameters.js';
import { definePlugin } from '../plugin.js';

/** Header of the conformance tests of the Gateway API inference extension. */
const SELECTION_HEADER = 'test-epp-endpoint-selection';

export const headerBasedTestingFilter = definePlugin({
  type: 'header-based-testing-filter',
  kinds: ['filter'],
  stability: 'Beta',
  doc:
    'For conformance tests: keeps the endpoints that the header test-epp-endpoint-selection lists, as IP addresses ' +
    'or ' +
    'ip:port with commas between them. Without the header none is left, so every other request is refused.',
  ...ignoredParameters,
  budgetMs: PATIENT_BUDGET_MS,
  host: () => ({
    filter: ({ headers }, endpoints, column) => {
      const named = new Set((headers.get(SELECTION_HEADER) ?? '').split(',').map((part) => part.trim()));
      for (const slot of endpoints.slots) {
        const { address, endpoint } = endpoints.at(slot)!;
        column[slot] = named.has(address) || named.has(endpoint.address) ? 1 : 0;
      }
    },
  }),
});
