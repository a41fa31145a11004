import { z } from 'zod';
import { once } from '../../runtime/once.js';
import { definePlugin } from '../../scheduling/plugin.js';
import { specOrNone } from './core-metrics-extractor.js';

/** A metric; an empty one, as templates write it, is the default. */
const metricOr = (standard: string) => specOrNone.overwrite((spec) => spec || standard).default(standard);

export const multiclusterMetricsExtractorParameters = once(() =>
  z.strictObject({
    kvCacheUtilizationMetric: metricOr('llm_d_epp_average_kv_cache_utilization').describe(
      'Share of the KV cache in use, over the cluster.',
    ),
    queueSizeMetric: metricOr('llm_d_epp_average_queue_size').describe(
      'Waiting requests per model server, over the cluster.',
    ),
  }),
);

export const multiclusterMetricsExtractor = definePlugin({
  type: 'multicluster-metrics-extractor',
  kinds: ['extractor'],
  stability: 'Alpha',
  doc:
    'Reads what the endpoint picker of another cluster says about its pool: the attributes ' +
    'llm-d.ai/multicluster-kv-cache-utilization and llm-d.ai/multicluster-queue-size.',
  parameters: multiclusterMetricsExtractorParameters,
  produces: ['multicluster-load'],
});
