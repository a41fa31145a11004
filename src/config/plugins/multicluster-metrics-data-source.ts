import { once } from '../../runtime/once.js';
import { definePlugin } from '../../scheduling/plugin.js';
import { CERTIFICATE_FILES, metricsPageParameters } from './source-parameters.js';

export const multiclusterMetricsDataSourceParameters = once(() => metricsPageParameters('https', false));

export const multiclusterMetricsDataSource = definePlugin({
  type: 'multicluster-metrics-data-source',
  kinds: ['data-source'],
  stability: 'Alpha',
  doc:
    'Fetches the Prometheus metrics of the endpoint picker of every cluster. Unlike inside a cluster, the ' +
    'connection is ' +
    'encrypted and the certificate checked unless the parameters say otherwise.',
  parameters: multiclusterMetricsDataSourceParameters,
  files: CERTIFICATE_FILES,
});
