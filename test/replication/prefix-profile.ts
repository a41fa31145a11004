/** Plugins that place by cached prefixes first, whose capacities are fixed, so that replicas have to agree on them. */
export const PREFIX_PROFILE = `plugins:
- {type: approx-prefix-cache-producer, parameters: {blockSizeTokens: 64, autoTune: false, lruCapacityPerServer: 31250}}
- type: prefix-cache-scorer
- type: active-request-scorer
- type: max-score-picker
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: prefix-cache-scorer, weight: 10}
  - {pluginRef: active-request-scorer}
  - {pluginRef: max-score-picker}
`;
