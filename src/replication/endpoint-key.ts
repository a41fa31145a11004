import { createHash } from 'node:crypto';
import { type Endpoint, endpointAddress } from '../contract/endpoint.js';

/**
 * Number of an endpoint that is the same in every replica and after a restart. Address and incarnation go into it: a
 * new process at the same address has an empty cache, and another number. Slots differ between replicas.
 */
export function endpointKey(endpoint: Pick<Endpoint, 'address' | 'port' | 'incarnation'>): bigint {
  const text = `${endpointAddress(endpoint)}\0${endpoint.incarnation ?? ''}`;
  return createHash('sha256').update(text).digest().readBigUInt64LE();
}
