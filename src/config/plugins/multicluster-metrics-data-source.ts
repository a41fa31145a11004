import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';
import {
  certificates,
  hasWholeClientCertificate,
  httpSource,
  portField,
  schemeField,
  WHOLE_CLIENT_CERTIFICATE,
} from './source-parameters.js';

const { path, interval } = httpSource({ path: '/metrics', what: 'page' });

export const multiclusterMetricsDataSourceParameters = z
  .strictObject({
    scheme: schemeField('https', 'metrics page'),
    path,
    port: portField('page'),
    ...certificates(false),
    interval,
  })
  .refine(hasWholeClientCertificate, WHOLE_CLIENT_CERTIFICATE);

export const multiclusterMetricsDataSource = definePlugin({
  type: 'multicluster-metrics-data-source',
  kinds: ['data-source'],
  stability: 'Alpha',
  doc:
    'Fetches the Prometheus metrics of the endpoint picker of every cluster. Unlike inside a cluster, the connection is ' +
    'encrypted and the certificate checked unless the parameters say otherwise.',
  parameters: multiclusterMetricsDataSourceParameters,
});
