/** Entries of `plugins` for the default profile. */
export const DEFAULT_PLUGINS = `- type: queue-scorer
- type: kv-cache-utilization-scorer
- type: prefix-cache-scorer
`;

/** Default of the section `schedulingProfiles`. */
export const DEFAULT_PROFILES = `schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: queue-scorer, weight: 2}
  - {pluginRef: kv-cache-utilization-scorer, weight: 2}
  - {pluginRef: prefix-cache-scorer, weight: 3}
`;

/** The configuration that is used when none is given. */
export const DEFAULT_CONFIGURATION = `apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
${DEFAULT_PLUGINS}${DEFAULT_PROFILES}`;
