/** Scorers of the default profile with their weights. */
export const DEFAULT_SCORERS: readonly (readonly [type: string, weight: number])[] = [
  ['queue-scorer', 2],
  ['kv-cache-utilization-scorer', 2],
  ['prefix-cache-scorer', 3],
];

/** Entries of `plugins` for the default profile. */
export const DEFAULT_PLUGINS = DEFAULT_SCORERS.map(([type]) => `- type: ${type}\n`).join('');

/** Default of the section `schedulingProfiles`. */
export const DEFAULT_PROFILES = `schedulingProfiles:
- name: default
  plugins:
${DEFAULT_SCORERS.map(([type, weight]) => `  - {pluginRef: ${type}, weight: ${weight}}\n`).join('')}`;

/** The configuration that is used when none is given. */
export const DEFAULT_CONFIGURATION = `apiVersion: llm-d.ai/v1
kind: EndpointPickerConfig
plugins:
${DEFAULT_PLUGINS}${DEFAULT_PROFILES}`;
