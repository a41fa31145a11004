import type { PluginDefinition } from '../../scheduling/plugin.js';
import { withoutEffect } from './without-effect.js';

/** Plugins of llm-d-router's next release that load and do nothing yet. */
export const laterPlugins: readonly PluginDefinition[] = [
  withoutEffect({
    type: 'served-model-filter',
    kind: 'filter',
    stability: 'Alpha',
    does: 'Keeps the endpoints that list the model of the request.',
    why: 'every endpoint is kept; lora-affinity-scorer prefers those that show the adapter',
  }),
  withoutEffect({
    type: 'lora-load-state-scorer',
    kind: 'scorer',
    stability: 'Alpha',
    does: 'Prefers the endpoints where the adapter of the request is loaded, on the GPU or in host memory.',
    why: 'lora-affinity-scorer prefers those that show the adapter',
  }),
  withoutEffect({
    type: 'models-responder',
    kind: 'responder',
    stability: 'Alpha',
    does: 'Answers GET /v1/models with what all endpoints of the pool serve.',
    why: 'one endpoint answers for itself',
  }),
  withoutEffect({
    type: 'session-state-producer',
    kind: 'producer',
    stability: 'Alpha',
    does: 'Counts the turns, tokens and requests in flight of each session for other plugins.',
    why: 'no plugin reads them',
  }),
];
