import { definePlugin } from '../../scheduling/plugin.js';
import { CERTIFICATE_FILES, metricsPageParameters } from './source-parameters.js';

export const metricsDataSourceParameters = metricsPageParameters('http', true);

export const metricsDataSource = definePlugin({
  type: 'metrics-data-source',
  kinds: ['data-source'],
  stability: 'Stable',
  doc: 'Fetches the Prometheus metrics of every endpoint at a fixed interval.',
  parameters: metricsDataSourceParameters,
  files: CERTIFICATE_FILES,
});
