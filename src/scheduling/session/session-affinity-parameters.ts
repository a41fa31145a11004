import { z } from 'zod';

const source = () =>
  z
    .strictObject({
      header: z.string().optional().describe('Request header with the session id.'),
      attribute: z.string().optional().describe('Attribute with the session id, left by another plugin.'),
      producer: z.string().optional().describe('Name of a session-id-producer that finds the session id.'),
    })
    .refine((given) => Object.values(given).filter((value) => value !== undefined && value !== '').length === 1, {
      error: 'exactly one of header, attribute or producer must be set',
    });

const headerConfig = () =>
  z.strictObject({
    header: z.string().default('x-session-token').describe('Header of requests and answers that carries the token.'),
    tokenFormat: z
      .enum(['name', 'signed'])
      .default('name')
      .describe('name: base64 of namespace/name. signed: opaque, and only the picker can make it.'),
    keyFile: z
      .string()
      .optional()
      .describe('File with the key of signed tokens, at least 16 bytes, the same on every replica.'),
  });

const sessionConfig = () =>
  z.strictObject({
    sources: z
      .array(source())
      .default([])
      .describe('Where the session id is, the first that is not empty counts. None: the header x-session-id.'),
    evictionTtlSeconds: z
      .number()
      .min(0)
      .default(300)
      .describe('How long a binding lives after its last use; 0 means the default.'),
    evictionSweepSeconds: z
      .number()
      .min(0)
      .default(10)
      .describe('How often bindings that are over are removed; 0 means the default.'),
    maxSessions: z
      .int()
      .min(1)
      .default(100_000)
      .describe('Bindings that are kept; the least recently used leaves first.'),
  });

/** Parameters of every plugin of sessions. */
export const sessionAffinityFields = () => ({
  strategy: z
    .enum(['encoded_endpoint_header', 'session_id'])
    .default('encoded_endpoint_header')
    .describe('encoded_endpoint_header: the client sends back a token. session_id: the picker remembers the session.'),
  profileName: z
    .string()
    .default('')
    .describe('Profile whose pick the session sticks to; empty = the primary profile.'),
  encodedEndpointHeaderConfig: headerConfig().prefault({}).describe('Of the strategy encoded_endpoint_header.'),
  sessionIdConfig: sessionConfig().prefault({}).describe('Of the strategy session_id.'),
});

/** Refinement of parameters with these fields. */
export const signedNeedsKey: [
  (given: { readonly encodedEndpointHeaderConfig: z.output<ReturnType<typeof headerConfig>> }) => boolean,
  { error: string; path: string[] },
] = [
  ({ encodedEndpointHeaderConfig: { tokenFormat, keyFile } }) => tokenFormat !== 'signed' || keyFile !== undefined,
  { error: 'tokenFormat signed needs a keyFile', path: ['encodedEndpointHeaderConfig', 'keyFile'] },
];

/** Parameters of session-affinity-filter and session-affinity-scorer. */
export const sessionAffinityParameters = () => z.strictObject(sessionAffinityFields()).refine(...signedNeedsKey);

/** Parameters that name files. */
export const SESSION_FILES = [['encodedEndpointHeaderConfig', 'keyFile']] as const;

export type SessionAffinityParameters = z.output<ReturnType<typeof sessionAffinityParameters>>;
