import { z } from 'zod';
import { once } from '../../runtime/once.js';
import { definePlugin } from '../../scheduling/plugin.js';
import { httpSource, schemeField } from './source-parameters.js';

const { path, interval } = httpSource({ path: '/metrics', what: 'page' });

export const dcgmDataSourceParameters = once(() =>
  z.strictObject({
    scheme: schemeField('http', "exporter's page"),
    path,
    port: z.int().min(1).max(65_535).default(9400).describe('Port of the exporter.'),
    insecureSkipVerify: z.boolean().default(true).describe('Accept any certificate (https).'),
    useNodeAddress: z
      .boolean()
      .default(false)
      .describe("Ask the exporter of the endpoint's node: at the address in its label nodeAddress, else at its own."),
    interval,
  }),
);

export const dcgmDataSource = definePlugin({
  type: 'dcgm-data-source',
  kinds: ['data-source'],
  stability: 'Alpha',
  doc: 'Fetches the GPU metrics of every endpoint from NVIDIA DCGM Exporter, beside the model server or one per node.',
  parameters: dcgmDataSourceParameters,
});
