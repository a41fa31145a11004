import { z } from 'zod';
import { duration, parseDuration } from '../../scheduling/duration.js';
import { definePlugin } from '../../scheduling/plugin.js';

export const metricsDataSourceParameters = z
  .strictObject({
    scheme: z.enum(['http', 'https']).default('http').describe('How the metrics page is fetched.'),
    path: z.string().startsWith('/', { error: 'must start with /' }).default('/metrics').describe('Path of the page.'),
    port: z.int().min(1).max(65_535).optional().describe("Port of the page; the endpoint's own when absent."),
    insecureSkipVerify: z.boolean().default(true).describe('Accept any certificate (https).'),
    caCertPath: z.string().optional().describe('Certificates to check the server against (https).'),
    clientCertPath: z.string().optional().describe('Client certificate (https).'),
    clientKeyPath: z.string().optional().describe('Key of the client certificate (https).'),
    interval: duration
      .refine((text) => (parseDuration(text) ?? 1) > 0, { error: 'must be longer than 0' })
      .optional()
      .describe('Time between two fetches; --refresh-metrics-interval when absent.'),
  })
  .refine((given) => (given.clientCertPath === undefined) === (given.clientKeyPath === undefined), {
    error: 'clientCertPath and clientKeyPath must be given together',
  });

export const metricsDataSource = definePlugin({
  type: 'metrics-data-source',
  kinds: ['data-source'],
  stability: 'Stable',
  doc: 'Fetches the Prometheus metrics of every endpoint at a fixed interval.',
  parameters: metricsDataSourceParameters,
});
