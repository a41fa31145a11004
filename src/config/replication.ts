import { resolve } from 'node:path';
import { z } from 'zod';
import { once } from '../runtime/once.js';

/** The `replication` section. */
export const replicationConfig = once(() =>
  z.strictObject({
    nats: z
      .string()
      .refine(isNatsUrl, 'must be like nats://nats:4222, without user and password')
      .describe('Address of the NATS servers: nats://host:4222 or tls://host:4222.'),
    group: z.string().min(1).max(100).optional().describe('Replicas of one group share; the name of the pool.'),
    hashKeyFile: z
      .string()
      .optional()
      .describe(
        'File with a secret that all replicas have: the seed of the block hashes and the key that signs messages are ' +
          'made of it.',
      ),
    jetStream: z
      .boolean()
      .default(false)
      .describe(
        'Keeps coefficients and levels of tenants in a key-value bucket of JetStream, for when all replicas end.',
      ),
    credentialsFile: z.string().optional().describe('File with user:password for NATS.'),
  }),
);

export type ReplicationConfig = z.output<ReturnType<typeof replicationConfig>>;

/**
 * Returns whether a text is an address of NATS servers without credentials, which would be shown with the
 * configuration.
 */
export function isNatsUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  return ['nats:', 'tls:'].includes(protocol) && hostname !== '' && username === '' && password === '';
}

/** The section with its paths resolved. */
export function resolveReplication(
  config: ReplicationConfig | undefined,
  folder: string,
): ReplicationConfig | undefined {
  if (config === undefined) return undefined;
  const absolute = (path: string | undefined) => (path === undefined ? undefined : resolve(folder, path));
  const { hashKeyFile, credentialsFile, ...rest } = config;
  return {
    ...rest,
    ...(hashKeyFile === undefined ? {} : { hashKeyFile: absolute(hashKeyFile) }),
    ...(credentialsFile === undefined ? {} : { credentialsFile: absolute(credentialsFile) }),
  };
}
