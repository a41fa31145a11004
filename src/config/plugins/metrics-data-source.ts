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

export const metricsDataSourceParameters = z
  .strictObject({
    scheme: schemeField('http', 'metrics page'),
    path,
    port: portField('page'),
    ...certificates(true),
    interval,
  })
  .refine(hasWholeClientCertificate, WHOLE_CLIENT_CERTIFICATE);

export const metricsDataSource = definePlugin({
  type: 'metrics-data-source',
  kinds: ['data-source'],
  stability: 'Stable',
  doc: 'Fetches the Prometheus metrics of every endpoint at a fixed interval.',
  parameters: metricsDataSourceParameters,
});
