import { z } from 'zod';
import { once } from '../../runtime/once.js';
import { definePlugin } from '../../scheduling/plugin.js';
import { CERTIFICATE_FILES, metricsPageParameters } from './source-parameters.js';

export const metricsDataSourceParameters = once(() =>
  metricsPageParameters('http', true).safeExtend({
    families: z
      .array(z.string())
      .optional()
      .describe('Metrics that llm-d-router keeps of a page. Not needed: what no plugin reads is skipped anyway.'),
  }),
);

export const metricsDataSource = definePlugin({
  type: 'metrics-data-source',
  kinds: ['data-source'],
  stability: 'Stable',
  doc: 'Fetches the Prometheus metrics of every endpoint at a fixed interval.',
  parameters: metricsDataSourceParameters,
  files: CERTIFICATE_FILES,
});
