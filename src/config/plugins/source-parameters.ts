import { z } from 'zod';
import { parseDuration } from '../../scheduling/duration.js';
import { durationOrNone } from '../../scheduling/duration-schema.js';

const PORT = z.int().min(1).max(65_535).optional();

/** Parameters that sources which are fetched over HTTP share, each with its own defaults. */
export function httpSource({ path, what }: { readonly path: string; readonly what: string }) {
  return {
    path: z.string().startsWith('/', { error: 'must start with /' }).default(path).describe(`Path of the ${what}.`),
    interval: durationOrNone
      .refine((text) => (parseDuration(text) ?? 0) >= 0, { error: 'must not be negative' })
      .optional()
      .describe('Time between two fetches; --refresh-metrics-interval when absent, empty or 0.'),
  };
}

function portField(what: string) {
  return PORT.describe(`Port of the ${what}; the endpoint's own when absent.`);
}

export function schemeField(assumed: 'http' | 'https', what: string) {
  return z.enum(['http', 'https']).default(assumed).describe(`How the ${what} is fetched.`);
}

/** Requirements on the server's certificate, and the client certificate. */
export function certificates(skipVerify: boolean) {
  return {
    insecureSkipVerify: z.boolean().default(skipVerify).describe('Accept any certificate (https).'),
    caCertPath: z.string().optional().describe('Certificates to check the server against (https).'),
    clientCertPath: z.string().optional().describe('Client certificate (https).'),
    clientKeyPath: z.string().optional().describe('Key of the client certificate (https).'),
  };
}

/** Parameters of `certificates` that name files. */
export const CERTIFICATE_FILES = [['caCertPath'], ['clientCertPath'], ['clientKeyPath']] as const;

/** Refuses one half of a client certificate in a schema with `certificates`. */
export function withWholeClientCertificate<Schema extends z.ZodType<ClientCertificate>>(schema: Schema): Schema {
  return schema.refine(({ clientCertPath, clientKeyPath }) => !clientCertPath === !clientKeyPath, {
    error: 'clientCertPath and clientKeyPath must be given together',
  });
}

interface ClientCertificate {
  readonly clientCertPath?: string | undefined;
  readonly clientKeyPath?: string | undefined;
}

/** Parameters of a source that fetches a metrics page. */
export function metricsPageParameters(scheme: 'http' | 'https', skipVerify: boolean) {
  const { path, interval } = httpSource({ path: '/metrics', what: 'page' });
  return withWholeClientCertificate(
    z.strictObject({
      scheme: schemeField(scheme, 'metrics page'),
      path,
      port: portField('page'),
      ...certificates(skipVerify),
      interval,
    }),
  );
}
