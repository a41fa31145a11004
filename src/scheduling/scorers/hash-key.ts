import { z } from 'zod';
import { endpointAddress } from '../../contract/endpoint.js';
import type { CompileContext } from '../plugin.js';

/** Parameters of scorers that send equal keys to equal endpoints. */
export const hashKeyParameters = () => ({
  headerName: z.string().min(1).default('x-session-id').describe('Request header whose value is the key.'),
  loadFactor: z
    .number()
    .refine((factor) => factor === 0 || factor >= 1, { error: 'must be 0 (no bound), or 1 or more' })
    .default(1.25)
    .describe('Requests in flight at which an endpoint is passed over, as a multiple of the mean; 0 = no bound.'),
});

/** The key and the endpoints' own hashes, as numbers of the program. */
export function hashedPair(headerName: string, { requestKey, label }: CompileContext): readonly number[] {
  const address = label('address', (endpoint) => ({ kind: 'text', text: endpointAddress(endpoint) }));
  return [requestKey(headerName), address];
}
