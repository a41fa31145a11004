import type { Endpoint } from '../../dist/src/contract/endpoint.js';

/** An endpoint of namespace `default`. */
export function endpointOf(name: string, address: string, port: number, labels: Record<string, string> = {}): Endpoint {
  return { id: `default/${name}`, name, namespace: 'default', address, port, labels };
}
