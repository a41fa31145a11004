import { z } from 'zod';
import { once } from '../../runtime/once.js';
import { definePlugin } from '../../scheduling/plugin.js';
import {
  CERTIFICATE_FILES,
  certificates,
  httpSource,
  schemeField,
  withWholeClientCertificate,
} from './source-parameters.js';

export const modelsDataSourceParameters = once(() =>
  withWholeClientCertificate(
    z.strictObject({
      scheme: schemeField('http', 'list of models'),
      path: httpSource({ path: '/v1/models', what: 'list of models' }).path,
      ...certificates(true),
      interval: httpSource({ path: '/', what: '' }).interval.describe('Time between two fetches; 1s when absent or 0.'),
    }),
  ),
);

export const modelsDataSource = definePlugin({
  type: 'models-data-source',
  kinds: ['data-source'],
  stability: 'Beta',
  doc:
    'Asks every endpoint which models it serves (GET /v1/models); dataLayer.sources must wire it to ' +
    'models-data-extractor.',
  parameters: modelsDataSourceParameters,
  files: CERTIFICATE_FILES,
});
