import { z } from 'zod';
import type { UtilizationSettings } from '../../contract/saturation-settings.js';
import { durationMilliseconds, parseDuration } from '../../scheduling/duration.js';
import { duration } from '../../scheduling/duration-schema.js';
import { definePlugin } from '../../scheduling/plugin.js';
import { saturationFilter } from '../shedding.js';

const utilizationDetectorParameters = () =>
  z.strictObject({
    queueDepthThreshold: z.int().min(1).default(5).describe('Waiting requests at which an endpoint is saturated.'),
    kvCacheUtilThreshold: z
      .number()
      .gt(0)
      .max(1)
      .default(0.8)
      .describe('Share of the KV cache at which an endpoint is saturated.'),
    metricsStalenessThreshold: duration
      .refine((text) => (parseDuration(text) ?? 1) > 0, { error: 'must be longer than 0' })
      .default('200ms')
      .describe('Age from which on the signals of an endpoint count as saturated.'),
    headroom: z.number().min(0).default(0).describe('Share above the thresholds that is still allowed.'),
  });

export const utilizationDetector = definePlugin({
  type: 'utilization-detector',
  kinds: ['saturation-detector', 'filter'],
  stability: 'Beta',
  doc:
    'Saturation of the pool: the mean over its endpoints of max(waiting / threshold, KV usage / threshold). In a ' +
    'profile it ' +
    'is a filter: keeps endpoints with fresh signals below both thresholds × (1 + headroom), all when there is none.',
  parameters: utilizationDetectorParameters,
  saturationSettings: settingsOf,
  operations: ['OP_FILTER_UNSATURATED'],
  compile: (given, weight, { name }) => ({ ...saturationFilter(settingsOf(given)), name, weight }),
  advise: ({ headroom }) =>
    headroom > 1 ? [`headroom ${headroom} is large: endpoints may go to ${1 + headroom} times their thresholds`] : [],
});

function settingsOf({
  metricsStalenessThreshold,
  ...given
}: z.output<ReturnType<typeof utilizationDetectorParameters>>): UtilizationSettings {
  const metricsStalenessMs = durationMilliseconds(metricsStalenessThreshold);
  return { type: 'utilization-detector', ...given, metricsStalenessMs };
}

/** Settings of a configuration without a detector. */
export const DEFAULT_SATURATION: UtilizationSettings = settingsOf(utilizationDetectorParameters().parse({}));
