import { z } from 'zod';
import { PATIENT_BUDGET_MS } from '../hooks/plugin-guard.js';
import { definePlugin } from '../plugin.js';

/** Header of the conformance tests of the Gateway API inference extension. */
const SELECTION_HEADER = 'test-epp-endpoint-selection';

// Not strict: llm-d-router ignores all parameters of this plugin.
const parameters = () =>
  z.looseObject({
    withoutHeader: z
      .enum(['none', 'all'])
      .default('none')
      .describe(
        'What a request without the header, or with an empty one, may use: none is refused (llm-d-router), all is ' +
          'what the conformance tests of gateways expect.',
      ),
  });

export const headerBasedTestingFilter = definePlugin({
  type: 'header-based-testing-filter',
  kinds: ['filter'],
  stability: 'Beta',
  doc:
    'For conformance tests: keeps the endpoints that the header test-epp-endpoint-selection lists, as IP addresses ' +
    'or ip:port with commas between them.',
  parameters,
  advise: ({ withoutHeader: _, ...others }: Readonly<Record<string, unknown>>): readonly string[] => {
    const names = Object.keys(others);
    return names.length === 0 ? [] : [`takes withoutHeader only: ${names.join(', ')} has no effect`];
  },
  budgetMs: PATIENT_BUDGET_MS,
  host: ({ withoutHeader }) => ({
    filter: ({ headers }, endpoints, column) => {
      const selection = headers.get(SELECTION_HEADER) ?? '';
      if (selection === '' && withoutHeader === 'all') return;
      const named = new Set(selection.split(',').map((part) => part.trim()));
      for (const slot of endpoints.slots) {
        const { address, endpoint } = endpoints.at(slot)!;
        column[slot] = named.has(address) || named.has(endpoint.address) ? 1 : 0;
      }
    },
  }),
});
