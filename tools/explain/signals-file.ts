import { z } from 'zod';
import { ConfigurationDocument } from '../../src/config/document.js';
import { validate } from '../../src/config/validation.js';
import type { Endpoint } from '../../src/contract/endpoint.js';
import { didYouMean } from '../../src/runtime/nearest-name.js';

const count = z
  .int()
  .min(0)
  .max(2 ** 31 - 1);

const endpointState = z.strictObject({
  waitingRequests: count.optional(),
  runningRequests: count.optional(),
  kvUsage: z.number().min(0).max(1).optional(),
  loraAdapters: z
    .strictObject({
      running: z.array(z.string()).default([]),
      waiting: z.array(z.string()).default([]),
      max: count,
    })
    .optional(),
  // Every request in flight is charged like a real one, so their number has the ledger's bound.
  inFlightRequests: z.int().min(0).max(1000).default(0),
  inFlightTokens: count.default(0),
  cachedTokens: count.default(0),
  // Of the configuration's custom metrics and further sources.
  attributes: z.record(z.string(), z.number()).default({}),
});

/** Signals of an endpoint at the time of a decision; absent ones are unknown. */
export type EndpointState = z.output<typeof endpointState>;

const signalsFile = z.record(z.string(), endpointState);
const UNKNOWN: EndpointState = endpointState.parse({});

/**
 * Reads the state of endpoints by name or `namespace/name`, as in `server-0: {waitingRequests: 3, kvUsage: 0.5}`.
 * @returns one state for each of `endpoints`, in their order
 * @throws ConfigurationError with place and field
 */
export function readSignals(text: string, file: string, endpoints: readonly Endpoint[]): readonly EndpointState[] {
  const document = new ConfigurationDocument(text, file);
  // Names first: below a name that is none, every field would be called unknown.
  refuseOtherNames(document, endpoints);
  const states = validate(signalsFile, document.data ?? {}, document);
  return endpoints.map(({ id, name }) => states[id] ?? states[name] ?? UNKNOWN);
}

function refuseOtherNames(document: ConfigurationDocument, endpoints: readonly Endpoint[]): void {
  const { data } = document;
  if (data === null || typeof data !== 'object' || Array.isArray(data)) return;
  const names = new Set(endpoints.flatMap(({ id, name }) => [id, name]));
  for (const name of Object.keys(data)) {
    if (names.has(name)) continue;
    const hint = didYouMean(name, names) || `; known: ${endpoints.map((endpoint) => endpoint.name).join(', ')}`;
    throw document.error([name], `there is no such endpoint${hint}`, 'key');
  }
}
