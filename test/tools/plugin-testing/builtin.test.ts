import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../../dist/src/config/builtin-plugins.js';
import { checksOf } from '../../../dist/tools/plugin-testing/index.js';
import { LENIENT_PLUGINS } from '../../scheduling/lenient-plugins.ts';

/** Parameters of the plugins that need some. */
const PARAMETERS: Readonly<Record<string, unknown>> = {
  'endpoint-attribute-filter': { attribute: 'queue', algorithm: { type: 'topK', topK: { k: 2 } } },
  'utilization-filter': { conditions: [{ metric: 'waiting-queue', maxValue: 5 }] },
  'by-label': { label: 'zone', validValues: ['a'] },
  'header-label-affinity-scorer': { headerName: 'x-zone', labelKey: 'zone' },
  'endpoint-attribute-scorer': { attributeKey: 'queue', algorithm: { type: 'linear_lower_is_better' } },
  'session-id-producer': { headerName: 'x-session-id' },
  'request-attribute-reporter': { attributes: [{ key: { name: 'cost' }, expression: 'usage.prompt_tokens' }] },
  'disaggregatedset-rollout-screener': { scope: { labelSelector: 'app=vllm' }, revisionGating: { mode: 'disabled' } },
  'file-discovery': { path: 'endpoints.yaml' },
  'k8s-notification-source': { version: 'v1', kind: 'Pod' },
  'multicluster-file-discovery': { path: 'clusters.yaml' },
  'priority-holdback-policy': { minCeiling: 0.5 },
  'max-saturation-detector': { detectors: ['utilization-detector'] },
};

/** Rule that a built-in plugin breaks for the sake of configurations of llm-d-router, which load there. */
const LENIENT = 'definition: an unknown parameter is refused';

describe.each(builtinPlugins.map((definition) => [definition.type, definition] as const))(
  'the built-in plugin %s',
  (type, definition) => {
    for (const { name, run } of checksOf(definition, { parameters: PARAMETERS[type] })) {
      if (LENIENT_PLUGINS.has(type) && name === LENIENT)
        it(`a built-in plugin may break "${name}"`, () => expect(run).toThrow());
      else it(`a built-in plugin keeps "${name}"`, () => run());
    }
  },
);
