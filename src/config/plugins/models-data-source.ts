import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';
import {
  certificates,
  hasWholeClientCertificate,
  httpSource,
  schemeField,
  WHOLE_CLIENT_CERTIFICATE,
} from './source-parameters.js';

const { path } = httpSource({ path: '/v1/models', what: 'list of models' });

export const modelsDataSourceParameters = z
  .strictObject({
    scheme: schemeField('http', 'list of models'),
    path,
    ...certificates(true),
    interval: httpSource({ path: '/', what: '' }).interval.describe('Time between two fetches; 1s when absent.'),
  })
  .refine(hasWholeClientCertificate, WHOLE_CLIENT_CERTIFICATE);

export const modelsDataSource = definePlugin({
  type: 'models-data-source',
  kinds: ['data-source'],
  stability: 'Beta',
  doc: 'Asks every endpoint which models it serves (GET /v1/models).',
  parameters: modelsDataSourceParameters,
});
