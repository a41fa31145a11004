export type Chart = 'gateway' | 'standalone';

/** Values of a release, in the form that both llm-d-router's charts and ours take. */
export interface ValueSet {
  readonly chart: Chart;
  readonly values: Readonly<Record<string, unknown>>;
}

const modelServers = { matchLabels: { app: 'vllm' } };

/** A configuration of the user's own, as `router.epp.pluginsCustomConfig` takes it. */
const CUSTOM_CONFIGURATION = `apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: queue-scorer
- type: max-score-picker
schedulingProfiles:
- name: default
  plugins:
  - pluginRef: queue-scorer
  - pluginRef: max-score-picker
`;

/** The releases that the charts are tested with. */
export const VALUE_SETS = {
  basic: { chart: 'gateway', values: { router: { modelServers } } },
  'three replicas': { chart: 'gateway', values: { router: { modelServers, epp: { replicas: 3 } } } },
  'grpc servers': { chart: 'gateway', values: { router: { modelServers: { ...modelServers, protocol: 'grpc' } } } },
  'latency predictor': {
    chart: 'gateway',
    values: { router: { modelServers, latencyPredictor: { enabled: true, predictionServers: { count: 2 } } } },
  },
  'prometheus with auth': {
    chart: 'gateway',
    values: { router: { modelServers, monitoring: { prometheus: { enabled: true } } } },
  },
  'prometheus without auth': {
    chart: 'gateway',
    values: { router: { modelServers, monitoring: { prometheus: { enabled: true, auth: { enabled: false } } } } },
  },
  'custom configuration': {
    chart: 'gateway',
    values: {
      router: {
        modelServers,
        epp: {
          flags: { v: 3, 'metrics-staleness-threshold': '5s' },
          pluginsConfigFile: 'custom-plugins.yaml',
          pluginsCustomConfig: { 'custom-plugins.yaml': CUSTOM_CONFIGURATION },
        },
      },
    },
  },
  tracing: { chart: 'gateway', values: { router: { modelServers, tracing: { enabled: true } } } },
  'standalone with sidecar': { chart: 'standalone', values: { router: { modelServers } } },
  'standalone with proxy service': {
    chart: 'standalone',
    values: { router: { modelServers, proxy: { mode: 'service' } } },
  },
  'selector mode': {
    chart: 'standalone',
    values: { router: { modelServers, inferencePool: { create: false } } },
  },
} as const satisfies Record<string, ValueSet>;

export type ValueSetName = keyof typeof VALUE_SETS;
