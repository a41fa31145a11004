import { z } from 'zod';
import type { EndpointViews } from '../hooks/hooks.js';
import { definePlugin } from '../plugin.js';

const parameters = () =>
  z.strictObject({
    queueDepthThreshold: z.int().gt(0).default(5).describe('Waiting requests at which an endpoint counts as full.'),
    kvCacheUtilThreshold: z
      .number()
      .gt(0)
      .default(0.8)
      .describe('Share of the KV cache in use at which an endpoint counts as full.'),
    power: z.number().gt(0).default(5).describe('Steepness of the curve.'),
    k: z
      .number()
      .gt(0)
      .default(300)
      .describe('Height of the curve: everything is turned away at (1 / k) ^ (1 / power).'),
  });

type Thresholds = Pick<z.output<ReturnType<typeof parameters>>, 'queueDepthThreshold' | 'kvCacheUtilThreshold'>;

/**
 * Mean over the endpoints of max(waiting / threshold, KV usage / threshold); an endpoint with unknown signals is full.
 */
function saturation(endpoints: EndpointViews, { queueDepthThreshold, kvCacheUtilThreshold }: Thresholds): number {
  let sum = 0;
  for (const slot of endpoints.slots) {
    const known = endpoints.isKnown(slot, 'waiting') || endpoints.isKnown(slot, 'kvUsage');
    const waiting = endpoints.waiting[slot]! / queueDepthThreshold;
    sum += known ? Math.max(waiting, endpoints.kvUsage[slot]! / kvCacheUtilThreshold) : 1;
  }
  return endpoints.slots.length === 0 ? 0 : sum / endpoints.slots.length;
}

export const probabilisticAdmitter = definePlugin({
  type: 'probabilistic-admitter',
  kinds: ['admitter'],
  stability: 'Beta',
  doc:
    'Turns sheddable requests (priority below 0) away with the probability min(saturation ^ power × k, 1), so that ' +
    'load is shed step by step. They get status 429.',
  parameters,
  host: ({ power, k, ...thresholds }, { random }) => ({
    admit: ({ priority }, endpoints) => {
      if (priority >= 0) return undefined;
      const probability = Math.min(saturation(endpoints, thresholds) ** power * k, 1);
      if (probability <= 0 || random() >= probability) return undefined;
      const message = 'system saturated, sheddable request dropped';
      return { code: 'ResourceExhausted', message, reason: 'rejected-saturated' };
    },
  }),
});
