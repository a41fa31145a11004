import type { PluginDefinition } from '../../scheduling/plugin.js';
import { withoutEffect } from './without-effect.js';

const OWN = '`flowControl.enableEviction` brings its own choice of victims';

/** Policies of llm-d-router's evictor, which ignores configured ones. */
export const evictionPlugins: readonly PluginDefinition[] = [
  withoutEffect({
    type: 'sheddable-eviction-filter',
    kind: 'eviction-policy',
    stability: 'Alpha',
    does: 'Lets only requests with a priority below 0 be evicted.',
    why: OWN,
  }),
  withoutEffect({
    type: 'priority-then-time-eviction-order-policy',
    kind: 'eviction-policy',
    stability: 'Alpha',
    does: 'Evicts the request of the lowest priority first, of those the newest.',
    why: OWN,
  }),
];
