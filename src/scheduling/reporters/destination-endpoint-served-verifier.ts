import { PATIENT_BUDGET_MS } from '../hooks/plugin-guard.js';
import { ignoredParameters } from '../ignored-parameters.js';
import { definePlugin } from '../plugin.js';

/** Header that the conformance tests of the Gateway API inference extension read. */
const RESULT_HEADER = 'x-conformance-test-served-endpoint';

export const destinationEndpointServedVerifier = definePlugin({
  type: 'destination-endpoint-served-verifier',
  kinds: ['reporter'],
  stability: 'Beta',
  doc:
    'For conformance tests: tells the client, in the header x-conformance-test-served-endpoint, which endpoint the ' +
    'proxy says has answered, or what is missing: all metadata of its load balancer (envoy.lb), or the endpoint in it.',
  ...ignoredParameters,
  budgetMs: PATIENT_BUDGET_MS,
  host: () => ({
    responseHeaders: (_request, response) => {
      const missing = response.balanced ? 'destination endpoint served' : 'envoy lb';
      response.setHeader(RESULT_HEADER, response.served ?? `fail: missing ${missing} metadata`);
    },
  }),
});
